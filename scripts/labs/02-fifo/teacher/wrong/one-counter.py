"""One counter for all senders, and one store by number."""

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
        self.last = 0
        self.early: dict[int, Message] = {}

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Number the message, send it, deliver it."""
        self.sent += 1
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Keep what is early; deliver what is next, and all that follows it."""
        if message.seq <= self.last or message.seq in self.early:
            yield Discard(message, "duplicate")
            return
        self.early[message.seq] = message
        if message.seq > self.last + 1:
            yield Hold(message, MessageId(message.source, message.seq - 1))
        while found := self.early.pop(self.last + 1, None):
            self.last += 1
            yield Deliver(found)
