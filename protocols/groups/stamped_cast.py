"""A broadcast that names, besides its group's vector, its causal past in other groups.

``early_relay`` says what for. The encoding of

StampedCast   how many servers (16 bits) and names (16 bits); of servers, if there are any, the view
              (2) and the number of each; the names (2 each) in ascending order; then as Cast
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from typing_extensions import override

from ..wire import MessageId, WireError
from .messages import NO_VIEW, Cast
from .view import ViewId


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StampedCast(Cast):
    """Its causal past: numbers of broadcasts of each server in a view, and names of messages."""

    above: ViewId = NO_VIEW
    beyond: tuple[int, ...] = ()
    after: tuple[MessageId, ...] = ()

    kind: ClassVar[int] = 16

    def stamp(self) -> tuple[int, ...]:
        """What it has besides the fields of a Cast."""
        names = (word for name in self.after for word in name)
        view = self.above if self.beyond else ()
        return (len(self.beyond) << 16 | len(self.after), *view, *self.beyond, *names)

    @override
    def words(self) -> tuple[int, ...]:
        return (*self.stamp(), *Cast.words(self))

    @property
    @override
    def control_size(self) -> int:
        return 4 * len(self.words())

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        size = stamp_size(int.from_bytes(control[:4]))
        if len(control) < 4 * size:
            raise WireError(f"a stamp of {4 * size} bytes, cut short")
        stamp = read_stamp(struct.unpack_from(f"!{size}I", control))
        if any(name.source >= processes for name in stamp["after"]):
            raise WireError(f"a name that is none of {processes} processes'")
        return stamp | Cast.decode_control(control[4 * size :], processes)


def stamp_size(lengths: int) -> int:
    """The number of integers of a stamp, by the first of them."""
    servers, names = lengths >> 16, lengths & 0xFFFF
    return 1 + (2 + servers if servers else 0) + 2 * names


def read_stamp(words: tuple[int, ...]) -> dict[str, Any]:
    """The constructor's arguments that a stamp encodes."""
    servers = words[0] >> 16
    start = 3 + servers if servers else 1
    names = tuple(map(MessageId, words[start::2], words[start + 1 :: 2]))
    if any(a >= b for a, b in pairwise(names)):
        raise WireError(f"names {names[:5]}… not in order")
    above = ViewId(*words[1:3]) if servers else NO_VIEW
    return {"above": above, "beyond": words[3:start] if servers else (), "after": names}
