"""The run over time: in equal steps, what waited, what travelled, what was sent and delivered."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from testbed.digest.arrays import Integers, integers, order_of, runs_of
from testbed.digest.steps import Facts, Piece, Tables

BINS = 500
LEVELS = ("held", "packets")


def width(end: int) -> int:
    """The length of a step."""
    return end // BINS + 1


def bins(at: Integers, end: int) -> Integers:
    """The step of each moment; the first and the last have no end."""
    return np.clip(at // width(end), 0, BINS - 1)


def bin_counts(at: Integers, end: int) -> pa.Table:
    """How many of these moments are in each step."""
    return pa.table({"count": np.bincount(bins(at, end), minlength=BINS)})


def intervals(facts: Facts, role: str, since: Integers, until: Integers) -> Iterator[Piece]:
    """Pieces for ``time_step``: +1 where an interval begins and -1 where it ends."""
    at = np.concatenate([since, until])
    change = np.repeat(np.array([1, -1], np.int8), len(since))
    rows = pa.table({"at": at, "change": change})
    hashes = bins(at, facts.end) * facts.buckets["time"] // BINS
    return facts.spread("time", role, rows, hashes)


def time_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """Of each step of a range: by how much a level changes, its mean and its maximum within."""
    for role, rows in tables.items():
        yield facts.total(f"{role}_levels", levels(rows, facts.end))


def levels(rows: pa.Table, end: int) -> pa.Table:
    """What goes up and down, step by step; at one moment it goes down first."""
    at, change = integers(rows, "at"), integers(rows, "change")
    order = order_of(at, change)
    at, change = at[order], change[order]
    bin_ = bins(at, end)
    starts = runs_of(bin_)[:-1]
    height = np.cumsum(change)
    before = (height - change)[starts]
    area = change * ((bin_ + 1) * width(end) - at)
    return pa.table(
        {
            "bin": bin_[starts],
            "change": np.add.reduceat(change, starts),
            "area": np.add.reduceat(area, starts),
            "top": np.maximum.reduceat(height, starts) - before,
        }
    )


def timeline(end: int, totals: Mapping[str, pa.Table]) -> pa.Table:
    """The table of a run, from all its totals."""
    columns = {"at": np.arange(BINS) * width(end), "width": np.full(BINS, width(end))}
    for role in LEVELS:
        change, area, top = np.zeros((3, BINS), np.int64)
        if (rows := totals.get(f"{role}_levels")) is not None:
            places = integers(rows, "bin")
            change[places], area[places] = integers(rows, "change"), integers(rows, "area")
            top[places] = integers(rows, "top")
        before = np.cumsum(change) - change
        columns[f"{role}_mean"] = before + area / width(end)
        columns[f"{role}_max"] = before + np.maximum(top, 0)
    for role in ("multicasts", "deliveries"):
        columns[role] = np.zeros(BINS, np.int64)
        if role in totals:
            columns[role] = integers(totals[role], "count").reshape(-1, BINS).sum(axis=0)
    return pa.table(columns)
