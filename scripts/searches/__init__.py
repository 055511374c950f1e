"""Searches that take long: all cores work on them, and one that was stopped goes on where it was.

What came of each piece of work is a line of a file. A line counts as long as the code is the same that
it was found with; so whoever edits a protocol tries everything again.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from testbed.errors import UserError

ROOT = Path(__file__).parents[2]
CODE = (
    *("protocols", "topologies", "scripts/searches"),
    *(f"testbed/{d}" for d in ("check", "experiment", "faults", "fuzz", "node", "workloads")),
    "testbed/engines/simulate",
)
LINE_EVERY_S = 60  # on standard error, if that is no terminal
Piece = TypeVar("Piece")


def fingerprint(*others: Path) -> str:
    """A hash of all code that decides what a search finds, and of other files."""
    digest = sha256()
    for file in sorted([f for folder in CODE for f in (ROOT / folder).rglob("*.py")] + [*others]):
        digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


class Memory:
    """The file with what was found, a line for each piece."""

    def __init__(self, file: Path, code: str | None = None) -> None:
        self.file, self.code = file, code or fingerprint()
        self.found: dict[str, Any] = {}
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        for line in lines:
            try:
                code, piece, found = json.loads(line)
            except ValueError:
                continue  # it was being written when the search was stopped
            if code == self.code:
                self.found[piece] = found

    def add(self, piece: str, found: Any) -> None:
        """Keep what was found; a line that was cut short stays one of its own."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as out:
            out.write("\n" + json.dumps([self.code, piece, found]))
        self.found[piece] = found


def search(
    pieces: Mapping[str, Piece], function: Callable[[Piece], Any], memory: Memory, master: str
) -> Iterator[Any]:
    """What the function finds in each piece, in plain data; at once where that is known."""
    from testbed.spark.tasks import spread  # Spark takes a while to import

    yield from (memory.found[name] for name in pieces if name in memory.found)
    left = [name for name in pieces if name not in memory.found]
    if left:
        with closing(spread(function, [pieces[name] for name in left], master)) as results:  # type: ignore[type-var]
            for name, found in zip(left, results, strict=True):
                memory.add(name, found)
                yield found


def start(main: Callable[[], bool]) -> None:
    """Run a search, and end with status 1 if it found something, 2 if it could not be done."""
    logging.disable()  # Py4J would show a traceback of an interrupt
    try:
        sys.exit(main())
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)


@contextmanager
def bar(what: str, unit: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left, or a line a minute; what it yields is told how much is done."""
    out = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    bars = Progress(
        TextColumn(what), *columns, TimeRemainingColumn(), console=out, disable=not out.is_terminal
    )
    begun = told = time.monotonic()
    known = 0
    with bars:
        task = bars.add_task(what, total=total, rate="")

        def update(done: int) -> None:
            nonlocal known, told
            now = time.monotonic()
            if now - begun < 1:
                known = done  # from an earlier start
            rate = (done - known) / max(now - begun, 1)
            bars.update(task, completed=done, rate=f"{rate:.2f} {unit}/s")
            if bars.disable and now - told > LINE_EVERY_S:
                told, left = now, (total - done) / rate / 60 if rate else 0
                text = f"{what}: {done:,} of {total:,} {unit}, {rate:.2f}/s, {left:.0f} min left"
                print(text, file=sys.stderr, flush=True)

        yield update
