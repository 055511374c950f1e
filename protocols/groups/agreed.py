"""What members say and learn in a view change, which travels in parts that fit a packet.

``Flushed`` is a member's answer to Flush: the labels of its messages that are not stable. ``Install``
is the new view, with the labels of all that is carried over into it, in causal order; it may tell some
members to become, or to join, another group. Who lacks a message of these fetches it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ..wire import MessageId, WireError
from .epochs import Pairs
from .flush import Part
from .messages import Cast
from .view import Member, View, ViewId

if TYPE_CHECKING:
    from .succession import Joiner

PART_BYTES = 1200  # so that a part fits an Ethernet frame
_WORD = struct.Struct("!I")


class Label(NamedTuple):
    """What a view change has to know of a message."""

    id: MessageId
    time: int

    @classmethod
    def of(cls, cast: Cast) -> Label:
        """The label of a message."""
        return cls(cast.id, cast.time)


class Writer:
    """Encodes integers and members."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def words(self, *words: int) -> None:
        """Append 4-byte integers."""
        self.parts.append(struct.pack(f"!{len(words)}I", *words))

    def list(self, words: Collection[int]) -> None:
        """Append a list of integers, after its length."""
        self.words(len(words), *words)

    def members(self, members: Collection[Member]) -> None:
        """Append a list of members, after its length."""
        self.words(len(members))
        for member in members:
            self.words(member.process, *divmod(member.backing, 1 << 32), member.of)
            self.list(sorted(member.roster))
            self.list(sorted(member.away))
            self.epochs(member.epochs)

    def names(self, names: Collection[MessageId]) -> None:
        """Append names, after twice their number."""
        self.list([word for name in names for word in name])

    def labels(self, labels: Collection[Label]) -> None:
        """Append labels, after their number."""
        self.words(len(labels))
        for id, time in labels:
            self.words(*id, time)

    def epochs(self, pairs: Pairs) -> None:
        """Append epochs, after twice their number."""
        self.list([word for pair in pairs for word in pair])

    def bytes(self) -> bytes:
        """All that was written."""
        return b"".join(self.parts)


class Reader:
    """Decodes what a ``Writer`` has encoded; WireError if it is not there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """Bytes of this size."""
        end = self.at + size
        if end > len(self.data):
            raise WireError(f"{len(self.data)} bytes of a view change, cut short")
        part, self.at = self.data[self.at : end], end
        return part

    def word(self) -> int:
        """One integer."""
        return int(_WORD.unpack(self.take(4))[0])

    def words(self, count: int) -> tuple[int, ...]:
        """A fixed number of integers."""
        return struct.unpack(f"!{count}I", self.take(4 * count))

    def list(self) -> tuple[int, ...]:
        """A list of integers, after its length."""
        return self.words(self.word())

    def members(self) -> tuple[Member, ...]:
        """A list of members, after its length."""
        return tuple(self.member() for _ in range(self.word()))

    def member(self) -> Member:
        """One member."""
        process, high, low, of = self.words(4)
        roster, away = frozenset(self.list()), frozenset(self.list())
        return Member(process, high << 32 | low, roster, of, away, self.epochs())

    def names(self) -> tuple[MessageId, ...]:
        """Names, after twice their number."""
        words = self.list()
        if len(words) % 2:
            raise WireError("half a name")
        return tuple(map(MessageId, words[::2], words[1::2]))

    def labels(self) -> tuple[Label, ...]:
        """Labels, after their number."""
        return tuple(Label(MessageId(*self.words(2)), self.word()) for _ in range(self.word()))

    def epochs(self) -> Pairs:
        """Epochs, after twice their number."""
        words = self.list()
        if len(words) % 2:
            raise WireError("a process without its epoch")
        return tuple(zip(words[::2], words[1::2], strict=True))

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self.at != len(self.data):
            raise WireError(f"{len(self.data) - self.at} bytes too many in a view change")


def parts_of(data: bytes, view: ViewId, what: int, me: int, group: int) -> tuple[Part, ...]:
    """A Flushed or an Install in parts that fit a packet."""
    starts = range(0, max(1, len(data)), PART_BYTES)
    return tuple(
        Part(me, 0, group=group, view=view, what=what, index=index, count=len(starts),
             data=data[start : start + PART_BYTES])
        for index, start in enumerate(starts)
    )  # fmt: skip


class HeldCast(NamedTuple):
    """A message that was received and not delivered, with its member and its number there."""

    member: int
    number: int
    label: Label


class Flushed(NamedTuple):
    """A member's messages that are not stable, in the order of delivery.

    Where members do not get all messages, also what was only received and how many of each
    member's first casts are firm; where messages name others, what was seen. Who comes from another
    group brings along those who were absent there. A ``member`` of the view tells for whom it answers
    now, one that is in no view which member it wants to be. All tell the epochs that they know.
    """

    view: ViewId
    labels: tuple[Label, ...]
    firm: tuple[int, ...] = ()
    held: tuple[HeldCast, ...] = ()
    seen: tuple[MessageId, ...] = ()
    absent: tuple[Member, ...] = ()
    member: tuple[Member, ...] = ()  # or nobody
    epochs: Pairs = ()

    def encode(self) -> bytes:
        """The view, the messages, the counts, what is held and was seen, the absent, the member."""
        writer = Writer()
        writer.words(*self.view)
        writer.labels(self.labels)
        writer.list(self.firm)
        writer.list([word for held in self.held for word in held[:2]])
        writer.labels([held.label for held in self.held])
        writer.names(self.seen)
        writer.members(self.absent)
        writer.members(self.member)
        writer.epochs(self.epochs)
        return writer.bytes()

    @classmethod
    def decode(cls, data: bytes) -> Flushed:
        """WireError if it is none."""
        reader = Reader(data)
        view, labels = ViewId(reader.word(), reader.word()), reader.labels()
        firm, places, held, seen = reader.list(), reader.list(), reader.labels(), reader.names()
        absent, member, epochs = reader.members(), reader.members(), reader.epochs()
        reader.end()
        if len(places) != 2 * len(held) or any(m >= len(firm) for m in places[::2]):
            raise WireError("messages that are held, and not whose they are")
        casts = tuple(map(HeldCast, places[::2], places[1::2], held))
        return cls(view, labels, firm, casts, seen, absent, member, epochs)


@dataclass
class Proposal:
    """A view that this process proposes, and the answers so far."""

    id: ViewId
    target: tuple[Member, ...]
    asked: frozenset[int]
    joins: bool
    joiners: Mapping[int, Joiner] = field(default_factory=dict)  # as they have asked
    since: int = 0
    states: dict[int, Flushed] = field(default_factory=dict)
    awaited: dict[int, frozenset[MessageId]] = field(default_factory=dict)  # for each joiner

    def waiting(self) -> tuple[int, ...]:
        """The processes that have not answered."""
        return tuple(sorted(p for p in self.asked if p not in self.states))


class Given(NamedTuple):
    """Below which group a process is that was split off, since when, and the number of that view."""

    group: int
    at: int
    view: int


class Reshape(NamedTuple):
    """Some members become the group of another number, or join that group if it has contacts."""

    number: int
    members: tuple[Member, ...]
    contacts: tuple[int, ...] = ()

    @property
    def processes(self) -> frozenset[int]:
        """The members' processes."""
        return frozenset(m.process for m in self.members)

    @property
    def roster(self) -> frozenset[int]:
        """All processes that the members answer for."""
        return frozenset().union(*(m.roster for m in self.members))

    def given(self, view: ViewId, now: int) -> dict[int, Given]:
        """What their former server notes of all these processes."""
        return dict.fromkeys(sorted(self.roster), Given(self.number, now, view.number))


