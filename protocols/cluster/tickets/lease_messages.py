"""The messages of Algorithms 2 to 4, and the register that a coordinator keeps with its voters."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from .encoding import MAYBE, NUMBER, PROCESS, Form, Many, Record, WordMessage
from .messages import RING_MEMBER, CJoin, CView, Reject, RingMember


class Voter(NamedTuple):
    """A process that remembers for which members it votes; after a crash it is another voter."""

    process: int
    incarnation: int


Voters = tuple[Voter, ...]


class Neighbour(NamedTuple):
    """A neighbour in the ring: a member, and its voters after ``version`` changes."""

    member: RingMember
    version: int
    voters: Voters


class Register(NamedTuple):
    """What a member tells its voters, from whom the process that takes its place will read it.

    ``version`` counts the changes of its ``voters``; ``proposed`` are the ones it wants, or the same.
    ``after`` is the successor's successor, as long as the successor has told its own voters nothing.
    """

    number: int
    member: RingMember
    clock: int
    version: int
    voters: Voters
    proposed: Voters
    succ: Neighbour
    after: Neighbour


VOTER = Record(Voter, PROCESS, NUMBER)
VOTERS = Many(VOTER)
NEIGHBOUR = Record(Neighbour, RING_MEMBER, NUMBER, VOTERS)
REGISTER = Record(
    Register, NUMBER, RING_MEMBER, NUMBER, NUMBER, VOTERS, VOTERS, NEIGHBOUR, NEIGHBOUR
)


@dataclass(frozen=True, slots=True, eq=False)
class Poll(WordMessage):
    """POLL, which the paper lacks: do you still vote for me?"""

    register: Register = field(kw_only=True)

    kind: ClassVar[int] = 40
    forms: ClassVar[dict[str, Form]] = {"register": REGISTER}


@dataclass(frozen=True, slots=True, eq=False)
class Alive(WordMessage):
    """ALIVE: I do; this answers your poll of that number."""

    number: int = field(kw_only=True)
    voter: Voter = field(kw_only=True)

    kind: ClassVar[int] = 41
    forms: ClassVar[dict[str, Form]] = {"number": NUMBER, "voter": VOTER}


@dataclass(frozen=True, slots=True, eq=False)
class Update(WordMessage):
    """UPDATE: I am your predecessor, and these are your closest predecessors."""

    by: RingMember = field(kw_only=True)
    to: RingMember = field(kw_only=True)
    predecessors: Voters = field(kw_only=True)

    kind: ClassVar[int] = 42
    forms: ClassVar[dict[str, Form]] = {
        "by": RING_MEMBER,
        "to": RING_MEMBER,
        "predecessors": VOTERS,
    }


@dataclass(frozen=True, slots=True, eq=False)
class AckUpdate(WordMessage):
    """The status of an UPDATE: my voters, and whether I am a coordinator already."""

    neighbour: Neighbour = field(kw_only=True)
    active: int = field(kw_only=True)

    kind: ClassVar[int] = 43
    forms: ClassVar[dict[str, Form]] = {"neighbour": NEIGHBOUR, "active": NUMBER}


@dataclass(frozen=True, slots=True, eq=False)
class Accept(WordMessage):
    """ACKCJOIN: your ticket and voters, your successor, and its successor."""

    number: int = field(kw_only=True)
    parent: RingMember = field(kw_only=True)
    child: Neighbour = field(kw_only=True)
    succ: Neighbour = field(kw_only=True)
    after: Neighbour = field(kw_only=True)
    view: CView = field(kw_only=True)

    kind: ClassVar[int] = 44
    forms: ClassVar[dict[str, Form]] = {
        "number": NUMBER,
        "parent": RING_MEMBER,
        "child": NEIGHBOUR,
        "succ": NEIGHBOUR,
        "after": NEIGHBOUR,
        "view": Many(MAYBE),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Exclude(WordMessage):
    """EXCLUDE: I am your predecessor now; all members between us are excluded."""

    by: RingMember = field(kw_only=True)
    to: RingMember = field(kw_only=True)

    kind: ClassVar[int] = 45
    forms: ClassVar[dict[str, Form]] = {"by": RING_MEMBER, "to": RING_MEMBER}


@dataclass(frozen=True, slots=True, eq=False)
class AckExclude(WordMessage):
    """ACKEXCLUDE: my voters and my successor."""

    neighbour: Neighbour = field(kw_only=True)
    succ: Neighbour = field(kw_only=True)

    kind: ClassVar[int] = 46
    forms: ClassVar[dict[str, Form]] = {"neighbour": NEIGHBOUR, "succ": NEIGHBOUR}


@dataclass(frozen=True, slots=True, eq=False)
class ReqCoord(WordMessage):
    """REQCOORD: never vote for ``target`` again, and tell me its register."""

    by: RingMember = field(kw_only=True)
    voter: Voter = field(kw_only=True)
    target: RingMember = field(kw_only=True)

    kind: ClassVar[int] = 47
    forms: ClassVar[dict[str, Form]] = {"by": RING_MEMBER, "voter": VOTER, "target": RING_MEMBER}


@dataclass(frozen=True, slots=True, eq=False)
class AckCoord(WordMessage):
    """ACKCOORD: I will not; ``known`` is its register, if I have one.

    With ``ended``: I was this member, or was to become it, and am not and will not be.
    """

    voter: Voter = field(kw_only=True)
    target: RingMember = field(kw_only=True)
    ended: int = field(kw_only=True)
    known: tuple[Register, ...] = field(kw_only=True)

    kind: ClassVar[int] = 48
    forms: ClassVar[dict[str, Form]] = {
        "voter": VOTER,
        "target": RING_MEMBER,
        "ended": NUMBER,
        "known": Many(REGISTER),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Leaving(WordMessage):
    """Your successor wants to leave, and waits to be excluded."""

    leaver: RingMember = field(kw_only=True)

    kind: ClassVar[int] = 49
    forms: ClassVar[dict[str, Form]] = {"leaver": RING_MEMBER}


LEASE_MESSAGES = (
    CJoin,
    Reject,
    Poll,
    Alive,
    Update,
    AckUpdate,
    Accept,
    Exclude,
    AckExclude,
    ReqCoord,
    AckCoord,
    Leaving,
)
