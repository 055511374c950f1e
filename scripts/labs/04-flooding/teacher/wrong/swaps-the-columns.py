"""Right; what is wrong is in the answers beside it."""

from typing import Any, ClassVar

from testbed.protocols import Deliver, Discard, Effects, Message, Place, Protocol, Send


class Flooding(Protocol):
    """``newest[k]`` is the number of the last message of process k that came here.

    Channels are FIFO and everybody passes on in the order in which it receives, so that messages of one
    source never overtake each other on any way: whatever is not newer than that is a copy.
    """

    name: ClassVar[str] = "my-flooding"
    needs_overlay: ClassVar[bool] = True

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.newest = [0] * place.processes

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Send it to all neighbours."""
        self.sent += 1
        self.newest[self.me] = self.sent
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.place.neighbours, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Pass on and deliver what is new."""
        if message.seq <= self.newest[message.source]:
            yield Discard(message, "duplicate")
            return
        self.newest[message.source] = message.seq
        yield Send(tuple(peer for peer in self.place.neighbours if peer != sender), message)
        yield Deliver(message)

    def peers(self) -> tuple[int, ...]:
        """The neighbours in the overlay."""
        return self.place.neighbours
