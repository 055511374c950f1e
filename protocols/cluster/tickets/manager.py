"""What both ways of managing tickets share: the ring of tickets, joining it, the effects."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ...base import Effect, Place, Send, SetTimer
from .messages import CJoin, CView, Reject

TicketState = Literal["out", "joining", "linking", "coordinator", "lapsed", "leaving"]
JOIN = ("tickets", "join")


class Granted(NamedTuple):
    """The process owns a ticket from now on; ``last`` is the last number used with it."""

    ticket: int
    epoch: int
    last: int


class Revoked(NamedTuple):
    """The process no longer owns this ticket."""

    ticket: int


TicketEffect = Effect | Granted | Revoked
TicketEffects = Iterator[TicketEffect]


class TicketManager(ABC):
    """A process that wants, has or had one of n tickets 0 … n-1, which form a ring.

    The ticket that succeeds i is i-1 (mod n). A process that owns i, and whose successor owns j,
    coordinates the tickets from i down to j+1. ``founders`` are the owners at the beginning.
    ``view`` is the paper's Cview: the presumed owner of each ticket, a hint whom to ask.

    The user, which is the layer above, gives the effects their meaning, tells other processes by
    gossip when it is ``Granted`` a ticket, and sets ``last`` to the number of each event.
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
        self.number = place.base  # counts the user's requests to join

    @abstractmethod
    def start(self, now: int) -> TicketEffects:
        """Handle the start of the process; a founder takes its place, unless it has crashed."""

    @abstractmethod
    def receive(self, message: Any, sender: int, now: int) -> TicketEffects:
        """Handle a message of the cluster management."""

    @abstractmethod
    def leave(self, now: int) -> TicketEffects:
        """Handle the user's request to give the ticket back, as soon as that is possible."""

    @abstractmethod
    def owns(self, now: int) -> int | None:
        """The ticket, if the user may use it now; it must ask before every use."""

    @abstractmethod
    def assignable(self, now: int) -> list[int]:
        """The tickets that this process and no other may assign."""

    def owns_until(self) -> int | None:
        """When the ticket is lost unless something happens before; None is never."""
        return None

    def assigns_from(self) -> int:
        """The time before which nothing is assignable."""
        return 0

    def distance(self, i: int, j: int) -> int:
        """The number of steps down from ticket i to ticket j, at least one."""
        return (i - j - 1) % self.n + 1

    def down(self, i: int, j: int) -> list[int]:
        """The tickets from i down to j+1."""
        return [(i - step) % self.n for step in range(self.distance(i, j))]

    def heard(self, ticket: int, process: int) -> None:
        """Note that a process has become the owner of a ticket, as the user has heard."""
        self.view[ticket] = process

    def join(self, now: int) -> TicketEffects:
        """Handle the user's request for a ticket, whether or not it has one or is leaving."""
        if self.state in ("joining", "linking", "coordinator", "lapsed"):
            self.wants_out = False
        if self.state == "out":
            self.state = "joining"
            self.number += 1
            yield from self.ask()

    def ask(self) -> TicketEffects:
        """Send CJOIN to the presumed coordinator of any ticket, or to any process if none is known."""
        known = [ticket for ticket, p in enumerate(self.view) if p not in (None, self.me)]
        if known:
            any_ticket = self.place.rng.choice(range(self.n))
            owned = min(known, key=lambda ticket: (ticket - any_ticket) % self.n)
            contact = self.view[owned]
        else:
            contact = self.place.rng.choice(self.place.others)
        assert contact is not None
        yield Send((contact,), CJoin(self.me, 0, number=self.number))

    def rejected(self, message: Reject, sender: int) -> TicketEffects:
        """On REJECT: ask again later; not the sender, if it is no coordinator."""
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
        """The view for other processes, without this one if it is no coordinator."""
        stays = self.state == "coordinator"
        return tuple(None if p == self.me and not stays else p for p in self.view)

    def timeout(self, timer: Hashable, now: int) -> TicketEffects:
        """Handle the timer that asks again."""
        if timer == JOIN and self.state == "joining":
            yield from self.ask()