class Install(NamedTuple):
    """A view, what was seen of every process before it, and what is carried over into it.

    All who enter it know these ``epochs`` from then on.
    """

    view: View
    seen: tuple[MessageId, ...] = ()
    labels: tuple[Label, ...] = ()
    reshape: Reshape | None = None
    epochs: Pairs = ()

    @property
    def invited(self) -> frozenset[int]:
        """All processes that it applies to."""
        moved = frozenset() if self.reshape is None else self.reshape.processes
        return moved.union(self.view.processes)

    @property
    def members(self) -> tuple[Member, ...]:
        """Who is in the view, or in a group that is split off or merged."""
        return self.view.members + (() if self.reshape is None else self.reshape.members)

    def encode(self) -> bytes:
        """The members, the absent, what was seen, the epochs, the messages."""
        writer = Writer()
        writer.words(*self.view.id, self.view.weak)
        writer.members(self.view.members)
        writer.members(self.view.absent)
        writer.names(self.seen)
        writer.epochs(self.epochs)
        writer.words(self.reshape is not None)
        if self.reshape is not None:
            writer.words(self.reshape.number)
            writer.members(self.reshape.members)
            writer.list(self.reshape.contacts)
        writer.labels(self.labels)
        return writer.bytes()

    @classmethod
    def decode(cls, data: bytes) -> Install:
        """WireError if it is none."""
        reader = Reader(data)
        id, weak = ViewId(reader.word(), reader.word()), bool(reader.word())
        view = View(id, reader.members(), reader.members(), weak)
        if not view.members:
            raise WireError("a view without members")
        seen, epochs, reshape = reader.names(), reader.epochs(), None
        if reader.word():
            reshape = Reshape(reader.word(), reader.members(), reader.list())
        install = cls(view, seen, reader.labels(), reshape, epochs)
        reader.end()
        return install


def merged(labels: Iterable[Label]) -> list[Label]:
    """All different messages of these, in the order of their logical times."""
    known = {label.id: label for label in labels}
    return sorted(known.values(), key=lambda label: (label.time, label.id))


def holders_of(names: Collection[MessageId], states: Mapping[int, Flushed]) -> dict[MessageId, int]:
    """Who has each of these messages, by what the members have answered."""
    return {
        label.id: process
        for process, state in states.items()
        for label in (*state.labels, *(held.label for held in state.held))
        if label.id in names
    }
