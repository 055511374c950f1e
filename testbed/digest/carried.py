"""How what datagrams carry besides the message that their header names travelled: as they did."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testbed.digest.arrays import Integers, integers, latest, runs_of, with_columns

COPY = ("sender", "receiver", "copy")
MESSAGE = ("source", "seq")
SEVERAL = -1  # the receiver of a packet that is for several


def carrying(hops: pa.Table, carried: pa.Table) -> pa.Table:
    """The hops of datagrams once more for each message that they carry, under its name.

    A captured datagram is known by its identification, which is used again after some time: then the
    last that was sent counts.
    """
    rows = [_by_copy(carried, "at"), _by_copy(hops, "queued")]
    *copy, at = (np.concatenate(column) for column in zip(*rows, strict=True))
    travels = np.arange(len(at)) >= len(carried)
    order = np.lexsort((travels, at, *copy))
    copies = [name[order] for name in copy]
    datagrams = runs_of(*copies, at[order], travels[order])  # what one carries is side by side
    first = np.zeros(len(order), np.bool_)
    first[datagrams[:-1]] = ~travels[order][datagrams[:-1]]
    begin = latest(first, runs_of(*copies))
    found = np.flatnonzero(travels[order] & (begin >= 0))
    count = np.zeros(len(order), np.int64)
    count[datagrams[:-1]] = np.diff(datagrams)
    times = count[begin[found]]
    which = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    names = carried.take(order[np.repeat(begin[found], times) + which])
    its = hops.take(np.repeat(order[found] - len(carried), times))
    return with_columns(its, **{name: names[name] for name in MESSAGE})


def _by_copy(rows: pa.Table, time: str) -> list[Integers]:
    """Which copy each row is about, and when."""
    several = pc.fill_null(rows["receiver"], SEVERAL)
    return [*(integers(with_columns(rows, receiver=several), name) for name in (*COPY, time))]
