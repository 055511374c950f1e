"""Boots the user-mode kernel as an ordinary process and runs one command inside it.

The guest reads of the host's files what a run needs, see ``walls``, and can change none of them: its
root is an overlay whose upper layer is memory. Only the results directory is the host's own. Inside,
the command runs as root, whatever user starts it outside. Two runs with the same command, seed and
start time behave identically: virtual time does not depend on the host's speed, the kernel's randomness
is seeded, and neither kernel nor programs are loaded at random addresses.
"""

import logging
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from testbed.engines.virtual import errors
from testbed.engines.virtual.cpu import Cpu
from testbed.engines.virtual.kernel import Kernel, find_kernel
from testbed.engines.virtual.memory import choose_memory_place, require_files
from testbed.engines.virtual.output import FollowedFile, fingerprint
from testbed.engines.virtual.probe import Probe
from testbed.engines.virtual.walls import walls
from testbed.engines.virtual.watchdog import Observation, Watchdog

# Where a guest's wall clock starts by default: 2020-01-01, 00:00 UTC.
EPOCH_NS = 1_577_836_800 * 10**9

_log = logging.getLogger(__name__)
_PUMP_S = 0.02
_LOOK_S = 1.0
# Open vSwitch counts the CPUs at most once in 10 s of a clock that starts at 0 when the guest
# boots; before that it assumes none and handles no packet. Virtual seconds cost nothing.
_START_S = 15
_CONSOLE_TAIL = 12

Sink = Callable[[bytes], object]


def _to(stream: str) -> Sink:
    def write(data: bytes) -> None:
        target = getattr(sys, stream)
        target.flush()
        target.buffer.write(data)
        target.buffer.flush()

    return write


@dataclass(frozen=True)
class GuestSettings:
    """How a guest is to be run."""

    results: Path  # the one directory of the host that the guest may write to; same path inside
    virtual: bool = True  # whether the kernel runs in virtual time; otherwise in real time
    # Whether all code that runs in it is trusted. Then its programs need not be traced, where the
    # kernel can do without: they are faster, but could read and write all memory of the guest.
    trusted: bool = False
    kernel: Kernel | None = None  # which to boot; None: the best that is built
    # Where the wall clock starts in virtual time, since 1970; None: at the host's time.
    start_ns: int | None = EPOCH_NS
    seed: int = 0  # the seed of the guest kernel's random numbers
    # The most memory that the guest may use; the host allocates only what it touches.
    memory_mb: int = 2048
    cwd: Path = field(default_factory=Path.cwd)
    readable: Sequence[Path] = ()  # what it may read beside the system and the testbed
    # Added to (and overriding) a small fixed environment, see ``guest_environment``.
    env: Mapping[str, str] = field(default_factory=dict)
    # Seconds of CPU time without progress after which it is ended; see ``watchdog``.
    stall_s: float = 60.0
    quiet_s: float = 86_400.0  # virtual seconds without output or results after which it is ended
    timeout_s: float | None = None  # real seconds that the whole run may take
    # The console log; by default ``console.log`` in the results directory.
    console: Path | None = None
    stdout: Sink = field(default_factory=lambda: _to("stdout"))
    stderr: Sink = field(default_factory=lambda: _to("stderr"))


@dataclass(frozen=True)
class GuestResult:
    """How a command in a guest ended."""

    returncode: int  # as in subprocess: negative if a signal ended the command
    boot_s: float  # real seconds from the call until the command was started
    wall_s: float  # real seconds from the call until the guest had ended
    cpu_s: (
        float  # seconds of the host's CPUs that the guest used, which depend little on other load
    )
    guest_s: float  # seconds that the command took on the guest's clock
    kernel: str  # the version of the kernel
    # How it caught system calls, "ptrace" or "seccomp"; None if the host does not let us see.
    mode: str | None
    # "fixed", or "random" where the host does not let a process switch off their randomisation.
    addresses: str
    console: Path


