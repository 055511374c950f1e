"""Signals at random moments of commands: nothing is left running, and every run's status is true."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from scripts.hostility.cases import SMALL
from scripts.hostility.remains import (
    EARLY,
    PATIENCE_S,
    ROOT,
    TESTBED,
    left,
    machine_state,
    remains,
    started,
    states,
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
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
LAB = ROOT / "scripts" / "labs" / "02-fifo"
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
                started(PREPARED[name], place).wait(PATIENCE_S)
            before = machine_state() if name == "mininet" else set()
            process = started(COMMANDS[name], place)
            if number is not None:
                time.sleep(after)
                process.send_signal(number)
            wrong = (
                _ended(process, number, place / "said")
                or left(process.pid, place, number)
                or states(place)
            )
            if not wrong and name == "mininet":
                wrong = remains(before)
            if not wrong and number is not None and name in RESUMED:
                again = started(RESUMED[name], place)
                wrong = _ended(again, None, place / "said")
            return wrong


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


def runnable(command: str) -> bool:
    """Whether this machine has what a command needs."""
    return command != "digest" or shutil.which("java") is not None
