"""Which members could ever own their tickets again, judged by nothing but messages and crashes.

It shares no code with the protocol: who votes for a member is what its last poll says, and a voter is
lost when its process crashes, or when it excludes the member or acknowledges that another does. A
member has left in order only if the one that let it go has told its own voters afterwards that it has
another successor. A member that is gone can be excluded only by more than half of its voters, of those
it had or of those it wanted, and a voter that has crashed has forgotten it.
"""

from typing import NamedTuple

from testbed.protocols import Message
from testbed.protocols.cluster.tickets.lease_messages import AckCoord, Poll, ReqCoord
from testbed.protocols.cluster.tickets.messages import RingMember


class Last(NamedTuple):
    """The life of the process in which a member has asked last, and its voters."""

    life: int
    voters: tuple[tuple[int, int], ...]
    proposed: tuple[tuple[int, int], ...]


def told(member: RingMember) -> str:
    """A member in words."""
    return f"{member.process} (ticket {member.ticket}, epoch {member.number})"


class Quorums:
    """What is left of the voters of each member that has ever asked for votes."""

    def __init__(self, processes: int) -> None:
        self.lives = [0] * processes
        self.polls: dict[RingMember, Last] = {}
        self.targets: dict[RingMember, RingMember] = {}  # whom a member wants to exclude
        self.refused: set[tuple[RingMember, tuple[int, int]]] = set()
        self.heirs: dict[
            RingMember, set[RingMember]
        ] = {}  # who wants to take the place of a member
        self.ended: set[RingMember] = set()  # who says so itself
        self.left_to: dict[RingMember, RingMember] = {}

    def crashed(self, process: int) -> None:
        """A process has lost its memory."""
        self.lives[process] += 1

    def sent(self, sender: int, message: Message) -> None:
        """Note what a message says about members."""
        if isinstance(message, Poll):
            register = message.register
            sets = [
                tuple((v.process, v.incarnation) for v in voters)
                for voters in (register.voters, register.proposed)
            ]
            self.polls[register.member] = Last(self.lives[sender], *sets)
            for member in self.ended - {register.succ.member}:
                if register.member in self.heirs.get(member, ()):
                    self.left_to.setdefault(member, register.member)
        elif isinstance(message, ReqCoord):
            self.targets[message.by] = message.target
            self.heirs.setdefault(message.target, set()).add(message.by)
            self.refused.add((message.target, (sender, self.lives[sender])))
        elif isinstance(message, AckCoord):
            if message.ended:
                self.ended.add(message.target)
            else:
                voter = message.voter.process, message.voter.incarnation
                self.refused.add((message.target, voter))

    def left(self, member: RingMember) -> tuple[int, int]:
        """How many voters are left, of how many."""
        voters = self.polls[member].voters
        alive = [v for v in voters if self.lives[v[0]] == v[1]]
        return len([v for v in alive if (member, v) not in self.refused]), len(voters)

    def candidates(self) -> list[RingMember]:
        """The latest member with each ticket, unless its process has crashed since."""
        latest: dict[int, RingMember] = {}
        for name in sorted(self.polls, key=lambda member: member.number):
            latest[name.ticket] = name
        return [n for n in latest.values() if self.polls[n].life == self.lives[n[0]]]

    def survivors(self) -> list[RingMember]:
        """The members that could get the votes of half their voters, rounded up."""
        may = [name for name in self.candidates() if name not in self.left_to]
        return [name for name in may if 2 * (left := self.left(name))[0] >= left[1]]

    def obstacle(self, owner: RingMember) -> str:
        """Why a member cannot take over the tickets below its own; nothing if it could."""
        target = self.targets.get(owner)
        if target is None or target not in self.polls or target in self.ended:
            return ""
        its = self.polls[target]
        for voters in (its.voters, its.proposed):
            alive = [v for v in voters if self.lives[v[0]] == v[1]]
            if 2 * len(alive) <= len(voters):
                return (
                    f"{told(target)} is gone, and of its {len(voters)} voters {len(alive)} are left"
                )
        return ""

    def __str__(self) -> str:
        fates = [f"{told(name)} {self.fate(name)}" for name in self.candidates()]
        return "; ".join(fates) or "every member has crashed"

    def fate(self, name: RingMember) -> str:
        """Why a member cannot go on."""
        if name in self.left_to:
            heir = self.left_to[name]
            crashed = self.polls[heir].life != self.lives[heir[0]]
            return f"has left its tickets to {heir[0]}" + ", which has crashed" * crashed
        return "has {} of {} voters".format(*self.left(name))
