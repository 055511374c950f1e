"""Counts a message after the application has it, which may have answered it by then."""

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
    """``clock[k]`` is the number of the last message of process k that was delivered here."""

    name: ClassVar[str] = "my-causal"
    messages: ClassVar[tuple[type[Message], ...]] = (Stamped,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.clock = [0] * place.processes
        self.clock[self.me] = place.base
        self.waiting: list[Stamped] = []

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Count the message; its vector is all that this process has delivered, itself included."""
        self.clock[self.me] += 1
        vector = tuple(self.clock)
        message = Stamped(self.me, self.clock[self.me], payload, sent_at=now, vector=vector)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message: Stamped, sender: int, now: int) -> Effects:
        """Keep the message, then deliver whatever can be delivered, until nothing more can."""
        if self.known(message):
            yield Discard(message, "duplicate")
            return
        self.waiting.append(message)
        if missing := self.missing(message):
            yield Hold(message, missing)
        while ready := next((m for m in self.waiting if not self.missing(m)), None):
            self.waiting.remove(ready)
            yield Deliver(ready)
            self.clock[ready.source] = ready.seq

    def known(self, message: Stamped) -> bool:
        """Whether the message is a second copy."""
        delivered = message.seq <= self.clock[message.source]
        return delivered or any(message.id == other.id for other in self.waiting)

    def missing(self, message: Stamped) -> MessageId | None:
        """A message that must be delivered before this one, if there is one."""
        for process, number in enumerate(message.vector):
            before = number - 1 if process == message.source else number
            if self.clock[process] < before:
                return MessageId(process, before)
        return None
