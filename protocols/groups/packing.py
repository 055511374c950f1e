"""Packing of small messages: what one event sends to the same processes travels in one datagram.

Section 3.3 of Baldoni, Friedman & van Renesse 1996. A server often relays several messages at once: all
that a report has shown to be everywhere. Nothing waits for others to be packed with, and only
broadcasts and reports are packed.

Pack      for each message: kind (2), group (2), source, sequence number, time of sending (2), length of
          the control information (2), length of the payload (2), the control information; then all
          payloads
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from ..base import Deliver, Effects, Send
from ..wire import Message, MessageId, WireError
from .agreed import PART_BYTES
from .messages import Cast, Report
from .passed import BY_NUMBER, KINDS, Passed

ENTRY = struct.Struct("!HHIIQHH")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pack(Message):
    """Several messages to the same processes; its payload is all of theirs, one after the other."""

    parts: tuple[tuple[Message, int], ...]  # without their payloads, which have these lengths

    kind: ClassVar[int] = 12

    @classmethod
    def of(cls, me: int, messages: Iterable[Message]) -> Pack:
        """A datagram of this process with these messages."""
        whole = [*messages]
        parts = tuple((replace(m, payload=b"") if m.payload else m, len(m.payload)) for m in whole)
        return cls(me, 0, b"".join(m.payload for m in whole), parts=parts)

    def messages(self) -> Iterator[Message]:
        """The messages as they were; none, if the payload is not as long as they say."""
        start = 0
        if sum(size for _, size in self.parts) != len(self.payload):
            return
        for message, size in self.parts:
            end = start + size
            yield replace(message, payload=self.payload[start:end]) if size else message
            start = end

    @property
    @override
    def carried(self) -> tuple[MessageId, ...]:
        return tuple(name for part, _ in self.parts for name in (part.id, *part.carried))

    @property
    @override
    def control_size(self) -> int:
        return sum(ENTRY.size + message.control_size for message, _ in self.parts)

    @override
    def encode_control(self) -> bytes:
        return b"".join(
            ENTRY.pack(m.kind, m.group, m.source, m.seq, m.sent_at, m.control_size, size)
            + m.encode_control()
            for m, size in self.parts
        )

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        parts, at = [], 0
        while at < len(control):
            if len(control) < at + ENTRY.size:
                raise WireError(f"{len(control) - at} bytes are no message of a pack")
            number, group, source, seq, sent_at, length, size = ENTRY.unpack_from(control, at)
            at += ENTRY.size + length
            kind = BY_NUMBER.get(number)
            if kind is None or source >= processes or len(control) < at:
                raise WireError(f"unknown kind {number}, no process, or cut short")
            fields = kind.decode_control(control[at - length : at], processes)
            parts.append((kind(source, seq, b"", sent_at, group, **fields), size))
        return {"parts": tuple(parts)}


MESSAGES = (*KINDS, Passed, Pack)
PACKED = (Cast, Report)  # what view changes say travels alone


def packed(
    me: int, effects: Effects, count: Callable[[int], None] = lambda copies: None
) -> Effects:
    """The same effects, of one event, in as few datagrams as will do, which are counted.

    What is sent before a delivery does not wait for what the application answers to it.
    """
    waiting: dict[tuple[int, ...], list[Message]] = {}
    for effect in effects:
        if isinstance(effect, Send):
            waiting.setdefault(effect.peers, []).append(effect.message)
            continue
        if waiting and isinstance(effect, Deliver):
            yield from _sent(me, waiting, count)
        yield effect
    if waiting:
        yield from _sent(me, waiting, count)


def _sent(
    me: int, waiting: dict[tuple[int, ...], list[Message]], count: Callable[[int], None]
) -> Effects:
    for peers, messages in waiting.items():
        for some in _fitting(messages) if len(messages) > 1 else (messages,):
            count(len(peers))
            yield Send(peers, Pack.of(me, some) if len(some) > 1 else some[0])
    waiting.clear()


def _fitting(messages: list[Message]) -> Iterator[list[Message]]:
    """Consecutive messages that fit a datagram together."""
    some: list[Message] = []
    room = PART_BYTES
    for message in messages:
        needs = message.size if isinstance(message, PACKED) else PART_BYTES + 1
        if some and needs > room:
            yield some
            some, room = [], PART_BYTES
        some.append(message)
        room -= needs
    if some:
        yield some
