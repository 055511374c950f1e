"""Signals at random moments of commands: nothing is left running, and every run's status is true."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from scripts.hostility.cases import SMALL
from testbed.engines.mininet.kernel import machine
from testbed.runs.directory import RunDirectory

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
EARLY = "Fatal Python error: init"  # Python was interrupted before it could run anything of ours
PATIENCE_S = 120.0  # for a command to end after a signal, and for what it started to follow it
WHOLE_S = 1200.0  # for a command that is left alone: on a busy machine, setup takes minutes
LARGER = SMALL | {
    "topology": {"model": "ring", "nodes": 16},
    "workload": {"model": "steady", "senders": 16, "interval_ms": 1.0, "duration_ms": 200},
}
FILES = {
    "small.toml": SMALL,
    "larger.toml": LARGER,
    "sweep.toml": LARGER | {"seed": [1, 2, 3, 4]},
}
ROOT = Path(__file__).parents[2]
LAB = ROOT / "scripts" / "labs" / "02-fifo"
TESTBED = (sys.executable, "-m", "testbed")
SETUP = ("checkout/scripts/setup",)
COMMANDS: dict[str, tuple[object, ...]] = {  # what is interrupted
    "simulate": (*TESTBED, "run", "larger.toml", "--no-digest"),
    "mininet": (*TESTBED, "run", "small.toml", "--engine", "mininet", "--no-digest"),
    "virtual": (*TESTBED, "run", "small.toml", "--engine", "virtual", "--no-digest"),
    "sweep": (*TESTBED, "sweep", "sweep.toml"),
    "digest": (*TESTBED, "digest", "runs/small/latest"),
    "fuzz": (*TESTBED, "fuzz", "--protocol", "overlay", "--seeds", "200"),
    "grade": (*TESTBED, "grade", LAB, "anna.py", "ben.py"),
    "setup": SETUP,
}
PREPARED: dict[str, tuple[object, ...]] = {
    "digest": (*TESTBED, "run", "small.toml", "--no-digest"),
    "setup": ("git", "clone", "-q", ROOT, "checkout"),
}
RESUMED: dict[str, tuple[object, ...]] = {  # what can be called again, and then succeeds
    "sweep": COMMANDS["sweep"],
    "digest": COMMANDS["digest"],
    "grade": (*COMMANDS["grade"], "--resume"),
    "setup": SETUP,
}


@dataclass(frozen=True)
class Shot:
    """A command, a signal, and the fraction of the command's time at which it comes."""

    command: str
    number: signal.Signals
    moment: float

    def __str__(self) -> str:
        return f"{self.command}, {self.number.name} at {self.moment:.0%}"


def shots(commands: list[str], moments: int, seed: int) -> Iterator[Shot]:
    """So many moments of each command, the signals in turn."""
    rng = random.Random(seed)
    for command in commands:
        for index in range(moments):
            yield Shot(command, SIGNALS[index % len(SIGNALS)], rng.random())


class Range:
    """Where shots are tried, each in a directory of its own; how long commands take is measured."""

    def __init__(self) -> None:
        self._lasts: dict[str, float] = {}

    def fire(self, shot: Shot) -> str | None:
        """What was wrong, or None."""
        if shot.command not in self._lasts:
            begun = time.monotonic()
            if wrong := self._fire(shot.command, None, 0.0):
                return f"without a signal: {wrong}"
            self._lasts[shot.command] = time.monotonic() - begun
        return self._fire(shot.command, shot.number, shot.moment * self._lasts[shot.command])

    def _fire(self, name: str, number: signal.Signals | None, after: float) -> str | None:
        with tempfile.TemporaryDirectory(prefix="signals-") as top:
            place = Path(top)
            (place / "tmp").mkdir()
            for file, document in FILES.items():
                (place / file).write_text(tomli_w.dumps(document))
            for student in ("anna.py", "ben.py"):
                shutil.copy(LAB / "teacher" / "reference.py", place / student)
            if name in PREPARED:
                _started(PREPARED[name], place).wait(PATIENCE_S)
            before = _machine() if name == "mininet" else set()
            process = _started(COMMANDS[name], place)
            if number is not None:
                time.sleep(after)
                process.send_signal(number)
            wrong = (
                _ended(process, number, place / "said")
                or _left(process.pid, place, number)
                or _states(place)
            )
            if not wrong and name == "mininet":
                wrong = _remains(before)
            if not wrong and number is not None and name in RESUMED:
                again = _started(RESUMED[name], place)
                wrong = _ended(again, None, place / "said")
            return wrong


