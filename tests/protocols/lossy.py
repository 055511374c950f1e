"""Processes joined by a network that loses, duplicates, delays and reorders, as a seed has it."""

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Any, ClassVar

from testbed.check import Verdict, check_events
from testbed.node import Node
from testbed.node.meter import Meter
from testbed.protocols import Deliver, Effects, Message, Multicast, Place, Protocol, Send
from testbed.protocols.channel.reliable import Connection, Reliable
from testbed.protocols.channel.segments import Segment
from testbed.workloads import Bursts, Workload
from tests.world import MemoryLog

MS = 1_000_000
TO_ALL = 255
RUN = 0xC0FFEE


class Mailbox(Protocol):
    """Sends each payload to the process that its first byte names, or one copy to all."""

    name: ClassVar[str] = "mailbox"
    paper: ClassVar[str] = "none"
    wire_id: ClassVar[int] = 250

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = 0
        self.said: list[bytes] = []
        self.got: list[tuple[int, ...]] = []  # sender, sequence number, two bytes of payload

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        self.sent += 1
        self.said.append(payload)
        message = Message(self.me, self.sent, payload, sent_at=now)
        if payload[0] == TO_ALL:
            yield Multicast(self.place.others, message)
        else:
            yield Send((payload[0],), message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        self.got.append((sender, message.seq, *message.payload[:2]))
        yield Deliver(message)

    def multicasts(self) -> bool:
        return True


@dataclass
class Weather:
    """How bad the network is; ``delays_ms`` are drawn anew for every datagram."""

    loss: float = 0
    duplication: float = 0
    delays_ms: tuple[float, float] = (5, 5)


class Lossy:
    """Nodes over a reliable channel over such a network; time is virtual."""

    def __init__(
        self,
        inner: Callable[[Place], Protocol],
        processes: int,
        weather: Weather,
        seed: int = 0,
        settings: Reliable.Settings | None = None,
        neighbours: Callable[[int], tuple[int, ...]] = lambda node: (),
        workload: Workload | None = None,
    ) -> None:
        self.inner, self.processes, self.weather = inner, processes, weather
        self.settings, self.neighbours = settings, neighbours
        self.workload: Workload = workload or Bursts()
        self.rng = random.Random(seed)
        self.now = 0
        self.log, self.meter = MemoryLog(), Meter()
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self.entries = 0
        self.timers: dict[tuple[int, Hashable], int] = {}
        self.dead: set[int] = set()
        self.drops: Callable[[int, Segment], bool] = lambda peer, segment: False
        self.datagrams = self.copies = self.bytes = self.channel_bytes = 0
        self.nodes = [self._node(me, 0) for me in range(processes)]
        self.codec = self.channel(0).codec(RUN, processes)

    def _node(self, me: int, incarnation: int) -> Node:
        place = Place(me, self.processes, self.neighbours(me), incarnation=incarnation)
        reliable = Reliable(self.inner(place), self.settings)
        return Node(reliable, self.workload, self, self.log, self.meter)

    def channel(self, node: int) -> Reliable:
        protocol = self.nodes[node].protocol
        assert isinstance(protocol, Reliable)
        return protocol

    def mailbox(self, node: int) -> Mailbox:
        inner = self.channel(node).inner
        assert isinstance(inner, Mailbox)
        return inner

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        assert isinstance(message, Segment)
        data = self.codec.encode(message)
        assert len(data) == message.size
        self.datagrams += len(peers)
        self.bytes += len(data) * len(peers)
        self.channel_bytes += message.channel_size * len(peers)
        for peer in peers:
            if self.rng.random() < self.weather.loss or self.drops(peer, message):
                continue
            for _ in range(1 + (self.rng.random() < self.weather.duplication)):
                delay = round(self.rng.uniform(*self.weather.delays_ms) * MS)
                self.after(delay, partial(self._arrive, sender, peer, data))

    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        self.copies += 1
        self.unicast(sender, peers, message)

    def _arrive(self, sender: int, peer: int, data: bytes) -> None:
        if peer not in self.dead:
            self.nodes[peer].receive(self.codec.decode(data), sender, self.now)

    def set_timer(self, node: Node, timer: Hashable, delay: int) -> None:
        self.timers[node.id, timer] = self.entries + 1
        self.after(delay, partial(self._expire, node, timer, self.entries + 1))

    def cancel_timer(self, node: Node, timer: Hashable) -> None:
        del self.timers[node.id, timer]

    def _expire(self, node: Node, timer: Hashable, entry: int) -> None:
        if self.timers.get((node.id, timer)) == entry:
            del self.timers[node.id, timer]
            node.timeout(timer, self.now)

    def after(self, delay: int, call: Callable[[], None]) -> None:
        self.entries += 1
        heappush(self.agenda, (self.now + delay, self.entries, call))

    def say(self, node: int, payload: bytes = bytes([TO_ALL])) -> None:
        if node not in self.dead:
            self.nodes[node].multicast(payload, self.now)

    def crash(self, node: int) -> None:
        self.dead.add(node)
        self.timers = {key: entry for key, entry in self.timers.items() if key[0] != node}

    def restart(self, node: int, announce: bool = True) -> None:
        """The process starts again and has forgotten all."""
        self.crash(node)
        self.dead.discard(node)
        self.nodes[node] = self._node(node, self.channel(node).incarnation + 1)
        if announce:
            self.nodes[node].start(self.now)

    def run(self, until: float = float("inf")) -> None:
        """Until nothing is left to happen, or for so many milliseconds of the clock."""
        steps = 0
        while self.agenda and self.agenda[0][0] <= until * MS:
            self.now, _, call = heappop(self.agenda)
            call()
            steps += 1
            assert steps < 1_000_000, "it does not end"

    def check(self) -> Verdict:
        return check_events(range(self.processes), self.log.events)

    def settled(self) -> bool:
        """Whether no timer is set and all is acknowledged."""
        return not self.timers and not any(link.unacknowledged() for link in self._links())

    def quiet(self) -> bool:
        """Whether nothing waits besides."""
        incoming = [i for link in self._links() for i in link.incoming.values()]
        return self.settled() and not any(i.early or i.due for i in incoming)

    def _links(self) -> list[Connection]:
        channels = [self.channel(node) for node in range(self.processes) if node not in self.dead]
        return [link for channel in channels for link in channel.connections.values()]
