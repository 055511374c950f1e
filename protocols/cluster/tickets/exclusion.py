"""Exclusion: a coordinator sends UPDATE to its successor, and takes over if that does not answer.

Section 4.2, Algorithms 3 and 4. In the paper, to exclude all processes between itself and the next
reachable process q, p asks the voters that it has in common with q. Here it asks the voters of each
process between, one process after the other, and learns from them which is the next. So it depends
on no view, and on no chain of leases that lapse one after the other: the tickets wait for one lease
and a round, not for as many rounds as there are tickets. An excluded process that has stopped, and
knows it, may say so itself instead of its voters. p need not give up if it fails; that is decided by
its own voters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice, takewhile

from ...base import Count, Place, Send
from . import lease_messages as lease
from .manager import TicketEffects
from .messages import RingMember
from .polls import refusing
from .voting import LeaseSettings, Voting

SILENCE = 2


@dataclass
class Exclusion:
    """The member being excluded; with ``candidate``, the one that is asked to be the successor."""

    target: lease.Neighbour
    after: lease.Neighbour  # the target's successor, if it has told its voters nothing
    reports: dict[lease.Voter, tuple[lease.Register, ...]] = field(default_factory=dict)
    ended: bool = False  # as the target's own process says
    candidate: lease.Neighbour | None = None
    waited: bool = False  # for the candidate's answer, when the last round began
    rounds: int = 0  # since this target is being excluded
    fenced_at: int = 0

    def newest(self) -> lease.Register | None:
        """The newest register of the target that any of its voters has."""
        known = [register for report in self.reports.values() for register in report]
        return max(known, key=lambda register: register.number, default=None)

    def voters(self) -> list[lease.Voters]:
        """The sets of voters of which enough must refuse: a known one, and any later ones."""
        newest = self.newest()
        sets = [self.target.voters]
        if newest is not None and newest.version > self.target.version:
            sets.append(newest.voters)
        if newest is not None and newest.version >= self.target.version:
            sets.append(newest.proposed)
        return sets

    def fenced(self) -> bool:
        """Whether the target can never get enough votes again."""
        refused = set(self.reports)
        return self.ended or all(len(refused.intersection(v)) >= refusing(v) for v in self.voters())


class Excluding(Voting):
    """A voting member that watches its successor, and is watched by its predecessor."""

    def __init__(
        self, place: Place, tickets: int, founders: Mapping[int, int], settings: LeaseSettings
    ) -> None:
        super().__init__(place, tickets, founders, settings)
        self.exclusion: Exclusion | None = None
        self.quarantine_end = 0  # until then the process is a temporary coordinator
        self.confirmed = False  # whether the successor has told its voters its own successor
        self.silence = 0  # UPDATEs that the successor has not answered
        self.pred: RingMember | None = None
        self.unheard = 0  # rounds without an UPDATE from the predecessor

    @property
    def watching(self) -> bool:
        """Whether the process may begin to exclude its successor."""
        serving = self.state in ("coordinator", "leaving")
        return serving and self.exclusion is None and not self.alone

    def watch(self, now: int) -> TicketEffects:
        """Exclude a successor that has been silent for too long, or send it an UPDATE."""
        if not self.holds(now):
            if not self.alone:
                yield from self.update()
        elif self.exclusion is not None:
            yield from self.resume_exclusion(now)
        elif self.watching and self.suspects():
            yield from self.start_exclusion(now)
        elif not self.alone:
            self.silence += 1
            yield from self.update()

    def suspects(self) -> bool:
        """Whether to exclude a successor that has been silent; the paper tosses a coin."""
        p = self.settings.exclude
        silent = self.silence >= SILENCE and (p == 1 or self.place.rng.random() < p)
        return silent or self.succ.member.process == self.me

    def update(self) -> TicketEffects:
        """Send UPDATE, unless the successor is a past membership of this process."""
        assert self.member is not None
        to = self.succ.member
        before = self.predecessors(to.process)
        if to.process != self.me:
            update = lease.Update(self.me, 0, by=self.member, to=to, predecessors=before)
            yield Send((to.process,), update)

    def count(self) -> TicketEffects:
        """Count the votes, and tell the successor at once if the voters have changed."""
        before = self.L
        yield from super().count()
        if before != self.L and self.exclusion is None and not self.alone:
            yield from self.update()

    def predecessors(self, to: int) -> lease.Voters:
        """R: this process and its 2k closest predecessors, as voters of its successor.

        They end where they would reach the successor itself: a crashed process beyond it would be
        passed round the ring forever.
        """
        before = takewhile(lambda voter: voter.process != to, (self.voter, *self.L))
        return tuple(islice(before, self.width))

    def updated(self, message: lease.Update, sender: int) -> TicketEffects:
        """On UPDATE: from the predecessor, or one that has joined between.

        Who has lapsed gives no status, and so is excluded if its predecessor has not lapsed as well.
        """
        if self.member is None or message.to != self.member:
            return
        if message.by == self.pred or self.unheard > SILENCE or self.closer(message.by):
            self.pred, self.unheard = message.by, 0
            self.proposal = tuple(v for v in message.predecessors if v.process != self.me)
        if self.state != "lapsed":
            active = int(self.state != "linking")
            status = lease.AckUpdate(self.me, 0, neighbour=self.as_neighbour, active=active)
            yield Send((sender,), status)

    def closer(self, other: RingMember) -> bool:
        """Whether a member has joined between the predecessor and this process."""
        assert self.member is not None
        assert self.pred is not None
        mine = self.member.ticket
        return self.distance(other.ticket, mine) < self.distance(self.pred.ticket, mine)

    def succeeded(self, message: lease.AckUpdate) -> None:
        """On the status of an UPDATE: the successor is alive."""
        if message.neighbour.member == self.succ.member and self.exclusion is None:
            self.succ, self.silence = message.neighbour, 0
            self.confirmed = self.confirmed or bool(message.active)

    def start_exclusion(self, now: int) -> TicketEffects:
        """Exclude a successor that does not answer, or wants to leave."""
        yield Count("exclusions")
        self.exclusion = Exclusion(self.succ, self.after)
        yield from self.request(now)

    def resume_exclusion(self, now: int) -> TicketEffects:
        """In a new round, ask again, or give up a candidate that has not answered for a round."""
        assert self.exclusion is not None
        x = self.exclusion
        if x.candidate is not None and x.waited:
            self.exclusion = Exclusion(x.candidate, x.after)
        elif x.candidate is None and not x.target.voters:
            self.exclusion, self.silence = None, 1  # its voters may have become known
            return
        x.waited, x.rounds = x.candidate is not None, x.rounds + 1
        yield from self.request(now)

    def request(self, now: int) -> TicketEffects:
        """Send REQCOORD to voters that have not acknowledged, and to the target's own process.

        Not while the voters of this process owe it an answer: it may have been excluded itself, and
        would take along the one that has done so.
        """
        assert self.member is not None
        assert self.exclusion is not None
        x = self.exclusion
        if self.question is None or not self.question.granted:
            return
        if x.candidate is not None:
            yield from self.approach(x.candidate.member)
            return
        target = x.target.member
        voters = dict.fromkeys(voter for voters in x.voters() for voter in voters)
        if target.process == self.me and (known := self.resigned(target)) is not None:
            x.reports[self.voter], x.ended = known, True
        elif self.voter in voters:
            x.reports[self.voter] = self.refuse(target)
        for voter in (*voters, lease.Voter(target.process, 0)):
            if voter not in x.reports and voter.process != self.me:
                request = lease.ReqCoord(
                    self.me, 0, by=self.member, voter=voter, target=target, rounds=x.rounds
                )
                yield Send((voter.process,), request)
        yield from self.follow(now)

    def acknowledged(self, message: lease.AckCoord, now: int) -> TicketEffects:
        """On ACKCOORD: it may name further voters, which must be asked too."""
        x = self.exclusion
        if x is None or x.candidate is not None or message.target != x.target.member:
            return
        before = x.voters()
        x.reports[message.voter], x.ended = message.known, x.ended or bool(message.ended)
        if x.ended or x.voters() == before:
            yield from self.follow(now)
        else:
            yield from self.request(now)

    def follow(self, now: int) -> TicketEffects:
        """When the target is fenced, ask its successor to be the successor of this process."""
        assert self.member is not None
        assert self.exclusion is not None
        x = self.exclusion
        if not x.fenced():
            return
        x.fenced_at, newest = now, x.newest()
        self.clock = max(self.clock, x.target.member.number)
        if newest is not None:
            self.clock = max(self.clock, newest.clock)
            x.candidate, x.after = newest.succ, newest.after
        else:
            x.candidate = x.after
        if x.candidate.member == self.member:
            yield from self.take_over(self.as_neighbour, self.as_neighbour)
        elif x.candidate.member.process == self.me:  # a past membership of this process
            self.exclusion = Exclusion(x.candidate, x.after)
            yield from self.request(now)
        else:
            yield from self.approach(x.candidate.member)

    def approach(self, to: RingMember) -> TicketEffects:
        """Send EXCLUDE to the candidate for successor."""
        assert self.member is not None
        yield Send((to.process,), lease.Exclude(self.me, 0, by=self.member, to=to))

    def follows(self, message: lease.AckExclude) -> TicketEffects:
        """On ACKEXCLUDE: the successor is found."""
        x = self.exclusion
        if (
            x is not None
            and x.candidate is not None
            and message.neighbour.member == x.candidate.member
        ):
            yield from self.take_over(message.neighbour, message.succ)

    def take_over(self, succ: lease.Neighbour, after: lease.Neighbour) -> TicketEffects:
        """Become the temporary coordinator of all tickets down to the successor's."""
        assert self.exclusion is not None
        end = self.exclusion.fenced_at + self.settings.quarantine_ns
        self.quarantine_end = max(self.quarantine_end, end)
        self.exclusion = self.offer = None
        self.succ, self.after, self.confirmed = succ, after, False
        self.silence = 1  # an UPDATE is due
        yield Count("take-overs")

    def preceded(self, message: lease.Exclude, sender: int) -> TicketEffects:
        """On EXCLUDE: the sender is the predecessor."""
        by = message.by
        if self.member is None or message.to != self.member:
            return
        if not self.fenced(by):
            self.pred, self.unheard = by, 0
            yield Send(
                (sender,), lease.AckExclude(self.me, 0, neighbour=self.as_neighbour, succ=self.succ)
            )
