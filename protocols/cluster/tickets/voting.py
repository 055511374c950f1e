"""Leases: a process is a coordinator as long as enough of its voters say so, and no longer.

Section 4.2, Algorithm 2: ALIVE. A member polls its voters, the paper's L, once a round; half of them,
rounded up, must answer, and then it is a coordinator until ``lease_ns`` after it *asked*. Then it owns
nothing, but goes on asking: it is out only when too few voters are left, because so many say that they
refuse, or have been started again. To exclude it, so many must refuse that too few
are left. Any two such sets of voters intersect, so that
- what a member has told enough voters, such as its successor, is known to a process that excludes it;
- an excluded member gets no answers, can change nothing, and its lease runs out.
A process votes whether it has a ticket or not; after a crash, having forgotten for whom it votes, it
is another voter. Where there are fewer than 2k+1 predecessors, processes without a ticket fill up the
voters. What a voter knows it knows of a member, not of a ticket.

In the paper ALIVE is sent unasked; here a late one prolongs nothing, because it answers a poll whose
age is known. And a member changes its voters with the consent of the old and the new ones; in the
paper a late UPDATE leaves a process with voters that are not asked before it is excluded, and its
ticket has two owners.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

from ...base import Place, Send, SetTimer
from . import lease_messages as lease
from .manager import Granted, Revoked, TicketEffects, TicketManager, TicketState
from .messages import RingMember
from .polls import Memory, Question, needed

ROUND = ("tickets", "round")
NOWHERE = lease.Neighbour(RingMember(0, 0, 0), 0, ())


@dataclass(frozen=True)
class LeaseSettings:
    """``k`` of 2k+1 neighbours may fail; ``delay_ns`` is the longest delay that is tolerated, δ.

    A round should be longer than gossip takes to spread, and each of its ``parts`` than two delays:
    what has not been answered is sent again after each part. ``exclude`` is the paper's P_exclude.
    ``patience`` is how many rounds a process waits for others before it takes them for gone.
    """

    k: int = 2
    round_ns: int = 1_000_000_000
    delay_ns: int = 100_000_000
    parts: int = 4
    exclude: float = 1.0
    patience: int = 10

    @property
    def lease_ns(self) -> int:
        """Long enough for one poll to fail and the next to be answered."""
        return 2 * self.round_ns + 2 * self.delay_ns

    @property
    def quarantine_ns(self) -> int:
        """Until an excluded member knows it, and a round for clock drift."""
        return self.lease_ns + self.round_ns


class Voting(TicketManager):
    """A member that is voted for, and votes."""

    def __init__(
        self, place: Place, tickets: int, founders: Mapping[int, int], settings: LeaseSettings
    ) -> None:
        super().__init__(place, tickets, founders, settings.round_ns)
        self.settings = settings
        self.voter = lease.Voter(place.me, place.incarnation)
        self.member: RingMember | None = None
        self.clock = 0  # no ticket that is coordinated here has had a higher epoch
        self.lease_end = 0
        self.polls = place.base  # an answer to a poll before a crash answers none after it
        self.question: Question | None = None
        self.L: lease.Voters = ()
        self.version = 0  # how often L has changed
        self.proposal: lease.Voters = ()  # the voters that the predecessor proposes
        self.turn = 0  # how many spare voters were asked in vain
        self.ignored = 0  # polls in a row that no voter has answered
        self.succ = self.after = NOWHERE
        self.offer: lease.Accept | None = None  # to a joiner, once the voters know of it
        self.registers: Memory[lease.Register] = Memory()  # of the members it votes for
        self.fences: dict[int, int] = {}  # by ticket, the last epoch that it refuses to vote for
        self.ended: Memory[tuple[lease.Register, ...]] = Memory()  # its past memberships

    @override
    def owns(self, now: int) -> int | None:
        return self.ticket if self.state == "coordinator" and self.holds(now) else None

    def holds(self, now: int) -> bool:
        """Whether the lease lasts; a member without voters cannot be excluded."""
        return not self.L or now < self.lease_end

    @property
    def alone(self) -> bool:
        """Whether this process is its own successor."""
        return self.succ.member == self.member

    @property
    def width(self) -> int:
        """How many voters a member should have."""
        return 2 * self.settings.k + 1

    @property
    def electing(self) -> bool:
        """Whether the process should have voters; alone it needs none, unless it serves a joiner."""
        return not self.alone

    def recruits(self) -> tuple[lease.Voters, tuple[int, ...]]:
        """Voters to fill up the predecessors, and the processes to ask for the next poll.

        They are processes that have answered the last poll, whether they own a ticket or not. While
        there are too few, others are asked, in turn.
        """
        lack = self.width - len(self.proposal)
        answered = {} if self.question is None else self.question.answered()
        known = {voter.process for voter in self.proposal}
        others = [p for p in self.place.others if p not in known]
        good = [p for p in others if p in answered][:lack]
        rest = [p for p in others if p not in good]
        asked = rest[self.turn % len(rest) :] + rest[: self.turn % len(rest)] if rest else []
        missing = lack - len(good)
        if 0 < missing < len(rest):
            self.turn = (self.turn + missing) % len(self.place.others)
        fill = tuple(lease.Voter(p, answered[p]) for p in good)
        return fill, (*good, *asked[:missing])

    @property
    def as_neighbour(self) -> lease.Neighbour:
        """This member and its voters, as others know them."""
        assert self.member is not None
        return lease.Neighbour(self.member, self.version, self.L)

    def become(
        self, neighbour: lease.Neighbour, succ: lease.Neighbour, after: lease.Neighbour
    ) -> None:
        """Take a place in the ring, subject to the voters' consent."""
        self.member, self.version, self.L = neighbour
        self.ticket, self.clock = neighbour.member.ticket, max(self.clock, neighbour.member.number)
        self.proposal, self.succ, self.after = self.L, succ, after
        self.state, self.last, self.ignored = "linking", 0, 0

    def poll(self, now: int) -> TicketEffects:
        """Ask the voters, and those that are to become voters."""
        assert self.member is not None
        self.polls += 1
        self.ignored = 0 if self.question is None or self.question.heard else self.ignored + 1
        if self.alone:
            self.proposal = ()
        fill, spares = self.recruits()
        register = lease.Register(
            self.polls,
            self.member,
            self.clock,
            self.version,
            self.L,
            (*self.proposal, *fill) if self.electing else (),
            self.succ,
            self.after,
        )
        self.question = Question(register, now, spares)
        yield from self.poll_again()
        yield from self.count()

    def poll_again(self) -> TicketEffects:
        """Repeat the question to voters that have not answered it."""
        if self.question is not None and (lacking := self.question.lacking()):
            yield Send(lacking, lease.Poll(self.me, 0, register=self.question.register))

    def polled(self, register: lease.Register, sender: int) -> TicketEffects:
        """On POLL: vote for a member, unless it is excluded, and remember its register."""
        who = register.member
        answer: type[lease.Alive | lease.Refused] = lease.Alive
        if self.fenced(who) or self.registers.forgot(who):
            answer = lease.Refused
        elif self.voter in (*register.voters, *register.proposed):
            known = self.registers.get(who)
            if known is None or known.number < register.number:
                self.registers.keep(who, register)
        yield Send((sender,), answer(self.me, 0, number=register.number, voter=self.voter))

    def fenced(self, member: RingMember) -> bool:
        """Whether this process refuses to vote for a member."""
        return member.number <= self.fences.get(member.ticket, -1) or any(
            known.ticket == member.ticket and known.number > member.number
            for known in self.registers
        )

    def voted(self, message: lease.Alive | lease.Refused, now: int) -> TicketEffects:
        """On ALIVE: count a voter's answer to the latest poll, if that is not too old."""
        question = self.question
        if question is None or question.register.number != message.number:
            return
        if isinstance(message, lease.Refused):
            self.question = question._replace(refusals=question.refusals | {message.voter})
        elif now < question.asked_at + self.settings.lease_ns:
            self.question = question._replace(votes=question.votes | {message.voter})
            yield from self.count()

    def count(self) -> TicketEffects:
        """Extend the lease if the voters agree; if the proposed ones do too, they become voters."""
        assert self.question is not None
        register, asked_at, _, votes, _ = self.question
        if not self.question.granted:
            return
        self.lease_end = max(self.lease_end, asked_at + self.settings.lease_ns)
        new = register.proposed
        if new != self.L and len(votes.intersection(new)) >= needed(new):
            self.L, self.version = new, register.version + 1
        if self.state in ("linking", "lapsed"):
            self.state = "coordinator"
            yield Granted(register.member.ticket, register.member.number, self.last)
        if self.offer is not None and self.offer.child.member == register.succ.member:
            offer, self.offer = self.offer, None
            yield Send((offer.child.member.process,), offer)

    def fence(self, message: lease.ReqCoord, sender: int, now: int) -> TicketEffects:
        """On REQCOORD: vote no more for a member, unless the one who asks is being excluded itself.

        But one that has asked for so long has held its lease all the while.
        If it is about this process, the process consents if it wants to leave, or if nobody has voted
        for it for long: when all its voters have crashed, they cannot exclude it either.
        """
        by, target = message.by, message.target
        doomed = self.fenced(by) and message.rounds < self.settings.patience
        if (doomed and target not in self.ended) or self.registers.forgot(target):
            return
        if target == self.member and (self.lets_go or self.deserted):
            if self.state == "coordinator":
                yield from self.lapse()
            yield from self.resign(now)
        mine = target.process == self.me
        known = self.resigned(target) if mine else self.refuse(target)
        if known is not None and (mine or message.voter == self.voter):
            ack = lease.AckCoord(
                self.me, 0, voter=self.voter, target=target, ended=int(mine), known=known
            )
            yield Send((sender,), ack)

    def resigned(self, target: RingMember) -> tuple[lease.Register, ...] | None:
        """The register of a past membership of this process; None if it may still be this member.

        If it has never heard that it is this member, it will not become it. After a crash it does
        not know, nor does it when it has forgotten.
        """
        if target in self.ended:
            return self.ended[target]
        if target == self.member or self.place.incarnation or self.ended.forgot(target):
            return None
        return self.ended.keep(target, ())

    def refuse(self, target: RingMember) -> tuple[lease.Register, ...]:
        """Vote no more for a member; its register, if this voter has one."""
        self.fences[target.ticket] = max(self.fences.get(target.ticket, -1), target.number)
        known = self.registers.get(target)
        return () if known is None else (known,)

    @property
    def deserted(self) -> bool:
        """Whether the lease has run out, and no voter has answered for too long."""
        q = self.question
        ignored = q is not None and not q.heard and self.ignored >= self.settings.patience
        return self.state == "lapsed" and ignored

    @property
    @abstractmethod
    def lets_go(self) -> bool:
        """Whether the process would leave the ring at once, if another takes its place."""

    def lapsed(self, now: int) -> bool:
        """Whether the lease has run out; a process that was paused must notice before all else."""
        return self.state == "coordinator" and not self.holds(now)

    def lapse(self) -> TicketEffects:
        """Own nothing from now on, but go on asking the voters: perhaps nobody has excluded this."""
        assert self.ticket is not None
        self.state = "lapsed"
        yield Revoked(self.ticket)

    @abstractmethod
    def resign(self, now: int) -> TicketEffects:
        """Leave the ring: the others exclude this process, or have excluded it."""

    def end(self, state: TicketState) -> None:
        """End this membership for good."""
        if self.member is not None and self.question is not None:
            self.ended.keep(self.member, (self.question.register,))
        self.ticket = self.member = self.question = self.offer = None
        self.state = state

    def arm(self) -> TicketEffects:
        """Set the timer for the next part of a round."""
        yield SetTimer(ROUND, self.settings.round_ns // self.settings.parts)
