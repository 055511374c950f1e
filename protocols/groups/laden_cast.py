"""A broadcast that carries others, whole. The encoding of

LadenCast   number of messages attached; of each the source, sequence number, time of sending (2),
            lengths of its control information and its payload, and these; then as Cast
"""

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from ..wire import MessageId, WireError
from .messages import Cast

HEAD = struct.Struct("!IIQII")
COUNT = struct.Struct("!I")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LadenCast(Cast):
    """A broadcast with messages of its causal past, in a causal order."""

    attached: tuple[Cast, ...] = ()

    kind: ClassVar[int] = 17

    @property
    @override
    def carried(self) -> tuple[MessageId, ...]:
        return tuple(cast.id for cast in self.attached)

    @property
    @override
    def control_size(self) -> int:
        sizes = (HEAD.size + cast.control_size + len(cast.payload) for cast in self.attached)
        return COUNT.size + sum(sizes) + len(Cast.words(self)) * 4

    @override
    def encode_control(self) -> bytes:
        parts = [COUNT.pack(len(self.attached))]
        for cast in self.attached:
            control = cast.encode_control()
            lengths = len(control), len(cast.payload)
            parts += [HEAD.pack(*cast.id, cast.sent_at, *lengths), control, cast.payload]
        return b"".join([*parts, Cast.encode_control(self)])

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) < COUNT.size:
            raise WireError(f"{len(control)} bytes do not say how much is attached")
        at, attached = COUNT.size, []
        for _ in range(COUNT.unpack_from(control)[0]):
            if len(control) < at + HEAD.size:
                raise WireError("an attached message, cut short")
            source, seq, sent_at, size, payload = HEAD.unpack_from(control, at)
            start, middle = at + HEAD.size, at + HEAD.size + size
            at = middle + payload
            if source >= processes or len(control) < at:
                raise WireError(f"an attached message of {source}, or cut short")
            fields = Cast.decode_control(control[start:middle], processes)
            attached.append(Cast(source, seq, control[middle:at], sent_at, **fields))
        return {"attached": tuple(attached), **Cast.decode_control(control[at:], processes)}
