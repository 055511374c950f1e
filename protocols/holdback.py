"""The hold-back queue of RST and KS: what is deliverable is delivered, the rest waits.

A message that is not deliverable is kept under the name of one message that it lacks, and looked at
again when that one is delivered: the fixpoint of a repeated scan, without the scan.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from typing import Any

from .base import Deliver, Discard, Effects, Hold, Place, Protocol
from .wire import MessageId


class HoldBack(Protocol):
    """A protocol that says what a message lacks, and what its delivery teaches.

    ``last[k]`` is the number of the last message of process k that was delivered here.
    """

    last: Any

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.waiting: defaultdict[MessageId, list[Any]] = defaultdict(list)

    @abstractmethod
    def missing(self, message: Any) -> MessageId | None:
        """A message that must be delivered before this one, or none."""

    @abstractmethod
    def learn(self, message: Any) -> None:
        """Take note of a message that is delivered now."""

    @abstractmethod
    def count_log(self) -> Effects:
        """What the log takes after a send or a delivery."""

    def receive(self, message: Any, sender: int, now: int) -> Effects:
        """Deliver what is deliverable, keep the rest under the name of what it lacks."""
        if message.seq <= self.last[message.source]:
            yield Discard(message, "duplicate")
        elif missing := self.missing(message):
            self.waiting[missing].append(message)
            yield Hold(message, missing)
        else:
            yield from self.deliver(message)

    def deliver(self, message: Any) -> Effects:
        """Deliver the message, and then all that waited for nothing else."""
        ready = [message]
        while ready:
            message = ready.pop()
            if message.seq <= self.last[message.source]:
                yield Discard(message, "duplicate")  # a second copy waited beside the first
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
