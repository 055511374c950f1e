"""Reports: plots of runs as files, and one page for each run or comparison of runs."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import UserError, require
from testbed.progress import Progress
from testbed.runs.directory import PAGE, PLOTS_DIRECTORY
from testbed.runs.parts import whole
from testbed.runs.results import Results, load_run

if TYPE_CHECKING:
    from testbed.report.plots import Plot

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
    from testbed.report.drawing import draw_all

    shown = [([run.path for run in its], called) for _, its, called in jobs]
    drawn = draw_all(shown, partial(progress, "report"))
    return [_write(*job, plots) for job, plots in zip(jobs, drawn, strict=True)]


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


def _write(
    directory: Path, runs: Sequence[Results], names: Sequence[str], drawn: "Sequence[Plot]"
) -> Path:
    from testbed.report.page import write_page

    pages = {
        name: os.path.relpath(run.path.resolve() / PAGE, directory.resolve())
        for run, name in zip(runs, names, strict=True)
        if len(runs) > 1
    }
    text = write_page(runs, names, drawn, pages)
    plots, page = directory / PLOTS_DIRECTORY, directory / PAGE
    plots.mkdir(parents=True, exist_ok=True)
    files = [(plots / f"{plot.name}.svg", plot.svg) for plot in drawn]
    files += [(plots / f"{plot.name}.png", plot.png) for plot in drawn]
    for file, content in (*files, (page, text.encode())):
        with whole(file) as part:
            part.write_bytes(content)
    return page
