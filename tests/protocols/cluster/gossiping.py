"""The gossip layer alone, with all rounds in step or each process at its own phase."""

import random
from collections import Counter
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from typing_extensions import override

from testbed.protocols import Message, MessageId, Place
from testbed.protocols.cluster import gossip

ROUND_NS = 100_000_000


class LockStep:
    """The gossip layer alone: all processes begin their rounds together, and nothing is lost."""

    def __init__(self, processes: list[gossip.PrCast]) -> None:
        self.processes = processes
        self.received: Counter[MessageId] = Counter()
        self.copies = 0
        self.now = 0

    def step(self, rounds: int = 1) -> None:
        """Rounds of all processes, in each of which all arrives that they sent."""
        for _ in range(rounds):
            self.now += ROUND_NS
            for todo in [prcast.round(self.now) for prcast in self.processes]:
                for target in self.sent(todo):
                    self.arrive(target, todo, self.now)

    def sent(self, todo: gossip.Round | None) -> tuple[int, ...]:
        if todo is None:
            return ()
        self.copies += len(todo.targets) * len(todo.gossip.balls)
        return todo.targets

    def arrive(self, target: int, todo: gossip.Round | None, now: int) -> None:
        prcast = self.processes[target]
        if prcast.view.member:
            assert todo is not None
            self.received.update(event.id for event in prcast.receive(todo.gossip, now))


class OutOfStep(LockStep):
    """… or begin them at a random phase each; a message takes 2 % of a round."""

    @override
    def step(self, rounds: int = 1) -> None:
        """One event of process 0 spreads for so many rounds."""
        rng, numbers = random.Random(len(self.processes) + self.copies), count()
        first = [rng.randrange(ROUND_NS) for _ in self.processes]
        for prcast, at in zip(self.processes, first, strict=True):
            prcast.begin(at)
        self.processes[0].multicast(Message(0, 1), 0)
        happens: list[Any] = [(at, next(numbers), me, None) for me, at in enumerate(first)]
        heapify(happens)
        while happens[0][0] < rounds * ROUND_NS:
            now, _, me, todo = heappop(happens)
            if todo is not None:
                self.arrive(me, todo, now)
                continue
            todo = self.processes[me].round(now)
            for target in self.sent(todo):
                heappush(happens, (now + ROUND_NS // 50, next(numbers), target, todo))
            heappush(happens, (now + ROUND_NS, next(numbers), me, None))


def make_processes(
    count: int, rng: random.Random, kind: type[LockStep] = LockStep, **settings: Any
) -> LockStep:
    chosen = gossip.GossipSettings(**settings)
    places = [Place(me, count, rng=rng) for me in range(count)]
    return kind([gossip.PrCast(p.me, gossip.make_view(p, chosen), chosen) for p in places])
