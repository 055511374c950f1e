"""Which members could ever own their tickets again, judged by nothing but messages and crashes.

It shares no code with the protocol: who votes for a member is what its last poll says, and a voter is
lost when its process crashes, or when it excludes the member or acknowledges that another does. A
member has left in order only if the one that let it go has told its own voters afterwards that it has
another successor.
"""

from typing import NamedTuple

from testbed.protocols import Message
from testbed.protocols.cluster.tickets.lease_messages import AckCoord, Poll, ReqCoord
from testbed.protocols.cluster.tickets.messages import RingMember


class Last(NamedTuple):
    """The life of the process in which a member has asked last, and its voters."""

    life: int
    voters: tuple[tuple[int, int], ...]


class Quorums:
    """What is left of the voters of each member that has ever owned its ticket."""

    def __init__(self, processes: int) -> None:
        self.lives = [0] * processes
        self.polls: dict[RingMember, Last] = {}
        self.owners: set[RingMember] = set()
        self.refused: set[tuple[RingMember, tuple[int, int]]] = set()
        self.heirs: dict[
            RingMember, set[RingMember]
        ] = {}  # who wants to take the place of a member
        self.ended: set[RingMember] = set()  # who says so itself
        self.left_to: dict[RingMember, RingMember] = {}

    def crashed(self, process: int) -> None:
        """A process has lost its memory."""
        self.lives[process] += 1

    def granted(self, process: int, ticket: int, number: int) -> None:
        """A member owns its ticket."""
        self.owners.add(RingMember(process, ticket, number))

    def sent(self, sender: int, message: Message) -> None:
        """Note what a message says about members."""
        if isinstance(message, Poll):
            register = message.register
            voters = tuple((v.process, v.incarnation) for v in register.voters)
            self.polls[register.member] = Last(self.lives[sender], voters)
            for member in self.ended - {register.succ.member}:
                if register.member in self.heirs.get(member, ()):
                    self.left_to.setdefault(member, register.member)
        elif isinstance(message, ReqCoord):
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
        """The latest owner of each ticket, unless its process has crashed since."""
        latest: dict[int, RingMember] = {}
        for name in sorted(self.owners, key=lambda member: member.number):
            latest[name.ticket] = name
        return [n for n in latest.values() if self.polls[n].life == self.lives[n[0]]]

    def survivors(self) -> list[RingMember]:
        """The members that could get the votes of half their voters, rounded up."""
        may = [name for name in self.candidates() if name not in self.left_to]
        return [name for name in may if 2 * (left := self.left(name))[0] >= left[1]]

    def __str__(self) -> str:
        told = [
            f"{name[0]} (ticket {name[1]}, epoch {name[2]}) {self.fate(name)}"
            for name in self.candidates()
        ]
        return "; ".join(told) or "every member has crashed"

    def fate(self, name: RingMember) -> str:
        """Why a member cannot go on."""
        if name in self.left_to:
            heir = self.left_to[name]
            crashed = self.polls[heir].life != self.lives[heir[0]]
            return f"has left its tickets to {heir[0]}" + ", which has crashed" * crashed
        return "has {} of {} voters".format(*self.left(name))
