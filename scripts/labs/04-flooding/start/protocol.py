"""Lab 4: causal order by flooding an overlay network, without any control information.

As it is, a message reaches the neighbours of its sender, and nobody else.
"""

from typing import Any, ClassVar

from testbed.protocols import Deliver, Discard, Effects, Message, Place, Protocol, Send


class Flooding(Protocol):
    """One process; it may send to ``place.neighbours`` only."""

    name: ClassVar[str] = "my-flooding"
    needs_overlay: ClassVar[bool] = True  # so it has neighbours, and FIFO channels to them

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends a message to everybody."""
        self.sent += 1
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.place.neighbours, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """The neighbour ``sender`` has passed on a message that ``message.source`` multicast."""
        yield Deliver(message)

    def peers(self) -> tuple[int, ...]:
        """Whom this process may send to: the testbed prepares routes to them."""
        return self.place.neighbours
