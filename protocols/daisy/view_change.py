"""State, a member's answer to Flush, and Install, the new view, which both travel in parts.

A State has a member's messages that are not stable. An Install has the new view and the union of
these, in causal order; it may tell some members to become, or to join, another group.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import NamedTuple

from ..wire import MessageId, WireError
from .messages import Cast, Part
from .stamped_cast import StampedCast, read_stamp, stamp_size
from .view import Member, View, ViewId

PART_BYTES = 1200  # so that a part fits an Ethernet frame
TO_ALL = 0xFFFFFFFF
STAMPED = 1 << 31  # besides a source: a stamp follows
_WORD = struct.Struct("!I")


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
            self.words(member.process, member.backing, member.of)
            self.list(sorted(member.roster))

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
            raise WireError(f"{len(self.data)} bytes of a group's state, cut short")
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
        process, backing, of = self.words(3)
        return Member(process, backing, frozenset(self.list()), of)

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self.at != len(self.data):
            raise WireError(f"{len(self.data) - self.at} bytes too many in a group's state")


def parts_of(data: bytes, view: ViewId, what: int, me: int, group: int) -> tuple[Part, ...]:
    """A State or an Install in parts that fit a packet."""
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
    cast: Cast


class State(NamedTuple):
    """A member's messages that are not stable, in the order of delivery.

    Where members do not get all messages, also what was only received, how many of each member's
    first casts are firm, and what was seen.
    """

    view: ViewId
    casts: tuple[Cast, ...]
    firm: tuple[int, ...] = ()
    held: tuple[HeldCast, ...] = ()
    seen: tuple[MessageId, ...] = ()

    def encode(self) -> bytes:
        """The view and the messages; then, if there is a count of firm casts, the rest."""
        writer = Writer()
        writer.words(*self.view)
        _write_casts(writer, self.casts)
        if self.firm:
            writer.list(self.firm)
            writer.list([word for held in self.held for word in held[:2]])
            _write_casts(writer, [held.cast for held in self.held])
            writer.list([word for name in self.seen for word in name])
        return writer.bytes()

    @classmethod
    def decode(cls, data: bytes) -> State:
        """WireError if it is none."""
        reader = Reader(data)
        view, casts = ViewId(reader.word(), reader.word()), _read_casts(reader)
        if reader.at == len(data):
            return cls(view, casts)
        firm, places, held, seen = reader.list(), reader.list(), _read_casts(reader), reader.list()
        if not firm or len(places) != 2 * len(held) or len(seen) % 2:
            raise WireError("messages that are held, and not whose they are; or half a name")
        if any(member >= len(firm) for member in places[::2]):
            raise WireError(f"a message of none of {len(firm)} members")
        reader.end()
        names = tuple(map(MessageId, seen[::2], seen[1::2]))
        return cls(view, casts, firm, tuple(map(HeldCast, places[::2], places[1::2], held)), names)


class Reshape(NamedTuple):
    """Some members become the group of another number, or join that group if it has contacts."""

    number: int
    members: tuple[Member, ...]
    contacts: tuple[int, ...] = ()

    @property
    def processes(self) -> frozenset[int]:
        """The members' processes."""
        return frozenset(m.process for m in self.members)


class Install(NamedTuple):
    """A view, what was seen of every process before it, and what is carried over into it."""

    view: View
    seen: tuple[MessageId, ...]
    casts: tuple[Cast, ...]
    reshape: Reshape | None = None

    @property
    def invited(self) -> frozenset[int]:
        """All processes that it applies to."""
        moved = frozenset() if self.reshape is None else self.reshape.processes
        return moved.union(self.view.processes)

    def encode(self) -> bytes:
        """The members, the absent, what was seen, the messages."""
        writer = Writer()
        writer.words(*self.view.id, self.view.weak)
        writer.members(self.view.members)
        writer.members(self.view.absent)
        writer.list([word for name in self.seen for word in name])
        writer.words(self.reshape is not None)
        if self.reshape is not None:
            writer.words(self.reshape.number)
            writer.members(self.reshape.members)
            writer.list(self.reshape.contacts)
        _write_casts(writer, self.casts)
        return writer.bytes()

    @classmethod
    def decode(cls, data: bytes) -> Install:
        """WireError if it is none."""
        reader = Reader(data)
        id, weak = ViewId(reader.word(), reader.word()), bool(reader.word())
        view = View(id, reader.members(), reader.members(), weak)
        seen = reader.list()
        if not view.members or len(seen) % 2:
            raise WireError("a view without members, or half a name")
        names = tuple(map(MessageId, seen[::2], seen[1::2]))
        reshape = None
        if reader.word():
            reshape = Reshape(reader.word(), reader.members(), reader.list())
        install = cls(view, names, _read_casts(reader), reshape)
        reader.end()
        return install


def _write_casts(writer: Writer, casts: Collection[Cast]) -> None:
    writer.words(len(casts))
    for cast in casts:
        stamp = cast.stamp() if isinstance(cast, StampedCast) else ()
        writer.words(cast.source | (STAMPED if stamp else 0), cast.seq, cast.time)
        writer.parts.append(struct.pack("!Q", cast.sent_at))
        if cast.dests is None:
            writer.words(TO_ALL)
        else:
            writer.list(sorted(cast.dests))
        writer.words(len(cast.payload))
        writer.parts.append(cast.payload)
        writer.words(*stamp)


def _read_casts(reader: Reader) -> tuple[Cast, ...]:
    return tuple(_read_cast(reader) for _ in range(reader.word()))


def _read_cast(reader: Reader) -> Cast:
    source, seq, time = reader.words(3)
    (sent_at,) = struct.unpack("!Q", reader.take(8))
    count = reader.word()
    dests = None if count == TO_ALL else frozenset(reader.words(count))
    payload = reader.take(reader.word())
    if not source & STAMPED:
        return Cast(source, seq, payload, sent_at, time=time, dests=dests)
    lengths = reader.word()
    stamp = read_stamp((lengths, *reader.words(stamp_size(lengths) - 1)))
    return StampedCast(source ^ STAMPED, seq, payload, sent_at, time=time, dests=dests, **stamp)
