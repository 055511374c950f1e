"""The two-layer protocol by hand: Algorithm 5 step by step, and tickets that change hands."""

from typing import Any

import numpy as np
import pytest

from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Hold,
    MessageId,
    Place,
    Send,
    SetTimer,
)
from testbed.protocols.base import SEQUENCE_BITS
from testbed.protocols.cluster import Cluster
from testbed.protocols.cluster.cluster import ROUND
from testbed.protocols.cluster.events import NUMBERS, Event, EventGossip, EventId, Recover
from testbed.protocols.cluster.gossip import Ball
from testbed.protocols.cluster.tickets import LeaseSettings
from tests.world import MS

EPOCH = 1 << SEQUENCE_BITS
ROUND_NS = 100_000_000


class Hand:
    """One process, fed by hand; ``p0`` and ``p1`` are the coordinators beside it."""

    def __init__(self, me: int = 2, processes: int = 6, protocol: Any = Cluster, **chosen: Any):
        self.protocol = protocol(Place(me, processes), protocol.Settings(**chosen))
        self.delivered: list[tuple[int, int]] = []
        self.effects: list[Any] = []

    def do(self, effects: Any) -> list[Any]:
        self.effects = list(effects)
        self.delivered += [e.message.eid for e in self.seen(Deliver)]
        return self.effects

    def hear(self, *events: Event) -> list[Any]:
        balls = tuple(Ball(event.id, event, 1) for event in events)
        return self.do(self.protocol.receive(EventGossip(0, 0, balls=balls), 0, 0))

    def recovered(self, event: Event) -> list[Any]:
        return self.do(self.protocol.receive(event, 0, 0))

    def timeout(self, event: Event, timer: str) -> list[Any]:
        return self.do(self.protocol.timeout((event.eid, timer), 0))

    def seen(self, kind: type) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def counted(self, name: str) -> int:
        return sum(e.amount for e in self.seen(Count) if e.name == name)

    @property
    def T(self) -> list[int]:  # noqa: N802
        return list(self.protocol.clock.T)


@pytest.fixture
def hand() -> Hand:
    return Hand(coordinators=3)


def event(ticket: int, *t: int, source: int | None = None) -> Event:
    """The event of a ticket with this timestamp."""
    return Event(ticket if source is None else source, t[ticket], ticket=ticket, t=np.array(t))


# Algorithm 5 by hand: p0 sends a1, a2; p1 has seen a1 when it sends b1, and a2 when it sends b2.
A1, A2, B1, B2 = event(0, 1, 0, 0), event(0, 2, 0, 0), event(1, 1, 1, 0), event(1, 2, 2, 0)


def test_what_lacks_nothing_is_delivered_at_once(hand: Hand) -> None:
    for e in (A1, B1, A2, B2):
        hand.hear(e)
        assert not hand.seen(Hold)
    assert hand.delivered == [A1.eid, B1.eid, A2.eid, B2.eid]
    assert hand.T == [2, 2, 0]


def test_what_lacks_something_waits_for_it(hand: Hand) -> None:
    assert hand.hear(B2)[-2:] == [Hold(B2, None), SetTimer((B2.eid, "terminate"), 5 * ROUND_NS)]
    hand.hear(B1)
    hand.hear(A2)
    assert not hand.delivered
    hand.hear(A1)
    assert hand.delivered[0] == A1.eid
    assert set(hand.delivered[1:3]) == {A2.eid, B1.eid}
    assert hand.delivered[3] == B2.eid
    assert len(hand.seen(CancelTimer)) == 3
    assert not hand.protocol.held


def test_events_of_one_ticket_wait_for_one_another(hand: Hand) -> None:
    hand.hear(A2)
    assert hand.protocol.held[A2.eid].waits_for == A1.eid
    hand.hear(A1)
    assert hand.delivered == [A1.eid, A2.eid]


