"""The messages between the members of a group.

Integers are unsigned, big-endian and of four bytes; the group's number is in the common header.

    Cast      view (2), size of the view and bit 0 "to all", logical time, vector, destinations: a
              message of the application, with its own name, broadcast in a view
    Report    view (2), promised number, size of the view m, delivered (m), released (m + 1), then
              the members of the group above; the heartbeat, acknowledgement and stability report
    Join      backing, on whose behalf, how (from outside, inside, another group), roster
    Leave     whether its roster leaves with it, or another member will answer for that
    Expelled  view (2) in which the receiver is not
    Flush     proposed view (2)
    Silence   nothing; the server asks the members to broadcast nothing for a while
    Part      proposed view (2), 0 for a State and 1 for an Install, index and count of the parts,
              then bytes of it
"""

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from ..wire import Message, WireError
from .view import ViewId

STATE, INSTALL = 0, 1
OUTSIDE, INSIDE, MOVED = range(3)  # how one joins
NO_VIEW = ViewId()


def _words(control: bytes, least: int) -> tuple[int, ...]:
    if len(control) % 4 or len(control) < 4 * least:
        raise WireError(f"{len(control)} bytes of control information, at least {4 * least} belong")
    return struct.unpack(f"!{len(control) // 4}I", control)


def _processes(words: Iterable[int], processes: int) -> tuple[int, ...]:
    ids = tuple(words)
    if any(p >= processes for p in ids) or len(set(ids)) != len(ids):
        raise WireError(f"{ids[:5]}… are not different ones of {processes} processes")
    return ids


@dataclass(frozen=True, slots=True, eq=False)
class GroupMessage(Message):
    """A message whose control information is a sequence of 4-byte integers."""

    def words(self) -> tuple[int, ...]:
        """The control information as integers."""
        raise NotImplementedError

    @property
    @override
    def control_size(self) -> int:
        return 4 * len(self.words())

    @override
    def encode_control(self) -> bytes:
        words = self.words()
        return struct.pack(f"!{len(words)}I", *words)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cast(GroupMessage):
    """A message of the application, broadcast in a view; to all processes if ``dests`` is None."""

    view: ViewId = NO_VIEW
    time: int = 0  # Lamport's clock: greater than that of its whole causal past
    vector: tuple[int, ...] = ()
    dests: frozenset[int] | None = None

    kind: ClassVar[int] = 1

    def is_for(self, processes: Collection[int]) -> bool:
        """Whether some of these are among the destinations."""
        return self.dests is None or not self.dests.isdisjoint(processes)

    @override
    def words(self) -> tuple[int, ...]:
        size = len(self.vector) << 1 | (self.dests is None)
        return (*self.view, size, self.time, *self.vector, *sorted(self.dests or ()))

    @property
    @override
    def control_size(self) -> int:
        return 4 * (4 + len(self.vector) + len(self.dests or ()))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        number, coordinator, size, time, *rest = _words(control, 4)
        members = size >> 1
        if len(rest) < members or (size & 1 and len(rest) > members):
            raise WireError(f"{len(rest)} integers for a vector of {members}")
        dests = _processes(rest[members:], processes)
        if list(dests) != sorted(dests):
            raise WireError(f"destinations {dests[:5]}… not in order")
        return {
            "view": ViewId(number, coordinator),
            "time": time,
            "vector": tuple(rest[:members]),
            "dests": None if size & 1 else frozenset(dests),
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Report(GroupMessage):
    """How many of each member's broadcasts its source has delivered, and how many released."""

    view: ViewId
    promised: int
    delivered: tuple[int, ...]
    released: tuple[int, ...]
    above: tuple[int, ...] = ()

    kind: ClassVar[int] = 2

    @override
    def words(self) -> tuple[int, ...]:
        size = len(self.delivered)
        return (*self.view, self.promised, size, *self.delivered, *self.released, *self.above)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        number, coordinator, promised, size, *rest = _words(control, 4)
        if len(rest) < 2 * size + 1:
            raise WireError(f"{len(rest)} integers for the vectors of {size} members")
        return {
            "view": ViewId(number, coordinator),
            "promised": promised,
            "delivered": tuple(rest[:size]),
            "released": tuple(rest[size : 2 * size + 1]),
            "above": _processes(rest[2 * size + 1 :], processes),
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Join(GroupMessage):
    """The source wants to be a member."""

    backing: int
    of: int
    how: int
    roster: frozenset[int]

    kind: ClassVar[int] = 3

    @override
    def words(self) -> tuple[int, ...]:
        return (self.backing, self.of, self.how, *sorted(self.roster))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        backing, of, how, *roster = _words(control, 4)
        ids = _processes(roster, processes)
        if how > MOVED or list(ids) != sorted(ids):
            raise WireError(f"{how} is no way to join, or {ids[:5]}… not in order")
        return {"backing": backing, "of": of, "how": how, "roster": frozenset(ids)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Leave(GroupMessage):
    """The source wants to be a member no longer."""

    with_roster: bool

    kind: ClassVar[int] = 4

    @override
    def words(self) -> tuple[int, ...]:
        return (self.with_roster,)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        words = _words(control, 1)
        if words not in ((0,), (1,)):
            raise WireError(f"{words[:5]}… is no truth value")
        return {"with_roster": bool(words[0])}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _OfView(GroupMessage):
    view: ViewId

    @override
    def words(self) -> tuple[int, ...]:
        return self.view

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        words = _words(control, 2)
        if len(words) != 2:
            raise WireError(f"{len(words)} integers name no view")
        return {"view": ViewId(*words)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Expelled(_OfView):
    """There is a view, and the receiver is not in it."""

    kind: ClassVar[int] = 5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Flush(_OfView):
    """The source proposes a view: stop, and answer with what is not stable."""

    kind: ClassVar[int] = 6


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Silence(GroupMessage):
    """The group is about to be split, or to be merged with another."""

    kind: ClassVar[int] = 8

    @override
    def words(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part(Message):
    """A part of a State or of an Install."""

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
            raise WireError(f"{len(control)} bytes are no part of a state")
        number, coordinator, what, index, count = struct.unpack_from("!5I", control)
        if what not in (STATE, INSTALL) or index >= count:
            raise WireError(f"part {index} of {count} of state {what}")
        return {
            "view": ViewId(number, coordinator),
            "what": what,
            "index": index,
            "count": count,
            "data": control[20:],
        }


MESSAGES: tuple[type[Message], ...] = (Cast, Report, Join, Leave, Expelled, Flush, Part, Silence)
