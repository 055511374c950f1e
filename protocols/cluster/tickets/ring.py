"""Tickets without failures: a ring of coordinators that know their successors and predecessors.

Gidenstam, Koldehofe, Papatriantafilou & Tsigas, "Scalable Group Communication Supporting
Configurable Levels of Consistency", 2011, section 4.1, Algorithm 1. Channels are reliable and FIFO.

The printed text assigns one ticket to two processes (``protocols.broken.tickets`` has it). Here
- ACKSUCC never assigns a successor; it only ends the wait for the one that was asked last;
- a joiner is ``linking`` until its successor knows it, and then tells its parent (LINKED); until then
  neither serves CJOIN nor leaves, so that no two NEWSUCC race for one successor;
- a leaver stops using its ticket when it sends CLEAVE, not when that is acknowledged;
- CLEAVE names the membership that ends: a late copy for a former predecessor that is one again
  would otherwise cut the leaver off while it stays;
- a process that is alone is its own successor and predecessor, and stays until another has joined;
- the last sequence number used with a ticket is handed on with it.
Invariant: the sets of tickets that processes coordinate are disjoint; at rest they cover all.
"""

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any

from typing_extensions import override

from ...base import Place, Send
from . import messages
from .manager import Granted, Revoked, TicketEffects, TicketManager

RETRY_NS = 100_000_000


