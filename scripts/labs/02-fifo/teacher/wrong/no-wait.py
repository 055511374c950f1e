"""Delivers what arrives, unless it is a duplicate of the last message."""

from typing import Any, ClassVar

from testbed.protocols import Deliver, Discard, Effects, Message, Place, Protocol, Send


class Fifo(Protocol):
    """Messages of one sender in the order of their numbers."""

    name: ClassVar[str] = "my-fifo"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.last = [0] * place.processes  # delivered here, of each sender

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Number the message, send it, deliver it."""
        self.sent += 1
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Deliver it."""
        if message.seq == self.last[message.source]:
            yield Discard(message, "duplicate")
            return
        self.last[message.source] = message.seq
        yield Deliver(message)
