"""A run's results for Python: the digest's tables as pandas DataFrames, with what was run.

    run = results.load("runs/overlay-vs-timestamp/latest")
    run.deliveries.delay.describe()

A table is read on first use. Their columns are those of docs/results.md.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import UserError
from testbed.runs.directory import RunDirectory

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = {
    "events": "node number at event source seq payload control destinations for_source for_seq",
    "messages": "source seq sent_at payload control destinations delivered delay_mean delay_max "
    "holders held_max copies fragments bytes hops wire_bytes",
    "deliveries": "node source seq at number held_number delay held_at held",
    "sent": "at sender receivers source seq kind fragment bytes control",
    "hops": "tail head queued started arrived error bytes sender source seq kind fragment",
    "links": "tail head delay_ns bandwidth_bps packets bytes busy waited load queue_max",
    "nodes": "node multicasts deliveries delay_mean delay_max held queue_mean queue_max",
    "timeline": "at width held_mean held_max packets_mean packets_max multicasts deliveries",
}


class Results(RunDirectory):
    """What one run left behind, and what the digest made of it."""

    def __repr__(self) -> str:
        return f"<results of {self.path}>"

    @cached_property
    def messages(self) -> DataFrame:
        """One row for each message multicast."""
        return self._table("messages")

    @cached_property
    def deliveries(self) -> DataFrame:
        """One row for each delivery."""
        return self._table("deliveries")

    @cached_property
    def events(self) -> DataFrame:
        """The event logs, in each node's own order."""
        return self._table("events").sort_values(["node", "number"], ignore_index=True)

    @cached_property
    def sent(self) -> DataFrame:
        """One row for each packet that a process handed to the network."""
        return self._table("sent")

    @cached_property
    def hops(self) -> DataFrame:
        """One row for each packet on each link."""
        return self._table("hops")

    @cached_property
    def links(self) -> DataFrame:
        """One row for each direction of each link."""
        return self._table("links")

    @cached_property
    def nodes(self) -> DataFrame:
        """One row for each process."""
        return self._table("nodes").sort_values("node", ignore_index=True)

    @cached_property
    def timeline(self) -> DataFrame:
        """The run in steps of equal length."""
        return self._table("timeline").sort_values("at", ignore_index=True)

    def _table(self, name: str) -> DataFrame:
        from pandas import read_parquet
        from pyarrow import ArrowException

        path = self.tables / f"{name}.parquet"
        if not path.exists():
            raise UserError(f"{path}: no such table; {self.digest_command} makes it")
        try:
            table = read_parquet(path)
        except (OSError, ValueError, ArrowException) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UserError(
                f"{path}: cannot be read ({reason}); {self.digest_command} makes it again"
            ) from None
        if missing := set(COLUMNS[name].split()) - set(table.columns):
            lacks = ", ".join(sorted(missing))
            raise UserError(f"{path}: lacks {lacks}; {self.digest_command} makes it again")
        return table


def load(path: str | Path) -> Results:
    """The results of the run in this directory, which must have been digested."""
    results = Results(Path(path))
    if results.manifest and not results.tables.is_dir():
        raise UserError(f"{path}: not digested yet; {results.digest_command} makes its tables")
    return results
