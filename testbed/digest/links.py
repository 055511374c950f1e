"""What waited on each link, and how far each hop is from the link as configured.

A capture does not show when a packet left a link's queue. But links are FIFO, so it follows from the
arrivals: packet i starts at max(arrival of i, start of i-1 + its transmission), which over all packets
is a running sum and a running maximum.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from testbed.digest.arrays import Integers, counted, integers, runs_of, with_columns
from testbed.digest.steps import Facts, Piece, Tables

NS = 1_000_000_000


def link_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """The hops over some links, and what they amount to for each."""
    hops = tables["hops"]
    tail, head, queued, arrived = (
        integers(hops, name) for name in ("tail", "head", "queued", "arrived")
    )
    order = np.lexsort((arrived, queued, head, tail))
    hops = hops.take(pa.array(order))
    tail, head, queued, arrived = tail[order], head[order], queued[order], arrived[order]
    bounds = runs_of(tail, head)
    links = list(zip(tail[bounds[:-1]].tolist(), head[bounds[:-1]].tolist(), strict=True))
    of_links = np.array([facts.links[link] for link in links]).reshape(-1, 2)
    delay, bandwidth = np.repeat(of_links, np.diff(bounds), axis=0).T
    transmission = integers(hops, "bytes") * 8 * NS // bandwidth
    if "started" in hops.column_names:  # the simulator knows
        started = integers(hops, "started")
    else:
        started = np.empty_like(queued)
        for a, b in pairwise(bounds.tolist()):
            started[a:b] = starts(queued[a:b], transmission[a:b])
    error = arrived - started - transmission - delay
    facts.write("hops", bucket, with_columns(hops, started=started, error=error))
    yield facts.total("errors", counted(np.abs(error)))
    longest = [longest_queue(queued[a:b], started[a:b]) for a, b in pairwise(bounds.tolist())]
    sums = {
        "bytes": integers(hops, "bytes"),
        "busy": transmission,
        "waited": started - queued,
        "under_way": arrived - queued,
    }
    columns = {name: np.add.reduceat(values, bounds[:-1]) for name, values in sums.items()}
    ends = {"tail": tail[bounds[:-1]], "head": head[bounds[:-1]], "packets": np.diff(bounds)}
    yield facts.total("links", pa.table({**ends, **columns, "queue_max": longest}))


def starts(queued: Integers, transmission: Integers) -> Integers:
    """When each packet of a link leaves its queue, in the order in which they joined it."""
    work = np.cumsum(transmission) - transmission
    started: Integers = np.maximum.accumulate(queued - work) + work
    return started


def longest_queue(queued: Integers, started: Integers) -> int:
    """The most packets that waited at one moment; those that start then no longer wait."""
    waited = started > queued
    joined, left = np.sort(queued[waited]), np.sort(started[waited])
    length = np.arange(1, len(joined) + 1) - np.searchsorted(left, joined, "right")
    return int(length.max(initial=0))


def links(
    configured: Mapping[tuple[int, int], tuple[int, int]], end: int, totals: pa.Table | None
) -> pa.Table:
    """One row for each direction of each link, also of those that carried nothing."""
    carried = {(row["tail"], row["head"]): row for row in totals.to_pylist()} if totals else {}
    nothing = dict.fromkeys(("packets", "bytes", "busy", "waited", "under_way", "queue_max"), 0)
    rows = []
    for (tail, head), (delay, bandwidth) in configured.items():
        found = nothing | carried.get((tail, head), {})
        ends = {"tail": tail, "head": head, "delay_ns": delay, "bandwidth_bps": bandwidth}
        rows.append({**found, **ends, "load": found["under_way"] / end})
    return pa.Table.from_pylist(rows)