def test_the_source_is_asked_for_what_is_missing_and_answers_with_it() -> None:
    hand, p0 = Hand(coordinators=3, recovery="source"), Hand(me=0, coordinators=3)
    p0.do(p0.protocol.multicast(b"", None, 0))
    hand.hear(B2)
    hand.timeout(B2, "terminate")
    asked = {send.peers: send.message.eids for send in hand.seen(Send)}
    assert asked == {(0,): (A1.eid, A2.eid), (1,): (B1.eid,)}
    assert hand.counted("recovery_attempts") == 3
    assert hand.effects[-1] == SetTimer((B2.eid, "recover"), 5 * ROUND_NS)
    p0.do(p0.protocol.receive(Recover(2, 0, eids=(A1.eid, A2.eid)), 2, 0))
    (answer,) = p0.seen(Send)
    assert answer.peers == (2,)
    hand.recovered(answer.message)
    assert hand.delivered == [A1.eid]
    assert hand.counted("recovered") == 1


def test_some_processes_at_random_are_asked_and_recovered_events_wait_their_turn() -> None:
    hand = Hand(coordinators=3, recovery_targets=2)
    hand.hear(B2)
    hand.timeout(B2, "terminate")
    (send,) = hand.seen(Send)
    assert len(set(send.peers) - {2}) == 2
    assert send.message.eids == (A1.eid, A2.eid, B1.eid)
    assert hand.recovered(A2)[-1] == SetTimer((A2.eid, "recover"), 5 * ROUND_NS)
    hand.recovered(B1)
    assert not hand.delivered
    hand.recovered(A1)
    assert set(hand.delivered) == {A1.eid, A2.eid, B1.eid, B2.eid}
    assert not hand.protocol.held
    assert not hand.protocol.asked


def test_what_is_here_or_under_recovery_is_not_asked_for(hand: Hand) -> None:
    hand.hear(A2)
    hand.timeout(A2, "terminate")
    hand.hear(B2)
    hand.timeout(B2, "terminate")
    (send,) = hand.seen(Send)
    assert send.message.eids == (B1.eid,)


def test_without_recovery_nobody_is_asked_and_the_event_waits_as_long() -> None:
    hand = Hand(coordinators=3, recovery="none")
    hand.hear(A2)
    assert hand.timeout(A2, "terminate") == [SetTimer((A2.eid, "recover"), 5 * ROUND_NS)]


def test_when_time_is_over_the_past_is_delivered_in_order_and_the_rest_is_skipped() -> None:
    hand = Hand(coordinators=3)
    for e in (B2, A2, B1):
        hand.hear(e)
    hand.timeout(B2, "terminate")
    hand.timeout(B2, "recover")
    assert hand.delivered[-1] == B2.eid
    assert set(hand.delivered[:2]) == {A2.eid, B1.eid}
    assert hand.counted("skipped") == 1
    assert len(hand.seen(CancelTimer)) == 3
    hand.hear(A1)
    assert hand.delivered[3:] == []
    assert hand.effects[-1].reason == "obsolete"


def test_what_does_not_precede_the_event_goes_on_waiting(hand: Hand) -> None:
    later = event(0, 4, 0, 0)
    hand.hear(A2, later)
    hand.timeout(A2, "recover")
    assert hand.delivered == [A2.eid]
    assert list(hand.protocol.held) == [later.eid]
    hand.hear(event(0, 3, 0, 0))
    assert hand.delivered[1:] == [(0, 3), (0, 4)]


def test_a_timer_of_what_is_delivered_already_means_nothing(hand: Hand) -> None:
    hand.hear(A2)
    hand.hear(A1)
    assert hand.timeout(A2, "recover") == []


def test_an_event_that_comes_again_is_counted_and_no_more() -> None:
    hand = Hand(coordinators=3, history=1)
    hand.hear(A1)
    hand.hear(event(0, 3, 0, 0))
    for _ in range(2):
        for e in (A1, event(0, 3, 0, 0)):
            hand.protocol.prcast.buffer.clear()
            hand.hear(e)
            assert hand.counted("repeated") == 1
    assert hand.delivered == [A1.eid]
    assert len(hand.protocol.held) == 1


def test_an_event_that_waits_is_known_again_even_when_the_buffers_have_forgotten_it() -> None:
    hand = Hand(coordinators=3, history=1, recovery_buffer=1)
    hand.hear(A2)
    hand.hear(event(1, 0, 1, 0))
    hand.protocol.prcast.buffer.clear()
    hand.hear(A2)
    assert hand.counted("repeated") == 1
    assert not hand.seen(Hold)


