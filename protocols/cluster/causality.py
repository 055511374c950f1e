"""The causality layer: optimistic causal order for events that arrive in any order, late, or never.

Gidenstam et al. 2011, section 5 and Algorithm 5.

Delivery: event e of ticket i is obsolete when t_e[i] <= T[i], and deliverable when its causal past is
delivered: t_e[i] = T[i] + 1 and t_e[k] <= T[k] for all other k. Otherwise e is held back for
``time_to_terminate``; then the process requests what is missing, from its source or from k others, and
waits for ``time_to_recover``; then it delivers what it has of e's past, in order, and e.
Invariant: nothing is delivered after an event that it precedes; an event that comes too late is lost.
State: ``clock``, with T, the causal present; ``held``, the paper's H and R; ``B``, the last events
seen, for others to request.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple

from ..base import (
    NS_PER_MS,
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Effects,
    Hold,
    Place,
    Protocol,
    Send,
    SetTimer,
)
from .events import Clock, Event, EventId, Recover
from .gossip import make_view

Delay = Literal["terminate", "recover"]
Eids = tuple[EventId, ...]


class HeldEvent(NamedTuple):
    """An event held back: one event that it waits for, its timer, and what was requested for it."""

    event: Event
    waits_for: EventId
    timer: Delay
    asked: Eids = ()


class Causality(Protocol):
    """One process of the causality layer; ``owners`` are the sources of each ticket's events."""

    def __init__(self, place: Place, settings: Any, owners: list[int | None]) -> None:
        super().__init__(place, settings)
        self.round = round(self.settings.round_ms * NS_PER_MS)
        self.recovery_size: int = self.settings.recovery_size
        self.view = make_view(place, self.settings)
        self.clock = Clock(len(owners))
        self.held: dict[EventId, HeldEvent] = {}
        self.asked: set[EventId] = set()
        self.B: OrderedDict[EventId, Event] = OrderedDict()
        self.owners = owners
        self.late_comer = place.incarnation > 0 or not self.view.member

    def waited(self, eid: EventId, what: Delay) -> Effects:
        """On timeout of an event that is held back."""
        if eid not in self.held:
            return
        event = self.held[eid].event
        if what == "terminate":
            yield from self.recover(event)
            yield from self.delay(event, "recover")
        else:
            yield from self.late(event)

    def take(self, event: Event, timer: Delay) -> Effects:
        """On receiving an event: deliver it and what waited for it, or hold it back."""
        eid = event.eid
        if self.late_comer:
            self.late_comer = False
            self.clock.begin(event)
        if eid in self.held or not self.keep(eid, event):
            yield Count("repeated")  # PrCast's history was too short, or it was recovered as well
        elif self.clock.obsolete(event):
            yield Discard(event, "obsolete")
        elif not (waits_for := self.clock.first_missing(event)) or not self.settings.causal:
            yield from self.deliver(event)
            yield from self.drain()
        else:
            self.held[eid] = HeldEvent(event, waits_for, timer)
            yield Hold(event, None)
            yield from self.delay(event, timer)

    def recover(self, event: Event) -> Effects:
        """On timeout(e, time_to_terminate): request what is missing of e's causal past."""
        known = self.asked | self.held.keys()
        missing = (eid for eid in self.clock.missing(event) if eid not in known)
        eids = tuple(islice(missing, self.recovery_size))
        self.asked.update(eids)
        self.held[event.eid] = self.held[event.eid]._replace(asked=eids)
        for targets, wanted in self.whom_to_ask(eids):
            yield Count("recovery_attempts", len(wanted))
            yield Count("recovery_requests", len(targets))
            yield Send(targets, Recover(self.me, 0, eids=wanted))

    def whom_to_ask(self, eids: Eids) -> Iterator[tuple[tuple[int, ...], Eids]]:
        """Which processes to ask for which events: their sources, random processes, or none."""
        if self.settings.recovery == "any" and eids:
            yield self.view.targets(self.settings.recovery_targets), eids
        elif self.settings.recovery == "source":
            owners = {eid: self.owners[eid.ticket] for eid in eids}
            for owner in dict.fromkeys(owners.values()):
                if owner is not None and owner != self.me:
                    yield (owner,), tuple(eid for eid in eids if owners[eid] == owner)

    def answer(self, request: Recover, sender: int) -> Effects:
        """On RECOVER: respond with what the recovery buffer has."""
        events = [self.B[eid] for eid in request.eids if eid in self.B]
        yield Count("recovery_answers", len(events))
        for event in events:
            yield Send((sender,), event)

    def recovered(self, event: Event) -> Effects:
        """On ACKRECOVER: as if received, but with the shorter timer of a recovered event."""
        wanted = event.eid in self.asked
        if wanted and not self.clock.obsolete(event):
            yield Count("recovered")
        yield from self.take(event, "recover" if wanted else "terminate")

    def late(self, event: Event) -> Effects:
        """On timeout(e, time_to_recover): deliver what has arrived of e's past, then e."""
        past = [h.event for h in self.held.values() if (h.event.t <= event.t).all()]
        for e in sorted(past, key=lambda e: int(e.t.sum())):  # extends the causal order; e is last
            if e.eid in self.held and not self.clock.obsolete(e):
                yield Count("skipped", self.clock.lacks(e))
                yield from self.deliver(e)
        yield from self.drain()

    def drain(self) -> Effects:
        """Drain the hold-back queue: deliver what is deliverable, drop what is obsolete."""
        while ready := [h.event for h in self.held.values() if self.may_go(h)]:
            for event in ready:
                eid = event.eid
                if eid not in self.held:
                    continue  # gone, because the application answered another event
                if self.clock.obsolete(event):
                    yield from self.release(eid)
                    yield Discard(event, "obsolete")
                elif (waits_for := self.clock.first_missing(event)) is None:
                    yield from self.deliver(event)
                else:
                    self.held[eid] = self.held[eid]._replace(waits_for=waits_for)

    def may_go(self, held: HeldEvent) -> bool:
        """Whether an event, or the event that it waits for, is delivered or obsolete."""
        return self.clock.has_passed(held.waits_for) or self.clock.obsolete(held.event)

    def deliver(self, event: Event) -> Effects:
        """On deliver(e)."""
        self.clock.advance(event)
        self.owners[event.ticket] = event.source
        if event.eid in self.held:
            yield from self.release(event.eid)
        yield Deliver(event)

    def delay(self, event: Event, timer: Delay) -> Effects:
        """Set the timer of an event that is held back."""
        eid = event.eid
        self.held[eid] = self.held[eid]._replace(timer=timer)
        rounds = getattr(self.settings, f"time_to_{timer}")
        yield SetTimer((eid, timer), round(rounds * self.round))

    def release(self, eid: EventId) -> Effects:
        """Remove an event from the hold-back queue."""
        held = self.held.pop(eid)
        self.asked.difference_update(held.asked)
        yield CancelTimer((eid, held.timer))

    def keep(self, eid: EventId, event: Event) -> bool:
        """Put an event into the recovery buffer; False if it is there already."""
        self.asked.discard(eid)
        if eid in self.B:
            return False
        self.B[eid] = event
        if len(self.B) > self.recovery_size:
            self.B.popitem(last=False)
        return True
