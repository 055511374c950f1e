"""A run's results for Python: the digest's tables as pandas DataFrames, with what was run.

    run = results.load("runs/overlay-vs-timestamp/latest")
    run.deliveries.delay.describe()

A table is read on first use. Their columns are those of docs/results.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed import figures
from testbed.errors import UserError
from testbed.runs.directory import SWEPT, RunDirectory, runs_in
from testbed.runs.parts import COLUMNS

if TYPE_CHECKING:
    from pandas import DataFrame

    from testbed.protocols import Figure


def _table(name: str, *order: str) -> cached_property[DataFrame]:
    """A table of the digest, sorted by some of its columns."""

    def read(run: RunDirectory) -> DataFrame:
        table = read_table(run, name)
        return table.sort_values([*order], ignore_index=True) if order else table

    return cached_property(read)


class Results(RunDirectory):
    """What one run left behind, and what the digest made of it."""

    messages = _table("messages")  # a row for each message multicast
    deliveries = _table("deliveries")
    delays = _table("delays")  # what each delivery's delay consists of
    events = _table("events", "node", "number")  # the event logs, in each node's own order
    sent = _table("sent")  # a row for each packet that a process handed to the network
    hops = _table("hops")  # a row for each packet on each link
    carried = _table("carried")  # a row for each message in a datagram that is named by another
    links = _table("links")  # a row for each direction of each link
    nodes = _table("nodes", "node")
    timeline = _table("timeline", "at")  # the run in steps of equal length

    def __repr__(self) -> str:
        return f"<results of {self.path}>"

    def _repr_html_(self) -> str:
        """In a notebook: the figures."""
        shown = {figure.title: figure.text(self.summary[figure.key]) for figure in self._figures()}
        rows = "".join(
            f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in shown.items()
        )
        return f"<table><caption>{escape(str(self.path))}</caption>{rows}</table>"

    def _figures(self) -> list[Figure]:
        return [figure for figure in figures.shown([self.summary]) if figure.key in self.summary]

    def spacetime(self, height: int = 700) -> Page:
        """In a notebook: the interactive space-time diagram of the run's page."""
        if not self.page.exists():
            raise UserError(f"{self.page}: no such page; `testbed report {self.path}` writes it")
        return Page(self.page.read_text(encoding="utf-8"), "space-time-diagram", height)


@dataclass(frozen=True)
class Page:
    """One section of a page, in a frame."""

    text: str
    section: str
    height: int

    def _repr_html_(self) -> str:
        only = f"header,footer,section:not(#{self.section}){{display:none}}"
        text = self.text.replace("</head>", f"<style>{only}</style></head>", 1)
        return (
            f'<iframe srcdoc="{escape(text)}" width="100%" height="{self.height}" '
            'style="border:0"></iframe>'
        )


class SweepResults:
    """What a sweep left behind: its tables, and the runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<results of the sweep {self.path}>"

    def _repr_html_(self) -> str:
        """In a notebook: the means."""
        html: str = self.trends.to_html()
        return html

    @cached_property
    def points(self) -> DataFrame:
        """A row for each run: the swept keys, the protocol, the verdict and all figures."""
        return self._read("points")

    @cached_property
    def trends(self) -> DataFrame:
        """Every figure, averaged over the seeds."""
        return self._read("trends")

    @cached_property
    def runs(self) -> list[Results]:
        """The runs themselves, the oldest first."""
        return [Results(path) for path in runs_in(self.path)]

    def _read(self, name: str) -> DataFrame:
        from pandas import read_parquet

        file = self.path / f"{name}.parquet"
        if not file.exists():
            raise UserError(
                f"{file}: no such table; `testbed sweep` writes it when all runs are done"
            )
        return read_parquet(file)


def read_table(run: RunDirectory, name: str) -> DataFrame:
    """One of the digest's tables, with all its columns."""
    from pandas import read_parquet
    from pyarrow import ArrowException

    path = run.tables / f"{name}.parquet"
    if not path.exists():
        raise UserError(f"{path}: no such table; {run.digest_command} makes it")
    try:
        table = read_parquet(path)
    except (OSError, ValueError, ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{path}: cannot be read ({reason}); {run.digest_command} makes it again"
        ) from None
    if missing := set(COLUMNS[name].split()) - set(table.columns):
        lacks = ", ".join(sorted(missing))
        raise UserError(f"{path}: lacks {lacks}; {run.digest_command} makes it again")
    return table


def load(path: str | Path) -> Any:
    """The results of the run in this directory (``Results``), or of a sweep (``SweepResults``)."""
    path = Path(path)
    return SweepResults(path) if (path / SWEPT).exists() else load_run(path)


def load_run(path: Path) -> Results:
    """The results of a run, which must have been digested."""
    results = Results(path)
    if results.manifest and not results.tables.is_dir():
        raise UserError(f"{path}: not digested yet; {results.digest_command} makes its tables")
    return results