class Ring(TicketManager):
    """One process of Algorithm 1."""

    def __init__(
        self, place: Place, tickets: int, founders: Mapping[int, int], retry_ns: int = RETRY_NS
    ) -> None:
        super().__init__(place, tickets, founders, retry_ns)
        self.succ = messages.RingMember(self.me, 0, self.number)
        self.pred = self.me
        self.lasts: dict[int, int] = {}  # of the coordinated tickets but its own
        self.asked = False  # whether NEWSUCC is not answered yet
        self.child: int | None = None  # the joiner whose LINKED is awaited
        self.waiting: deque[tuple[int, int]] = deque()  # CJOIN: who, and its number
        self.founders = dict(founders)

    @override
    def start(self, now: int) -> TicketEffects:
        tickets = sorted(self.founders, reverse=True)
        mine = [i for i, ticket in enumerate(tickets) if self.founders[ticket] == self.me]
        if mine and not self.place.incarnation:
            after, before = tickets[(mine[0] + 1) % len(tickets)], tickets[mine[0] - 1]
            self.ticket, self.state = tickets[mine[0]], "coordinator"
            self.succ = messages.RingMember(self.founders[after], after, 0)
            self.pred = self.founders[before]
            self.lasts = dict.fromkeys(self.coordinated()[1:], 0)
            yield Granted(self.ticket, 0, 0)

    def coordinated(self) -> list[int]:
        """S_p: the tickets from its own down to the one before the successor's."""
        return [] if self.ticket is None else self.down(self.ticket, self.succ.ticket)

    @override
    def owns(self, now: int) -> int | None:
        return self.ticket if self.state == "coordinator" else None

    def assignable(self, now: int) -> list[int]:
        """The tickets that it coordinates but its own, at once or when it is linked."""
        return self.coordinated()[1:] if self.state in ("linking", "coordinator") else []

    @property
    def idle(self) -> bool:
        """Whether the next request may be served."""
        return self.state == "coordinator" and not self.asked and self.child is None

    @override
    def leave(self, now: int) -> TicketEffects:
        if self.state != "out":
            self.wants_out = True
            yield from self.serve()

    @override
    def receive(self, message: Any, sender: int, now: int) -> TicketEffects:
        match message:
            case messages.CJoin():
                self.waiting.append((sender, message.number))
                yield from self.serve()
            case messages.Reject():
                yield from self.rejected(message, sender)
            case messages.AckCJoin():
                yield from self.accepted(message, sender)
            case messages.NewSucc():
                yield from self.new_predecessor(sender)
            case messages.AckSucc():
                yield from self.successor_acknowledged(sender)
            case messages.Linked() if sender == self.child:
                self.child = None
                yield from self.serve()
            case messages.CLeave():
                yield from self.successor_leaves(message, sender)
            case messages.AckCLeave():
                yield from self.left()

    def serve(self) -> TicketEffects:
        """Receiving a cjoin request, leaving the cluster: one at a time, when idle."""
        while self.waiting and self.state in ("out", "joining", "leaving"):
            yield from self.reject(*self.waiting.popleft())
        if self.idle and self.wants_out and self.succ.process != self.me:
            yield from self.start_leaving()
            return
        while self.waiting and self.idle:
            process, number = self.waiting.popleft()
            if free := self.coordinated()[1:]:
                yield from self.grant(
                    messages.RingMember(process, self.place.rng.choice(free), number)
                )
            else:
                yield from self.reject(process, number)

    @override
    def told(self) -> messages.CView:
        """With its successor too: views may have an older owner of that ticket instead."""
        view = list(super().told())
        if self.state == "coordinator":
            view[self.succ.ticket] = self.succ.process
        return tuple(view)

    def grant(self, child: messages.RingMember) -> TicketEffects:
        """Hand the lower part of the coordinated tickets, and the successor, to the joiner."""
        lasts = tuple(self.lasts.pop(t) for t in self.down(child.ticket, self.succ.ticket))
        self.view[child.ticket] = child.process
        view = tuple(self.view)
        successor, self.succ, self.child = self.succ, child, child.process
        accept = messages.AckCJoin(
            self.me, 0, ticket=child.ticket, successor=successor, lasts=lasts, view=view
        )
        yield Send((child.process,), accept)

    def accepted(self, message: messages.AckCJoin, sender: int) -> TicketEffects:
        """Initialisation of variables when cjoin accepted."""
        if self.state != "joining":
            return
        self.state, self.ticket, self.view = "linking", message.ticket, list(message.view)
        self.succ, self.pred = message.successor, sender
        self.lasts = dict(zip(self.coordinated(), message.lasts, strict=True))
        self.last = self.lasts.pop(message.ticket)
        yield from self.ask_successor()

    def ask_successor(self) -> TicketEffects:
        """Send NEWSUCC."""
        self.asked = True
        yield Send((self.succ.process,), messages.NewSucc(self.me, 0))

    def new_predecessor(self, sender: int) -> TicketEffects:
        """On NEWSUCC: a new predecessor, which must serve CLEAVE if this process is leaving."""
        if self.state == "leaving":
            yield Send((sender,), self.farewell())
        else:
            self.pred = sender
            yield Send((sender,), messages.AckSucc(self.me, 0))

    def successor_acknowledged(self, sender: int) -> TicketEffects:
        """Successor acknowledged, if it is the one that was asked last."""
        if self.asked and sender == self.succ.process:
            self.asked = False
            yield from self.link()

    def link(self) -> TicketEffects:
        """The successor knows this process; a joiner becomes a coordinator."""
        if self.state == "linking":
            assert self.ticket is not None
            self.state = "coordinator"
            yield Send((self.pred,), messages.Linked(self.me, 0))
            yield Granted(self.ticket, 0, self.last)
        yield from self.serve()

    def start_leaving(self) -> TicketEffects:
        """Leaving the cluster: the ticket is no longer used."""
        assert self.ticket is not None
        self.state = "leaving"
        yield Revoked(self.ticket)
        yield Send((self.pred,), self.farewell())
        yield from self.serve()

    def farewell(self) -> messages.CLeave:
        """CLEAVE, with all that the predecessor takes over."""
        assert self.ticket is not None
        leaver = messages.RingMember(self.me, self.ticket, self.number)
        lasts = (self.last, *(self.lasts[t] for t in self.coordinated()[1:]))
        return messages.CLeave(self.me, 0, leaver=leaver, successor=self.succ, lasts=lasts)

    def successor_leaves(self, message: messages.CLeave, sender: int) -> TicketEffects:
        """Receiving a cleave request; dropped unless it is from this process's successor."""
        serving = self.state in ("linking", "coordinator") and self.child is None
        if message.leaver != self.succ or not serving:
            return
        taken = self.down(self.succ.ticket, message.successor.ticket)
        self.lasts |= zip(taken, message.lasts, strict=True)
        self.succ = message.successor
        yield Send((sender,), messages.AckCLeave(self.me, 0))
        if self.succ.process == self.me:
            self.pred, self.asked = self.me, False
            yield from self.link()
        else:
            yield from self.ask_successor()

    def left(self) -> TicketEffects:
        """Receiving a cleave acknowledgement."""
        if self.state == "leaving":
            self.state, self.wants_out = "out", False
            self.ticket, self.lasts = None, {}
            yield from self.serve()

    def timeout(self, timer: Hashable, now: int) -> TicketEffects:
        """Stop asking for a ticket if the user wants to leave again."""
        if self.state == "joining" and self.wants_out:
            self.state, self.wants_out = "out", False
        else:
            yield from super().timeout(timer, now)
