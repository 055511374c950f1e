"""Progress on long work: bars and what moves on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text
from typing_extensions import override

from testbed.progress import LEVEL

SECONDS_BEFORE_BAR = 2.0
SECONDS_BETWEEN_LINES = 10.0
WORDS = {
    "deliveries": "{:,} deliveries",
    "hops": "{:,} hops",
    "datagrams": "{:,} datagrams sent or received",
    "held": "{:,} held back",
    "queued": "{:,} queued",
}


class WithLevels(Progress):
    """Bars, and below them, on lines of its own, what moves: a terminal may have 80 columns."""

    moving = ""

    @override
    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if self.moving:
            yield Text(self.moving, style="dim")


class Bars:
    """Takes (stage, done, of); ``of`` is ``LEVEL`` for what moves and is no work."""

    def __init__(self, what: str, bars: WithLevels | None) -> None:
        self.what = what
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}
        self.levels: dict[str, int] = {}
        self.last = ("", 0, 1)  # the stage that was told of last
        self.begun = self.said = time.monotonic()

    def __call__(self, stage: str, done: int, of: int) -> None:
        """Show it, once the work has lasted two seconds."""
        if of == LEVEL:
            self.levels[stage] = done
        else:
            if stage != self.last[0]:
                self.levels.clear()
            self.last = stage, done, of
        now = time.monotonic()
        if self.bars is None:
            if now - self.said >= SECONDS_BETWEEN_LINES and self.levels:
                self.said = now
                print(f"testbed: {self.line()}", file=sys.stderr, flush=True)
        elif now - self.begun >= SECONDS_BEFORE_BAR:
            self._draw(self.bars)

    def line(self) -> str:
        """The last stage and all that moves, in words."""
        stage, done, of = self.last
        return ", ".join([f"{self.what}: {stage} {100 * done // max(1, of)} %", *self.moving()])

    def moving(self) -> list[str]:
        """The clock, and the numbers beside it."""
        clock = [f"clock {self.levels['clock'] / 1e9:.3f} s"] if "clock" in self.levels else []
        return [*clock, *(w.format(self.levels[k]) for k, w in WORDS.items() if k in self.levels)]

    def _draw(self, bars: WithLevels) -> None:
        stage, done, of = self.last
        if stage not in self.tasks:
            bars.start()
            self.tasks[stage] = bars.add_task(f"{self.what}: {stage}", total=of)
        bars.moving = " · ".join(self.moving())
        bars.update(self.tasks[stage], completed=done, total=of)


@contextmanager
def progress_bar(what: str) -> Iterator[Bars]:
    """Bars on standard error, which end with the work."""
    if not sys.stderr.isatty():
        yield Bars(what, None)
        return
    columns = (
        *(TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.percentage:>3.0f} %")),
        TimeRemainingColumn(),
    )
    bars = WithLevels(*columns, console=Console(stderr=True), transient=True)
    try:
        yield Bars(what, bars)
    finally:
        bars.stop()
