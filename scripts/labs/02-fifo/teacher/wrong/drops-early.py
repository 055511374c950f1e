"""Drops what is early, as if the network sent it again."""

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
        """Deliver what is next."""
        if message.seq != self.last[message.source] + 1:
            yield Discard(message, "not the next")
            return
        self.last[message.source] += 1
        yield Deliver(message)
