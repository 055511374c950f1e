"""The messages between the members of a group.

Integers are unsigned, big-endian and of four bytes; the group's number is in the common header.

    Cast      view (2), size of the view, bit 1 "not to newcomers" and bit 0 "to all", logical time,
              vector, if bit 1 is set the number of newcomers and who they are, destinations: a message
              of the application, with its own name, broadcast in a view
    Report    view (2), promised number, size of the view m, bit 2 "little known", bit 1 "what all
              have" and bit 0 "from the leader", the number of slots, delivered (m), released (one for
              each slot), if bit 1 is set how much all have delivered (m), the number of the members
              of the group above, they, if bit 2 is set the number of those who may not be known to
              all there, they, and who is away from other groups; the heartbeat, acknowledgement and
              stability report
    Join      backing (2), on whose behalf, how (from outside, inside, another group, another view),
              the number of those in the roster who are away, they, the roster
    Leave     backing (2), whether it takes part no longer, the processes of its roster that leave with
              it; another member will answer for others
    Expelled  view (2) in which the receiver is not
    Silence   nothing; the server asks the members to broadcast nothing for a while

Those of a view change are in ``flush``, and a message that travels by way of a member in ``passed``.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from ..wire import Message, WireError
from .view import Member, ViewId

OUTSIDE, INSIDE, MOVED, RETURNED = range(4)  # how one joins
NO_VIEW = ViewId()


def words_of(control: bytes, least: int) -> tuple[int, ...]:
    """The integers of control information, of which there are at least some."""
    if len(control) % 4 or len(control) < 4 * least:
        raise WireError(f"{len(control)} bytes of control information, at least {4 * least} belong")
    return struct.unpack(f"!{len(control) // 4}I", control)


def _processes(words: Iterable[int], processes: int) -> tuple[int, ...]:
    ids = tuple(words)
    if any(p >= processes for p in ids) or len(set(ids)) != len(ids):
        raise WireError(f"{ids[:5]}… are not different ones of {processes} processes")
    return ids


def _counted(words: list[int]) -> tuple[list[int], list[int]]:
    """A list after its length, and what follows it."""
    if not words or len(words) < 1 + words[0]:
        raise WireError(f"{len(words)} integers, and a list that is longer")
    return words[1 : 1 + words[0]], words[1 + words[0] :]


def ordered(words: Iterable[int], processes: int) -> tuple[int, ...]:
    """Different processes, in order."""
    ids = _processes(words, processes)
    if list(ids) != sorted(ids):
        raise WireError(f"processes {ids[:5]}… not in order")
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
    """A message of the application, broadcast in a view; to all processes if ``dests`` is None.

    It is not for *newcomers*, which joined when it had already been cast in some group on its way to
    them: what it follows may not come their way any more.
    """

    view: ViewId = NO_VIEW
    time: int = 0  # Lamport's clock: greater than that of its whole causal past
    vector: tuple[int, ...] = ()
    dests: frozenset[int] | None = None
    newcomers: frozenset[int] = frozenset()

    kind: ClassVar[int] = 1

    def is_for(self, processes: Collection[int]) -> bool:
        """Whether some of these are among the destinations."""
        if self.newcomers:
            processes = set(processes) - self.newcomers
        if self.dests is None:
            return bool(processes)
        return not self.dests.isdisjoint(processes)

    def without(self, newcomers: frozenset[int]) -> Cast:
        """The same message, but not for these newcomers."""
        if newcomers and self.is_for(newcomers):
            return replace(self, newcomers=self.newcomers | newcomers)
        return self

    def leaves(self, processes: Collection[int]) -> bool:
        """Whether some destinations are not among these processes."""
        return self.dests is None or not self.dests.difference(self.newcomers) <= set(processes)

    @override
    def words(self) -> tuple[int, ...]:
        new = (len(self.newcomers), *sorted(self.newcomers)) if self.newcomers else ()
        size = len(self.vector) << 2 | bool(new) << 1 | (self.dests is None)
        return (*self.view, size, self.time, *self.vector, *new, *sorted(self.dests or ()))

    @property
    @override
    def control_size(self) -> int:
        new = len(self.newcomers) + 1 if self.newcomers else 0
        return 4 * (4 + len(self.vector) + new + len(self.dests or ()))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        number, coordinator, size, time, *rest = words_of(control, 4)
        members = size >> 2
        if len(rest) < members + bool(size & 2):
            raise WireError(f"{len(rest)} integers for a vector of {members}")
        start = members + (1 + rest[members] if size & 2 else 0)
        newcomers = ordered(rest[members + 1 : start], processes)
        if (size & 2 and len(newcomers) != rest[members]) or bool(size & 2) != bool(newcomers):
            raise WireError("newcomers are announced, and there are none or not as many")
        dests = ordered(rest[start:], processes)
        if size & 1 and dests:
            raise WireError("destinations of a message to all")
        return {
            "view": ViewId(number, coordinator),
            "time": time,
            "vector": tuple(rest[:members]),
            "dests": None if size & 1 else frozenset(dests),
            "newcomers": frozenset(newcomers),
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Report(GroupMessage):
    """How many of each member's broadcasts its source has delivered, and how many released.

    The leader says how many are ``released`` by all, and, once all are in the view, how many all are
    known to have delivered.
    """

    view: ViewId
    promised: int
    delivered: tuple[int, ...]
    released: tuple[int, ...]
    leads: bool = False
    everywhere: tuple[int, ...] | None = None
    above: tuple[int, ...] = ()
    outside: frozenset[int] = frozenset()
    little_known: frozenset[int] = frozenset()

    kind: ClassVar[int] = 2

    @override
    def words(self) -> tuple[int, ...]:
        known, everywhere = bool(self.little_known), self.everywhere is not None
        size = len(self.delivered) << 3 | known << 2 | everywhere << 1 | self.leads
        vectors = (*self.delivered, *self.released, *(self.everywhere or ()))
        fresh = (len(self.little_known), *sorted(self.little_known)) if known else ()
        around = (len(self.above), *self.above, *fresh, *sorted(self.outside))
        return (*self.view, self.promised, size, len(self.released), *vectors, *around)

    @property
    @override
    def control_size(self) -> int:
        vectors = len(self.delivered) + len(self.released) + len(self.everywhere or ())
        fresh = len(self.little_known) + 1 if self.little_known else 0
        return 4 * (6 + vectors + len(self.above) + fresh + len(self.outside))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        number, coordinator, promised, flags, released, *rest = words_of(control, 6)
        size = flags >> 3
        end = size + released
        last = end + (size if flags & 2 else 0)
        above, outside = _counted(rest[last:])
        little_known, outside = _counted(outside) if flags & 4 else ([], outside)
        if bool(flags & 4) != bool(little_known):
            raise WireError("processes are announced that are little known, and there are none")
        return {
            "view": ViewId(number, coordinator),
            "promised": promised,
            "delivered": tuple(rest[:size]),
            "released": tuple(rest[size:end]),
            "leads": bool(flags & 1),
            "everywhere": tuple(rest[end:last]) if flags & 2 else None,
            "above": _processes(above, processes),
            "outside": frozenset(ordered(outside, processes)),
            "little_known": frozenset(ordered(little_known, processes)),
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Join(GroupMessage):
    """The source wants to be a member."""

    backing: int
    of: int
    how: int
    roster: frozenset[int]
    away: frozenset[int] = frozenset()

    kind: ClassVar[int] = 3

    @property
    def member(self) -> Member:
        """The member that its source wants to be."""
        return Member(self.source, self.backing, self.roster, self.of, self.away)

    @override
    def words(self) -> tuple[int, ...]:
        away = (len(self.away), *sorted(self.away))
        backing = divmod(self.backing, 1 << 32)
        return (*backing, self.of, self.how, *away, *sorted(self.roster))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        high, low, of, how, count, *ids = words_of(control, 6)
        away, roster = (frozenset(ordered(w, processes)) for w in (ids[:count], ids[count:]))
        if how > RETURNED or len(away) != count or not away <= roster:
            raise WireError(f"{how} is no way to join, or some are away who are not in the roster")
        return {
            "backing": high << 32 | low, "of": of, "how": how, "roster": roster, "away": away
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Leave(GroupMessage):
    """The source wants to be a member no longer, and these of its roster leave for good.

    If it is ``gone``, it does not take part in the view change any more. By its ``backing`` one knows
    whether it has come back since.
    """

    backing: int
    roster: frozenset[int]
    gone: bool = False

    kind: ClassVar[int] = 4

    @override
    def words(self) -> tuple[int, ...]:
        return (*divmod(self.backing, 1 << 32), self.gone, *sorted(self.roster))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        high, low, gone, *roster = words_of(control, 3)
        if gone > 1:
            raise WireError(f"{gone} is no truth value")
        leaving = frozenset(ordered(roster, processes))
        return {"backing": high << 32 | low, "roster": leaving, "gone": bool(gone)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OfView(GroupMessage):
    """A message that names a view."""

    view: ViewId

    @override
    def words(self) -> tuple[int, ...]:
        return self.view

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        words = words_of(control, 2)
        if len(words) != 2:
            raise WireError(f"{len(words)} integers name no view")
        return {"view": ViewId(*words)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Expelled(OfView):
    """There is a view, and the receiver is not in it."""

    kind: ClassVar[int] = 5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Silence(GroupMessage):
    """The group is about to be split, or to be merged with another."""

    kind: ClassVar[int] = 8

    @override
    def words(self) -> tuple[int, ...]:
        return ()
