"""The digest as steps over pieces of tables, which Spark spreads over its cores.

Reading a run's files gives pieces for the first round of its steps, and these give pieces for the next:

    logs ──────► node ──────┬──► message       a row for each message
                            ├──► time          what waited and travelled, over time
    captures ──► datagram ──┼──► link ──┐      what waited on each link
    or a table ► simulated ─┘           │
                 node ──────────────────┴──► delay     what each delay consists of

A step has several buckets, so that each is done in little memory and all cores have something to do.
What follows from each other is in one bucket: all packets of a datagram, all events of a node. Packets
are moved between processes once, to their datagram, and hops twice, to their link and to their message,
as Arrow tables with thousands of rows (``testbed.digest.exchange``). What datagrams carry besides the
message that they are named by is known beforehand (``testbed.digest.carriers``). Steps write their
parts of the run's tables; small tables and sums reach the driver as pieces of ``totals``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from testbed.digest.arrays import Integers, integers, order_of, runs_of
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
    prompt: (
        bool  # whether a protocol has what arrives at once: time is exact, and no channel between
    )

    def spread(self, step: str, role: str, rows: pa.Table, hashes: Integers) -> Iterator[Piece]:
        """Rows as pieces for the buckets that their hashes choose."""
        chosen = hashes % self.buckets[step]
        if len(chosen) and chosen.min() < chosen.max():
            order = order_of(chosen)
            rows, chosen = rows.take(pa.array(order)), chosen[order]
        bounds = runs_of(chosen)
        for first, end in pairwise(bounds.tolist()):
            key = Key(self.run, step, int(chosen[first]))
            yield Piece(key, role, rows.slice(first, end - first))

    def by_message(self, step: str, role: str, rows: pa.Table) -> Iterator[Piece]:
        """Rows about messages; of packets without a message there is nothing to say."""
        rows = with_message(rows)
        name = integers(rows, "source") * 31 + integers(rows, "seq")
        return self.spread(step, role, rows, np.abs(name))

    def total(self, role: str, rows: pa.Table) -> Piece:
        """Rows for the driver."""
        return Piece(Key(self.run, TOTALS, 0), role, rows)

    def carried(self) -> pa.Table | None:
        """What datagrams carry besides the message that they are named by, if any do."""
        part = self.tables / "carried.parquet" / "part-00000.parquet"
        return pq.ParquetFile(part).read() if part.exists() else None

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
