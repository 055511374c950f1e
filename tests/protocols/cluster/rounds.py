"""Gossiping processes, and a judge of their order.

Delays longer than a round reorder much. The judge knows nothing of clocks and tickets: it takes for
causal past what a process had sent and delivered before it sent.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from typing_extensions import override

from testbed.protocols import Message, MessageId, Place
from testbed.protocols.cluster import Cluster
from tests.world import MS, Destinations, MemoryLog, World


class Judge(MemoryLog):
    """Real happens-before between messages; sets of messages are the bits of integers."""

    def __init__(self, processes: int) -> None:
        super().__init__()
        self.number: dict[MessageId, int] = {}
        self.past: dict[int, int] = {}  # of each message, without itself
        self.known = [0] * processes  # what is in each process's past
        self.delivered = [0] * processes
        self.before = [0] * processes  # what precedes something that it delivered
        self.violations: list[tuple[int, MessageId]] = []
        self.twice: list[tuple[int, MessageId]] = []

    @override
    def send(
        self, t: int, node: int, name: MessageId, to: Destinations, payload: int, control: int = 0
    ) -> None:
        number = self.number[name] = len(self.number)
        self.past[number] = self.known[node]
        self.known[node] |= 1 << number

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        super().deliver(t, node, source, seq)
        name = MessageId(source, seq)
        number = self.number[name]
        if self.delivered[node] >> number & 1:
            self.twice.append((node, name))
        elif self.before[node] >> number & 1:
            self.violations.append((node, name))
        self.delivered[node] |= 1 << number
        self.before[node] |= self.past[number]
        self.known[node] |= self.past[number] | 1 << number

    def lost(self, me: int) -> int:
        """How many messages a process has not delivered."""
        return len(self.number) - self.delivered[me].bit_count()


class Rounds(World[Cluster]):
    """Processes that gossip in rounds; an application whose process is busy does not wait to send."""

    def __init__(
        self, make: Callable[[Place], Cluster], processes: int, seed: int = 0, **more: Any
    ) -> None:
        self.judge = Judge(processes)
        self.answers_to: Callable[[int, Any], bool] = lambda me, message: False
        super().__init__(make, processes, seed, log=self.judge, **{"delays_ms": (1, 5), **more})

    @override
    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        answers = self.answers_to(node, message) and not self.protocols[node].busy()
        return b"" if answers else None

    def try_to_say(self, me: int) -> MessageId | None:
        """An application multicasts, or leaves it if its process is busy."""
        return None if self.protocols[me].busy() else self.say(me)

    def load(self, senders: int, p: float, rounds: int, round_ms: float) -> None:
        """In each of some rounds, some processes multicast with a probability at a random time."""
        for r in range(rounds):
            for me in range(senders):
                if self.rng.random() < p:
                    at = self.now / MS + (r + self.rng.random()) * round_ms
                    self.at(at, partial(self.try_to_say, me))

    def lost(self) -> int:
        """How many deliveries are lacking, over all processes that live."""
        return sum(map(self.judge.lost, self.live()))
