"""Tickets on leases with one mistake at a time."""

from dataclasses import replace

from typing_extensions import override

from ..cluster.tickets.lease_messages import (
    Alive,
    Neighbour,
    Refused,
    Register,
    Update,
)
from ..cluster.tickets.leases import Leases
from ..cluster.tickets.manager import Granted, TicketEffects
from ..cluster.tickets.messages import RingMember


class LateVotes(Leases):
    """Counts every ALIVE as an answer to the latest poll.

    Broken rule: a lease begins when the poll that is answered was sent. A slow link keeps a member
    alive whose voters have long refused it.
    """

    @override
    def voted(self, message: Alive | Refused, now: int) -> TicketEffects:
        if self.question is not None:
            number = self.question.register.number
            yield from super().voted(replace(message, number=number), now)


class SleepWalker(Leases):
    """Uses its ticket until it notices that the lease has run out.

    Broken rule: the lease is checked before every use. A paused process breaks it.
    """

    @override
    def owns(self, now: int) -> int | None:
        return self.ticket if self.state == "coordinator" else None


class NoQuarantine(Leases):
    """Assigns the tickets of excluded members at once.

    Broken rule: a temporary coordinator waits until their leases have run out.
    """

    @override
    def take_over(self, succ: Neighbour, after: Neighbour) -> TicketEffects:
        yield from super().take_over(succ, after)
        self.quarantine_end = 0


class FickleVoter(Leases):
    """Acknowledges an exclusion and goes on voting for the excluded member.

    Broken rule: a voter that has sent ACKCOORD refuses its vote. Late messages are enough.
    """

    @override
    def refuse(self, target: RingMember) -> tuple[Register, ...]:
        known = self.registers.get(target)
        return () if known is None else (known,)


class Presumptuous(Leases):
    """Excludes on the word of a single voter, which may be itself.

    Broken rule: enough voters must refuse that too few are left. It takes a partition.
    """

    @override
    def request(self, now: int) -> TicketEffects:
        x = self.exclusion
        if x is not None and x.candidate is None and self.member is not None:
            known = self.refuse(x.target.member)
            x.reports |= dict.fromkeys((v for voters in x.voters() for v in voters), known)
        yield from super().request(now)


class Obedient(Leases):
    """Adopts the voters that its predecessor proposes without the old ones' consent.

    Broken rule: both the old and the new voters agree. This is the paper's UPDATE, L := R; a process
    that excludes this one may ask the old voters only.
    """

    @override
    def updated(self, message: Update, sender: int) -> TicketEffects:
        yield from super().updated(message, sender)
        if self.state == "coordinator":
            self.L = self.proposal


class Timeless(Leases):
    """Assigns a ticket again in the same epoch.

    Broken rule: the epoch grows with every assignment. Two events get the same name.
    """

    @override
    def count(self) -> TicketEffects:
        for effect in super().count():
            yield effect._replace(epoch=0) if isinstance(effect, Granted) else effect


BROKEN_LEASES = (
    LateVotes,
    SleepWalker,
    NoQuarantine,
    FickleVoter,
    Presumptuous,
    Obedient,
    Timeless,
)
