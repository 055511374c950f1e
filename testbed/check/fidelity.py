"""How true an emulated network was: every hop of every packet against the link as configured.

A packet that comes in at switch i joins the queue of its next link at that moment, since a switch
takes no time; when it comes in at switch j the hop is over. The same arrivals are put through the
link's model (wait for those before, bytes at the rate, propagation delay), and what is measured less
what the model says is the error. Errors do not add up along a path: each hop starts from the
measured arrival.

What is lost takes no time, and the others are on time. But where a fault makes a link slow, or some
packets late, nothing is said of when one should arrive. Hops that this may have touched are counted,
but have no error: those over the link while it lasts, those that wait behind one of them, and the
hops of a packet of which there are two, since the two cannot be told apart.

A link is FIFO, and protocols rely on that, however small an error may be. So overtakings are counted:
hops at whose end another packet, of the same two hosts and later at the beginning, had already come.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from testbed.node.meter import Carried
from testbed.packets.framing import ETHERNET_BYTES
from testbed.packets.pcap import Packets

EXACT_NS = 5_000  # 99.9 % of the hops
GOOD_NS = 500_000  # 99 % of the hops

Verdict = Literal["exact", "good", "suspect", "unknown"]
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
    left_out: int = 0  # hops over links with a fault, besides
    overtaken: int = 0

    def __str__(self) -> str:
        overtaken = f", {self.overtaken:,} overtaken on a link" if self.overtaken else ""
        left_out = f", {self.left_out:,} hops under faults left out" if self.left_out else ""
        return (
            f"{self.verdict}: {self.hops:,} hops, error p50 {self.error_us_p50:.3f} µs, "
            f"p99 {self.error_us_p99:.3f} µs, p99.9 {self.error_us_p999:.3f} µs, "
            f"max {self.error_us_max:.3f} µs, {self.dropped:,} dropped{overtaken}{left_out}"
        )

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


Spans = list[tuple[int, int]]
FOREVER = 1 << 62


class Troubles:
    """When which links were in a condition under which nothing can be said of a packet's time."""

    def __init__(self, conditions: Sequence[Mapping[str, Any]] = (), start: int = 0) -> None:
        self.spans: defaultdict[tuple[int, int], Spans] = defaultdict(list)
        self.duplicates = any(condition["duplication"] for condition in conditions)
        since: dict[tuple[int, int], int] = {}
        for condition in conditions:  # in order of time
            a, b = condition["link"]
            begun = since.pop((a, b), None)
            if begun is not None:
                self._add(a, b, begun, start + condition["t"])
            if condition["reordering"] or condition["slowness"] != 1:
                since[a, b] = start + condition["t"]
        for (a, b), begun in since.items():
            self._add(a, b, begun, FOREVER)

    def touch(self, tail: int, head: int, begin: int, end: int) -> bool:
        """Whether the link was in such a condition at any time of a span."""
        return any(a <= end and begin <= b for a, b in self.spans.get((tail, head), ()))

    def _add(self, a: int, b: int, begin: int, end: int) -> None:
        self.spans[a, b].append((begin, end))
        self.spans[b, a].append((begin, end))


@dataclass
class _Link:
    free_at: int
    starts: deque[int]
    doubtful_until: int = 0
    latest: dict[tuple[int, int], int] = field(default_factory=dict)
    """By source and destination, the number of the last packet that came in at the beginning."""


def replay(
    packets: Packets,
    interfaces: Mapping[int, tuple[int | None, int]],
    graph: nx.Graph[int],
    troubles: Troubles | None = None,
) -> tuple[Carried, Errors, int]:
    """Put every captured hop through the model of its link; its errors, and hops overtaken.

    ``interfaces`` says for each interface number where its packets come from and to which switch:
    a link's (tail, head), or (None, head) for packets that a host hands to its switch.
    """
    troubles = troubles or Troubles()
    links: dict[tuple[int, int], _Link] = {}
    seen: dict[tuple[int, int, int, int, int], tuple[int, int]] = {}
    doubles: set[tuple[int, ...]] = set()
    errors: list[int] = []
    hops = wire_bytes = time = longest = overtaken = 0
    columns = (column.tolist() for column in vars(packets).values())
    for number, (t, interface, length, *name) in enumerate(zip(*columns, strict=True)):
        if interface not in interfaces:
            continue
        tail, head = interfaces[interface]
        source, destination, identification, fragment = name
        key = (source, destination, identification, fragment, head)
        if troubles.duplicates and key in seen:
            doubles.add(key[:4])
        seen[key] = t, number
        if tail is None:
            continue
        before = seen.get((source, destination, identification, fragment, tail))
        if before is None:
            continue
        queued, place = before
        attributes = graph.edges[tail, head]
        link = links.setdefault((tail, head), _Link(0, deque()))
        while link.starts and link.starts[0] <= queued:
            link.starts.popleft()
        start = max(queued, link.free_at)
        if start > queued:
            link.starts.append(start)
            longest = max(longest, len(link.starts))
        size = length + ETHERNET_BYTES
        link.free_at = start + size * 8 * 1_000_000_000 // attributes["bandwidth_bps"]
        hops += 1
        wire_bytes += size
        time += t - queued
        if (
            queued < link.doubtful_until
            or key[:4] in doubles
            or troubles.touch(tail, head, queued, t)
        ):
            link.doubtful_until = t
            link.free_at = t - attributes["delay_ns"]
        else:
            errors.append(t - link.free_at - attributes["delay_ns"])
            latest = link.latest.get((source, destination), 0)
            overtaken += place < latest
            link.latest[source, destination] = max(place, latest)
    return Carried(hops, wire_bytes, time, longest), np.array(errors, np.int64), overtaken


def judge(errors: Errors, dropped: int, left_out: int = 0, overtaken: int = 0) -> Fidelity:
    """What the errors amount to; of no hop nothing is known.

    Anything dropped or overtaken makes a run suspect.
    """
    sizes = np.abs(errors) if len(errors) else np.zeros(1)
    p50, p99, p999 = (float(np.percentile(sizes, p)) for p in (50, 99, 99.9))
    verdict: Verdict = "suspect"
    if not dropped and not overtaken:
        if left_out and not len(errors):
            verdict = "unknown"
        elif p999 <= EXACT_NS:
            verdict = "exact"
        elif p99 <= GOOD_NS:
            verdict = "good"
    return Fidelity(
        verdict,
        len(errors),
        error_us_p50=p50 / 1000,
        error_us_p99=p99 / 1000,
        error_us_p999=p999 / 1000,
        error_us_max=float(sizes.max()) / 1000,
        dropped=dropped,
        left_out=left_out,
        overtaken=overtaken,
    )
