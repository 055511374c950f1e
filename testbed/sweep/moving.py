"""What the runs of a sweep have done so far: those that have ended, and those that are under way.

A run that is under way says it in a small file of its own, beside the runs, which is all that machines
share.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from testbed.progress import LEVEL, Progress
from testbed.runs.directory import RunDirectory, runs_in

PLACE = ".moving"
SECONDS = 1.0  # between two looks
SUMMED = ("deliveries", "hops")  # of runs that have ended, too


class Told:
    """The progress of a run that goes into its file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.levels: dict[str, int] = {}
        self.said = 0.0

    def __call__(self, stage: str, done: int, of: int) -> None:
        """Write down all that moves, now and then."""
        if of != LEVEL:
            return
        self.levels[stage] = done
        if (now := time.monotonic()) - self.said >= SECONDS:
            self.said = now
            part = self.file.with_suffix(".part")
            part.write_text(json.dumps(self.levels))
            part.rename(self.file)


@contextmanager
def told(directory: Path, point: str) -> Iterator[Progress]:
    """What a run of a sweep is to tell its progress to."""
    file = directory / PLACE / f"{point}.json"
    file.parent.mkdir(exist_ok=True)
    try:
        yield Told(file)
    finally:
        file.unlink(missing_ok=True)


class Moving:
    """What all runs of a sweep have done so far."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.seen: set[str] = set()
        self.ended = dict.fromkeys(SUMMED, 0)

    def now(self) -> dict[str, int]:
        """Everything added up; the clock is the one that is furthest of those that go."""
        for path in runs_in(self.directory):
            if path.name not in self.seen and (run := RunDirectory(path)).summary_file.exists():
                self.seen.add(path.name)
                for name in self.ended:
                    self.ended[name] += int(run.summary.get(name, 0))
        levels = dict(self.ended)
        for file in (self.directory / PLACE).glob("*.json"):
            with suppress(FileNotFoundError):  # it has just ended
                for name, level in json.loads(file.read_text()).items():
                    last = levels.get(name, 0)
                    levels[name] = max(last, level) if name == "clock" else last + level
        return levels


@contextmanager
def watched(directory: Path, progress: Progress) -> Iterator[None]:
    """Tell once a second what the runs of a sweep have done, until the end."""
    over, moving = threading.Event(), Moving(directory)

    def watch() -> None:
        while not over.wait(SECONDS):
            for name, level in moving.now().items():
                progress(name, level, LEVEL)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
