"""The digest as steps over pieces of tables, which Spark spreads over its cores.

Reading a run's files gives pieces for its first steps, and these give pieces for the last ones:

    logs ──────► node ──────┬──► message   a row for each message
                            ├──► time      what waited and travelled, over time
    captures ──► datagram ──┤
    or a table ► simulated ─┴──► link      what waited on each link

A step has several buckets, so that each is done in little memory and all cores have something to do.
What follows from each other is in one bucket: all packets of a datagram, all events of a node. Packets
are moved between processes once, to their datagram, and hops once, to their link, as Arrow tables with
thousands of rows. The last steps write their parts of the run's tables; small tables and sums reach the
driver as pieces of ``totals``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testbed.digest.arrays import Integers, integers
from testbed.digest.schemas import write_part

TOTALS = "totals"
MESSAGE = ["source", "seq"]


class Key(NamedTuple):
    """Where a piece belongs."""

    run: int
    step: str
    bucket: int


class Piece(NamedTuple):
    """Rows that a step needs; ``role`` says what they are to it."""

    key: Key
    role: str
    rows: pa.Table


@dataclass(frozen=True)
class Facts:
    """What every step knows of a run."""

    run: int
    tables: Path  # where they are written
    processes: int
    end: int  # of the run, in nanoseconds
    links: Mapping[tuple[int, int], tuple[int, int]]  # delay_ns and bandwidth_bps by (tail, head)
    buckets: Mapping[str, int]  # of each step
    places: Mapping[int, tuple[int | None, int]]  # of each captured interface: (tail, head)
    start: int  # the run's time 0 by the captures' clock
    packet_table: Path
    framing: str

    def spread(self, step: str, role: str, rows: pa.Table, hashes: Integers) -> Iterator[Piece]:
        """Rows as pieces for the buckets that their hashes choose."""
        count = self.buckets[step]
        chosen = hashes % count
        for bucket in range(count):
            its = rows if count == 1 else rows.take(pa.array(np.flatnonzero(chosen == bucket)))
            if len(its):
                yield Piece(Key(self.run, step, bucket), role, its)

    def to_messages(self, role: str, rows: pa.Table) -> Iterator[Piece]:
        """Rows about messages; of packets without a message there is nothing to say."""
        rows = with_message(rows)
        name = integers(rows, "source") * 31 + integers(rows, "seq")
        return self.spread("message", role, rows, np.abs(name))

    def total(self, role: str, rows: pa.Table) -> Piece:
        """Rows for the driver."""
        return Piece(Key(self.run, TOTALS, 0), role, rows)

    def write(self, name: str, bucket: int, rows: pa.Table) -> None:
        """Write a step's part of a table."""
        write_part(self.tables, name, bucket, rows)


def with_message(rows: pa.Table) -> pa.Table:
    """The rows that are about a message."""
    if not any(rows[name].null_count for name in MESSAGE):
        return rows
    return rows.filter(pc.and_(*(pc.is_valid(rows[name]) for name in MESSAGE)))


Tables = Mapping[str, pa.Table]  # by role
Step = Callable[[Facts, int, Tables], Iterable[Piece]]
