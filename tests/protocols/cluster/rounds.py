"""Processes that gossip in rounds. Delays longer than a round reorder much."""

from collections.abc import Callable
from functools import partial
from typing import Any

from typing_extensions import override

from testbed.protocols import Message, MessageId, Place
from testbed.protocols.cluster import Cluster
from tests.world import MS, World


class Rounds(World[Cluster]):
    """Processes that gossip in rounds; an application whose process is busy does not wait to send."""

    may_lose = True

    def __init__(
        self, make: Callable[[Place], Cluster], processes: int, seed: int = 0, **more: Any
    ) -> None:
        self.answers_to: Callable[[int, Any], bool] = lambda me, message: False
        super().__init__(make, processes, seed, **{"delays_ms": (1, 5), **more})

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

    def sent_in_all(self) -> int:
        """How many messages were multicast."""
        return sum(e.event == "send" for events in self.log.events.values() for e in events)

    def lost(self, *processes: int) -> int:
        """How many deliveries are lacking, at some processes or at all that live."""
        delivered = [len(set(self.delivered(p))) for p in processes or self.live()]
        return len(delivered) * self.sent_in_all() - sum(delivered)
