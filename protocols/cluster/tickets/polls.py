"""Polls: who must answer them, what was answered, and what a voter remembers of members."""

from typing import NamedTuple, TypeVar

from typing_extensions import override

from . import lease_messages as lease
from .messages import RingMember

REMEMBERED = 4  # members of each ticket
V = TypeVar("V")


def needed(voters: lease.Voters) -> int:
    """The number of voters that must answer a poll."""
    return (len(voters) + 1) // 2


def refusing(voters: lease.Voters) -> int:
    """The number of voters that must refuse so that too few are left; unreachable without voters."""
    return len(voters) - needed(voters) + 1


class Question(NamedTuple):
    """A poll in progress; ``spares`` are asked whether they could become voters."""

    register: lease.Register
    asked_at: int
    spares: tuple[int, ...] = ()
    votes: frozenset[lease.Voter] = frozenset()  # also of those that are no voters
    refusals: frozenset[lease.Voter] = frozenset()

    @property
    def settled(self) -> bool:
        """Whether enough have answered."""
        sets = (self.register.voters, self.register.proposed)
        return all(len(self.votes.intersection(voters)) >= needed(voters) for voters in sets)

    @property
    def heard(self) -> bool:
        """Whether any voter has answered; without voters, nobody need."""
        return not self.votes.isdisjoint(self.register.voters) or not self.register.voters

    @property
    def granted(self) -> bool:
        """Whether enough voters have answered to prolong the lease."""
        return len(self.votes.intersection(self.register.voters)) >= needed(self.register.voters)

    def lacking(self) -> tuple[int, ...]:
        """The processes to ask again."""
        asked = () if self.settled else (*self.register.voters, *self.register.proposed)
        processes = dict.fromkeys((*(voter.process for voter in asked), *self.spares))
        answered = {voter.process for voter in self.votes | self.refusals}
        return tuple(process for process in processes if process not in answered)

    def answered(self) -> dict[int, int]:
        """Who has answered, with its incarnation; of voters that need not answer any more, all."""
        rest = (*self.register.voters, *self.register.proposed) if self.settled else ()
        silent = (voter for voter in rest if voter.process not in self.spares)
        return dict(sorted({*self.votes, *silent}))

    def hopeless(self) -> bool:
        """Whether too few voters are left: so many refuse, or have been started again since."""
        now = dict(sorted(self.votes | self.refusals))
        left = [
            voter
            for voter in self.register.voters
            if voter not in self.refusals and now.get(*voter) == voter.incarnation
        ]
        return len(left) < needed(self.register.voters)


class Memory(dict[RingMember, V]):
    """What is known of the latest members of each ticket, a limited number.

    What is said about a member that is forgotten would be wrong: nothing is said about it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: dict[int, int] = {}  # by ticket, the number of the latest one

    @override
    def copy(self) -> "Memory[V]":
        other: Memory[V] = Memory()
        other.update(self)
        other.forgotten = dict(self.forgotten)
        return other

    def keep(self, member: RingMember, known: V) -> V:
        """Remember something of a member, and forget the oldest one of its ticket if there are many."""
        self[member] = known
        same = [other for other in self if other.ticket == member.ticket]
        if len(same) > REMEMBERED:
            oldest = min(same, key=lambda other: other.number)
            self.forgotten[oldest.ticket] = oldest.number
            del self[oldest]
        return known

    def forgot(self, member: RingMember) -> bool:
        """Whether this may be a member that was forgotten."""
        return member not in self and member.number <= self.forgotten.get(member.ticket, -1)
