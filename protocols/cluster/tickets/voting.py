"""Leases: a coordinator is one for as long as enough of its voters say so, and no longer.

Section 4.2, Algorithm 2: ALIVE. A member polls its voters, the paper's L, once a round; half of them,
rounded up, must answer, and then it is a coordinator until ``lease_ns`` after it *asked*. Whoever
wants to exclude it makes so many voters refuse that too few are left (more than half). Any two such
sets of voters have one in common, so that
- what a member has told enough voters, its successor for one, is known to whoever excludes it,
- once excluded it gets no answers, can change nothing, and its lease runs out.
A process votes whether it has a ticket or not; one that has crashed, and forgotten for whom it
votes, comes back as another voter.

Differences to the paper, where ALIVE is sent unasked: one that is late prolongs nothing, because it
answers a poll of which the age is known. And a member changes its voters with the consent of both
the old and the new ones; in the paper an UPDATE that is late leaves a process with voters that
nobody asks before it is excluded, and its ticket has two owners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from typing_extensions import override

from ...base import CancelTimer, Place, Send, SetTimer
from .lease_messages import (
    Accept,
    AckCoord,
    Alive,
    Neighbour,
    Poll,
    Register,
    ReqCoord,
    Voter,
    Voters,
)
from .manager import Granted, Revoked, TicketEffects, TicketManager, TicketState
from .messages import RingMember

ROUND = ("tickets", "round")
NOWHERE = Neighbour(RingMember(0, 0, 0), 0, ())


@dataclass(frozen=True)
class LeaseSettings:
    """``k`` of 2k+1 neighbours may fail; ``delay_ns`` is the longest delay that is tolerated, δ.

    A round should be longer than a gossip takes, and each of its ``parts`` than two delays: what has
    not been answered is sent again after each part.
    """

    k: int = 2
    round_ns: int = 1_000_000_000
    delay_ns: int = 100_000_000
    parts: int = 4

    @property
    def lease_ns(self) -> int:
        """Long enough for one poll to fail and the next to be answered."""
        return 2 * self.round_ns + 2 * self.delay_ns

    @property
    def quarantine_ns(self) -> int:
        """Until an excluded member knows it, and a round for clocks that do not run alike."""
        return self.lease_ns + self.round_ns


def needed(voters: Voters) -> int:
    """How many voters must answer a poll."""
    return (len(voters) + 1) // 2


def refusing(voters: Voters) -> int:
    """How many voters must refuse so that too few are left; without voters, more than there are."""
    return len(voters) - needed(voters) + 1


class Question(NamedTuple):
    """A poll that is under way."""

    register: Register
    asked_at: int
    votes: frozenset[Voter] = frozenset()

    def lacking(self) -> tuple[int, ...]:
        """The processes to ask again, unless enough have answered."""
        sets = (self.register.voters, self.register.proposed)
        if all(len(self.votes.intersection(voters)) >= needed(voters) for voters in sets):
            return ()
        asked = dict.fromkeys(voter for voters in sets for voter in voters)
        return tuple(dict.fromkeys(v.process for v in asked if v not in self.votes))


class Voting(TicketManager):
    """A member that is voted for, and votes."""

    def __init__(
        self, place: Place, tickets: int, founders: Mapping[int, int], settings: LeaseSettings
    ) -> None:
        super().__init__(place, tickets, founders, settings.round_ns)
        self.settings = settings
        self.voter = Voter(place.me, place.incarnation)
        self.member: RingMember | None = None
        self.clock = 0  # no ticket that is coordinated here has had an epoch above it
        self.lease_end = 0
        self.polls = place.base  # no answer to a poll before a crash is one to a poll after it
        self.question: Question | None = None
        self.L: Voters = ()
        self.version = 0  # how often L has changed
        self.proposal: Voters = ()  # the voters that the predecessor proposes
        self.succ = self.after = NOWHERE
        self.offer: Accept | None = None  # to a joiner, once the voters know of it
        self.registers: dict[int, Register] = {}  # by ticket, of those that are voted for
        self.fences: dict[int, int] = {}  # by ticket, the last epoch that is not voted for
        self.ended: dict[RingMember, tuple[Register, ...]] = {}  # what this process is no longer

    @override
    def owns(self, now: int) -> int | None:
        return self.ticket if self.state == "coordinator" and self.holds(now) else None

    def holds(self, now: int) -> bool:
        """Whether the lease lasts; nobody can exclude a member that has no voters."""
        return not self.L or now < self.lease_end

    @property
    def alone(self) -> bool:
        """Whether this process is its own successor."""
        return self.succ.member == self.member

    @property
    def as_neighbour(self) -> Neighbour:
        """This member and its voters, as others may know them."""
        assert self.member is not None
        return Neighbour(self.member, self.version, self.L)

    def become(self, neighbour: Neighbour, succ: Neighbour, after: Neighbour) -> None:
        """Take a place in the ring, subject to the voters' consent."""
        self.member, self.version, self.L = neighbour
        self.ticket, self.clock = neighbour.member.ticket, max(self.clock, neighbour.member.number)
        self.proposal, self.succ, self.after = self.L, succ, after
        self.state, self.last = "linking", 0

    def poll(self, now: int) -> TicketEffects:
        """Ask the voters, and those that are to become voters."""
        assert self.member is not None
        self.polls += 1
        if self.alone:
            self.proposal = ()
        register = Register(
            self.polls,
            self.member,
            self.clock,
            self.version,
            self.L,
            self.proposal,
            self.succ,
            self.after,
        )
        self.question = Question(register, now)
        yield from self.poll_again()
        yield from self.count()

    def poll_again(self) -> TicketEffects:
        """The same question, to those that have not answered it."""
        if self.question is not None and (lacking := self.question.lacking()):
            yield Send(lacking, Poll(self.me, 0, register=self.question.register))

    def polled(self, register: Register, sender: int) -> TicketEffects:
        """Vote for a member, unless it is excluded, and remember what it says."""
        who = register.member
        known = self.registers.get(who.ticket)
        refused = who.number <= self.fences.get(who.ticket, -1) or (
            known is not None and who.number < known.member.number
        )
        if refused or self.voter not in (*register.voters, *register.proposed):
            return
        if known is None or (known.member.number, known.number) < (who.number, register.number):
            self.registers[who.ticket] = register
        yield Send((sender,), Alive(self.me, 0, number=register.number, voter=self.voter))

    def voted(self, message: Alive, now: int) -> TicketEffects:
        """A voter's answer, if it is one to the latest poll and that is not too old."""
        question = self.question
        if question is None or question.register.number != message.number:
            return
        if now < question.asked_at + self.settings.lease_ns:
            self.question = question._replace(votes=question.votes | {message.voter})
            yield from self.count()

    def count(self) -> TicketEffects:
        """If the voters agree the lease is longer; if the new ones do too, they are the voters."""
        assert self.question is not None
        register, asked_at, votes = self.question
        if len(votes.intersection(register.voters)) < needed(register.voters):
            return
        self.lease_end = max(self.lease_end, asked_at + self.settings.lease_ns)
        new = register.proposed
        if new != self.L and len(votes.intersection(new)) >= needed(new):
            self.L, self.version = new, register.version + 1
        if self.state == "linking":
            self.state = "coordinator"
            yield Granted(register.member.ticket, register.member.number, 0)
        if self.offer is not None and self.offer.child.member == register.succ.member:
            offer, self.offer = self.offer, None
            yield Send((offer.child.member.process,), offer)

    def fence(self, message: ReqCoord, sender: int) -> TicketEffects:
        """Vote no more for a member, if the one who asks for it is not excluded itself."""
        by, target = message.by, message.target
        if by.number <= self.fences.get(by.ticket, -1):
            return
        if target == self.member and self.state == "leaving":
            yield from self.disconnect()
        mine = target.process == self.me
        known = self.resigned(target) if mine else self.refuse(target)
        if known is not None and (mine or message.voter == self.voter):
            ack = AckCoord(
                self.me, 0, voter=self.voter, target=target, ended=int(mine), known=known
            )
            yield Send((sender,), ack)

    def resigned(self, target: RingMember) -> tuple[Register, ...] | None:
        """What this process told its voters as the member that it was; None if it may still be it.

        If it has never heard that it is this member, it will not accept it any more. One that has
        crashed meanwhile does not know.
        """
        if target == self.member or (self.place.incarnation and target not in self.ended):
            return None
        return self.ended.setdefault(target, ())

    def refuse(self, target: RingMember) -> tuple[Register, ...]:
        """Vote no more for a member; what it has told this voter."""
        self.fences[target.ticket] = max(self.fences.get(target.ticket, -1), target.number)
        known = self.registers.get(target.ticket)
        return () if known is None or known.member != target else (known,)

    def lapsed(self, now: int) -> bool:
        """Whether the lease has run out; who has slept through it must notice first of all."""
        return self.state in ("coordinator", "leaving") and not self.holds(now)

    def disconnect(self) -> TicketEffects:
        """The process thinks that it is considered to have failed."""
        ticket, was, self.wants_out = self.ticket, self.state, False
        self.end("out")
        yield CancelTimer(ROUND)
        if was == "coordinator" and ticket is not None:
            yield Revoked(ticket)

    def end(self, state: TicketState) -> None:
        """Be this member no longer, for good."""
        if self.member is not None and self.question is not None:
            self.ended[self.member] = (self.question.register,)
        self.ticket = self.member = self.question = self.offer = None
        self.state = state

    def arm(self) -> TicketEffects:
        """The next part of a round."""
        yield SetTimer(ROUND, self.settings.round_ns // self.settings.parts)
