"""The messages of Algorithm 1; their names are the paper's."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from .encoding import MAYBE, NUMBER, PROCESS, Form, Many, Record, WordMessage

CView = tuple[int | None, ...]


class RingMember(NamedTuple):
    """A process as the owner of a ticket; ``number`` tells its ownerships of it apart."""

    process: int
    ticket: int
    number: int


RING_MEMBER = Record(RingMember, PROCESS, NUMBER, NUMBER)


@dataclass(frozen=True, slots=True, eq=False)
class CJoin(WordMessage):
    """CJOIN: I want a ticket. ``number`` tells a process's requests apart."""

    number: int = field(kw_only=True)

    kind: ClassVar[int] = 32
    forms: ClassVar[dict[str, Form]] = {"number": NUMBER}


@dataclass(frozen=True, slots=True, eq=False)
class Reject(WordMessage):
    """REJECT: no ticket here; ``view`` says who may have one, unless I am no coordinator."""

    number: int = field(kw_only=True)
    view: CView = field(kw_only=True)

    kind: ClassVar[int] = 33
    forms: ClassVar[dict[str, Form]] = {"number": NUMBER, "view": Many(MAYBE)}


@dataclass(frozen=True, slots=True, eq=False)
class AckCJoin(WordMessage):
    """ACKCJOIN: your ticket and your successor.

    ``lasts`` are the last sequence numbers used with the tickets that you take over, from your own
    one down.
    """

    ticket: int = field(kw_only=True)
    successor: RingMember = field(kw_only=True)
    lasts: tuple[int, ...] = field(kw_only=True)
    view: CView = field(kw_only=True)

    kind: ClassVar[int] = 34
    forms: ClassVar[dict[str, Form]] = {
        "ticket": NUMBER,
        "successor": RING_MEMBER,
        "lasts": Many(NUMBER),
        "view": Many(MAYBE),
    }


@dataclass(frozen=True, slots=True, eq=False)
class NewSucc(WordMessage):
    """NEWSUCC: you are my successor now."""

    kind: ClassVar[int] = 35


@dataclass(frozen=True, slots=True, eq=False)
class AckSucc(WordMessage):
    """ACKSUCC: you are my predecessor now."""

    kind: ClassVar[int] = 36


@dataclass(frozen=True, slots=True, eq=False)
class Linked(WordMessage):
    """LINKED, which the paper lacks: my successor knows me, you may serve the next request."""

    kind: ClassVar[int] = 37


@dataclass(frozen=True, slots=True, eq=False)
class CLeave(WordMessage):
    """CLEAVE: take over my tickets, which were used as far as ``lasts``, and my successor."""

    leaver: RingMember = field(kw_only=True)
    successor: RingMember = field(kw_only=True)
    lasts: tuple[int, ...] = field(kw_only=True)

    kind: ClassVar[int] = 38
    forms: ClassVar[dict[str, Form]] = {
        "leaver": RING_MEMBER,
        "successor": RING_MEMBER,
        "lasts": Many(NUMBER),
    }


@dataclass(frozen=True, slots=True, eq=False)
class AckCLeave(WordMessage):
    """ACKCLEAVE: you have left."""

    kind: ClassVar[int] = 39


TICKET_MESSAGES = (CJoin, Reject, AckCJoin, NewSucc, AckSucc, Linked, CLeave, AckCLeave)
