"""The ring of tickets with mistakes: Algorithm 1 as printed, and one mistake at a time."""

from typing_extensions import override

from ..base import Send
from ..cluster.tickets.manager import Granted, Revoked, TicketEffects
from ..cluster.tickets.messages import AckCJoin, CLeave, RingMember
from ..cluster.tickets.ring import Ring


class Hasty(Ring):
    """Serves the next CJOIN before the previous joiner is linked.

    Broken rule: the parent waits for LINKED. The joiners' NEWSUCC race for one successor, which may
    end with a predecessor that does not serve its CLEAVE: it can never leave.
    """

    @property
    @override
    def idle(self) -> bool:
        return self.state == "coordinator"

    @override
    def grant(self, child: RingMember) -> TicketEffects:
        yield from super().grant(child)
        self.child = None


class AnySuccessor(Hasty):
    """Is hasty, and takes any sender of ACKSUCC for its successor.

    Broken rule: ACKSUCC assigns nothing. A late one restores a former successor, and the tickets
    between are assigned twice. A process that waits for LINKED never gets a late one.
    """

    def successor_acknowledged(self, sender: int) -> TicketEffects:
        """The printed line: ImmedSucc := q."""
        if sender in self.view:
            self.succ = RingMember(sender, self.view.index(sender), 1)
            for ticket in self.coordinated()[1:]:
                self.lasts.setdefault(ticket, 0)
        self.asked = False
        yield from self.link()


class Clinging(Ring):
    """Uses its ticket until its CLEAVE is acknowledged.

    Broken rule: a leaver stops when it sends CLEAVE. Its predecessor may have assigned the ticket to
    another process before the acknowledgement arrives.
    """

    @override
    def owns(self, now: int) -> int | None:
        return self.ticket if self.state in ("coordinator", "leaving") else None

    @override
    def start_leaving(self) -> TicketEffects:
        self.state = "leaving"
        yield Send((self.pred,), self.farewell())
        yield from self.serve()

    @override
    def left(self) -> TicketEffects:
        if self.state == "leaving" and self.ticket is not None:
            yield Revoked(self.ticket)
        yield from super().left()


class Forgetting(Ring):
    """Restarts the sequence numbers of a ticket that another process has used.

    Broken rule: the last sequence number is handed on. Two events get the same name.
    """

    @override
    def accepted(self, message: AckCJoin, sender: int) -> TicketEffects:
        yield from super().accepted(message, sender)
        self.last = 0


class Undated(Ring):
    """Serves any CLEAVE of its successor, also one from an earlier membership.

    Broken rule: CLEAVE names the membership that ends. It takes two processes that leave together,
    come back and are neighbours again.
    """

    @override
    def successor_leaves(self, message: CLeave, sender: int) -> TicketEffects:
        if sender == self.succ.process:
            self.succ = message.leaver
        yield from super().successor_leaves(message, sender)


class PrintedRing(AnySuccessor, Clinging):
    """Algorithm 1 as printed, plus the base cases, which it lacks.

    A joiner is a coordinator as soon as it is accepted, no parent waits for LINKED, ACKSUCC assigns
    a successor, and a leaver keeps its ticket until the acknowledgement.
    """

    @override
    def accepted(self, message: AckCJoin, sender: int) -> TicketEffects:
        if self.state != "joining":
            return
        yield from super().accepted(message, sender)
        self.state = "coordinator"
        yield Granted(message.ticket, 0, self.last)
        yield from self.serve()


BROKEN_RINGS = (AnySuccessor, Hasty, Clinging, Forgetting, Undated, PrintedRing)
