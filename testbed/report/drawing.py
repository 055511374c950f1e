"""The plots of pages, drawn side by side in processes: one core at a time takes too long."""

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from matplotlib.backends import backend_agg, backend_svg  # noqa: F401  # before processes begin

from testbed.progress import Tick
from testbed.report import plots
from testbed.report.plots import Plot
from testbed.runs.results import Results, load_run

Shown = tuple[Sequence[Path], Sequence[str]]  # the runs of a page, and what it calls them


def draw_all(pages: Sequence[Shown], tick: Tick) -> list[list[Plot]]:
    """The plots of each page."""
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores, get_context("fork"), _ignore_interrupts) as pool:
        drawn = [[pool.submit(_draw, name, *page) for name in plots.PLOTS] for page in pages]
        every = [plot for page in drawn for plot in page]
        try:
            for done, _ in enumerate(as_completed(every), 1):
                tick(done, len(every))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [[plot for each in page if (plot := each.result()) is not None] for page in drawn]


def _ignore_interrupts() -> None:
    """Whoever waits for this process ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _draw(name: str, runs: Sequence[Path], names: Sequence[str]) -> Plot | None:
    return plots.draw_plot(name, [_load(run) for run in runs], names)


@cache
def _load(run: Path) -> Results:
    return load_run(run)
