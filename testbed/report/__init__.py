"""Reports: plots of runs as files, and one page for each run or comparison of runs."""

import os
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import UserError, require
from testbed.progress import Progress, Tick
from testbed.runs.directory import PAGE, PLOTS_DIRECTORY, whole
from testbed.runs.results import Results, load_run

require("report")  # before a module of this room imports Matplotlib


def write_reports(
    paths: Sequence[Path], output: Path | None = None, progress: Progress = lambda *_: None
) -> list[Path]:
    """Write the page and the plots of each run and, of several, one page that compares them.

    The comparison goes to ``output``, or to the directory that all the runs are in; its page is the
    last of those returned.
    """
    runs = [load_run(path) for path in {os.path.realpath(path): path for path in paths}.values()]
    names = labels(runs)
    parent = output or _common_parent([run.path for run in runs])
    jobs = [(run.path, [run], [name]) for run, name in zip(runs, names, strict=True)]
    if len(runs) > 1:
        if any(parent.resolve() == run.path.resolve() for run in runs):
            raise UserError(f"{parent}: is one of the runs; name another directory with --output")
        jobs.append((parent, runs, names))
    return [_write(*job, tick=_ticker(progress, len(jobs), n)) for n, job in enumerate(jobs)]


def labels(runs: Sequence[Results]) -> list[str]:
    """A short name for each run that tells it from the others."""
    candidates = (
        [run.experiment.protocol.name for run in runs],
        [run.experiment.label for run in runs],
        [f"{run.experiment.protocol.name}, {run.manifest.get('engine')}" for run in runs],
        [f"{run.experiment.protocol.name}, {run.network.processes} nodes" for run in runs],
        [f"{run.experiment.protocol.name}, seed {run.experiment.seed}" for run in runs],
        [run.path.name for run in runs],
    )
    distinct = (names for names in candidates if len(set(names)) == len(runs))
    return next(distinct, [str(run.path) for run in runs])


def _common_parent(paths: Sequence[Path]) -> Path:
    """The directory that all are in, as the user would call it."""
    if len({path.is_absolute() for path in paths}) > 1:
        paths = [path.resolve() for path in paths]
    return Path(os.path.commonpath([path.parent for path in paths]))


def _write(directory: Path, runs: Sequence[Results], names: Sequence[str], tick: Tick) -> Path:
    from testbed.report.page import write_page
    from testbed.report.plots import PLOTS, draw_plots

    steps = len(PLOTS) + 1
    drawn = []
    for step, (_, plot) in enumerate(draw_plots(runs, names)):
        tick(step, steps)
        if plot is not None:
            drawn.append(plot)
    pages = {
        name: os.path.relpath(run.path.resolve() / PAGE, directory.resolve())
        for run, name in zip(runs, names, strict=True)
        if len(runs) > 1
    }
    text = write_page(runs, names, drawn, pages)
    tick(steps, steps)
    plots, page = directory / PLOTS_DIRECTORY, directory / PAGE
    plots.mkdir(parents=True, exist_ok=True)
    files = [(plots / f"{plot.name}.svg", plot.svg) for plot in drawn]
    files += [(plots / f"{plot.name}.png", plot.png) for plot in drawn]
    for file, content in (*files, (page, text.encode())):
        with whole(file) as part:
            part.write_bytes(content)
    return page


def _ticker(progress: Progress, jobs: int, job: int) -> Tick:
    return lambda done, of: progress("report", job * of + done, jobs * of)
