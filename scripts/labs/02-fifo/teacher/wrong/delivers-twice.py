"""Does not think of packets that come twice."""

from typing import Any, ClassVar

from testbed.protocols import Deliver, Effects, Hold, Message, MessageId, Place, Protocol, Send


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
        if message.seq <= self.last[source] + 1:
            self.last[source] = message.seq
            yield Deliver(message)
        else:
            self.early[message.id] = message
            yield Hold(message, MessageId(source, message.seq - 1))
        while found := self.early.pop(MessageId(source, self.last[source] + 1), None):
            self.last[source] += 1
            yield Deliver(found)
