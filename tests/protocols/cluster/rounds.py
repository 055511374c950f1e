"""Gossiping processes in virtual time over a network that delays and loses, and a judge of order.

Leaner than the simulator: datagrams have a delay drawn anew for each and no size, so that delays
longer than a round reorder much. The judge knows nothing of clocks and tickets: it takes for causal
past what a process had sent and delivered before it sent.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from heapq import heappop, heappush
from typing import Any

from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Hold,
    Message,
    MessageId,
    Note,
    Place,
    Protocol,
    Send,
    SetTimer,
)
from testbed.protocols.cluster.gossip import PrCast

MS = 1_000_000
RUN = 0xBA115


class Judge:
    """Real happens-before between messages; sets of messages are the bits of integers."""

    def __init__(self, processes: int) -> None:
        self.number: dict[MessageId, int] = {}
        self.past: dict[int, int] = {}  # of each message, without itself
        self.known = [0] * processes  # what is in each process's past
        self.delivered = [0] * processes
        self.before = [0] * processes  # what precedes something that it delivered
        self.violations: list[tuple[int, MessageId]] = []
        self.twice: list[tuple[int, MessageId]] = []

    def send(self, me: int, name: MessageId) -> None:
        """A process multicasts."""
        number = self.number[name] = len(self.number)
        self.past[number] = self.known[me]
        self.known[me] |= 1 << number

    def deliver(self, me: int, name: MessageId) -> None:
        """A process delivers, perhaps too late."""
        number = self.number[name]
        if self.delivered[me] >> number & 1:
            self.twice.append((me, name))
        elif self.before[me] >> number & 1:
            self.violations.append((me, name))
        self.delivered[me] |= 1 << number
        self.before[me] |= self.past[number]
        self.known[me] |= self.past[number] | 1 << number

    def lost(self, me: int) -> int:
        """How many messages a process has not delivered."""
        return len(self.number) - self.delivered[me].bit_count()


class Rounds:
    """Processes of one protocol, the network between them, and what is seen of both."""

    def __init__(
        self,
        make: Callable[[Place], Protocol],
        processes: int,
        *,
        loss: float = 0,
        delays_ms: tuple[float, float] = (1, 5),
        seed: int = 0,
        wire: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.loss, self.delays_ms = loss, delays_ms
        self.now = self.asked = 0
        self.agenda: list[tuple[int, int, Callable[[], object]]] = []
        self.timers: dict[tuple[int, Hashable], int] = {}
        self.judge = Judge(processes)
        self.sequences: list[list[MessageId]] = [[] for _ in range(processes)]
        self.latencies: list[int] = []
        self.counted: Counter[str] = Counter()
        self.discarded: Counter[str] = Counter()
        self.holds: list[tuple[int, MessageId]] = []
        self.answers: Callable[[int, Message], bool] = lambda me, message: False
        self.multicasts: defaultdict[int, int] = defaultdict(int)
        self.dead: set[int] = set()
        self.protocols: list[Any] = [
            make(Place(me, processes, rng=random.Random(f"{seed} {me}"))) for me in range(processes)
        ]
        self.codec = self.protocols[0].codec(RUN, processes) if wire else None
        for me, protocol in enumerate(self.protocols):
            self.perform(me, protocol.start(0))

    def at(self, time: int, do: Callable[[], object]) -> None:
        """Have something done at a time."""
        self.asked += 1
        heappush(self.agenda, (time, self.asked, do))

    def multicast(self, me: int, payload: bytes = b"") -> MessageId | None:
        """An application multicasts, or leaves it if its process is busy."""
        protocol = self.protocols[me]
        if protocol.busy():
            return None
        self.multicasts[me] += 1
        name = MessageId(me, protocol.place.base + self.multicasts[me])
        self.judge.send(me, name)
        self.perform(me, protocol.multicast(payload, None, self.now))
        return name

    def run(self, ms: float) -> None:
        """Go on for so long."""
        end = self.now + round(ms * MS)
        while self.agenda and self.agenda[0][0] <= end:
            self.now, _, do = heappop(self.agenda)
            do()
        self.now = end

    def load(self, senders: int, p: float, rounds: int, round_ms: float) -> None:
        """In each of some rounds, some processes multicast with a probability at a random time."""
        for r in range(rounds):
            for me in range(senders):
                if self.rng.random() < p:
                    at = (r + self.rng.random()) * round_ms
                    self.at(self.now + round(at * MS), partial(self.multicast, me))

    def perform(self, me: int, effects: Any) -> None:
        """Give effects their meaning."""
        for effect in effects:
            if isinstance(effect, Send):
                for peer in effect.peers:
                    self.post(me, peer, effect.message)
            elif isinstance(effect, Deliver):
                self.deliver(me, effect.message)
            elif isinstance(effect, SetTimer):
                number = self.timers[me, effect.timer] = self.asked + 1
                self.at(self.now + effect.delay, partial(self.run_out, me, effect.timer, number))
            elif isinstance(effect, CancelTimer):
                self.timers.pop((me, effect.timer), None)
            elif isinstance(effect, Count):
                self.counted[effect.name] += effect.amount
            elif isinstance(effect, Discard):
                self.discarded[effect.reason] += 1
            elif isinstance(effect, Hold):
                self.holds.append((me, effect.message.id))
            elif not isinstance(effect, Note):
                raise TypeError(effect)

    def deliver(self, me: int, message: Message) -> None:
        """The application has got a message, and may answer."""
        self.judge.deliver(me, message.id)
        self.sequences[me].append(message.id)
        if message.source != me:
            self.latencies.append(self.now - message.sent_at)
        if self.answers(me, message):
            self.multicast(me)

    def run_out(self, me: int, timer: Hashable, number: int) -> None:
        """A timer runs out, unless it was cancelled or set anew."""
        if self.timers.get((me, timer)) == number and me not in self.dead:
            del self.timers[me, timer]
            self.perform(me, self.protocols[me].timeout(timer, self.now))

    def post(self, me: int, peer: int, message: Message) -> None:
        """A datagram sets out; with ``wire``, as bytes."""
        if self.rng.random() < self.loss or peer in self.dead:
            return
        if self.codec is not None:
            data = self.codec.encode(message)
            assert len(data) == message.size
            message = self.codec.decode(data)
        delay = round(self.rng.uniform(*self.delays_ms) * MS)
        self.at(self.now + delay, partial(self.arrive, me, peer, message))

    def arrive(self, sender: int, peer: int, message: Message) -> None:
        """A datagram is there."""
        self.perform(peer, self.protocols[peer].receive(message, sender, self.now))

    def lost(self) -> int:
        """How many deliveries are lacking, over all processes that live."""
        alive = (me for me in range(len(self.protocols)) if me not in self.dead)
        return sum(map(self.judge.lost, alive))


class LockStep:
    """The gossip layer alone: all processes begin their rounds together, and nothing is lost."""

    def __init__(self, processes: list[PrCast]) -> None:
        self.processes = processes
        self.received: Counter[MessageId] = Counter()
        self.copies = 0

    def step(self) -> None:
        """A round of all processes; then all that they sent arrives."""
        for todo in [prcast.round() for prcast in self.processes]:
            if todo is None:
                continue
            self.copies += len(todo.targets) * len(todo.gossip.balls)
            for target in todo.targets:
                prcast = self.processes[target]
                if prcast.view.member:
                    self.received.update(event.id for event in prcast.receive(todo.gossip))
