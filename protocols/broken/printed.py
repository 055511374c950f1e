"""The cluster's tickets as the paper prints them: Algorithm 1, and Algorithms 2 to 4.

Gidenstam, Koldehofe, Papatriantafilou & Tsigas, "Scalable Group Communication Supporting
Configurable Levels of Consistency", 2011, section 4. Added is only what the text leaves open: who is
alone is its own successor, a joiner lives through its first round, a process never assigns its own
ticket, and all rounds begin at the same times.
"""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from typing_extensions import override

from ..base import CancelTimer, Place, Send, SetTimer
from ..cluster import Cluster
from ..cluster.tickets import Granted, LeaseSettings, Revoked, Ring, TicketEffects, TicketManager
from ..cluster.tickets.encoding import ProcessId, WordMessage
from ..cluster.tickets.messages import CJoin, CView, Reject
from ..wire import Message, of_kind
from .tickets import PrintedRing

ROUND, STATUS = ("tickets", "round"), ("tickets", "status")
Processes = tuple[ProcessId, ...]


@of_kind(51)
class PrintedAlive(WordMessage):
    """ALIVE."""


@of_kind(52)
class PrintedUpdate(WordMessage):
    """UPDATE, R."""

    R: Processes


@of_kind(53)
class PrintedStatus(WordMessage):
    """The status OK of an UPDATE or ACKCJOIN."""


@of_kind(54)
class PrintedAccept(WordMessage):
    """ACKCJOIN, L, i, j, Cview."""

    L: Processes
    i: int
    j: int
    view: CView


@of_kind(55)
class PrintedExclude(WordMessage):
    """EXCLUDE, p."""


@of_kind(56)
class PrintedAckExclude(WordMessage):
    """ACKEXCLUDE, L_q."""

    L: Processes


@of_kind(57)
class PrintedReqCoord(WordMessage):
    """REQCOORD, E_pq, as tickets."""

    E: tuple[int, ...]


@of_kind(58)
class PrintedAckCoord(WordMessage):
    """ACKCOORD."""


PRINTED_MESSAGES = (
    PrintedAlive,
    PrintedUpdate,
    PrintedStatus,
    PrintedAccept,
    PrintedExclude,
    PrintedAckExclude,
    PrintedReqCoord,
    PrintedAckCoord,
)


