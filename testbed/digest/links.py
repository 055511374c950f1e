"""What waited on each link, and how far each hop is from the link as configured.

A capture does not show when a packet left a link's queue. But links are FIFO, so it follows from the
arrivals: packet i starts at max(arrival of i, start of i-1 + its transmission), which over all packets
is a running sum and a running maximum.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from testbed.digest.arrays import Integers, counted, integers, order_of, runs_of, with_columns
from testbed.digest.carried import carrying
from testbed.digest.delays import HOPS
from testbed.digest.steps import Facts, Piece, Tables

NS = 1_000_000_000


def link_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """The hops over some links, and what they amount to for each."""
    hops = tables["hops"]
    tail, head, queued, arrived = (
        integers(hops, name) for name in ("tail", "head", "queued", "arrived")
    )
    order = order_of(tail, head, queued, arrived)
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
    hops = with_columns(hops, started=started, error=error)
    facts.write("hops", bucket, hops)
    its = hops.select(HOPS)
    yield from facts.by_message("delay", "hops", its)
    if (carried := facts.carried()) is not None:
        yield from facts.by_message("delay", "hops", carrying(its, carried).cast(its.schema))
    yield facts.total("errors", counted(np.abs(error)))
    sizes = integers(hops, "bytes")
    longest = [
        longest_queue(queued[a:b], started[a:b], sizes[a:b]) for a, b in pairwise(bounds.tolist())
    ]
    sums = {
        "bytes": sizes,
        "busy": transmission,
        "waited": started - queued,
        "under_way": arrived - queued,
        "bytes_under_way": sizes * (arrived - queued),
    }
    columns = {name: np.add.reduceat(values, bounds[:-1]) for name, values in sums.items()}
    ends = {"tail": tail[bounds[:-1]], "head": head[bounds[:-1]], "packets": np.diff(bounds)}
    packets, waiting = np.array(longest, np.int64).reshape(-1, 2).T
    queues = {"queue_max": packets, "queue_bytes_max": waiting}
    yield facts.total("links", pa.table({**ends, **columns, **queues}))


def starts(queued: Integers, transmission: Integers) -> Integers:
    """When each packet of a link leaves its queue, in the order in which they joined it."""
    work = np.cumsum(transmission) - transmission
    started: Integers = np.maximum.accumulate(queued - work) + work
    return started


def longest_queue(queued: Integers, started: Integers, sizes: Integers) -> tuple[int, int]:
    """The most packets, and the most bytes, that waited at one moment; those that start then do not.

    Packets are in the order in which they joined the queue.
    """
    waited = started > queued
    joined, left, sizes = queued[waited], started[waited], sizes[waited]
    order = np.argsort(left, kind="stable")
    gone = np.searchsorted(left[order], joined, "right")
    packets = np.arange(1, len(joined) + 1) - gone
    waiting = np.cumsum(sizes) - np.concatenate([[0], np.cumsum(sizes[order])])[gone]
    return int(packets.max(initial=0)), int(waiting.max(initial=0))


def links(
    configured: Mapping[tuple[int, int], tuple[int, int]], end: int, totals: pa.Table | None
) -> pa.Table:
    """One row for each direction of each link, also of those that carried nothing."""
    carried = {(row["tail"], row["head"]): row for row in totals.to_pylist()} if totals else {}
    figures = "packets bytes busy waited under_way bytes_under_way queue_max queue_bytes_max"
    nothing = dict.fromkeys(figures.split(), 0)
    rows = []
    for (tail, head), (delay, bandwidth) in configured.items():
        found = nothing | carried.get((tail, head), {})
        ends = {"tail": tail, "head": head, "delay_ns": delay, "bandwidth_bps": bandwidth}
        loads = {"load": found["under_way"] / end, "load_bytes": found["bytes_under_way"] / end}
        rows.append({**found, **ends, **loads})
    return pa.Table.from_pylist(rows)
