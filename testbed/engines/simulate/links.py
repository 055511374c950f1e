"""Store-and-forward links and the heap of events that drives them.

A direction of a link is a FIFO queue: a packet starts when the one before it is out, takes its bytes
at the link's rate, and arrives a propagation delay later. Both times are known when the packet is
queued, so a hop is one event. Packets leave a link in the order in which they entered it; therefore
only the first of each link stands in the heap, which stays as small as the network however many
packets are under way.

The heap holds plain integers, ``time << LINK_BITS | link``: they compare several times faster than
tuples. Link 0 stands for calls. So at equal times calls come first, in the order in which they were
asked for, and then packets in the order of their links.

A link in an unusual condition loses packets before they enter its queue, takes them in twice, or takes
them in late, after others that came later. One that goes down loses all that it holds.
"""

import gc
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush, heapreplace

from testbed.faults import Condition
from testbed.protocols import Message

NS_PER_S = 1_000_000_000
EVENTS_PER_TICK = 1 << 15
LINK_BITS = 24
LINK_MASK = (1 << LINK_BITS) - 1


@dataclass(slots=True, eq=False)
class Packet:
    """One fragment of a message on its way; shared by all links that it crosses."""

    message: Message
    sender: int
    size: int
    fragment: int
    fragments: int
    copy: int


class Transmission(dict[int, int]):
    """Transmission times in nanoseconds by size in bytes, worked out once for each size."""

    def __init__(self, bps: int) -> None:
        self.bps = bps

    def __missing__(self, size: int) -> int:
        time = self[size] = size * 8 * NS_PER_S // self.bps
        return time


@dataclass(slots=True, eq=False)
class Link:
    """One direction of a link, and what is counted on it."""

    number: int
    tail: int
    head: int
    delay: int
    transmission: Transmission
    limit: int  # packets that may wait; 0 is no limit
    loss: float
    nominal: Transmission = field(init=False)
    condition: Condition | None = None  # if there is anything unusual
    free_at: int = 0
    flight: deque[tuple[int, "Hop", Packet]] = field(default_factory=deque)
    waiting: deque[int] = field(default_factory=deque)  # when those that wait will start, or have
    longest: int = 0
    packets: int = 0
    time: int = 0  # packets × nanoseconds that they spent waiting and on the link
    dropped: int = 0
    lost: int = 0
    duplicated: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.number <= LINK_MASK:
            raise ValueError(f"links are numbered from 1 to {LINK_MASK}, not {self.number}")
        self.nominal = self.transmission
        if self.loss:
            self.condition = Condition(loss=self.loss)

    def queue(self, now: int) -> int:
        """How many packets wait for their turn."""
        waiting = self.waiting
        while waiting and waiting[0] <= now:
            waiting.popleft()
        return len(waiting)

    def set_condition(self, condition: Condition) -> None:
        """From now on the link is like this, on top of what it was configured to lose."""
        whole = condition._replace(loss=1 - (1 - self.loss) * (1 - condition.loss))
        self.condition = None if whole == Condition() else whole
        self.transmission = self.nominal
        if condition.slowness != 1:
            slower = max(1, round(self.nominal.bps / condition.slowness))
            self.transmission = type(self.nominal)(slower)


class Hop:
    """One link of a route, where its packets go from there, and whether they stay there too.

    ``to`` is the process at the end of the route; -1 in a tree, which has several.
    """

    __slots__ = ("link", "onward", "receivers", "receives", "to")

    def __init__(self, link: Link, onward: tuple["Hop", ...], receives: bool, to: int = -1) -> None:
        self.link = link
        self.onward = onward
        self.receives = receives
        self.to = to
        self.receivers: int = receives + sum(hop.receivers for hop in onward)


@dataclass(slots=True, eq=False)
class Call:
    """Something to be done at a time, unless it is cancelled before."""

    do: Callable[[], None] | None

    def cancel(self) -> None:
        """It shall not be done; time does not wait for it either."""
        self.do = None


Recorder = Callable[[Hop, Packet, int, int, int], None]


class Scheduler:
    """The heap of events: packets that reach the end of a link, and calls at a given time."""

    def __init__(
        self, links: list[Link], arrive: Callable[[int, Packet, int], None], rng: random.Random
    ) -> None:
        self.now = 0
        self.wire_bytes = 0
        self.record: Recorder | None = None
        self.tick: Callable[[], None] = lambda: None
        self._arrive = arrive
        self._rng = rng
        self._flights = [deque(), *(link.flight for link in links)]
        self._heap: list[int] = []
        self._calls: list[tuple[int, int, Call]] = []
        self._asked = 0

    def call_at(self, time: int, do: Callable[[], None]) -> Call:
        """Have something done at a time that is not past."""
        if time < self.now:
            raise ValueError(f"a call at {time} ns, which is before now, {self.now} ns")
        self._asked += 1
        call = Call(do)
        heappush(self._calls, (time, self._asked, call))
        heappush(self._heap, time << LINK_BITS)
        return call

    def cut(self, link: Link) -> None:
        """All that waits for a link and travels on it is lost."""
        if link.flight:
            self._heap.remove(link.flight[0][0])
            heapify(self._heap)
        link.lost += len(link.flight)
        link.flight.clear()
        link.waiting.clear()
        link.free_at = 0

    def transmit(self, hop: Hop, packet: Packet, now: int, admitted: bool = False) -> None:
        """Queue a packet on a hop's link, if the link's condition admits it."""
        link = hop.link
        if link.condition is not None and not admitted:
            self._admit(link.condition, hop, packet, now)
            return
        start = link.free_at
        if start > now:
            if link.limit and link.queue(now) >= link.limit:
                link.dropped += 1
                return
            waiting = link.waiting
            waiting.append(start)
            if len(waiting) > link.longest:
                link.longest = max(link.longest, link.queue(now))
        else:
            start = now
        link.free_at = end = start + link.transmission[packet.size]
        arrival = end + link.delay
        link.packets += 1
        self.wire_bytes += packet.size
        link.time += arrival - now
        key = arrival << LINK_BITS | link.number
        flight = link.flight
        if not flight:
            heappush(self._heap, key)
        flight.append((key, hop, packet))
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
                self.transmit(hop, packet, now, True)

    def _admit_late(self, hop: Hop, packet: Packet) -> None:
        condition = hop.link.condition
        if condition is None or condition.up:
            self.transmit(hop, packet, self.now, True)
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
        heap, flights = self._heap, self._flights
        transmit, arrive = self.transmit, self._arrive
        events = 0
        while heap:
            key = heap[0]
            events += 1
            if not events % EVENTS_PER_TICK:
                self.tick()
            flight = flights[key & LINK_MASK]
            if not flight:
                heappop(heap)
                if do := heappop(self._calls)[2].do:
                    self.now = key >> LINK_BITS
                    do()
                continue
            self.now = now = key >> LINK_BITS
            _, hop, packet = flight.popleft()
            if flight:
                heapreplace(heap, flight[0][0])
            else:
                heappop(heap)
            for onward in hop.onward:
                transmit(onward, packet, now)
            if hop.receives:
                arrive(hop.link.head, packet, now)
        return events
