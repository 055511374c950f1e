"""Tickets with failures: coordinators in a ring that hold their tickets on leases.

Gidenstam, Koldehofe, Papatriantafilou & Tsigas, "Scalable Group Communication Supporting
Configurable Levels of Consistency", 2011, section 4.2, Algorithms 2 to 4. Messages may be late, lost
or out of order; processes crash, stop for a while, or are cut off. The rates of two clocks differ by a
factor of less than quarantine/lease, 3.2/2.2 = 1.45.

Once a round a member polls its voters, its 2k+1 closest predecessors (``voting``), and sends UPDATE to
its successor, whose answer is the paper's status. A successor that gives none for two rounds is
excluded (``exclusion``). At most one joiner is served in a round: the voters
learn of it with the next poll, and it gets its ticket when enough of them have answered. A process
that is alone needs no voters, since nobody could exclude it, but gets some before it serves a joiner:
otherwise nobody could take over from it.
Invariant: a ticket has one owner at a time. Its epoch grows whenever it is assigned, so that no
event's name is used twice although the last event of the previous owner is not known.
"""

from collections.abc import Hashable, Mapping
from typing import Any

from typing_extensions import override

from ...base import CancelTimer, Place, Send, SetTimer
from . import lease_messages as lease
from .exclusion import Excluding
from .manager import JOIN, TicketEffects
from .messages import CJoin, Reject, RingMember
from .voting import ROUND, LeaseSettings


