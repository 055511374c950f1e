"""Impatient: delivers whatever arrives, as it arrives."""

from typing import ClassVar

from testbed.protocols import Deliver, Effects, Message, Place, Protocol, Send


class Impatient(Protocol):
    """No control information, no waiting, and no order."""

    name: ClassVar[str] = "impatient"

    def __init__(self, place: Place, settings: object = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends: a copy to everybody else, and one to oneself."""
        self.sent += 1
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """The network brings a message: the application reads it."""
        yield Deliver(message)