def test_an_own_event_is_stamped_and_delivered_as_it_is_sent(hand: Hand) -> None:
    hand.hear(A1)
    hand.do(hand.protocol.multicast(b"x", None, 5))
    (own,) = (effect.message for effect in hand.seen(Deliver))
    assert (own.id, own.payload, own.sent_at, own.t.tolist()) == ((2, 1), b"x", 5, [1, 0, 1])
    hand.do(hand.protocol.timeout(ROUND, 0))
    (send,) = hand.seen(Send)
    assert [ball.event for ball in send.message.balls if ball.event is own] == [own]
    assert own.eid in hand.protocol.B


def test_the_stamp_does_not_change_when_the_clock_does(hand: Hand) -> None:
    hand.do(hand.protocol.multicast(b"", None, 0))
    own = hand.protocol.B[EventId(2, 1)]
    hand.hear(A1)
    assert own.t.tolist() == [0, 0, 1]


def test_who_has_no_ticket_receives_and_waits_with_sending() -> None:
    hand = Hand(me=4, coordinators=3)
    assert hand.protocol.busy()
    hand.hear(A1)
    assert hand.delivered == [A1.eid]
    with pytest.raises(ValueError, match="has no ticket"):
        hand.do(hand.protocol.multicast(b"", None, 0))
    hand.protocol.own(2, 0, 7)
    assert not hand.protocol.busy()
    hand.do(hand.protocol.multicast(b"", None, 0))
    assert hand.delivered == [A1.eid, (2, 8)]
    hand.protocol.disown()
    assert hand.protocol.busy()


def test_the_recovery_buffer_forgets_what_came_first() -> None:
    hand = Hand(coordinators=3, recovery_buffer=2)
    hand.hear(A1, A2, B1)
    hand.do(hand.protocol.receive(Recover(1, 0, eids=(A1.eid, A2.eid, B1.eid)), 1, 0))
    assert [send.message.eid for send in hand.seen(Send)] == [A2.eid, B1.eid]
    assert hand.counted("recovery_answers") == 2


def test_without_the_causality_layer_nothing_waits_and_what_comes_too_late_is_lost() -> None:
    hand = Hand(coordinators=3, causal=False)
    for e in (B1, A1):
        hand.hear(e)
    assert hand.delivered == [B1.eid]
    assert hand.effects[-1].reason == "obsolete"


# Tickets that change hands


def test_who_leaves_keeps_its_fixed_ticket_and_multicasts_no_more_until_it_joins() -> None:
    hand = Hand(coordinators=3)
    hand.protocol.own(0)
    hand.do(hand.protocol.leave(0))
    assert hand.protocol.busy()
    hand.hear(A1)
    assert hand.delivered == [A1.eid]
    hand.do(hand.protocol.join(0))
    assert not hand.protocol.busy()


def test_no_event_waits_for_one_of_an_older_epoch(hand: Hand) -> None:
    fresh = event(0, EPOCH + 1, 0, 0, source=5)
    hand.hear(A1)
    hand.hear(fresh)
    assert hand.delivered == [A1.eid, fresh.eid]
    hand.hear(A2)
    assert hand.effects[-1].reason == "obsolete"


def test_an_event_waits_for_those_of_its_own_epoch(hand: Hand) -> None:
    first, third = event(0, EPOCH + 1, 0, 0), event(0, EPOCH + 3, 0, 0)
    answer = event(1, EPOCH + 2, 1, 0)
    hand.hear(answer, third)
    assert sorted(hand.protocol.clock.missing(answer)) == [(0, EPOCH + 1), (0, EPOCH + 2)]
    hand.hear(first)
    hand.hear(event(0, EPOCH + 2, 0, 0))
    assert set(hand.delivered) == {first.eid, (0, EPOCH + 2), third.eid, answer.eid}


def test_what_waits_in_an_older_epoch_is_dropped(hand: Hand) -> None:
    hand.hear(A2)
    hand.hear(event(0, EPOCH + 1, 0, 0))
    assert hand.delivered == [(0, EPOCH + 1)]
    assert not hand.protocol.held


