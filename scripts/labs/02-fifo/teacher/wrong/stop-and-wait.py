"""Keeps order by having one message under way: the next is sent when all have acknowledged the last."""

from typing import Any, ClassVar

from testbed.protocols import Deliver, Discard, Effects, Message, Place, Protocol, Send
from testbed.protocols.wire import of_kind


@of_kind(1)
class Ack(Message):
    """Whose message number ``seq`` has arrived: the one that this is sent to."""


class Fifo(Protocol):
    """Messages of one sender in the order of their numbers."""

    name: ClassVar[str] = "my-fifo"
    messages: ClassVar[tuple[type[Message], ...]] = (Message, Ack)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.last = [0] * place.processes
        self.queue: list[Message] = []
        self.unheard: set[int] = set()

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Number the message, queue it, deliver it."""
        self.sent += 1
        message = Message(self.me, self.sent, payload, sent_at=now)
        self.queue.append(message)
        yield from self.send_next()
        yield Deliver(message)

    def send_next(self) -> Effects:
        """Send the next message, if the last one is everywhere."""
        if self.queue and not self.unheard:
            self.unheard = set(self.place.others)
            yield Send(self.place.others, self.queue[0])

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Acknowledge and deliver a message, or note an acknowledgement."""
        if isinstance(message, Ack):
            if self.queue and message.seq == self.queue[0].seq and sender in self.unheard:
                self.unheard.remove(sender)
                if not self.unheard:
                    self.queue.pop(0)
                    yield from self.send_next()
            return
        yield Send((sender,), Ack(self.me, message.seq, sent_at=now))
        if message.seq <= self.last[message.source]:
            yield Discard(message, "duplicate")
            return
        self.last[message.source] = message.seq
        yield Deliver(message)
