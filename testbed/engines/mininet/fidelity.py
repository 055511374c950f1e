"""How true an emulated network was: every hop of every packet against the link as configured.

A packet that comes in at switch i joins the queue of its next link at that moment, since a switch
takes no time; when it comes in at switch j the hop is over. The same arrivals are put through the
link's model (wait for those before, bytes at the rate, propagation delay), and what is measured less
what the model says is the error. Errors do not add up along a path: each hop starts from the
measured arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from testbed.framing import ETHERNET
from testbed.measures import Carried
from testbed.pcap import Packets

EXACT_NS = 5_000  # 99.9 % of the hops
GOOD_NS = 500_000  # 99 % of the hops

Verdict = Literal["exact", "good", "suspect"]
Errors = NDArray[np.int64]


@dataclass(frozen=True)
class Fidelity:
    """Errors of the hops in microseconds, and what they amount to."""

    verdict: Verdict
    hops: int
    error_us_p50: float
    error_us_p99: float
    error_us_p999: float
    error_us_max: float
    dropped: int

    def __str__(self) -> str:
        return (
            f"{self.verdict}: {self.hops:,} hops, error p50 {self.error_us_p50:.3f} µs, "
            f"p99 {self.error_us_p99:.3f} µs, p99.9 {self.error_us_p999:.3f} µs, "
            f"max {self.error_us_max:.3f} µs, {self.dropped:,} dropped"
        )

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


@dataclass
class _Link:
    free_at: int
    starts: deque[int]


def replay(
    packets: Packets, interfaces: Mapping[int, tuple[int | None, int]], graph: nx.Graph[int]
) -> tuple[Carried, Errors]:
    """Put every captured hop through the model of its link.

    ``interfaces`` says for each interface number where its packets come from and to which switch:
    a link's (tail, head), or (None, head) for packets that a host hands to its switch.
    """
    links: dict[tuple[int, int], _Link] = {}
    seen: dict[tuple[int, int, int, int, int], int] = {}
    errors: list[int] = []
    wire_bytes = time = longest = 0
    for t, interface, length, *name in zip(
        *(column.tolist() for column in vars(packets).values()), strict=True
    ):
        if interface not in interfaces:
            continue
        tail, head = interfaces[interface]
        source, destination, identification, fragment = name
        seen[source, destination, identification, fragment, head] = t
        if tail is None:
            continue
        queued = seen.get((source, destination, identification, fragment, tail))
        if queued is None:
            continue
        attributes = graph.edges[tail, head]
        link = links.setdefault((tail, head), _Link(0, deque()))
        while link.starts and link.starts[0] <= queued:
            link.starts.popleft()
        start = max(queued, link.free_at)
        if start > queued:
            link.starts.append(start)
            longest = max(longest, len(link.starts))
        size = length + ETHERNET
        link.free_at = start + size * 8 * 1_000_000_000 // attributes["bandwidth_bps"]
        errors.append(t - link.free_at - attributes["delay_ns"])
        wire_bytes += size
        time += t - queued
    return Carried(len(errors), wire_bytes, time, longest), np.array(errors, np.int64)


def judge(errors: Errors, dropped: int) -> Fidelity:
    """What the errors amount to. Anything dropped makes a run suspect."""
    sizes = np.abs(errors) if len(errors) else np.zeros(1)
    p50, p99, p999 = (float(np.percentile(sizes, p)) for p in (50, 99, 99.9))
    verdict: Verdict = "suspect"
    if not dropped and p999 <= EXACT_NS:
        verdict = "exact"
    elif not dropped and p99 <= GOOD_NS:
        verdict = "good"
    return Fidelity(
        verdict,
        len(errors),
        error_us_p50=p50 / 1000,
        error_us_p99=p99 / 1000,
        error_us_p999=p999 / 1000,
        error_us_max=float(sizes.max()) / 1000,
        dropped=dropped,
    )
