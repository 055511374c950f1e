"""The reliable channel by hand: a loss step by step, the window, and what passes through it."""

import copy
from collections.abc import Callable, Hashable
from typing import Any

import pytest

from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Effects,
    Message,
    Multicast,
    Overlay,
    Place,
    Protocol,
    Send,
    SetTimer,
    Timestamp,
)
from testbed.protocols.channel import Reliable
from testbed.protocols.channel.streams import RoundTrip
from tests.protocols.channel.mailboxes import (
    TO_ALL,
    A,
    B,
    C,
    Mailbox,
    got,
    process,
    say,
    segments,
    timers,
)
from tests.world import MS

# step by step


def test_a_lost_segment_is_sent_again_when_three_have_overtaken_it() -> None:
    a, b = process(A), process(B)
    first, lost, third, fourth, fifth = (segments(say(a, B))[0] for _ in range(5))
    assert [s.channel.number for s in (first, lost, third, fourth, fifth)] == [1, 2, 3, 4, 5]

    effects = list(b.receive(first, A, 5 * MS))
    assert got(b) == [1]
    assert timers(effects) == [SetTimer(("ack", A), 10 * MS)]  # perhaps it can ride on data
    acks = []
    for segment in (third, fourth, fifth):  # a gap is reported at once
        acks += segments(list(b.receive(segment, A, 5 * MS)))
    assert got(b) == [1]
    assert [(ack.channel.ack, ack.channel.beyond) for ack in acks] == [(1, 1), (1, 3), (1, 7)]

    assert not segments(list(a.receive(acks[0], B, 10 * MS)))
    assert not segments(list(a.receive(acks[1], B, 10 * MS)))
    effects = list(a.receive(acks[2], B, 10 * MS))
    assert Count("channel_retransmissions") in effects
    (again,) = segments(effects)
    assert (again.channel.number, again.id) == (2, lost.id)

    (ack,) = segments(list(b.receive(again, A, 15 * MS)))
    assert got(b) == [1, 2, 3, 4, 5]
    assert (ack.channel.ack, ack.channel.beyond) == (5, 0)
    assert list(a.receive(ack, B, 20 * MS)) == [CancelTimer(("retransmit", B))]
    assert not a.connections[B].unacknowledged()


def test_acknowledgements_ride_on_data_or_go_alone_after_a_while_or_with_every_second() -> None:
    a, b = process(A), process(B)
    one, two, three, four = (segments(say(a, B))[0] for _ in range(4))
    list(b.receive(one, A, 0))
    data = say(b, A, 1)
    assert segments(data)[0].channel.ack == 1
    assert CancelTimer(("ack", A)) in data
    assert not segments(list(b.receive(two, A, 2)))
    (alone,) = segments(list(b.timeout(("ack", A), 10 * MS)))
    assert (alone.channel.ack, alone.channel.number, alone.message) == (2, None, None)
    assert not segments(list(b.receive(three, A, 11 * MS)))
    effects = list(b.receive(four, A, 12 * MS))
    assert segments(effects)[0].channel.ack == 4
    assert Count("channel_acks") in effects
    assert timers(effects) == [CancelTimer(("ack", A))]


def test_the_timeout_doubles_and_two_segments_probe_for_the_rest() -> None:
    a = process(A, initial_rto_ms=100, max_rto_ms=300)
    sent = [effect for _ in range(4) for effect in say(a, B)]
    assert timers(sent) == [SetTimer(("retransmit", B), 100 * MS)]
    delays = []
    for now in (100, 300, 600):
        effects = list(a.timeout(("retransmit", B), now * MS))
        assert [s.channel.number for s in segments(effects)] == [1, 4]
        delays += [e.delay for e in effects if isinstance(e, SetTimer)]
    assert delays == [200 * MS, 300 * MS, 300 * MS]


def test_the_answer_to_a_probe_tells_what_else_was_lost() -> None:
    a, b = process(A), process(B)
    for _ in range(6):
        say(a, B)
    probe = segments(list(a.timeout(("retransmit", B), 500 * MS)))[0]
    list(b.receive(probe, A, 501 * MS))
    (ack,) = segments(list(b.timeout(("ack", A), 511 * MS)))
    again = segments(list(a.receive(ack, B, 512 * MS)))
    assert [segment.channel.number for segment in again] == [2, 3, 4, 5]


def test_round_trips_are_estimated_as_jacobson_has_it() -> None:
    trip = RoundTrip(timeout=500)
    trip.measure(80, ack_delay=10, least=20, most=1000)
    assert (trip.mean, trip.deviation, trip.timeout) == (80, 40, 80 + 160 + 10)
    trip.measure(160, ack_delay=10, least=20, most=1000)
    assert (trip.mean, trip.deviation, trip.timeout) == (90, 50, 90 + 200 + 10)
    trip.back_off(most=450)
    assert trip.timeout == 450
    for _ in range(200):
        trip.measure(8, ack_delay=0, least=20, most=1000)
    assert trip.timeout == 20


