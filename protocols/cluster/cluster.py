"""Cluster: optimistic causal order over gossip, with one clock entry for each ticket.

Gidenstam, Koldehofe, Papatriantafilou & Tsigas, "Scalable Group Communication Supporting
Configurable Levels of Consistency", 2011, sections 3 and 5, Algorithm 5.

Only the owner of one of n tickets may multicast; all others receive. Tickets stay with their first
owners, or processes join and leave to get and give them (``tickets``). An event's clock entry is its
ticket's epoch and a sequence number, in one integer that grows. A ticket that is handed on with its
last number continues its epoch; one whose last number is not known starts a new epoch, and no event
ever waits for one of an older epoch.
Above the gossip, ``causality`` has the delivery condition: it holds back, recovers and delivers.
All processes are members of the cluster, unless ``place`` has a group: then those in it are.
State: ``prcast``, the gossip layer; ``ticket`` and ``seq``, the stamp of the next event.
Cost: 28 + 4n + d bytes for an event in a gossip message; 8n once an epoch exceeds 12 bits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from typing_extensions import override

from ..base import (
    NS_PER_MS,
    SEQUENCE_BITS,
    Count,
    Discard,
    Effects,
    Figure,
    Instant,
    Note,
    Place,
    Ratio,
    Send,
    SetTimer,
)
from ..wire import Message
from .causality import Causality
from .events import NUMBERS, Event, EventGossip, Recover
from .gossip import Gossip, GossipSettings, PrCast
from .tickets import (
    LEASE_MESSAGES,
    TICKET_MESSAGES,
    Granted,
    Leases,
    LeaseSettings,
    Revoked,
    Ring,
    TicketEffects,
    TicketManager,
)
from .tickets.encoding import WordMessage

ROUND = "round"
MANAGEMENT = tuple(dict.fromkeys((*TICKET_MESSAGES, *LEASE_MESSAGES)))
TICKETS = "tickets"  # what the names of the timers of their management begin with
NOTHING: dict[str, Any] = {"owns": None}


class Cluster(Causality):
    """Optimistic causal order for a cluster with a limited number of senders, over gossip."""

    name: ClassVar[str] = "cluster"
    paper: ClassVar[str] = "Gidenstam et al. 2011, Algorithm 5"
    wire_id: ClassVar[int] = 10
    rests: ClassVar[bool] = False
    optimistic: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (EventGossip, Event, Recover, *MANAGEMENT)
    figures: ClassVar[tuple[Figure, ...]] = (
        Ratio(
            "gossip_message_bytes",
            "bytes per gossip message",
            form=",.0f",
            of="gossip_bytes",
            per="gossip_messages",
        ),
        Figure("busiest_load", "sent by the busiest process", "times the mean", form=",.2f"),
        Figure("recovery_attempts", "lost events requested"),
        Figure("recovered", "of these recovered in time"),
        Figure("tickets_granted", "tickets granted"),
    )
    ring: ClassVar[type[Ring]] = Ring
    leases: ClassVar[Callable[..., TicketManager]] = Leases

    @dataclass(frozen=True)
    class Settings(GossipSettings):
        """The first ``coordinators`` processes own a ticket each; 0 is all processes, or all tickets.

        ``recovery_buffer`` is in events; 0 is the paper's 2npT', from ``events_per_round``, the paper's
        np, and T', the rounds for which an event may be needed. Unless ``causal``, no event waits for
        another, and one that arrives after an event that it precedes is lost. With ``management``
        processes join and leave to get and give tickets: in a "ring" (Algorithm 1), where nothing
        fails and channels are reliable, or on "leases" (Algorithms 2 to 4), whose ``lease_round_ms``
        must exceed the time that an event spreads, and eight delays. There, ``k`` of 2k+1 neighbours
        may fail, ``lease_delay_ms`` is the longest delay that is tolerated (the paper's δ; 0 is a
        tenth of a round), and ``exclude`` the probability that a successor that has not answered for
        two rounds is excluded in a round (P_exclude).
        """

        coordinators: int = 0
        tickets: int = 0
        management: Literal["none", "ring", "leases"] = "none"
        lease_round_ms: float = 1000.0
        lease_delay_ms: float = 0.0
        k: int = 2
        exclude: float = 1.0
        causal: bool = True
        recovery: Literal["none", "source", "any"] = "any"
        recovery_targets: int = 4
        time_to_terminate: float = 5  # in rounds, like the next
        time_to_recover: float = 5
        recovery_buffer: int = 0
        events_per_round: float = 6.0

        def __post_init__(self) -> None:
            super().__post_init__()
            if min(self.coordinators, self.tickets, self.recovery_buffer) < 0:
                raise ValueError("coordinators, tickets and recovery_buffer are not negative")
            if 0 < self.tickets < self.coordinators:
                raise ValueError("tickets are at least as many as coordinators")
            if self.recovery_targets < 1 or min(self.events_per_round, self.lease_round_ms) <= 0:
                raise ValueError(
                    "recovery_targets, events_per_round, lease_round_ms are above zero"
                )
            if min(self.time_to_terminate, self.time_to_recover, self.lease_delay_ms) < 0:
                raise ValueError("times and delays are not negative")
            if self.k < 1 or not 0 < self.exclude <= 1:
                raise ValueError("k is at least 1, exclude above 0 and at most 1")

        @property
        def recovery_size(self) -> int:
            """The number of events that the recovery buffer holds."""
            rounds = 2 * self.hops + self.time_to_terminate + self.time_to_recover
            return self.recovery_buffer or math.ceil(2 * self.events_per_round * rounds)

        @property
        def leases(self) -> LeaseSettings:
            """The rounds and delays of the cluster management."""
            length = round(self.lease_round_ms * NS_PER_MS)
            delay = round(self.lease_delay_ms * NS_PER_MS) or length // 10
            return LeaseSettings(self.k, length, delay, exclude=self.exclude)

    def __init__(self, place: Place, settings: Any = None) -> None:
        settings = self.Settings() if settings is None else settings
        members = sorted(place.groups[0]) if place.groups else range(place.processes)
        coordinators = settings.coordinators or len(members)
        tickets = settings.tickets or coordinators
        if coordinators > min(tickets, len(members)):
            raise ValueError(
                f"{coordinators} coordinators among {len(members)} processes with {tickets} tickets"
            )
        founders = dict(enumerate(members[:coordinators]))
        super().__init__(place, settings, [founders.get(ticket) for ticket in range(tickets)])
        self.prcast = PrCast(self.me, self.view, settings, EventGossip)
        self.sent = place.base
        self.ticket: int | None = None
        self.seq = 0
        mine = [ticket for ticket, process in founders.items() if process == self.me]
        self.founder = bool(mine)
        self.claimed = NOTHING
        self.manager: TicketManager | None = None
        if settings.management == "ring":
            self.manager = self.ring(place, tickets, founders, settings.leases.round_ns)
        elif settings.management == "leases":
            self.manager = self.leases(place, tickets, founders, settings.leases)
        elif mine:
            self.own(mine[0], place.incarnation)

    @classmethod
    @override
    def needs_fifo(cls, settings: Any) -> bool:
        return bool(settings.management == "ring")

    @classmethod
    @override
    def ring_failures(cls, settings: Any) -> int:
        return int(settings.k) if settings.management == "leases" else 0

    # Tickets

    def own(self, ticket: int, epoch: int = 0, last: int = 0) -> None:
        """Take a ticket over, with the number of its last event in this epoch."""
        self.ticket = ticket
        self.seq = epoch << SEQUENCE_BITS | last
        self.owners[ticket] = self.me

    def disown(self) -> None:
        """Give the ticket up: the process must not multicast any more."""
        self.ticket = None

    @override
    def busy(self) -> bool:
        return self.ticket is None or not self.view.active

    def manage(self, effects: TicketEffects, now: int) -> Effects:
        """Carry out effects of the cluster management, which grants and revokes a ticket."""
        for effect in effects:
            if isinstance(effect, Granted):
                self.own(*effect)
                yield Count("tickets_granted")
            elif isinstance(effect, Revoked):
                self.disown()
                yield Count("tickets_revoked")
            else:
                yield effect
        claim = self.claim(now)
        if claim != self.claimed:
            self.claimed = claim
            yield Note("tickets", claim)

    def claim(self, now: int) -> dict[str, Any]:
        """What the process owns from now on, and may assign, until its next event."""
        manager = self.manager
        if manager is None or (ticket := manager.owns(now)) is None:
            return NOTHING
        since, until = manager.assigns_from(), manager.owns_until()
        return {
            "owns": ticket,
            "epoch": self.seq >> SEQUENCE_BITS,
            "until": None if until is None else Instant(until),
            "assigns": manager.assignable(max(now, since)),
            "from": Instant(since),
        }

    # What happens to the process.

    def start(self, now: int) -> Effects:
        """Start rounds at a random time, so that not all processes gossip at once."""
        first = self.place.rng.randrange(self.round)
        self.prcast.begin(now + first)
        yield SetTimer(ROUND, first)
        if self.manager is not None:
            yield from self.manage(self.manager.start(now), now)
            if self.founder and self.place.incarnation:
                yield from self.manage(self.manager.join(now), now)

    def join(self, now: int) -> Effects:
        """Take part in the gossip, from the first event that arrives, and ask for a ticket."""
        self.late_comer = self.late_comer or not self.view.member
        self.view.join()
        if self.manager is not None:
            yield from self.manage(self.manager.join(now), now)

    def leave(self, now: int) -> Effects:
        """Unsubscribe, give the ticket back, and multicast no more until it joins again."""
        self.view.leave()
        if self.manager is not None:
            yield from self.manage(self.manager.leave(now), now)

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """On creating an event: stamp it, hand it to PrCast, keep a copy, and deliver it."""
        if self.ticket is None:
            raise ValueError(f"process {self.me} has no ticket and must wait for one")
        self.sent += 1
        if self.manager is not None and self.manager.owns(now) is None:
            yield Discard(
                Message(self.me, self.sent, payload, now), "no lease"
            )  # the process was paused for longer than its lease
            return
        if self.seq & NUMBERS == NUMBERS:
            yield Discard(Message(self.me, self.sent, payload, now), "no number left")
            return
        self.seq += 1
        t = self.clock.T.copy()
        t[self.ticket] = self.seq
        event = Event(self.me, self.sent, payload, now, ticket=self.ticket, t=t)
        self.prcast.multicast(event, now)
        self.keep(event.eid, event)
        if self.manager is not None:
            self.manager.last = self.seq & NUMBERS
            yield Note("stamp", self.stamp(event))
        if skipped := self.clock.lacks(event):  # events of the ticket's previous owner
            yield Count("skipped", skipped)
        yield from self.deliver(event)
        yield from self.drain()

    @staticmethod
    def stamp(event: Event) -> dict[str, Any]:
        """An event's two names."""
        ticket, clock = event.eid
        stamp = {"ticket": ticket, "epoch": clock >> SEQUENCE_BITS, "number": clock & NUMBERS}
        return {"source": event.source, "seq": event.seq, **stamp}

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Take gossip, a request for events, or an event that was requested."""
        if isinstance(message, WordMessage):
            if self.manager is not None:
                yield from self.manage(self.manager.receive(message, sender, now), now)
        elif not self.view.member:
            yield Discard(message, "outside")
        elif isinstance(message, Gossip):
            yield from self.hear(message, now)
        elif isinstance(message, Recover):
            yield from self.answer(message, sender)
        elif isinstance(message, Event):
            yield from self.recovered(message)

    @override
    def timeout(self, timer: Any, now: int) -> Effects:
        if timer == ROUND:
            yield from self.gossip(now)
            return
        if timer[0] == TICKETS:
            if self.manager is not None:
                yield from self.manage(self.manager.timeout(timer, now), now)
            return
        yield from self.waited(*timer)

    # PrCast.

    def gossip(self, now: int) -> Effects:
        """Send PrCast's gossip message of this round."""
        yield SetTimer(ROUND, self.round)
        todo = self.prcast.round(now)
        if todo is not None:
            copies, gossip = len(todo.targets), todo.gossip
            yield Count("gossip_messages", copies)
            yield Count("gossip_bytes", copies * gossip.size)
            yield Count("gossip_events", copies * len(gossip.balls))
            if todo.dropped:
                yield Count("buffer_overflows", todo.dropped)
            yield Send(todo.targets, gossip)

    def hear(self, gossip: Gossip, now: int) -> Effects:
        """Hand new events to the causality layer."""
        events: Any = self.prcast.receive(gossip, now)
        yield Count("events_received", len(gossip.balls))
        yield Count("duplicates", len(gossip.balls) - len(events))
        for event in events:
            yield from self.take(event, "terminate")

    def deliver(self, event: Event) -> Effects:
        """Deliver an event; its source owns its ticket."""
        if self.manager is not None:
            self.manager.heard(event.ticket, event.source)
        yield from super().deliver(event)
