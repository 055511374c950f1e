"""The messages of Algorithm 1; their names are the paper's."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from .encoding import ProcessId, ProcessOrNone, WordMessage

CView = tuple[ProcessOrNone, ...]


class RingMember(NamedTuple):
    """A process as the owner of a ticket; ``number`` tells its ownerships of it apart."""

    process: ProcessId
    ticket: int
    number: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CJoin(WordMessage):
    """CJOIN: I want a ticket. ``number`` tells a process's requests apart."""

    number: int

    kind: ClassVar[int] = 32


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reject(WordMessage):
    """REJECT: no ticket here; ``view`` says who may have one, unless I am no coordinator."""

    number: int
    view: CView

    kind: ClassVar[int] = 33


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AckCJoin(WordMessage):
    """ACKCJOIN: your ticket and your successor.

    ``lasts`` are the last sequence numbers used with the tickets that you take over, from your own
    one down.
    """

    ticket: int
    successor: RingMember
    lasts: tuple[int, ...]
    view: CView

    kind: ClassVar[int] = 34


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NewSucc(WordMessage):
    """NEWSUCC: you are my successor now."""

    kind: ClassVar[int] = 35


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AckSucc(WordMessage):
    """ACKSUCC: you are my predecessor now."""

    kind: ClassVar[int] = 36


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Linked(WordMessage):
    """LINKED, which the paper lacks: my successor knows me, you may serve the next request."""

    kind: ClassVar[int] = 37


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CLeave(WordMessage):
    """CLEAVE: take over my tickets, which were used as far as ``lasts``, and my successor."""

    leaver: RingMember
    successor: RingMember
    lasts: tuple[int, ...]

    kind: ClassVar[int] = 38


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AckCLeave(WordMessage):
    """ACKCLEAVE: you have left."""

    kind: ClassVar[int] = 39


TICKET_MESSAGES = (CJoin, Reject, AckCJoin, NewSucc, AckSucc, Linked, CLeave, AckCLeave)
