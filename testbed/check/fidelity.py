"""Fidelity of an emulated network: every hop of every packet against the link as configured.

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
from dataclasses import dataclass, field
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


Spans = list[tuple[int, int]]
FOREVER = 1 << 62


class UnjudgeableSpans:
    """The times in which faults made a link slow or late, so that a hop's error means nothing."""

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
class _LinkModel:
    """A store-and-forward link: what it should do with the packets that were seen to join its queue."""

    delay_ns: int
    bandwidth_bps: int
    free_at: int = 0
    unjudgeable_until: int = 0
    packets: int = 0
    bytes: int = 0
    time: int = 0  # packets × nanoseconds that they waited and travelled
    byte_time: int = 0
    longest_queue: int = 0
    longest_queue_bytes: int = 0
    _waiting_bytes: int = 0
    # those that wait: when each will be transmitted, and its size
    _starts: deque[tuple[int, int]] = field(default_factory=deque)
    # the last packet seen of two hosts, by number
    _latest: dict[tuple[int, int], int] = field(default_factory=dict)

    def transmit(self, queued: int, size: int) -> int:
        """Transmit a packet behind those that wait; when it should arrive."""
        while self._starts and self._starts[0][0] <= queued:
            self._waiting_bytes -= self._starts.popleft()[1]
        start = max(queued, self.free_at)
        if start > queued:
            self._starts.append((start, size))
            self._waiting_bytes += size
            self.longest_queue = max(self.longest_queue, len(self._starts))
            self.longest_queue_bytes = max(self.longest_queue_bytes, self._waiting_bytes)
        self.free_at = start + size * 8 * 1_000_000_000 // self.bandwidth_bps
        return self.free_at + self.delay_ns

    def count(self, size: int, time: int) -> None:
        """Count a packet, and how long it was seen to wait and travel."""
        self.packets += 1
        self.bytes += size
        self.time += time
        self.byte_time += size * time

    def give_up(self, arrived: int) -> None:
        """Take a packet's arrival as it was; of those that wait behind it nothing is known either."""
        self.unjudgeable_until = arrived
        self.free_at = arrived - self.delay_ns

    def overtaken(self, hosts: tuple[int, int], number: int) -> bool:
        """Whether a packet that joined the queue later has arrived before this one."""
        latest = self._latest.get(hosts, 0)
        self._latest[hosts] = max(number, latest)
        return number < latest


def replay(
    packets: Packets,
    interfaces: Mapping[int, tuple[int | None, int]],
    graph: nx.Graph[int],
    spans: UnjudgeableSpans | None = None,
) -> tuple[Carried, Errors, int]:
    """Put every captured hop through the model of its link; its errors, and hops overtaken.

    ``interfaces`` says for each interface number where its packets come from and to which switch:
    a link's (tail, head), or (None, head) for packets that a host hands to its switch.
    """
    spans = spans or UnjudgeableSpans()
    links = {
        ends: _LinkModel(link["delay_ns"], link["bandwidth_bps"])
        for a, b, link in graph.edges(data=True)
        for ends in ((a, b), (b, a))
    }
    seen: dict[tuple[int, int, int, int, int], tuple[int, int]] = {}
    duplicated: set[tuple[int, ...]] = set()
    errors: list[int] = []
    overtaken = 0
    columns = (column.tolist() for column in vars(packets).values())
    for number, (t, interface, length, *name) in enumerate(zip(*columns, strict=True)):
        if interface not in interfaces:
            continue
        tail, head = interfaces[interface]
        source, destination, identification, fragment = name
        key = (source, destination, identification, fragment, head)
        if spans.duplicates and key in seen:
            duplicated.add(key[:4])
        seen[key] = t, number
        if tail is None or (before := seen.get((*key[:4], tail))) is None:
            continue
        (queued, place), link, size = before, links[tail, head], length + ETHERNET_BYTES
        link.count(size, t - queued)
        should_arrive = link.transmit(queued, size)
        known = queued >= link.unjudgeable_until and key[:4] not in duplicated
        if known and not spans.touch(tail, head, queued, t):
            errors.append(t - should_arrive)
            overtaken += link.overtaken((source, destination), place)
        else:
            link.give_up(t)
    return _carried([*links.values()]), np.array(errors, np.int64), overtaken


def _carried(links: list[_LinkModel]) -> Carried:
    return Carried(
        hops=sum(link.packets for link in links),
        wire_bytes=sum(link.bytes for link in links),
        time=sum(link.time for link in links),
        byte_time=sum(link.byte_time for link in links),
        longest_queue=max((link.longest_queue for link in links), default=0),
        longest_queue_bytes=max((link.longest_queue_bytes for link in links), default=0),
    )


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
