"""Bad protocols on an engine: each ends in time, in one sentence, and leaves nothing behind."""

import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.hostility.bank import BAD, bad_file, blamed
from scripts.hostility.remains import TESTBED, left, machine_state, remains, started, states

ENGINES = ("simulate", "virtual", "mininet")
LIMIT_S = 30
PATIENCE_S = 600.0  # for a command that does not end in time, to see what it says then
NEWS = re.compile(r"testbed: fifo: \w+ \d+ %")  # of a run that goes on for some seconds
MESSAGE = re.compile(r"m\(\d+,\d+\)")


@dataclass(frozen=True)
class Attempt:
    """What came of a bad protocol on an engine."""

    name: str
    engine: str
    seconds: float
    processor_s: float  # which says more than the other on a busy machine, but nothing of waiting
    said: str  # the sentence, or all that was said
    wrong: str | None  # what is not as it must be


def attempt(name: str, engine: str, limit_s: float = LIMIT_S) -> Attempt:
    """Run a bad protocol as somebody would who has written it."""
    words = ("run", "own.toml", "--engine", engine, "--protocol", "fifo.py", "--no-digest")
    with tempfile.TemporaryDirectory(prefix="protocols-") as top:
        place = Path(top)
        (place / "tmp").mkdir()
        file = bad_file(place, name)
        before = machine_state() if engine == "mininet" else set()
        begun, used_s = time.monotonic(), _processor_s()
        process = started((*TESTBED, *words), place)
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        seconds = time.monotonic() - begun
        lines = (place / "said").read_text(errors="replace").strip().splitlines()
        said = [line for line in lines if not NEWS.match(line)]
        wrong = misses(name, status, said, blamed(file)) or left(process.pid, place)
        wrong = wrong or states(place) or (remains(before) if engine == "mininet" else None)
    if not wrong and seconds > limit_s:
        wrong = f"it took {seconds:.0f} s"
    return Attempt(name, engine, seconds, _processor_s() - used_s, " / ".join(said), wrong)


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def misses(name: str, status: int, said: list[str], line: str) -> str | None:
    """What the words of a run lack: one sentence with mistake, event, message, file and line."""
    bad = BAD[name]
    if status != (1 if bad.judged else 2):
        return f"status {status}"
    if bad.judged:
        told = [words for words in said if bad.words in words and MESSAGE.search(words)]
        return None if told else f"no line names a message that was {bad.words}"
    if len(said) != 1:
        return f"{len(said)} lines instead of one"
    lacks = [part for part in (bad.words, bad.event, line) if part not in said[0]]
    return f"the sentence lacks {' and '.join(map(repr, lacks))}" if lacks else None


def attempts(engines: Iterable[str], match: str = "") -> list[tuple[str, str]]:
    """What is to be tried: the name of each bad protocol, and an engine."""
    return [(name, engine) for engine in engines for name in BAD if match in name]