class Leases(Excluding):
    """One process of Algorithms 2 to 4."""

    def __init__(
        self,
        place: Place,
        tickets: int,
        founders: Mapping[int, int],
        settings: LeaseSettings | None = None,
    ) -> None:
        super().__init__(place, tickets, founders, settings or LeaseSettings())
        self.founders = dict(founders)
        self.part = 0
        self.waiting: dict[int, int] = {}  # CJOIN: who, and the request's number
        self.linking_end = 0
        self.overdue = 0  # rounds in which it wanted to leave, and nobody took its place
        self.contact: int | None = None

    def start(self, now: int) -> TicketEffects:
        """Take a founder's place in the ring, if its voters agree."""
        tickets = sorted(self.founders, reverse=True)
        ring = [RingMember(self.founders[ticket], ticket, 0) for ticket in tickets]
        mine = [i for i, member in enumerate(ring) if member.process == self.me]
        if not mine or self.place.incarnation:
            return
        m, i = len(ring), mine[0]
        width = min(self.width, m - 1)

        def neighbour(j: int) -> lease.Neighbour:
            before = (ring[(j - d) % m].process for d in range(1, width + 1))
            return lease.Neighbour(
                ring[j % m], 0, tuple(lease.Voter(process, 0) for process in before)
            )

        self.become(neighbour(i), neighbour(i + 1), neighbour(i + 2))
        self.pred = ring[i - 1]
        yield from self.begin(now)

    def begin(self, now: int) -> TicketEffects:
        """Start the first poll, which decides whether the process is a member at all."""
        self.linking_end = now + self.settings.lease_ns
        self.confirmed, self.silence, self.part, self.unheard, self.overdue = False, 0, 0, 0, 0
        self.exclusion, self.quarantine_end = None, 0
        yield CancelTimer(JOIN)
        yield from self.poll(now)
        yield from self.arm()

    @override
    def assignable(self, now: int) -> list[int]:
        x, patience = self.exclusion, self.settings.patience
        waits = now < self.quarantine_end or (x is not None and x.rounds < patience)
        if self.owns(now) is None or waits or self.ticket is None:
            return []
        return self.down(self.ticket, self.succ.member.ticket)[1:]

    @override
    def owns_until(self) -> int | None:
        return self.lease_end if self.L else None

    @override
    def assigns_from(self) -> int:
        return self.quarantine_end

    def ask(self) -> TicketEffects:
        """Send CJOIN, and set a timer to repeat it."""
        for effect in super().ask():
            if isinstance(effect, Send):
                self.contact = effect.peers[0]
            yield effect
        yield SetTimer(JOIN, 2 * self.settings.round_ns)

    def leave(self, now: int) -> TicketEffects:
        """Give the ticket up, and wait to be excluded; a process that is alone stays."""
        if self.state == "joining":
            self.state, self.wants_out = "out", False
            yield CancelTimer(JOIN)
        elif self.state in ("linking", "coordinator", "lapsed"):
            self.wants_out = True
            yield from self.try_leaving()

    @override
    def resign(self, now: int) -> TicketEffects:
        self.end("joining")
        self.exclusion = None
        yield CancelTimer(ROUND)
        yield from self.turn_away()
        yield from self.leave(now) if self.wants_out else self.ask()

    def try_leaving(self) -> TicketEffects:
        """Ask to be excluded, in every round.

        Who is left alone, or has waited for too long, uses its ticket again; perhaps nobody else can.
        """
        self.overdue += self.state == "leaving"
        stays = self.alone or self.overdue >= self.settings.patience
        if self.state == "leaving" and stays:
            self.state = "lapsed"  # until the next poll is answered
        elif self.state in ("coordinator", "lapsed") and self.wants_out and not stays:
            if self.state == "coordinator":
                yield from self.lapse()
            self.state = "leaving"
        pred = self.pred
        if self.lets_go and self.member and pred and pred.process != self.me:
            yield Send((pred.process,), lease.Leaving(self.me, 0, leaver=self.member))

    @property
    @override
    def lets_go(self) -> bool:
        late = self.wants_out and self.overdue >= self.settings.patience and not self.alone
        return self.state == "leaving" or late

    @override
    def receive(self, message: Any, sender: int, now: int) -> TicketEffects:
        if self.lapsed(now):
            yield from self.lapse()
        match message:
            case CJoin():
                yield from self.requested(sender, message.number)
            case Reject():
                yield from self.rejected(message, sender)
            case lease.Accept():
                yield from self.accepted(message, now)
            case lease.Poll():
                yield from self.polled(message.register, sender)
            case lease.Alive() | lease.Refused():
                yield from self.voted(message, now)
            case lease.Update():
                yield from self.updated(message, sender)
            case lease.AckUpdate():
                self.succeeded(message)
            case lease.Exclude():
                yield from self.preceded(message, sender)
            case lease.AckExclude():
                yield from self.follows(message)
            case lease.ReqCoord():
                yield from self.fence(message, sender, now)
            case lease.AckCoord():
                yield from self.acknowledged(message, now)
            case lease.Leaving():
                if message.leaver == self.succ.member and self.lets_leave(now):
                    yield from self.start_exclusion(now)

    def timeout(self, timer: Hashable, now: int) -> TicketEffects:
        """Handle the end of a part of a round, or a CJOIN without answer."""
        if self.lapsed(now):
            yield from self.lapse()
        if timer == ROUND and self.member is not None:
            self.part = (self.part + 1) % self.settings.parts
            yield from self.remind(now) if self.part else self.round(now)
        elif timer == JOIN and self.state == "joining":
            self.view = [None if p == self.contact else p for p in self.view]
            yield from self.ask()

    def round(self, now: int) -> TicketEffects:
        """Main loop of the coordinator algorithm."""
        if self.state == "linking" and now >= self.linking_end:
            self.state = "lapsed"
        if self.excluded(now):
            yield from self.resign(now)
            return
        if self.state != "linking":
            self.unheard += 1
            yield from self.watch(now)
            yield from self.serve(now)
            yield from self.try_leaving()
        yield from self.poll(now)
        yield from self.arm()

    def remind(self, now: int) -> TicketEffects:
        """After a part of a round, send again what has not been answered."""
        yield from self.poll_again()
        if self.exclusion is not None and self.holds(now):
            yield from self.request(now)
        elif self.silence:
            yield from self.update()
        yield from self.arm()

    def excluded(self, now: int) -> bool:
        """Whether the process has no chance to own its ticket again."""
        lapsed = self.state in ("lapsed", "leaving") and not self.holds(now)
        return lapsed and self.question is not None and self.question.hopeless()

    def lets_leave(self, now: int) -> bool:
        """Whether the successor may leave; if all want to, the one with the highest ticket stays."""
        if not self.watching or self.ticket is None or not self.holds(now):
            return False
        return self.state == "coordinator" or self.ticket > self.succ.member.ticket

    @property
    @override
    def electing(self) -> bool:
        return super().electing or bool(self.waiting)

    def requested(self, sender: int, number: int) -> TicketEffects:
        """On CJOIN: it waits for the next round."""
        if self.state == "coordinator":
            self.waiting[sender] = number
        else:
            yield from self.reject(sender, number)

    def serve(self, now: int) -> TicketEffects:
        """Assign a ticket to one joiner, if there is one; the others ask elsewhere.

        If the successor cannot be excluded, because it has lost too many of its voters, the joiner
        comes between.
        """
        free = self.assignable(now)
        ready = (self.confirmed or self.alone) and self.offer is None and self.L
        if self.waiting and free and ready:
            process = next(iter(self.waiting))
            ticket = self.place.rng.choice(free)
            self.grant(process, self.waiting.pop(process), ticket)
        if self.L or not free:
            yield from self.turn_away()

    def turn_away(self) -> TicketEffects:
        """Reject those that wait for a ticket."""
        while self.waiting:
            yield from self.reject(*self.waiting.popitem())

    def grant(self, process: int, number: int, ticket: int) -> None:
        """Make the joiner the successor, irrevocably, whether it hears of it or not."""
        assert self.member is not None
        self.clock += 1
        before = [voter for voter in (self.voter, *self.L) if voter.process != process]
        voters = tuple(before[: self.width])
        child = lease.Neighbour(RingMember(process, ticket, self.clock), 0, voters)
        self.view[ticket] = process
        self.offer = lease.Accept(
            self.me,
            0,
            number=number,
            parent=self.member,
            child=child,
            succ=self.as_neighbour if self.alone else self.succ,
            after=child if self.alone else self.after,
            view=tuple(self.view),
        )
        self.succ, self.after = child, self.offer.succ
        self.confirmed, self.silence, self.exclusion = False, 0, None

    def accepted(self, message: lease.Accept, now: int) -> TicketEffects:
        """On ACKCJOIN: take the place in the ring, unless the request was given up."""
        child = message.child.member
        fresh = message.number == self.number and child not in self.ended
        fresh = fresh and not self.ended.forgot(child)
        if self.state == "joining" and fresh:
            self.view = list(message.view)
            self.become(message.child, message.succ, message.after)
            self.pred = message.parent
            yield from self.begin(now)
