"""``testbed sweep``: run every combination of the values that a file lists, average, compare."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from testbed.commands.browser import add_open, open_page
from testbed.commands.terminal import complain, console, exit_status, print_json, progress_bar
from testbed.errors import require
from testbed.figures import swept_figures
from testbed.runs.directory import PAGE, PLOTS_DIRECTORY
from testbed.runs.parts import whole
from testbed.sweep.points import Sweep, describe, load_sweep, settings_of
from testbed.sweep.tables import dimensions

if TYPE_CHECKING:
    import pandas as pd

    from testbed.sweep.runner import Swept


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "sweep",
        description="Run every combination of the values that an experiment file lists, such as "
        "seed = [1, 2, 3], as tasks of Spark on all cores, and average over the seeds. A list where "
        "one value is wanted is a dimension; where the key itself takes a list, a list of lists is "
        "one; an array of tables such as [[topology]] gives alternatives. Started again it resumes "
        "where it stopped; points of a protocol whose code has changed are run again. Exit status: "
        "0 causal order held in all runs, 1 it did not, 2 a run could not be done or judged.",
    )
    parser.add_argument("file", type=Path, help="experiment file (TOML) with lists of values")
    parser.add_argument(
        "--master",
        default="local[*]",
        help="where Spark runs: local[*], all cores here (the default); local[2], two of them; "
        "or the address of a cluster that sees the directory of the runs",
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="where run directories go (default: runs)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="run all points again, also those that are done"
    )
    add_open(parser)
    parser.add_argument("--json", action="store_true", help="print all runs and means as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run what is left to run, then show the means."""
    sweep = load_sweep(options.file)
    text = options.file.read_text(encoding="utf-8")
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    require("report")  # what draws the means, asked for before the runs are made
    from testbed.sweep.runner import run_sweep  # Spark takes a while to import

    with progress_bar("sweep") as progress:
        swept = run_sweep(
            sweep, text, options.runs, options.master, notes.print, progress, fresh=options.fresh
        )
    failed = {describe(sweep, point): error for point, error in swept.failed.items()}
    plots = draw(sweep, swept, [f"{point}: {error}" for point, error in failed.items()])
    if options.json:
        print_json(
            {
                "directory": str(swept.directory),
                "points": records(swept.points),
                "trends": records(swept.trends),
                "failed": failed,
            }
        )
    else:
        show(sweep, swept, plots, console(wide=True))
    for point, error in failed.items():
        complain(f"failed: {point}: {error}")
    if options.open:
        open_page(swept.directory / PAGE)
    return exit_status([*swept.points["verdict"], *("unknown" for _ in failed)])


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as JSON can say them."""
    found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
    return found


def draw(sweep: Sweep, swept: Swept, problems: list[str]) -> list[Path]:
    """Draw the trends and write the page of a sweep; the drawn files."""
    from testbed.report.sweep_page import write_page
    from testbed.report.trends import draw_trends

    plots = draw_trends(swept.trends, swept.directory / PLOTS_DIRECTORY)
    settings = [settings_of(experiment) for experiment in sweep.points.values()]
    page = write_page(swept.directory, swept.points, swept.trends, settings, plots, problems)
    with whole(swept.directory / PAGE) as part:
        part.write_text(page, encoding="utf-8")
    return [plot.file for plot in plots]


def show(sweep: Sweep, swept: Swept, plots: list[Path], out: Console) -> None:
    """The means of the main figures, then where everything is."""
    seeds = swept.points["seed"].nunique()
    out.print(
        f"[bold]{sweep.name}[/]: {len(swept.points)} of {len(sweep.points)} runs, "
        f"means over {seeds} seed{'s' if seeds > 1 else ''} ± 95 % confidence"
    )
    out.print(table_of(swept.trends))
    wrong = swept.points[swept.points["verdict"] != "valid"]
    for run, verdict in zip(wrong["run"], wrong["verdict"], strict=True):
        out.print(f"causal order {verdict}: {swept.directory / run}", soft_wrap=True)
    if plots:
        out.print(f"plots: {len(plots)} in {swept.directory / PLOTS_DIRECTORY}", soft_wrap=True)
    out.print(f"report: {swept.directory / PAGE}", soft_wrap=True)
    out.print(f"results: {swept.directory}", soft_wrap=True)


def table_of(trends: pd.DataFrame) -> Table:
    """A row for each combination of swept keys and protocol."""
    from testbed.report.trends import short, spread, x_key

    keys = [*dimensions(trends, first=x_key(trends)), "protocol"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_column(short(key), justify="left" if key == "protocol" else "right")
    figures = swept_figures(trends["figure"])
    for label in ("runs", "valid", *(figure.short for figure in figures)):
        table.add_column(label, justify="right")
    for values, group in trends.groupby(keys, dropna=False, sort=False):
        rows = group.set_index("figure")
        means = (spread(rows, figure.key) for figure in figures)
        valid = f"{rows['mean']['valid']:.0%}"
        table.add_row(*map(str, values), str(rows["runs"].max()), valid, *means)
    return table