def guest_environment(virtual: bool) -> dict[str, str]:
    """The environment that a command in a guest starts with."""
    programs = [str(Path(sys.executable).parent)]
    programs += [
        f"{base}/{kind}" for base in ("/usr/local", "/usr", "") for kind in ("sbin", "bin")
    ]
    return {
        "PATH": ":".join(programs),
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "TESTBED_GUEST": "virtual" if virtual else "real",
        # The same order of sets in every run, unbuffered output, no byte code that would be lost.
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Mininet imports distutils; that of setuptools takes a second and a half to import.
        "SETUPTOOLS_USE_DISTUTILS": "stdlib",
    }


def run_guest(command: Sequence[str], settings: GuestSettings) -> GuestResult:
    """Run a command in a guest of its own and return how it ended, or raise a ``GuestError``."""
    with Guest(command, settings) as guest:
        return guest.wait()


class Guest:
    """A guest that runs one command; a context manager that leaves nothing behind."""

    def __init__(self, command: Sequence[str], settings: GuestSettings) -> None:
        if not command:
            raise ValueError("a guest needs a command to run")
        self._command = list(command)
        self._settings = settings
        self._kernel = settings.kernel or find_kernel()
        self._results = settings.results.resolve()
        self.console = (settings.console or self._results / "console.log").resolve()
        self._guard: subprocess.Popen[bytes] | None = None
        self._boot_s: float | None = None
        self._mode: str | None = None
        self._cpu: Cpu | None = None

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        require_files()
        memory = choose_memory_place(self._settings.memory_mb)
        if memory.slow:
            _log.info(
                "no tmpfs has room for the guest: its memory is slow, in %s", memory.directory
            )
        try:
            self._results.mkdir(parents=True, exist_ok=True)
            self.console.write_bytes(b"")
            self._run = Path(tempfile.mkdtemp(prefix="causal-testbed-", dir=memory.directory))
        except OSError as error:
            raise errors.GuestError(f"The guest's files cannot be made: {error}.") from error
        try:
            self._prepare(self._run)
            self._boot(self._run)
        except BaseException:
            self.close()
            shutil.rmtree(self._run, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the guest, if it still runs, and wait until nothing of it is left."""
        if self._guard is not None:
            assert self._guard.stdin is not None
            assert self._guard.stdout is not None
            self._guard.stdin.close()
            self._guard.wait()
            self._guard.stdout.close()
            self._guard = None
            # The guard has removed it, unless somebody killed the guard.
            shutil.rmtree(self._run, ignore_errors=True)
        if self._cpu is not None:
            self._cpu.close()

    def wait(self) -> GuestResult:
        """Pass on the command's output until it ends, and return how it ended."""
        settings = self._settings
        watchdog = Watchdog(
            virtual=settings.virtual, stall_s=settings.stall_s, quiet_s=settings.quiet_s
        )
        with (
            self.console.open("ab", buffering=0) as console,
            FollowedFile(self._run / "stdout", settings.stdout, console.write) as stdout,
            FollowedFile(self._run / "stderr", settings.stderr, console.write) as stderr,
        ):
            looked_s = self._began
            while not self._has_ended():
                stdout.pump()
                stderr.pump()
                if self._boot_s is None and self._note_start():
                    watchdog.booted(self._probe.used_s())
                if (now_s := time.monotonic()) - looked_s >= _LOOK_S:
                    looked_s = now_s
                    output = hash((stdout.size, stderr.size, fingerprint(self._results)))
                    seen = Observation(now_s, self._probe.used_s(), self._probe.read(), output)
                    self._end_if(watchdog.observe(seen))
                    self._probe.tell(seen.used_s)
                self._end_if(self._overdue(now_s))
            stdout.pump()
            stderr.pump()
        self._note_start()
        return self._result()

    def _prepare(self, run: Path) -> None:
        """Write the instructions for init; see init.c."""
        settings = self._settings
        environment = {**guest_environment(settings.virtual), **settings.env}
        fields = [
            f"results={self._results}",
            f"cwd={settings.cwd.resolve()}",
            f"start={_START_S if settings.virtual else 0}",
            *(f"env={name}={value}" for name, value in environment.items()),
            *(f"arg={word}" for word in self._command),
        ]
        if any("\0" in text for text in fields):
            raise ValueError("a guest's command and environment cannot contain NUL characters")
        (run / "spec").write_bytes(b"".join(os.fsencode(text) + b"\0" for text in fields))
        (run / "walls").write_bytes(
            walls((run, self._results), self._kernel.linux, settings.readable)
        )
        # The kernel's command line must not vary, so it does not contain this path; see init.c.
        shutil.copy(self._kernel.init, run / "init")

    def _boot(self, run: Path) -> None:
        # The console is a file, and no other device of the guest is connected to the host: an
        # interrupt at a time that the host determines would make a run unrepeatable.
        words = [
            f"mem={self._settings.memory_mb}M",
            f"random-seed={self._settings.seed}",
            "norandmaps",
            *("rootfstype=hostfs", "rootflags=/", "ro", "init=/proc/self/cwd/init"),
            *("umid=guest", "con=null", "con0=fd:0,fd:1", "quiet"),
        ]
        if self._settings.virtual:
            words.append("time-travel=inf-cpu")
            if self._settings.start_ns is not None:
                words.append(f"time-travel-start={self._settings.start_ns}")
        if self._settings.trusted and self._kernel.release.can_leave_untraced:
            words.append("seccomp=auto")  # by ptrace all the same on a host that forbids it
        self._cpu = Cpu()
        with self._cpu.inherited():
            self._guard = subprocess.Popen(
                [self._kernel.guard, run, self.console, self._kernel.linux, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,  # select would not see a line that was read ahead
                env={"PATH": os.defpath, "HOME": str(run), "TMPDIR": str(run)},
            )
        assert self._guard.stdout is not None
        if not (line := self._guard.stdout.readline()):
            raise errors.BootFailedError("The guest's kernel could not be started.", self.console)
        pid, self._addresses = line.decode().split()
        self.kernel_pid = int(pid)
        self._probe = Probe(self.kernel_pid, self._kernel)

    def _has_ended(self) -> bool:
        """Wait a moment; whether the guest has ended."""
        assert self._guard is not None
        assert self._guard.stdout is not None
        return bool(select.select([self._guard.stdout], [], [], _PUMP_S)[0])

    def _status(self) -> list[list[str]]:
        """The lines that init wrote, each split at its first space."""
        try:
            text = (self._run / "status").read_text()
        except FileNotFoundError:
            return []
        return [line.split(" ", maxsplit=1) for line in text.splitlines()]

    def _note_start(self) -> bool:
        """Whether the command has been started; the first time, record how long booting took."""
        if self._boot_s is None and any(how == "started" for how, _ in self._status()):
            self._boot_s = time.monotonic() - self._began
            self._mode = self._probe.mode()
        return self._boot_s is not None

    def _overdue(self, now_s: float) -> str | None:
        limit = self._settings.timeout_s
        if limit is None or now_s - self._began < limit:
            return None
        return f"The guest has not come to an end within {limit:g} s and was ended."

    def _end_if(self, sentence: str | None) -> None:
        if sentence is not None:
            self.close()
            raise errors.GuestHungError(sentence, self.console)

    def _result(self) -> GuestResult:
        status = dict(self._status())
        if self._boot_s is None:
            why = f" It {status['error']}." if "error" in status else self._tail()
            raise errors.BootFailedError(f"The guest did not boot.{why}", self.console)
        if "error" in status:
            raise errors.ResultsNotWrittenError(
                f"The command ended, but the guest {status['error']}.", self.console
            )
        if not status.keys() & {"exit", "signal"}:
            raise errors.GuestKilledError(
                f"The guest was killed while it ran the command.{self._tail()}", self.console
            )
        assert self._guard is not None
        assert self._guard.stdout is not None
        _, used_ms = self._guard.stdout.readline().split()
        code, ended_ns = status.get("exit", status.get("signal", "")).split()
        return GuestResult(
            returncode=int(code) if "exit" in status else -int(code),
            boot_s=self._boot_s,
            wall_s=time.monotonic() - self._began,
            cpu_s=int(used_ms) / 1000,
            guest_s=(int(ended_ns) - int(status["started"])) / 1e9,
            kernel=self._kernel.version,
            mode=self._mode,
            addresses=self._addresses,
            console=self.console,
        )

    def _tail(self) -> str:
        lines = self.console.read_text("utf-8", "replace").splitlines()[-_CONSOLE_TAIL:]
        return (
            " The console log ends with:\n" + "\n".join(f"  {line}" for line in lines)
            if lines
            else ""
        )
