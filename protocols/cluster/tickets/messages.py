"""The messages of Algorithm 1; their names are the paper's."""

from typing import NamedTuple

from ...wire import of_kind
from .encoding import ProcessId, ProcessOrNone, WordMessage

CView = tuple[ProcessOrNone, ...]


class RingMember(NamedTuple):
    """A process as the owner of a ticket; ``number`` tells its ownerships of it apart."""

    process: ProcessId
    ticket: int
    number: int


@of_kind(32)
class CJoin(WordMessage):
    """CJOIN: I want a ticket. ``number`` tells a process's requests apart."""

    number: int


@of_kind(33)
class Reject(WordMessage):
    """REJECT: no ticket here; ``view`` says who may have one, unless I am no coordinator."""

    number: int
    view: CView


@of_kind(34)
class AckCJoin(WordMessage):
    """ACKCJOIN: your ticket and your successor.

    ``lasts`` are the last sequence numbers used with the tickets that you take over, from your own
    one down.
    """

    ticket: int
    successor: RingMember
    lasts: tuple[int, ...]
    view: CView


@of_kind(35)
class NewSucc(WordMessage):
    """NEWSUCC: you are my successor now."""


@of_kind(36)
class AckSucc(WordMessage):
    """ACKSUCC: you are my predecessor now."""


@of_kind(37)
class Linked(WordMessage):
    """LINKED, which the paper lacks: my successor knows me, you may serve the next request."""


@of_kind(38)
class CLeave(WordMessage):
    """CLEAVE: take over my tickets, which were used as far as ``lasts``, and my successor."""

    leaver: RingMember
    successor: RingMember
    lasts: tuple[int, ...]


@of_kind(39)
class AckCLeave(WordMessage):
    """ACKCLEAVE: you have left."""


TICKET_MESSAGES = (CJoin, Reject, AckCJoin, NewSucc, AckSucc, Linked, CLeave, AckCLeave)