class PrintedCoordinator(TicketManager):
    """One process of Algorithms 2 to 4 as printed.

    Broken rule: a process that excludes another asks all that keep it alive. It asks those of its last
    UPDATE with a status, but an UPDATE whose status was lost has given the successor others.
    """

    def __init__(
        self, place: Place, tickets: int, founders: Mapping[int, int], rules: LeaseSettings
    ) -> None:
        super().__init__(place, tickets, founders, 2 * rules.delay_ns)
        self.rules, self.founder = rules, not place.incarnation
        self.founders = dict(founders)
        self.L: set[int] = set()
        self.R: set[int] = set()
        self.sent: set[int] = set()  # R, until its status is known
        self.alive: set[int] = set()
        self.succ = self.temp = 0  # a ticket; rounds
        self.candidate: int | None = None  # for successor, while others are being excluded
        self.acks: set[int] = set()

    @override
    def start(self, now: int) -> TicketEffects:
        mine = [ticket for ticket, p in self.founders.items() if p == self.me]
        if mine and self.founder:
            self.L = set(self.predecessors(mine[0]))
            self.succ = self.after(mine[0])
            yield from self.begin(mine[0], now)

    def begin(self, ticket: int, now: int) -> TicketEffects:
        """Become a coordinator; all rounds begin at the same times."""
        self.state, self.ticket, self.alive = "coordinator", ticket, set(self.L)
        self.R, self.temp, self.candidate = set(), 0, None
        yield Granted(ticket, 0, 0)
        yield SetTimer(ROUND, self.rules.round_ns - now % self.rules.round_ns)

    def owned(self, step: int, ticket: int) -> list[int]:
        """The tickets that have an owner by the view, from the next one up or down."""
        ring = [(ticket + step * d) % self.n for d in range(1, self.n)]
        return [t for t in ring if self.view[t] is not None]

    def predecessors(self, ticket: int) -> list[int]:
        """The 2k+1 closest predecessors by the view."""
        width = 2 * self.rules.k + 1
        return [p for t in self.owned(1, ticket)[:width] if (p := self.view[t]) is not None]

    def after(self, ticket: int) -> int:
        """The ticket of the next successor by the view; its own if there is none."""
        return next(iter(self.owned(-1, ticket)), ticket)

    @override
    def owns(self, now: int) -> int | None:
        return self.ticket if self.state == "coordinator" else None

    @override
    def assignable(self, now: int) -> list[int]:
        if self.ticket is None or self.temp or self.candidate is not None:
            return []
        return self.down(self.ticket, self.succ)[1:]

    @override
    def leave(self, now: int) -> TicketEffects:
        """Stop, and be excluded; the printed version has no CLEAVE."""
        yield from self.disconnect()

    def disconnect(self) -> TicketEffects:
        """The process is considered as failed."""
        if self.ticket is not None:
            yield Revoked(self.ticket)
        self.state, self.ticket, self.candidate = "out", None, None
        yield CancelTimer(ROUND)
        yield CancelTimer(STATUS)

    @override
    def timeout(self, timer: Hashable, now: int) -> TicketEffects:
        if timer == ROUND:
            yield from self.round()
        elif timer == STATUS and self.state == "coordinator":
            yield from self.no_status()
        else:
            yield from super().timeout(timer, now)

    def round(self) -> TicketEffects:
        """Main loop of the coordinator algorithm."""
        k = self.rules.k
        if self.ticket is None or len(self.alive & self.L) < min(k + 1, len(self.L)):
            yield from self.disconnect()
            return
        yield SetTimer(ROUND, self.rules.round_ns)
        yield from self.send_alive()
        if self.temp:
            self.temp -= 1
        elif self.succ != self.ticket and self.candidate is None:
            yield from self.tell(PrintedUpdate(self.me, 0, R=self.proposed()))

    def send_alive(self) -> TicketEffects:
        """Send ALIVE to the 2k+1 closest successors."""
        assert self.ticket is not None
        self.alive = set()
        after = self.owned(-1, self.ticket)[: 2 * self.rules.k + 1]
        peers = tuple(p for t in after if (p := self.view[t]) not in (None, self.me))
        yield Send(peers, PrintedAlive(self.me, 0))

    def proposed(self) -> Processes:
        """R: this process and its 2k closest predecessors in L."""
        assert self.ticket is not None
        close = [self.view[t] for t in self.owned(1, self.ticket)]
        known = [p for p in close if p in self.L] + sorted(self.L - set(close))
        return (self.me, *(p for p in known[: 2 * self.rules.k] if p is not None))

    def tell(self, message: Message) -> TicketEffects:
        """Send the immediate successor something that has a status, within 2δ."""
        successor = self.view[self.succ]
        assert successor is not None
        self.sent = set(self.proposed())
        yield SetTimer(STATUS, 2 * self.rules.delay_ns)
        yield Send((successor,), message)

    def no_status(self) -> TicketEffects:
        """Run the exclusion algorithm, or go on with it."""
        assert self.ticket is not None
        if self.candidate is not None and self.acks:  # enough for k + 1?
            yield from self.counted()
            return
        if self.candidate is None and self.place.rng.random() >= self.rules.exclude:
            return
        before = self.succ if self.candidate is None else self.candidate
        self.candidate, self.acks = self.after(before), set()
        if self.candidate in (self.ticket, before):
            yield from self.disconnect()
            return
        peer = self.view[self.candidate]
        assert peer is not None
        yield SetTimer(STATUS, 2 * self.rules.delay_ns)
        yield Send((peer,), PrintedExclude(self.me, 0))

    @property
    def excluded(self) -> list[int]:
        """E_pq: the tickets between this process's and the candidate's."""
        assert self.ticket is not None
        assert self.candidate is not None
        return self.down(self.ticket, self.candidate)[1:]

    def counted(self) -> TicketEffects:
        """After 2δ: become the temporary coordinator if k + 1 have acknowledged."""
        if len(self.acks) < self.rules.k + 1:
            yield from self.disconnect()
            return
        assert self.candidate is not None
        self.forget(self.excluded)
        self.temp = len(self.excluded)  # dist(p, q) - 1
        self.succ, self.candidate = self.candidate, None

    def forget(self, tickets: list[int]) -> None:
        """Remove processes from the view."""
        for ticket in tickets:
            self.view[ticket] = None

    @override
    def receive(self, message: Any, sender: int, now: int) -> TicketEffects:
        match message:
            case Reject():
                yield from self.rejected(message, sender)
            case CJoin():
                yield from self.requested(sender, message.number)
            case PrintedAccept() if self.state == "joining":
                self.L, self.view = set(message.L), list(message.view)
                self.succ = message.j
                yield from self.begin(message.i, now)
                yield from self.send_alive()
                self.alive = set(self.L)
                yield Send((sender,), PrintedStatus(self.me, 0))
            case PrintedReqCoord() if self.ticket is not None and self.ticket not in message.E:
                self.forget(list(message.E))
                yield Send((sender,), PrintedAckCoord(self.me, 0))
            case _ if self.state == "coordinator":
                yield from self.coordinate(message, sender)

    def coordinate(self, message: Any, sender: int) -> TicketEffects:
        """Handling of messages by a coordinator."""
        match message:
            case PrintedAlive():
                self.alive.add(sender)
            case PrintedUpdate():
                self.L = set(message.R) - {self.me}  # the printed line
                yield Send((sender,), PrintedStatus(self.me, 0))
            case PrintedStatus() if self.candidate is None and sender == self.view[self.succ]:
                self.R = self.sent
                yield CancelTimer(STATUS)
            case PrintedExclude():
                yield Send((sender,), PrintedAckExclude(self.me, 0, L=tuple(sorted(self.L))))
            case PrintedAckExclude() if self.candidate is not None and not self.acks:
                asked = set(message.L) & self.R
                self.acks = asked & {self.me}
                peers = tuple(sorted(asked - {self.me}))
                yield SetTimer(STATUS, 2 * self.rules.delay_ns)
                yield Send(peers, PrintedReqCoord(self.me, 0, E=tuple(self.excluded)))
            case PrintedAckCoord() if self.candidate is not None:
                self.acks.add(sender)

    def requested(self, sender: int, number: int) -> TicketEffects:
        """Receiving a cjoin request."""
        free = self.assignable(0)
        if self.state != "coordinator" or not free:
            yield from self.reject(sender, number)
            return
        j, self.succ = self.succ, self.place.rng.choice(free)
        self.view[self.succ] = sender
        told, view = self.proposed(), tuple(self.view)
        yield from self.tell(PrintedAccept(self.me, 0, L=told, i=self.succ, j=j, view=view))


class PrintedTickets(Cluster):
    """The cluster with Algorithms 2 to 4 as printed; ``management`` is "leases".

    A ticket gets two owners when the status of an UPDATE is lost after two processes have joined:
    ``testbed run scripts/experiments/errata/tickets.toml``.
    """

    name: ClassVar[str] = "broken-printed-tickets"
    paper: ClassVar[str] = "Gidenstam et al. 2011, Algorithms 2 to 4"
    messages: ClassVar[tuple[type[Message], ...]] = (*Cluster.messages, *PRINTED_MESSAGES)
    leases: ClassVar[Any] = PrintedCoordinator


class PrintedRingTickets(Cluster):
    """The cluster with Algorithm 1 as printed; ``management`` is "ring".

    A ticket gets two owners when processes join and leave again and again.
    """

    name: ClassVar[str] = "broken-printed-ring"
    paper: ClassVar[str] = "Gidenstam et al. 2011, Algorithm 1"
    ring: ClassVar[type[Ring]] = PrintedRing
