"""Commands in sessions of their own, and what is left when one is over: it should be nothing."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from testbed.engines.mininet.kernel import machine
from testbed.errors import UserError
from testbed.runs.directory import RunDirectory

EARLY = "Fatal Python error: init"  # Python was interrupted before it could run anything of ours
PATIENCE_S = 120.0  # for a command to end after a signal, and for what it started to follow it
ROOT = Path(__file__).parents[2]
TESTBED = (sys.executable, "-m", "testbed")
_MEMORY = Path("/dev/shm")  # where guests have theirs


def started(words: Sequence[object], place: Path) -> subprocess.Popen[bytes]:
    """A command in a directory, in which it has one for temporary files; what it says is ``said``."""
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


def left(session: int, place: Path, number: signal.Signals | None = None) -> str | None:
    """Whether anything that was started lives on, or temporary files are left."""
    until = time.monotonic() + PATIENCE_S
    while living := members(session):
        if time.monotonic() > until:
            for pid in living:
                os.kill(pid, signal.SIGKILL)
            return f"{len(living)} processes are left: {', '.join(living.values())}"
        time.sleep(0.1)
    said = (place / "said").read_text(errors="replace")
    if EARLY in said:
        return None
    if "Traceback" in said or "should not happen" in said:
        return f"a bug: {said[max(0, said.find('Traceback')) :].strip()}"
    files = [] if number is signal.SIGKILL else sorted(os.listdir(place / "tmp")) + _forsaken()
    return f"temporary files are left: {', '.join(files)}" if files else None


def members(session: int) -> dict[int, str]:
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


def _forsaken() -> list[str]:
    """The memories of guests that stay though nobody has them; others may come and go meanwhile."""
    found = _memories()
    for _ in range(20):
        if not found:
            break
        time.sleep(0.5)
        found &= _memories()
    return sorted(found)


def _memories() -> set[str]:
    """The memories of guests in which no kernel is at work."""
    used = set()
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            used.add(os.readlink(entry))
    return {str(found) for found in _MEMORY.glob("causal-testbed-*")} - used


def machine_state() -> set[str]:
    """What an emulated network adds to a machine: processes, namespaces, interfaces, mounts, files."""
    found = {name for _, name in socket.if_nameindex()}
    found |= {str(file) for file in machine.RUN.glob("causal-testbed-*")}
    found |= {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            found.add(command.decode(errors="replace").strip())
            found.add(os.readlink(entry / "ns" / "net"))
    return found


def remains(before: set[str]) -> str | None:
    """Whether something of an emulated network stays on the machine."""
    until = time.monotonic() + PATIENCE_S
    while new := machine_state() - before:
        if time.monotonic() > until:
            return f"on the machine is left: {', '.join(sorted(new))}"
        time.sleep(0.1)
    return None


def states(place: Path) -> str | None:
    """Whether every run says what it is: none is running any more."""
    manifests = (place / "runs").rglob("manifest.json")
    found = {str(file.parent.name): RunDirectory(file.parent).status for file in manifests}
    running = [name for name, status in found.items() if status == "running"]
    return f"said to be running: {', '.join(running)}" if running else None


def can_emulate() -> bool:
    """Whether Mininet runs on this machine as it is."""
    try:
        machine.check()
    except UserError:
        return False
    return True


def in_guest(*words: object) -> int:
    """Try parts in a guest in real time, which can emulate a network where this machine cannot."""
    from testbed.engines.virtual.guest import GuestSettings, run_guest

    with tempfile.TemporaryDirectory(prefix="hostile-") as results:
        command = [sys.executable, "-m", "scripts.hostility", *map(str, words)]
        settings = GuestSettings(results=Path(results), virtual=False, cwd=ROOT, readable=[ROOT])
        return run_guest(command, settings).returncode