def test_what_was_sent_again_measures_nothing() -> None:
    a, b = process(A), process(B)
    say(a, B)
    (again,) = segments(list(a.timeout(("retransmit", B), 500 * MS)))
    list(b.receive(again, A, 505 * MS))
    (ack,) = segments(list(b.timeout(("ack", A), 515 * MS)))
    list(a.receive(ack, B, 520 * MS))
    assert a.connections[B].trip == RoundTrip(timeout=1000 * MS)


# the window


def test_beyond_the_window_messages_wait_and_the_application_is_told() -> None:
    a, b = process(A, window=4), process(B, window=4)
    sent = [segments(say(a, B)) for _ in range(7)]
    assert [len(s) for s in sent] == [1, 1, 1, 1, 0, 0, 0]
    assert not a.busy()
    say(a, B)
    assert a.busy()
    list(b.receive(sent[0][0], A, MS))
    (ack,) = segments(list(b.receive(sent[1][0], A, MS)))
    more = segments(list(a.receive(ack, B, 2 * MS)))
    assert [segment.channel.number for segment in more] == [5, 6]
    assert not a.busy()


def test_a_receiver_keeps_no_more_than_a_window() -> None:
    a, b = process(A, window=9), process(B, window=4)
    sent = [segments(say(a, B))[0] for _ in range(5)]
    list(b.receive(sent[3], A, 0))
    effects = list(b.receive(sent[4], A, 0))
    assert list(b.connections[A].incoming[0].early) == [4]
    assert segments(effects)[0].channel.ack == 0


def test_every_set_of_receivers_is_served_when_streams_run_out() -> None:
    a = process(A, processes=200)
    for peer in range(1, 200):
        a._streams((peer,))
    assert len(a.groups) == 127
    assert a._streams((150, 151)) == [a.connections[150].own, a.connections[151].own]


def test_who_is_heard_of_is_not_given_up() -> None:
    a, b = process(A, retries=1), process(B)
    say(a, B)
    for _ in range(5):
        list(a.timeout(("retransmit", B), 0))
        assert not a.connections[B].given_up
        list(a.receive(segments(say(b, A))[0], B, 0))
    list(a.timeout(("retransmit", B), 0))
    list(a.timeout(("retransmit", B), 0))
    assert a.connections[B].given_up


# between two layers


class Alarmed(Mailbox):
    """Sets a timer of the same name as one of the channel's."""

    def multicast(self, payload: bytes, destinations: object, now: int) -> Effects:
        yield SetTimer(("ack", 1), 5)
        yield CancelTimer("other")
        yield from super().multicast(payload, None, now)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        assert timer == ("ack", 1)
        yield Count("rang")
        yield Send((1,), Message(self.me, 99, b"x"))


def test_timers_of_the_two_layers_do_not_collide() -> None:
    channel = Reliable(Alarmed(Place(A, 2)))
    effects = say(channel, B)
    assert effects[:2] == [SetTimer(("inner", ("ack", 1)), 5), CancelTimer(("inner", "other"))]
    effects = list(channel.timeout(("inner", ("ack", 1)), 5))
    assert effects[0] == Count("rang")
    assert segments(effects)[0].channel.number == 2


def test_all_other_effects_pass() -> None:
    effects = say(process(A), B)
    assert [type(effect) for effect in effects] == [Send, SetTimer, Deliver]
    assert isinstance(effects[-1], Deliver)
    assert type(effects[-1].message) is Message


@pytest.mark.parametrize(
    ("inner", "peers", "multicasts"),
    [
        (Overlay, (1,), False),
        (Timestamp, (1, 2, 3), True),
        (lambda place: Timestamp(place, Timestamp.Settings("unicast")), (1, 2, 3), False),
    ],
)
def test_peers_are_all_who_may_be_sent_an_acknowledgement(
    inner: Callable[[Place], Protocol], peers: tuple[int, ...], multicasts: bool
) -> None:
    channel = Reliable(inner(Place(0, 4, neighbours=(1,))))
    assert (channel.peers(), channel.multicasts()) == (peers, multicasts)


def test_a_copy_of_the_state_behaves_like_the_original_and_leaves_it_alone() -> None:
    a, b = process(A, 3), process(B, 3)
    codec = a.codec(1, 3)
    arrived = [segments(say(b, to, 5))[0] for to in (A, TO_ALL, A)]
    for to in (B, TO_ALL, B):
        say(a, to, 1)
    list(a.receive(arrived[2], B, 10 * MS))
    twin = copy.deepcopy(a)

    def go_on(channel: Reliable) -> list[object]:
        effects = [*say(channel, B, 11 * MS), *channel.receive(arrived[0], B, 12 * MS)]
        effects += channel.receive(arrived[1], B, 13 * MS)
        effects += channel.timeout(("retransmit", B), 500 * MS)
        return [
            (type(e), codec.encode(e.message)) if isinstance(e, Send | Multicast) else repr(e)
            for e in effects
        ]

    assert go_on(twin) == go_on(a)
    assert a.connections[C].trip == twin.connections[C].trip


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"retries": -1},
        {"ack_delay_ms": -1},
        {"min_rto_ms": 600},
        {"max_rto_ms": 100},
        {"min_rto_ms": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|rise in this order"):
        Reliable.Settings(**wrong)


def test_more_restarts_than_the_header_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="the last is 4095"):
        Reliable(Mailbox(Place(0, 2, incarnation=4096)))
