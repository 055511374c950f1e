"""Event logs that are changed after their run: no command may still call the run valid.

The runs are of five protocols. Each copy of a run has one change, drawn from a seed; then the copies
are given to ``check``, ``digest``, ``report`` and ``compare``, as a user would.
"""

import json
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import tomli_w

from scripts.hostility.cases import SMALL
from scripts.hostility.remains import TESTBED
from testbed.runs.directory import RunDirectory

PROTOCOLS = ("overlay", "timestamp", "rst", "ks", "phases")
WORKLOAD = {"model": "steady", "senders": 4, "interval_ms": 2.0, "duration_ms": 8}
UNTOUCHED = "untouched"  # the copy in which nothing is changed, which must stay valid

Lines = list[bytes]


def without_one(lines: Lines, rng: random.Random) -> None:
    """An event is gone."""
    del lines[rng.randrange(len(lines))]


def one_twice(lines: Lines, rng: random.Random) -> None:
    """An event is there twice."""
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))


def two_swapped(lines: Lines, rng: random.Random) -> None:
    """Two events have changed places."""
    first, second = rng.sample(range(len(lines)), 2)
    lines[first], lines[second] = lines[second], lines[first]


def another_digit(lines: Lines, rng: random.Random) -> None:
    """A time, a process or a sequence number is another one."""
    number = rng.randrange(len(lines))
    line = bytearray(lines[number])
    at = rng.choice([place for place, letter in enumerate(line) if chr(letter).isdigit()])
    line[at] = rng.choice([digit for digit in b"0123456789" if digit != line[at]])
    lines[number] = bytes(line)


def cut_short(lines: Lines, rng: random.Random) -> None:
    """The end is missing."""
    del lines[rng.randrange(len(lines)) :]


def zeros(lines: Lines, rng: random.Random) -> None:
    """A line is all zero bytes, as after a power failure."""
    number = rng.randrange(len(lines))
    lines[number] = b"\0" * len(lines[number])


MUTATIONS: tuple[Callable[[Lines, random.Random], None], ...] = (
    without_one,
    one_twice,
    two_swapped,
    another_digit,
    cut_short,
    zeros,
)


def mutated(original: bytes, rng: random.Random) -> tuple[str, bytes]:
    """What was done to a log, in a word, and the log afterwards, which is another."""
    while True:
        mutation, lines = rng.choice(MUTATIONS), original.splitlines(keepends=True)
        mutation(lines, rng)
        if (changed := b"".join(lines)) != original:
            return mutation.__name__, changed


def unnoticed(count: int, seed: int) -> Iterator[str]:
    """Change logs in so many ways; what a command did not notice."""
    for number, protocol in enumerate(PROTOCOLS):
        rng = random.Random(f"{seed} {protocol}")
        share = count // len(PROTOCOLS) + (number < count % len(PROTOCOLS))
        with tempfile.TemporaryDirectory(prefix="mutations-") as place:
            copies = make_copies(protocol, share, rng, Path(place))
            for command, verdicts in asked([UNTOUCHED, *copies], Path(place)).items():
                if verdicts.get(UNTOUCHED) != "valid":
                    yield f"{protocol}: {command} does not call the run valid that is as it was"
                yield from (
                    f"{protocol}: {command} calls a run {verdicts.get(name)}: {name}"
                    for name in copies
                    if verdicts.get(name) not in ("stale", "invalid", "unknown")
                )


def make_copies(protocol: str, count: int, rng: random.Random, place: Path) -> list[str]:
    """Run a protocol, and make copies of the run, each with one change of its log."""
    document = SMALL | {"protocol": {"name": protocol}, "workload": WORKLOAD, "engine": "simulate"}
    (place / "small.toml").write_text(tomli_w.dumps(document), "utf-8")
    _call(place, "run", "small.toml", "--no-digest")
    run = (place / "runs" / "small" / "latest").resolve()
    shutil.copytree(run, place / UNTOUCHED)
    names = []
    for number in range(count):
        what, changed = mutated(RunDirectory(run).event_logs[0].read_bytes(), rng)
        names.append(f"{number:03d}-{what}")
        shutil.copytree(run, place / names[-1])
        RunDirectory(place / names[-1]).event_logs[0].write_bytes(changed)
    return names


def asked(names: list[str], place: Path) -> dict[str, dict[str, str]]:
    """What each command says of each of these runs."""
    checked = json.loads(_call(place, "check", "--json", *names))
    digested = json.loads(_call(place, "digest", "--json", *names))
    _call(place, "report", *names)
    compared = json.loads(_call(place, "compare", "--json", *names))["runs"]
    return {
        "check": {name: told["verdict"] for name, told in checked.items()},
        "digest": {name: told["verdict"] for name, told in digested.items()},
        "report": {name: _on_the_page(place / name / "report.html") for name in names},
        "compare": {told["directory"]: told["figures"]["verdict"] for told in compared},
    }


def _call(place: Path, *words: str) -> str:
    return subprocess.run(
        [*TESTBED, *words], cwd=place, capture_output=True, text=True, check=False
    ).stdout


def _on_the_page(page: Path) -> str:
    found = re.search(r'class="verdict [a-z]+">([a-z]+)<', page.read_text("utf-8"))
    return found[1] if found else "nothing"
