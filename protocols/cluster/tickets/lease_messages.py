"""The messages of Algorithms 2 to 4, and the register that a coordinator keeps with its voters."""

from typing import NamedTuple

from ...wire import of_kind
from .encoding import ProcessId, WordMessage
from .messages import CJoin, CView, Reject, RingMember


class Voter(NamedTuple):
    """A process that remembers for which members it votes; after a crash it is another voter."""

    process: ProcessId
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


@of_kind(40)
class Poll(WordMessage):
    """POLL, which the paper lacks: do you still vote for me?"""

    register: Register


@of_kind(41)
class Alive(WordMessage):
    """ALIVE: I do; this answers your poll of that number."""

    number: int
    voter: Voter


@of_kind(50)
class Refused(WordMessage):
    """REFUSED, which the paper lacks: I do not, you are being excluded, or were."""

    number: int
    voter: Voter


@of_kind(42)
class Update(WordMessage):
    """UPDATE: I am your predecessor, and these are your closest predecessors."""

    by: RingMember
    to: RingMember
    predecessors: Voters


@of_kind(43)
class AckUpdate(WordMessage):
    """The status of an UPDATE: my voters, and whether I am a coordinator already."""

    neighbour: Neighbour
    active: int


@of_kind(44)
class Accept(WordMessage):
    """ACKCJOIN: your ticket and voters, your successor, and its successor."""

    number: int
    parent: RingMember
    child: Neighbour
    succ: Neighbour
    after: Neighbour
    view: CView


@of_kind(45)
class Exclude(WordMessage):
    """EXCLUDE: I am your predecessor now; all members between us are excluded."""

    by: RingMember
    to: RingMember


@of_kind(46)
class AckExclude(WordMessage):
    """ACKEXCLUDE: my voters and my successor."""

    neighbour: Neighbour
    succ: Neighbour


@of_kind(47)
class ReqCoord(WordMessage):
    """REQCOORD: never vote for ``target`` again, and tell me its register.

    I have been asking for ``rounds``.
    """

    by: RingMember
    voter: Voter
    target: RingMember
    rounds: int


@of_kind(48)
class AckCoord(WordMessage):
    """ACKCOORD: I will not; ``known`` is its register, if I have one.

    With ``ended``: I was this member, or was to become it, and am not and will not be.
    """

    voter: Voter
    target: RingMember
    ended: int
    known: tuple[Register, ...]


@of_kind(49)
class Leaving(WordMessage):
    """Your successor wants to leave, and waits to be excluded."""

    leaver: RingMember


LEASE_MESSAGES = (
    CJoin,
    Reject,
    Poll,
    Alive,
    Refused,
    Update,
    AckUpdate,
    Accept,
    Exclude,
    AckExclude,
    ReqCoord,
    AckCoord,
    Leaving,
)
