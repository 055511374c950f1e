"""The messages of a view change.

Flush     proposed view (2), whether somebody joins
Part      proposed view (2), 0 for a Flushed and 1 for an Install, index and count of the parts,
          then bytes of it; ``agreed`` has these
Missing   proposed view (2), 0 or 1 as before, the parts that did not arrive
Fetch     names (2 each) of messages that are needed to enter a view; they are sent as casts
"""

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from ..wire import Message, MessageId, WireError
from .messages import GroupMessage, OfView, words_of
from .view import ViewId

FLUSHED, INSTALL = 0, 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Flush(OfView):
    """The source proposes a view: stop, and say what is not stable.

    If somebody ``joins``, also what is kept for processes that are away: they may be below a joiner.
    """

    joins: bool = False

    kind: ClassVar[int] = 6

    @override
    def words(self) -> tuple[int, ...]:
        return (*self.view, self.joins)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        words = words_of(control, 3)
        if len(words) != 3 or words[2] > 1:
            raise WireError(f"{words[:5]}… are not a view and a truth value")
        return {"view": ViewId(*words[:2]), "joins": bool(words[2])}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part(Message):
    """A part of a Flushed or of an Install."""

    view: ViewId
    what: int
    index: int
    count: int
    data: bytes

    kind: ClassVar[int] = 7

    @property
    @override
    def control_size(self) -> int:
        return 20 + len(self.data)

    @override
    def encode_control(self) -> bytes:
        return struct.pack("!5I", *self.view, self.what, self.index, self.count) + self.data

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) < 20:
            raise WireError(f"{len(control)} bytes are no part of anything")
        number, coordinator, what, index, count = struct.unpack_from("!5I", control)
        if what not in (FLUSHED, INSTALL) or index >= count:
            raise WireError(f"part {index} of {count} of {what}")
        return {
            "view": ViewId(number, coordinator),
            "what": what,
            "index": index,
            "count": count,
            "data": control[20:],
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Missing(OfView):
    """These parts of what the receiver sent have not arrived."""

    what: int
    parts: tuple[int, ...]

    kind: ClassVar[int] = 9

    @override
    def words(self) -> tuple[int, ...]:
        return (*self.view, self.what, *self.parts)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        number, coordinator, what, *parts = words_of(control, 3)
        if what not in (FLUSHED, INSTALL):
            raise WireError(f"parts of {what}, which is neither Flushed nor Install")
        return {"view": ViewId(number, coordinator), "what": what, "parts": tuple(parts)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fetch(GroupMessage):
    """The source needs these messages to enter a view, or to conclude what it proposes."""

    names: tuple[MessageId, ...]

    kind: ClassVar[int] = 10

    @override
    def words(self) -> tuple[int, ...]:
        return tuple(word for name in self.names for word in name)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        words = words_of(control, 0)
        if len(words) % 2 or any(source >= processes for source in words[::2]):
            raise WireError("half a name, or one of no process")
        return {"names": tuple(map(MessageId, words[::2], words[1::2]))}