def _started(words: Sequence[object], place: Path) -> subprocess.Popen[bytes]:
    with (place / "said").open("wb") as said:
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=place,
            env=os.environ | {"TMPDIR": str(place / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def _ended(
    process: subprocess.Popen[bytes], number: signal.Signals | None, said: Path
) -> str | None:
    """Whether it ends, and with a status that says why."""
    patience_s = WHOLE_S if number is None else PATIENCE_S
    try:
        status = process.wait(patience_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"it had not ended after {patience_s:.0f} s"
    expected = {0} if number is None else {0, -number, 128 + number}
    if status in expected or (number is not None and EARLY in said.read_text(errors="replace")):
        return None
    words = said.read_text(errors="replace").strip().splitlines()
    return f"status {status}: {words[-1:]}"


def _left(session: int, place: Path, number: signal.Signals | None) -> str | None:
    """Whether anything that was started lives on, or temporary files are left."""
    until = time.monotonic() + PATIENCE_S
    while members := _members(session):
        if time.monotonic() > until:
            for pid in members:
                os.kill(pid, signal.SIGKILL)
            return f"{len(members)} processes are left: {', '.join(members.values())}"
        time.sleep(0.1)
    said = (place / "said").read_text(errors="replace")
    if EARLY in said:
        return None
    if "Traceback" in said or "should not happen" in said:
        return f"a bug: {said[max(0, said.find('Traceback')) :].strip()}"
    left = [] if number is signal.SIGKILL else sorted(os.listdir(place / "tmp"))
    return f"temporary files are left: {', '.join(left)}" if left else None


def _members(session: int) -> dict[int, str]:
    """The living processes of a session, by what they are called."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            state, _, _, its, *_ = rest.split()
            if int(its) == session and state != "Z":
                found[int(entry.name)] = name.partition("(")[2]
    return found


def _machine() -> set[str]:
    """What an emulated network adds to a machine: processes, interfaces, files."""
    found = {name for _, name in socket.if_nameindex()}
    found |= {str(file) for file in machine.RUN.glob("causal-testbed-*")}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.add(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
    return found


def _remains(before: set[str]) -> str | None:
    """Whether something of an emulated network stays on the machine."""
    until = time.monotonic() + PATIENCE_S
    while left := _machine() - before:
        if time.monotonic() > until:
            return f"on the machine is left: {', '.join(sorted(left))}"
        time.sleep(0.1)
    return None


def _states(place: Path) -> str | None:
    """Whether every run says what it is: none is running any more."""
    manifests = (place / "runs").rglob("manifest.json")
    states = {str(file.parent.name): RunDirectory(file.parent).status for file in manifests}
    running = [name for name, status in states.items() if status == "running"]
    return f"said to be running: {', '.join(running)}" if running else None


def fire_in_guest(words: Sequence[str]) -> int:
    """Fire in a guest in real time, which can emulate a network where this machine cannot."""
    from testbed.engines.virtual.guest import GuestSettings, run_guest

    with tempfile.TemporaryDirectory(prefix="signals-") as results:
        command = [sys.executable, "-m", "scripts.hostility", "--only", "signals", *words]
        settings = GuestSettings(results=Path(results), virtual=False, cwd=ROOT, readable=[ROOT])
        return run_guest(command, settings).returncode


def runnable(command: str) -> bool:
    """Whether this machine has what a command needs."""
    return command != "digest" or shutil.which("java") is not None
