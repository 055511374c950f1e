"""Lab 3: causal order with vector clocks.

As it is, every message carries a vector of zeros, and whatever arrives is delivered. Control
information that goes through the network must be turned into bytes and back: that part is done.
"""

import struct
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
from testbed.protocols.wire import of_kind


@of_kind(1)
class Stamped(Message):
    """A message with a vector: a number for each process."""

    vector: tuple[int, ...]

    @property
    def control_size(self) -> int:
        """The number of bytes that ``encode_control`` returns."""
        return 4 * len(self.vector)

    def encode_control(self) -> bytes:
        """Four bytes for each number."""
        return struct.pack(f"!{len(self.vector)}I", *self.vector)

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """The opposite: the fields of this class, by name."""
        return {"vector": struct.unpack(f"!{processes}I", control)}


class Causal(Protocol):
    """One process."""

    name: ClassVar[str] = "my-causal"
    messages: ClassVar[tuple[type[Message], ...]] = (Stamped,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.clock = [0] * place.processes
        self.clock[self.me] = place.base

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends a message to everybody."""
        self.clock[self.me] += 1
        vector = (0,) * self.place.processes  # what belongs here?
        message = Stamped(self.me, self.clock[self.me], payload, sent_at=now, vector=vector)
        yield Send(self.place.others, message)
        yield Deliver(
            message
        )  # last: the application may answer at once, and calls multicast again

    def receive(self, message: Stamped, sender: int, now: int) -> Effects:
        """The network brings a message."""
        yield Deliver(message)
