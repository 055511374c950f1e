"""What all reproductions of papers share: options, points to run, tables, plots, claims and verdicts.

A reproduction runs points, shows what was measured, judges what its paper claims, and draws plots. A
judge is a pure function of what was measured.
"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

from rich.console import Console
from rich.table import Table

from scripts import parser
from testbed.commands.terminal import progress_bar
from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.report.style import PAGE, new_figure, save, styled
from testbed.sweep.points import Sweep, cost
from testbed.sweep.runner import run_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
WIDTH = 140  # of a table
Key = TypeVar("Key")
Found = TypeVar("Found")  # everything that a reproduction has measured
Judgement = TypeVar("Judgement")
Parameters = ParamSpec("Parameters")
Row = dict[Any, Any]  # the summary of a run


class Finding(NamedTuple):
    """What was measured, in words, and whether the claim holds.

    That is one answer, one for each setting, or ``None`` where the measurements decide nothing.
    """

    measured: str
    holds: bool | list[bool] | None


@dataclass(frozen=True)
class Claim(Generic[Found]):
    """What a paper says, as the cells of a table (such as section and statement), and its judge."""

    said: tuple[str, ...]
    judge: Callable[[Found], Finding]


def curried(
    judge: Callable[Concatenate[Found, Parameters], Judgement],
) -> Callable[Parameters, Callable[[Found], Judgement]]:
    """Give a judge its parameters first: what it then returns judges what was found."""

    def of(*args: Parameters.args, **options: Parameters.kwargs) -> Callable[[Found], Judgement]:
        return lambda found: judge(found, *args, **options)

    return of


def main(
    name: str,
    doc: str,
    add_options: Callable[[ArgumentParser], None],
    reproduce: Callable[[Namespace], None],
) -> None:
    """Run ``scripts/reproduce NAME`` with its own options and those that all reproductions have."""
    options = parser(f"reproduce {name}", doc)
    add_options(options)
    options.add_argument("--master", default="local[*]", help="where Spark runs")
    options.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories go")
    try:
        reproduce(options.parse_args())
    except UserError as error:
        sys.exit(f"reproduce: {error}")


def run(
    points: Mapping[Key, Sequence[Experiment]],
    options: Namespace,
    weight: Callable[[Experiment], float] = cost,
    absent: float = math.nan,
) -> dict[Key, list[Row]]:
    """Run the experiments that have not been run yet, those of most weight first; their summaries.

    An experiment that belongs to several points is run once. ``absent`` stands for a figure that
    other runs have.
    """
    sweep = Sweep.of([experiment for each in points.values() for experiment in each])
    with progress_bar(sweep.name) as progress:
        frame = run_points(sweep, options.runs, options.master, progress, weight)
    rows = {row["point"]: row for row in frame.fillna(absent).to_dict("records")}
    return {
        key: [rows[identity] for identity in Sweep.of([*each]).points]
        for key, each in points.items()
    }


def show_table(
    heads: Iterable[str], rows: Iterable[Iterable[str]], words: int = 1, title: str = ""
) -> None:
    """Print a table whose first columns are words and whose other columns are numbers."""
    table = Table(box=None, pad_edge=False)
    for index, head in enumerate(heads):
        table.add_column(head, justify="left" if index < words else "right")
    for row in rows:
        table.add_row(*row)
    out = Console(highlight=False, width=WIDTH)
    if title:
        out.print(f"[bold]{title}[/]")
    out.print(table)


def judged(claims: Iterable[Claim[Found]], found: Found) -> Iterator[tuple[Claim[Found], Finding]]:
    """Every claim with its finding; a claim whose points were not run is left out."""
    for claim in claims:
        with suppress(LookupError, ValueError, ZeroDivisionError):
            yield claim, claim.judge(found)


def show_claims(
    heads: Sequence[str], claims: Iterable[Claim[Found]], found: Found, title: str = ""
) -> None:
    """Print what the paper says, what was measured, and whether the claim holds."""
    rows = [
        (*claim.said, finding.measured, verdict(finding.holds))
        for claim, finding in judged(claims, found)
    ]
    if rows:
        show_table((*heads, "measured", ""), rows, words=len(rows[0]), title=title)


def verdict(holds: bool | list[bool] | None) -> str:
    """Yes, no, unclear, or in how many settings."""
    if holds is None:
        return "unclear"
    each = holds if isinstance(holds, list) else [holds]
    if all(each):
        return "yes"
    return f"[bold]{sum(each)} of {len(each)}[/]" if any(each) else "[bold]no[/]"


@contextmanager
def plot(
    directory: Path, name: str, height: float, rows: int, columns: int, share_y: bool = False
) -> Iterator[list[Axes]]:
    """Panels to draw in, saved as SVG and PNG; the height is relative to the width of a page."""
    directory.mkdir(parents=True, exist_ok=True)
    with styled():
        drawn = new_figure(PAGE, PAGE * height)
        yield [*drawn.subplots(rows, columns, sharey=share_y).flat]
        save(drawn, directory, name)
