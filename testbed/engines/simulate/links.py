"""Store-and-forward links and the heap of events that drives them.

A direction of a link is a FIFO queue: a packet starts when the one before it is out, takes its bytes
at the link's rate, and arrives a propagation delay later. Both times are known when the packet is
queued, so a hop is one event. Packets leave a link in the order in which they entered it; therefore
only the first of each link stands in the heap, which stays as small as the network however many
packets are under way.

In the heap link 0 stands for calls. So at equal times calls come first, in the order in which they
were asked for, and then packets in the order of their links.

A link in an unusual condition loses packets before they enter its queue, takes them in twice, or takes
them in late, after others that came later. One that goes down loses all that it holds.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from testbed.engines.simulate.heap import MASK
from testbed.faults import Condition
from testbed.protocols import Message

NS_PER_S = 1_000_000_000
EVENTS_PER_TICK = 1 << 15
FAR = 1 << 62  # nanoseconds, more than a century
COMPILED = not __file__.endswith(".py")
if not COMPILED:
    from testbed.engines.simulate.heap import Heap
else:  # which the compiler is told
    from testbed.engines.simulate.packed_heap import Heap  # type: ignore[assignment]
if TYPE_CHECKING:
    from mypy_extensions import i64  # to the compiler a machine integer, to Python any other


class Packet:
    """One fragment of a message on its way; shared by all links that it crosses."""

    __slots__ = ("copy", "fragment", "fragments", "message", "sender", "size")

    def __init__(
        self, message: Message, sender: int, size: int, fragment: int, fragments: int, copy: int
    ) -> None:
        self.message = message
        self.sender = sender
        self.size: i64 = size
        self.fragment = fragment
        self.fragments = fragments
        self.copy = copy


class Link:
    """One direction of a link, what is on it, and what is counted on it."""

    __slots__ = (
        "bps",
        "byte_time",
        "condition",
        "delay",
        "dropped",
        "duplicated",
        "first",
        "free_at",
        "head",
        "last",
        "limit",
        "longest",
        "longest_bytes",
        "loss",
        "lost",
        "nominal_bps",
        "number",
        "packets",
        "size",
        "starting",
        "tail",
        "time",
        "transmission",
        "waiting",
        "waiting_bytes",
    )

    def __init__(
        self, number: int, tail: int, head: int, delay: int, bps: int, limit: int, loss: float
    ) -> None:
        if not 0 < number <= MASK:
            raise ValueError(f"links are numbered from 1 to {MASK}, not {number}")
        self.number = number
        self.tail = tail
        self.head = head
        self.delay: i64 = delay
        self.bps = self.nominal_bps = bps  # 0: bytes take no time
        self.limit = limit  # packets that may wait; 0 is no limit
        self.loss = loss
        self.condition: Condition | None = None  # if there is anything unusual
        if loss:
            self.condition = Condition(loss=loss)
        self.free_at: i64 = 0
        self.size: i64 = 0  # of the last packet, in bytes
        self.transmission: i64 = 0  # and in nanoseconds
        self.first: Flight | None = None
        self.last: Flight | None = None
        self.starting: Flight | None = None  # the first that waits, or that has started since
        self.waiting: i64 = 0  # packets from that one on
        self.waiting_bytes: i64 = 0
        self.longest: i64 = 0
        self.longest_bytes: i64 = 0
        self.packets: i64 = 0
        self.time = 0  # packets × nanoseconds that they spent waiting and on the link
        self.byte_time = 0
        self.dropped = 0
        self.lost = 0
        self.duplicated = 0

    def queue(self, now: i64) -> i64:
        """How many packets wait for their turn."""
        flight = self.starting
        while flight is not None and flight.start <= now:
            self.waiting -= 1
            self.waiting_bytes -= flight.packet.size
            flight = flight.behind
        self.starting = flight
        return self.waiting

    def wait(self, flight: Flight, now: i64) -> None:
        """A packet that is on the link waits for its turn."""
        if self.starting is None:
            self.starting = flight
        self.waiting += 1
        self.waiting_bytes += flight.packet.size
        if self.waiting > self.longest or self.waiting_bytes > self.longest_bytes:
            self.longest = max(self.longest, self.queue(now))
            self.longest_bytes = max(self.longest_bytes, self.waiting_bytes)

    def transmission_of(self, size: i64) -> i64:
        """The nanoseconds that a packet of this size takes, remembered for the next one."""
        self.size = size
        self.transmission = size * 8 * NS_PER_S // self.bps if self.bps else 0
        return self.transmission

    def set_condition(self, condition: Condition) -> None:
        """From now on the link is like this, on top of what it was configured to lose."""
        whole = condition._replace(loss=1 - (1 - self.loss) * (1 - condition.loss))
        self.condition = None if whole == Condition() else whole
        self.bps, self.size = self.nominal_bps, 0
        if condition.slowness != 1 and self.bps:
            self.bps = max(1, round(self.nominal_bps / condition.slowness))

    def clear(self) -> int:
        """Lose all that is on the link and waits for it; how many packets that was."""
        flight, count = self.first, 0
        while flight is not None:
            flight, count = flight.behind, count + 1
        self.first = self.last = self.starting = None
        self.waiting = self.waiting_bytes = self.free_at = 0
        self.lost += count
        return count


class Hop:
    """One link of a route, where its packets go from there, and whether they stay there too.

    ``to`` is the process at the end of the route; -1 in a tree, which has several.
    """

    __slots__ = ("further", "link", "next", "receivers", "receives", "to")

    def __init__(self, link: Link, onward: tuple[Hop, ...], receives: bool, to: int = -1) -> None:
        self.link = link
        self.next: Hop | None = onward[0] if onward else None
        self.further = onward[1:]  # where a tree has branches
        self.receives = receives
        self.to = to
        self.receivers: int = receives + sum(hop.receivers for hop in onward)


class Flight:
    """A packet on one link of its way; behind it is the one that entered the link after it."""

    __slots__ = ("arrival", "behind", "hop", "packet", "start")

    def __init__(self, hop: Hop, packet: Packet) -> None:
        self.hop = hop
        self.packet = packet
        self.start: i64 = 0
        self.arrival: i64 = 0
        self.behind: Flight | None = None


class Call:
    """Something to be done at a time, unless it is cancelled before."""

    __slots__ = ("do",)

    def __init__(self, do: Callable[[], None]) -> None:
        self.do: Callable[[], None] | None = do

    def cancel(self) -> None:
        """It shall not be done; time does not wait for it either."""
        self.do = None


class Destination:
    """Takes the packets that have come to the end of their way."""

    def arrive(self, node: int, packet: Packet, now: int) -> None:
        """A packet has reached a node that it is for."""


Recorder = Callable[[Hop, Packet, int, int, int], None]


class Scheduler:
    """The heap of events: packets that reach the end of a link, and calls at a given time."""

    def __init__(self, links: list[Link], destination: Destination, rng: random.Random) -> None:
        self.now = 0
        self.wire_bytes: i64 = 0
        self.record: Recorder | None = None
        self.tick: Callable[[], None] = lambda: None
        self._destination = destination
        self._rng = rng
        self._links = [None, *links]
        self._heap = Heap()
        self._calls: list[tuple[int, int, Call]] = []
        self._asked = 0

    def call_at(self, time: int, do: Callable[[], None]) -> Call:
        """Have something done at a time that is not past."""
        if time < self.now:
            raise ValueError(f"a call at {time} ns, which is before now, {self.now} ns")
        self._asked += 1
        call = Call(do)
        heappush(self._calls, (time, self._asked, call))
        self._heap.push(min(time, FAR), 0)
        return call

    def cut(self, link: Link) -> None:
        """All that waits for a link and travels on it is lost."""
        if link.first is not None:
            self._heap.remove(link.first.arrival, link.number)
        link.clear()

    def transmit(self, flight: Flight, now: i64, admitted: bool = False) -> None:
        """Queue a packet on the link of its hop, if the link's condition admits it."""
        hop, packet = flight.hop, flight.packet
        link = hop.link
        if link.condition is not None and not admitted:
            self._admit(link.condition, hop, packet, now)
            return
        start, waits = now, False
        if link.free_at > now:
            if link.limit and link.queue(now) >= link.limit:
                link.dropped += 1
                return
            start, waits = link.free_at, True
        size = packet.size
        link.free_at = end = start + (
            link.transmission if size == link.size else link.transmission_of(size)
        )
        arrival = end + link.delay
        link.packets += 1
        self.wire_bytes += size
        lasts: int = arrival - now  # of any size, as what is added up
        link.time += lasts
        link.byte_time += size * lasts
        flight.start, flight.arrival, flight.behind = start, arrival, None
        last, link.last = link.last, flight
        if last is None:
            link.first = flight
            self._heap.push(arrival, link.number)
        else:
            last.behind = flight
        if waits:
            link.wait(flight, now)
        else:  # all before it have started
            link.starting, link.waiting, link.waiting_bytes = None, 0, 0
        if self.record is not None:
            self.record(hop, packet, now, start, arrival)

    def _admit(self, condition: Condition, hop: Hop, packet: Packet, now: int) -> None:
        draw, link = self._rng.random, hop.link
        if not condition.up or (condition.loss and draw() < condition.loss):
            link.lost += 1
            return
        twice = condition.duplication and draw() < condition.duplication
        link.duplicated += bool(twice)
        for _ in range(2 if twice else 1):
            if condition.reordering and draw() < condition.reordering:
                self.call_at(now + condition.late_ns, partial(self._admit_late, hop, packet))
            else:
                self.transmit(Flight(hop, packet), now, True)

    def _admit_late(self, hop: Hop, packet: Packet) -> None:
        condition = hop.link.condition
        if condition is None or condition.up:
            self.transmit(Flight(hop, packet), self.now, True)
        else:
            hop.link.lost += 1

    def run(self) -> int:
        """Work until nothing is left to do; the number of events."""
        gc.disable()  # an event leaves no cycle behind, and millions of packets are slow to search
        try:
            return self._run()
        finally:
            gc.enable()

    def _run(self) -> int:
        heap, links, destination = self._heap, self._links, self._destination
        events = 0
        while (number := heap.first()) >= 0:
            events += 1
            if not events % EVENTS_PER_TICK:
                self.tick()
            link = links[number]
            if link is None:
                heap.pop()
                time, _, call = heappop(self._calls)
                if (do := call.do) is not None:
                    self.now = time
                    do()
                continue
            flight = link.first
            assert flight is not None
            self.now = now = flight.arrival
            hop, packet = flight.hop, flight.packet
            link.first = behind = flight.behind
            if link.starting is flight:
                link.starting = behind
                link.waiting -= 1
                link.waiting_bytes -= packet.size
            if behind is None:
                link.last = None
                heap.pop()
            else:
                heap.replace(behind.arrival, number)
            if hop.next is not None:
                flight.hop = hop.next
                self.transmit(flight, now)
                for onward in hop.further:
                    self.transmit(Flight(onward, packet), now)
            if hop.receives:
                destination.arrive(link.head, packet, now)
        return events
