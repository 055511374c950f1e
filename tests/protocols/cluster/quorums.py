"""Which members could ever own their tickets again, judged by nothing but messages and crashes.

It shares no code with the protocol: who votes for a member is what its last poll says, and a voter is
lost when its process crashes, or when it acknowledges that the member is excluded.
"""

from typing import NamedTuple

from testbed.protocols import Message
from testbed.protocols.cluster.tickets.lease_messages import AckCoord, Leaving, Poll
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
        self.leaving: set[RingMember] = set()
        self.gone: set[RingMember] = set()  # who wanted to leave, and was told that it may

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
        elif isinstance(message, AckCoord):
            target = message.target
            if message.ended and target in self.leaving:
                self.gone.add(target)
            elif not message.ended:
                self.refused.add((target, (message.voter.process, message.voter.incarnation)))

        elif isinstance(message, Leaving):
            self.leaving.add(message.leaver)

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
        may = [name for name in self.candidates() if name not in self.gone]
        return [name for name in may if 2 * (left := self.left(name))[0] >= left[1]]

    def __str__(self) -> str:
        told = [
            f"{name[0]} (ticket {name[1]}, epoch {name[2]}) "
            + ("has left" if name in self.gone else "has {} of {} voters".format(*self.left(name)))
            for name in self.candidates()
        ]
        return "; ".join(told) or "every member has crashed"
