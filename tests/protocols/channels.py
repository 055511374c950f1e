"""Processes joined by channels, driven step by step, for tests that choose the schedule."""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from itertools import count

from testbed.check import Verdict, check_events
from testbed.check.logs import Event
from testbed.node import Node
from testbed.node.meter import Meter
from testbed.protocols import Message, MessageId, Place, Protocol
from testbed.workloads import Bursts, Workload


class MemoryLog:
    """The event log in memory, as the oracle takes it."""

    def __init__(self) -> None:
        self.events: defaultdict[int, list[Event]] = defaultdict(list)
        self.held: list[tuple[int, MessageId, MessageId | None]] = []

    def send(self, t: int, node: int, name: MessageId, to: frozenset[int] | None, *_: int) -> None:
        self.events[node].append(Event("send", *name, None if to is None else sorted(to), t))

    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        self.events[node].append(Event("deliver", source, seq, None, t))

    def hold(self, t: int, node: int, name: MessageId, waits_for: MessageId | None) -> None:
        self.held.append((node, name, waits_for))

    def delivered(self, node: int) -> list[MessageId]:
        """What a node delivered, in order."""
        events = self.events[node]
        return [MessageId(e.source, e.seq) for e in events if e.event == "deliver"]


class Channels:
    """A channel for each ordered pair of processes; the test says which one moves next."""

    def __init__(
        self,
        protocol: Callable[..., Protocol],
        processes: int,
        neighbours: Callable[[int], tuple[int, ...]] = lambda node: (),
        workload: Workload | None = None,
        fifo: bool = True,
    ) -> None:
        self.log = MemoryLog()
        self.meter = Meter()
        self.fifo = fifo
        self.queues: defaultdict[tuple[int, int], deque[Message]] = defaultdict(deque)
        self.sends = 0
        self.clock = count(1)
        self.nodes = [
            Node(
                protocol(Place(me, processes, neighbours(me))),
                workload or Bursts(),
                self,
                self.log,  # type: ignore[arg-type]
                self.meter,
            )
            for me in range(processes)
        ]

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        for peer in peers:
            self.sends += 1
            self.queues[sender, peer].append(message)

    multicast = unicast

    def set_timer(self, node: Node, timer: Hashable, delay: int) -> None:
        raise AssertionError("no timers here")

    def cancel_timer(self, node: Node, timer: Hashable) -> None:
        raise AssertionError("no timers here")

    def say(self, node: int, payload: bytes = b"") -> MessageId:
        """An application multicasts."""
        self.nodes[node].multicast(payload, next(self.clock))
        return MessageId(node, self.nodes[node].multicasts)

    def pass_on(self, sender: int, peer: int, place: int = 0) -> None:
        """A channel hands over its first message, or one further back if it is not FIFO."""
        queue = self.queues[sender, peer]
        message = queue[place]
        del queue[place]
        self.nodes[peer].receive(message, sender, next(self.clock))

    def step(self, rng: random.Random) -> bool:
        """A channel drawn at random moves; false if none holds a message."""
        busy = sorted(ends for ends, queue in self.queues.items() if queue)
        if not busy:
            return False
        sender, peer = rng.choice(busy)
        self.pass_on(
            sender, peer, 0 if self.fifo else rng.randrange(len(self.queues[sender, peer]))
        )
        return True

    def play(self, rng: random.Random, messages: int) -> None:
        """Messages from random processes with random progress between, then all the rest."""
        for _ in range(messages):
            self.say(rng.randrange(len(self.nodes)), bytes(4))
            for _ in range(rng.randrange(2 * len(self.nodes))):
                self.step(rng)
        while self.step(rng):
            pass

    def check(self) -> Verdict:
        """What the oracle says."""
        return check_events(range(len(self.nodes)), self.log.events)
