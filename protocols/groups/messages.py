"""The messages between the members of a group.

Integers are unsigned, big-endian and of four bytes; the group's number is in the common header.

    Cast      view (2), size of the view, bit 1 "epochs" and bit 0 "to all", logical time, vector, if
              bit 1 is set the number of epochs and these, destinations: a message of the application,
              with its own name, broadcast in a view. Its epochs are those that differ from what the
              view agreed on; all that its sender knew, if it is of no view
    Report    view (2), promised number, size of the view m, bit 2 "epochs", bit 1 "what all have" and
              bit 0 "from the leader", the number of slots, delivered (m), released (one for each
              slot), if bit 1 is set how much all have delivered (m), the number of the members of the
              group above, they, if bit 2 is set the number of epochs that differ from what the view
              agreed on, these, and who is away from other groups; the heartbeat, acknowledgement and
              stability report
    Join      backing (2), on whose behalf, how (from outside, inside, another group),
              number of those in the roster who are away, they, the number of epochs of processes in
              the roster, these, the roster
    Leave     backing (2), epoch after that, whether it takes part no longer, the processes of its
              roster that leave with it; another member will answer for others
    Expelled  view (2) in which the receiver is not
    Silence   nothing; the server asks the members to broadcast nothing for a while

An epoch is a process and its number. The messages of a view change are in ``flush``, and one that
travels by way of a member is in ``passed``.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from typing_extensions import override

from ..wire import Message, WireError
from .epochs import Pairs
from .epochs import of as epoch_of
from .view import Member, ViewId

OUTSIDE, INSIDE, MOVED = range(3)  # how one joins
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


def _listed(pairs: Pairs) -> tuple[int, ...]:
    """Epochs after their number; nothing, if there are none."""
    return (len(pairs), *chain.from_iterable(pairs)) if pairs else ()


def _pairs(words: list[int], processes: int) -> tuple[Pairs, list[int]]:
    """Epochs after their number, and what follows them."""
    end = 1 + 2 * words[0] if words else 0
    if not words or len(words) < end:
        raise WireError(f"{len(words)} integers, and epochs that are more")
    known = ordered(words[1:end:2], processes)
    return tuple(zip(known, words[2:end:2], strict=True)), words[end:]


def _announced(words: list[int], processes: int) -> tuple[Pairs, list[int]]:
    """Epochs of which a bit says that there are some, and what follows them."""
    pairs, rest = _pairs(words, processes)
    if not pairs:
        raise WireError("epochs are announced, and there are none")
    return pairs, rest


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

    Those of its destinations deliver it that are in the epoch which its sender knew.
    """

    view: ViewId = NO_VIEW
    time: int = 0  # Lamport's clock: greater than that of its whole causal past
    vector: tuple[int, ...] = ()
    dests: frozenset[int] | None = None
    epochs: Pairs = ()  # that its sender knew

    kind: ClassVar[int] = 1

    def is_for(self, processes: Collection[int]) -> bool:
        """Whether some of these are among the destinations."""
        if self.dests is None:
            return bool(processes)
        return not self.dests.isdisjoint(processes)

    def is_due(self, process: int, epoch: int) -> bool:
        """Whether a process in this epoch is to deliver it."""
        return self.is_for((process,)) and epoch_of(self.epochs, process) == epoch

    def leaves(self, processes: Collection[int], epochs: Pairs = ()) -> bool:
        """Whether some destinations are not among these processes, or not in these epochs yet."""
        if self.dests is None or not self.dests <= set(processes):
            return True
        later = (p for p, epoch in self.epochs if epoch > epoch_of(epochs, p))
        return not self.dests.isdisjoint(later)

    @override
    def words(self) -> tuple[int, ...]:
        size = len(self.vector) << 2 | bool(self.epochs) << 1 | (self.dests is None)
        epochs, dests = _listed(self.epochs), sorted(self.dests or ())
        return (*self.view, size, self.time, *self.vector, *epochs, *dests)

    @property
    @override
    def control_size(self) -> int:
        epochs = 1 + 2 * len(self.epochs) if self.epochs else 0
        return 4 * (4 + len(self.vector) + epochs + len(self.dests or ()))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        number, coordinator, size, time, *rest = words_of(control, 4)
        members = size >> 2
        if len(rest) < members:
            raise WireError(f"{len(rest)} integers for a vector of {members}")
        after = rest[members:]
        epochs, after = _announced(after, processes) if size & 2 else ((), after)
        dests = ordered(after, processes)
        if size & 1 and dests:
            raise WireError("destinations of a message to all")
        return {
            "view": ViewId(number, coordinator),
            "time": time,
            "vector": tuple(rest[:members]),
            "dests": None if size & 1 else frozenset(dests),
            "epochs": epochs,
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
    epochs: Pairs = ()

    kind: ClassVar[int] = 2

    @override
    def words(self) -> tuple[int, ...]:
        known, everywhere = bool(self.epochs), self.everywhere is not None
        size = len(self.delivered) << 3 | known << 2 | everywhere << 1 | self.leads
        vectors = (*self.delivered, *self.released, *(self.everywhere or ()))
        around = (len(self.above), *self.above, *_listed(self.epochs), *sorted(self.outside))
        return (*self.view, self.promised, size, len(self.released), *vectors, *around)

    @property
    @override
    def control_size(self) -> int:
        vectors = len(self.delivered) + len(self.released) + len(self.everywhere or ())
        epochs = 1 + 2 * len(self.epochs) if self.epochs else 0
        return 4 * (6 + vectors + len(self.above) + epochs + len(self.outside))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        number, coordinator, promised, flags, released, *rest = words_of(control, 6)
        size = flags >> 3
        end = size + released
        last = end + (size if flags & 2 else 0)
        above, outside = _counted(rest[last:])
        epochs, outside = _announced(outside, processes) if flags & 4 else ((), outside)
        return {
            "view": ViewId(number, coordinator),
            "promised": promised,
            "delivered": tuple(rest[:size]),
            "released": tuple(rest[size:end]),
            "leads": bool(flags & 1),
            "everywhere": tuple(rest[end:last]) if flags & 2 else None,
            "above": _processes(above, processes),
            "outside": frozenset(ordered(outside, processes)),
            "epochs": epochs,
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Join(GroupMessage):
    """The source wants to be a member."""

    backing: int
    of: int
    how: int
    roster: frozenset[int]
    away: frozenset[int] = frozenset()
    epochs: Pairs = ()

    kind: ClassVar[int] = 3

    @property
    def member(self) -> Member:
        """The member that its source wants to be."""
        return Member(self.source, self.backing, self.roster, self.of, self.away, self.epochs)

    @override
    def words(self) -> tuple[int, ...]:
        away = (len(self.away), *sorted(self.away))
        backing = divmod(self.backing, 1 << 32)
        epochs = _listed(self.epochs) or (0,)
        return (*backing, self.of, self.how, *away, *epochs, *sorted(self.roster))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        high, low, of, how, *rest = words_of(control, 6)
        absent, rest = _counted(rest)
        epochs, rest = _pairs(rest, processes)
        away, roster = (frozenset(ordered(words, processes)) for words in (absent, rest))
        if how > MOVED or not away <= roster or not roster.issuperset(p for p, _ in epochs):
            raise WireError(f"{how} is no way to join, or some are named who are not in the roster")
        backing = high << 32 | low
        return {
            "backing": backing, "of": of, "how": how, "roster": roster, "away": away,
            "epochs": epochs,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Leave(GroupMessage):
    """The source wants to be a member no longer, and these of its roster leave for good.

    If it is ``gone``, it does not take part in the view change any more. By its ``backing`` one knows
    whether it has come back since.
    """

    backing: int
    epoch: int  # of its source from then on
    roster: frozenset[int]
    gone: bool = False

    kind: ClassVar[int] = 4

    @override
    def words(self) -> tuple[int, ...]:
        return (*divmod(self.backing, 1 << 32), self.epoch, self.gone, *sorted(self.roster))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        high, low, epoch, gone, *roster = words_of(control, 4)
        if gone > 1:
            raise WireError(f"{gone} is no truth value")
        leaving, backing = frozenset(ordered(roster, processes)), high << 32 | low
        return {"backing": backing, "epoch": epoch, "roster": leaving, "gone": bool(gone)}


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
