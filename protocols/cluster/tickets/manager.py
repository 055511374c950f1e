"""What both ways of managing tickets share: the ring of tickets, the way in, what the user is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ...base import Effect, Place, Send, SetTimer
from .messages import CJoin, CView, Reject

TicketState = Literal["out", "joining", "linking", "coordinator", "leaving"]
JOIN = ("tickets", "join")


class Granted(NamedTuple):
    """The process owns a ticket from now on; ``last`` is the last number used with it before."""

    ticket: int
    epoch: int
    last: int


class Revoked(NamedTuple):
    """The process owns this ticket no longer."""

    ticket: int


TicketEffect = Effect | Granted | Revoked
TicketEffects = Iterator[TicketEffect]


class TicketManager(ABC):
    """A process that wants, has or had one of n tickets 0 … n-1, which form a ring.

    The ticket that succeeds i is i-1 (mod n). Who owns i and whose successor owns j coordinates the
    tickets from i down to j+1. ``founders`` says who owns which ticket at the beginning. ``view`` is
    the paper's Cview: who is thought to own which ticket. It is a hint where to ask.

    The user gives the effects their meaning, tells the others by gossip when it is ``Granted`` a
    ticket, and sets ``last`` to the number of each event that it makes with it.
    """

    def __init__(
        self, place: Place, tickets: int, founders: Mapping[int, int], retry_ns: int
    ) -> None:
        self.me = place.me
        self.place = place
        self.n = tickets
        self.retry_ns = retry_ns
        self.state: TicketState = "out"
        self.ticket: int | None = None
        self.last = 0
        self.wants_out = False
        self.view: list[int | None] = [founders.get(ticket) for ticket in range(tickets)]
        self.number = place.base  # counts the requests of the user to join

    @abstractmethod
    def start(self, now: int) -> TicketEffects:
        """The process begins; a founder takes its place, unless it has crashed before."""

    @abstractmethod
    def receive(self, message: Any, sender: int, now: int) -> TicketEffects:
        """A message of the cluster management arrives."""

    @abstractmethod
    def leave(self, now: int) -> TicketEffects:
        """The user wants to give the ticket back."""

    @abstractmethod
    def owns(self, now: int) -> int | None:
        """The ticket, if the user may use it now. It must ask before every use."""

    @abstractmethod
    def assignable(self, now: int) -> list[int]:
        """The tickets that this process and no other may give away."""

    def owns_until(self) -> int | None:
        """When the ticket is lost unless something happens before; never, if none."""
        return None

    def assigns_from(self) -> int:
        """Before that time nothing is assignable."""
        return 0

    def distance(self, i: int, j: int) -> int:
        """How many steps down it is from ticket i to ticket j, at least one."""
        return (i - j - 1) % self.n + 1

    def down(self, i: int, j: int) -> list[int]:
        """The tickets from i down to j+1."""
        return [(i - step) % self.n for step in range(self.distance(i, j))]

    def heard(self, ticket: int, process: int) -> None:
        """The user has heard that a process has become the owner of a ticket."""
        self.view[ticket] = process

    def join(self, now: int) -> TicketEffects:
        """The user wants a ticket; no matter if it has one, or has not yet got rid of its last."""
        if self.state in ("joining", "linking", "coordinator"):
            self.wants_out = False
        if self.state == "out":
            self.state = "joining"
            self.number += 1
            yield from self.ask()

    def ask(self) -> TicketEffects:
        """Send CJOIN to somebody who may be a coordinator, or to anybody if nobody is known."""
        known = sorted({p for p in self.view if p not in (None, self.me)})
        contact = self.place.rng.choice(known or self.place.others)
        yield Send((contact,), CJoin(self.me, 0, number=self.number))

    def rejected(self, message: Reject, sender: int) -> TicketEffects:
        """Ask again later; not the sender, if it is no coordinator."""
        if self.state != "joining" or message.number != self.number:
            return
        if sender in message.view:
            self.view = list(message.view)
        else:
            self.view = [None if p == sender else p for p in self.view]
        yield SetTimer(JOIN, self.retry_ns)

    def reject(self, process: int, number: int) -> TicketEffects:
        """Send REJECT."""
        yield Send((process,), Reject(self.me, 0, number=number, view=self.told()))

    def told(self) -> CView:
        """The view as it is told to others: nobody thinks of me as a coordinator if I am none."""
        stays = self.state == "coordinator"
        return tuple(None if p == self.me and not stays else p for p in self.view)

    def timeout(self, timer: Hashable, now: int) -> TicketEffects:
        """It is time to ask again."""
        if timer == JOIN and self.state == "joining":
            yield from self.ask()
