"""The hold-back queue of all protocols that wait for messages by name: Timestamp, RST, KS and BSS.

A message that is not deliverable is kept under the name of one message that it lacks, and looked at
again when that one is delivered. This reaches the fixpoint of the papers' repeated scan of the queue
without scanning it.
"""

from abc import abstractmethod
from collections import defaultdict
from typing import Any

from typing_extensions import override

from .base import Deliver, Discard, Effects, Hold, Place, Protocol
from .wire import MessageId


class HoldBack(Protocol):
    """A protocol that says what a message lacks, and what its delivery teaches.

    ``last[k]`` is the sequence number of the last message of process k that was delivered here.
    """

    last: Any

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.waiting: defaultdict[MessageId, list[Any]] = defaultdict(list)

    @abstractmethod
    def missing(self, message: Any) -> MessageId | None:
        """The delivery condition: a message that must be delivered before this one, or none."""

    def learn(self, message: Any) -> None:
        """Take note of a message that is being delivered, beyond its number in ``last``."""

    def count_log(self) -> Effects:
        """Count the size of the log after a send or a delivery, if the protocol keeps one."""
        return iter(())

    @override
    def receive(self, message: Any, sender: int, now: int) -> Effects:
        if message.seq <= self.last[message.source]:
            yield Discard(message, "duplicate")
        elif missing := self.missing(message):
            self.waiting[missing].append(message)
            yield Hold(message, missing)
        else:
            yield from self.deliver(message)

    def deliver(self, message: Any) -> Effects:
        """Deliver a message, and then all that waited for nothing else."""
        ready = [message]
        while ready:
            message = ready.pop()
            if message.seq <= self.last[message.source]:
                yield Discard(message, "duplicate")  # a second copy was held back too
                continue
            self.last[message.source] = message.seq
            self.learn(message)
            yield from self.count_log()
            yield Deliver(message)
            for waiting in self.waiting.pop(message.id, ()):
                if missing := self.missing(waiting):
                    self.waiting[missing].append(waiting)
                else:
                    ready.append(waiting)
