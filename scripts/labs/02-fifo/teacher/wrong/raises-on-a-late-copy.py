"""Forgets that a duplicate may come while its message is held back, or after it was."""

from typing import Any, ClassVar

from testbed.protocols import (
    Deliver,
    Discard,
    Effects,
    Hold,
    Message,
    MessageId,
    Place,
    Protocol,
    Send,
)


class Fifo(Protocol):
    """Messages of one sender in the order of their numbers."""

    name: ClassVar[str] = "my-fifo"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.last = [0] * place.processes  # delivered here, of each sender
        self.early: dict[MessageId, Message] = {}

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Number the message, send it, deliver it."""
        self.sent += 1
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Keep what is early; deliver what is next, and all that follows it."""
        source = message.source
        if message.id in self.early:
            raise ValueError("a message that is held back came again")
        if message.seq <= self.last[source]:
            yield Discard(message, "duplicate")
            return
        self.early[message.id] = message
        if message.seq > self.last[source] + 1:
            yield Hold(message, MessageId(source, message.seq - 1))
        while found := self.early.pop(MessageId(source, self.last[source] + 1), None):
            self.last[source] += 1
            yield Deliver(found)