def test_a_past_of_two_epochs_is_delivered_as_far_as_it_goes(hand: Hand) -> None:
    new, old = event(0, EPOCH + 1, 0, 1), event(0, 5, 2 * EPOCH + 1, 0)
    both = event(1, EPOCH + 1, 2 * EPOCH + 2, 1)
    hand.hear(new, old, both)
    hand.timeout(both, "recover")
    assert hand.delivered == [new.eid, both.eid]
    assert [(d.message, d.reason) for d in hand.seen(Discard)] == [(old, "obsolete")]


def test_a_new_owner_goes_on_where_the_last_one_stopped() -> None:
    hand = Hand(me=4, coordinators=3)
    hand.hear(A1)
    hand.hear(event(0, 3, 0, 0))
    hand.protocol.own(0, 0, 3)
    hand.do(hand.protocol.multicast(b"", None, 0))
    assert hand.delivered == [A1.eid, (0, 4)]
    assert hand.counted("skipped") == 2
    assert not hand.protocol.held


def test_a_process_that_starts_again_has_a_new_epoch_and_begins_with_what_comes() -> None:
    place = Place(1, 6, incarnation=2)
    hand = Hand()
    hand.protocol = Cluster(place, Cluster.Settings(coordinators=3))
    hand.hear(event(0, 7, 3, 0))
    hand.hear(event(0, 6, 3, 0))
    assert hand.delivered == [(0, 7)]
    hand.do(hand.protocol.multicast(b"", None, 0))
    assert hand.delivered[1:] == [(1, 2 * EPOCH + 1)]
    assert hand.seen(Deliver)[0].message.id == MessageId(1, place.base + 1)


@pytest.mark.parametrize(
    "chosen",
    [
        {"coordinators": -1},
        {"coordinators": 3, "tickets": 2},
        {"recovery_targets": 0},
        {"time_to_recover": -1},
        {"events_per_round": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"negative|at least|above zero"):
        Cluster.Settings(**chosen)


def test_there_are_no_more_coordinators_than_processes_and_tickets() -> None:
    with pytest.raises(ValueError, match="7 coordinators among 6 processes"):
        Hand(coordinators=7)
    with pytest.raises(ValueError, match="6 coordinators among 6 processes with 4 tickets"):
        Hand(tickets=4)


@pytest.mark.parametrize("epoch", [0, 4095, 4096, 1 << 30])
def test_an_epoch_of_any_size_survives_the_wire(epoch: int) -> None:
    t = np.array([0, epoch << SEQUENCE_BITS | 7])
    event = Event(1, 1, ticket=1, t=t)
    assert event.control_size == len(event.encode_control()) == (12 if epoch < 4096 else 20)
    again = Event(1, 1, **Event.decode_control(event.encode_control(), 2))
    assert again.eid == event.eid == (1, epoch << SEQUENCE_BITS | 7)
    recover = Recover(1, 0, eids=(EventId(0, 1), event.eid))
    data = recover.encode_control()
    assert (len(data), Recover.decode_control(data, 2)) == (
        recover.control_size,
        {"eids": recover.eids},
    )


def test_who_has_used_up_the_numbers_of_an_epoch_multicasts_nothing() -> None:
    p0 = Cluster(Place(0, 2), Cluster.Settings(coordinators=2))
    p0.own(0, 3, NUMBERS)
    (discard,) = p0.multicast(b"", None, 0)
    assert isinstance(discard, Discard)
    assert discard.reason == "no number left"


def test_the_papers_parameters_can_be_chosen() -> None:
    chosen = Cluster.Settings(k=3, lease_round_ms=50.0, lease_delay_ms=2.0, exclude=0.5).leases
    assert chosen == LeaseSettings(k=3, round_ns=50 * MS, delay_ns=2 * MS, exclude=0.5)
    for wrong in ({"k": 0}, {"exclude": 0.0}, {"exclude": 1.5}, {"lease_delay_ms": -1.0}):
        with pytest.raises(ValueError, match=r"not negative|at least"):
            Cluster.Settings(**wrong)
