"""The reliable channel: a loss step by step, then any network that chance makes, and restarts."""

import copy
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Effect,
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
from testbed.protocols.channel.segments import Segment
from testbed.protocols.channel.streams import RoundTrip
from testbed.topologies.overlays import Hypercube
from testbed.workloads import Bursts, Reply, Workload
from tests.protocols.lossy import MS, TO_ALL, Lossy, Mailbox, Weather

A, B, C = range(3)
PATIENT = Reliable.Settings(window=8, retries=100)


def process(me: int, processes: int = 2, **settings: float) -> Reliable:
    return Reliable(Mailbox(Place(me, processes)), Reliable.Settings(**settings))  # type: ignore[arg-type]


def got(channel: Reliable) -> list[int]:
    """The sequence numbers that the protocol inside was given."""
    assert isinstance(channel.inner, Mailbox)
    return [seq for _, seq, *_ in channel.inner.got]


def segments(effects: list[Effect]) -> list[Segment]:
    sent = [e.message for e in effects if isinstance(e, Send | Multicast)]
    assert all(isinstance(segment, Segment) for segment in sent)
    return sent  # type: ignore[return-value]


def timers(effects: list[Effect]) -> list[Effect]:
    return [e for e in effects if isinstance(e, SetTimer | CancelTimer)]


def say(channel: Reliable, to: int, now: int = 0) -> list[Effect]:
    return list(channel.multicast(bytes([to]), None, now))


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


def test_a_network_that_reorders_is_not_taken_for_one_that_loses() -> None:
    net = Lossy(Mailbox, 2, Weather(delays_ms=(4, 6)))
    for _ in range(1000):
        net.say(A, bytes([B]))
    net.run()
    assert got(net.channel(B)) == list(range(1, 1001))
    assert net.channel(A).connections[B].outgoing[0].reordering > 32
    assert net.meter.counted["channel_retransmissions"] < 100


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


def test_relayed_traffic_waits_and_is_never_lost() -> None:
    """A hub that relays more than its window takes."""
    star = {0: (1, 2, 3), 1: (0,), 2: (0,), 3: (0,)}
    net = Lossy(Overlay, 4, Weather(), settings=Reliable.Settings(window=1), neighbours=star.get)  # type: ignore[arg-type]
    for _ in range(30):
        for node in (1, 2, 3):
            net.say(node)
    assert net.channel(1).busy()
    net.run()
    assert net.check().ok
    assert net.quiet()
    assert net.meter.deliveries == 4 * 90


def test_without_loss_a_window_is_sent_each_round_trip() -> None:
    net = Lossy(Mailbox, 2, Weather(delays_ms=(5, 5)), settings=Reliable.Settings(window=10))
    for _ in range(100):
        net.say(A, bytes([B]))
    net.run()
    assert net.log.events[B][-1].t == 9 * 10 * MS + 5 * MS  # the tenth window arrives
    assert not net.meter.counted["channel_retransmissions"]


# networks of chance

weathers = st.builds(
    lambda loss, duplication, least, most: Weather(loss, duplication, (least, least + most)),
    loss=st.floats(0, 0.4),
    duplication=st.floats(0, 0.3),
    least=st.floats(0, 20),
    most=st.floats(0, 50),
)


def talk(net: Lossy, rng: random.Random, messages: int) -> None:
    """Messages to one process or to all from any, with random time between."""
    for _ in range(messages):
        sender = rng.randrange(net.processes)
        to = rng.choice([*net.channel(sender).place.others, TO_ALL])
        net.say(sender, bytes([to, net.channel(sender).incarnation]))
        if rng.random() < 0.5:
            net.run(net.now / MS + rng.uniform(0, 30))


@given(weather=weathers, n=st.integers(2, 4), messages=st.integers(1, 60), seed=st.integers())
def test_every_stream_is_handed_over_once_and_in_order(
    weather: Weather, n: int, messages: int, seed: int
) -> None:
    net = Lossy(Mailbox, n, weather, seed, PATIENT)
    talk(net, random.Random(seed), messages)
    net.run()
    streams: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for node in range(n):
        for sender, seq, to, _ in net.mailbox(node).got:
            streams[sender, node, to].append(seq)
    assert all(seqs == sorted(set(seqs)) for seqs in streams.values())
    for sender in range(n):
        own = [e for e in net.log.events[sender] if e.event == "send"]
        shared = [seqs for (s, _, to), seqs in streams.items() if s == sender and to == TO_ALL]
        alone = [seqs for (s, _, to), seqs in streams.items() if s == sender and to != TO_ALL]
        assert all(seqs == shared[0] for seqs in shared)
        assert len(shared) in (0, n - 1)
        assert sum(map(len, alone)) + len(shared[0] if shared else []) == len(own)
    assert net.quiet()
    assert not net.meter.counted["channel_given_up"]


@pytest.mark.parametrize("workload", [Bursts(), Reply(answers=1, depth=2)], ids=["silent", "talk"])
@pytest.mark.parametrize("protocol", [Overlay, Timestamp])
@given(weather=weathers, n=st.integers(2, 6), seed=st.integers())
def test_protocols_keep_their_promise_over_any_network(
    protocol: type[Protocol], workload: Workload, weather: Weather, n: int, seed: int
) -> None:
    graph = Hypercube().generate(n, random.Random(0))
    rng = random.Random(seed)
    net = Lossy(
        protocol, n, weather, seed, PATIENT, lambda node: tuple(sorted(graph[node])), workload
    )
    for _ in range(10):
        net.say(rng.randrange(n), bytes(4))
        net.run(net.now / MS + rng.uniform(0, 10))
    net.run()
    assert net.check().ok
    assert net.quiet()
    assert not any(node.held for node in net.nodes)


def test_without_the_channel_overlay_breaks_its_promise_there() -> None:
    class Careless(Reliable):
        def receive(self, message: Segment, sender: int, now: int) -> Effects:
            if message.message is not None:
                yield from self._translate(self.inner.receive(message.message, sender, now), now)

    graph = Hypercube().generate(5, random.Random(0))
    net = Lossy(Overlay, 5, Weather(0.1), 1, None, lambda node: tuple(sorted(graph[node])))
    for node in net.nodes:
        node.protocol.__class__ = Careless
    for _ in range(20):
        net.say(A, bytes(4))
    net.run()
    assert not net.check().ok


# one copy for many


def test_a_multicast_is_one_copy_and_only_who_missed_it_gets_it_again() -> None:
    net = Lossy(Mailbox, 4, Weather())
    missed = iter([True])
    net.drops = lambda peer, segment: (
        peer == C and segment.channel.number == 5 and next(missed, False)
    )
    for _ in range(10):
        net.say(A)
    net.run()
    assert net.copies == 10
    assert net.meter.counted["channel_retransmissions"] == 1
    assert all(got(net.channel(node)) == list(range(1, 11)) for node in (1, 2, 3))
    assert net.quiet()


def test_copies_for_other_receivers_have_streams_of_their_own() -> None:
    class Halves(Mailbox):
        def multicast(self, payload: bytes, destinations: object, now: int) -> Effects:
            self.sent += 1
            message = Message(self.me, self.sent, payload, sent_at=now)
            yield Multicast(((1, 2), (2, 3))[payload[0]], message)

    net = Lossy(Halves, 4, Weather(loss=0.3, delays_ms=(1, 20)), seed=5)
    for turn in range(40):
        net.say(A, bytes([turn % 2]))
    net.run()
    assert got(net.channel(1)) == list(range(1, 41, 2))
    assert got(net.channel(3)) == list(range(2, 41, 2))
    assert sorted(got(net.channel(2))) == list(range(1, 41))
    assert net.quiet()


def test_every_set_of_receivers_is_served_when_streams_run_out() -> None:
    a = process(A, processes=200)
    for peer in range(1, 200):
        a._streams((peer,))
    assert len(a.groups) == 127
    assert a._streams((150, 151)) == [a.connections[150].own, a.connections[151].own]


def test_the_slowest_receiver_holds_the_window_until_it_is_given_up() -> None:
    settings = Reliable.Settings(window=4, retries=3)
    net = Lossy(Mailbox, 3, Weather(), settings=settings)
    net.crash(C)
    for _ in range(12):
        net.say(A)
    net.run(400)
    assert got(net.channel(B)) == [1, 2, 3, 4]
    net.run()
    assert got(net.channel(B)) == list(range(1, 13))
    assert net.meter.counted["channel_given_up"] == 12
    assert net.quiet()


def test_what_waits_is_dropped_when_all_receivers_are_given_up() -> None:
    net = Lossy(Mailbox, 2, Weather(), settings=Reliable.Settings(window=2, retries=1))
    net.crash(B)
    for _ in range(6):
        net.say(A)
    net.run()
    assert net.copies == 2
    assert net.meter.counted["channel_given_up"] == 6
    assert not any(stream.waiting for stream in net.channel(A).groups.values())


# the dead


def test_a_peer_that_stays_silent_is_given_up_and_the_sender_is_quiet() -> None:
    net = Lossy(Mailbox, 2, Weather(), settings=Reliable.Settings(window=4, retries=5))
    net.crash(B)
    for _ in range(10):
        net.say(A, bytes([B]))
    net.run()
    assert net.datagrams == 4 + 5 * 2
    assert net.meter.counted["channel_given_up"] == 10
    assert net.quiet()
    assert net.now == (500 + 1000 + 2000 * 4) * MS
    net.say(A, bytes([B]))
    net.run()
    assert net.datagrams == 14
    assert net.meter.counted["channel_given_up"] == 11


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


# the restarted


def test_a_restarted_process_is_told_nothing_that_was_meant_for_the_dead() -> None:
    net = Lossy(Mailbox, 2, Weather(delays_ms=(5, 5)))
    for _ in range(3):
        net.say(A, bytes([B]))
    net.run()
    net.say(A, bytes([B]))  # is under way when the process dies
    net.restart(B)
    net.run(net.now / MS + 5)
    assert net.meter.counted["channel_given_up"] == 1
    for _ in range(3):
        net.say(A, bytes([B]))
        net.say(A)
    net.say(B, bytes([A]))
    net.run()
    assert [seq for _, seq, to in net.mailbox(B).got if to == B] == [5, 7, 9]
    assert [seq for _, seq, to in net.mailbox(B).got if to == TO_ALL] == [6, 8, 10]
    assert got(net.channel(A)) == [1]
    assert net.quiet()


def test_a_process_that_restarts_in_a_multicast_stream_enters_it_in_the_middle() -> None:
    net = Lossy(Mailbox, 3, Weather(delays_ms=(5, 5)))
    for _ in range(5):
        net.say(A)
    net.run()
    net.restart(B)
    net.run()
    for _ in range(5):
        net.say(A)
    net.run()
    assert got(net.channel(B)) == [6, 7, 8, 9, 10]
    assert got(net.channel(C)) == list(range(1, 11))
    assert net.meter.counted["channel_retransmissions"] - 1 <= 4  # the start, and what preceded it
    assert net.quiet()


def test_what_was_sent_before_a_peer_was_heard_of_is_for_whoever_is_there() -> None:
    net = Lossy(Mailbox, 2, Weather())
    net.restart(A, announce=False)
    net.restart(B, announce=False)
    for _ in range(3):
        net.say(A, bytes([B]))
        net.say(A)
    net.run()
    assert sorted(got(net.channel(B))) == [1, 2, 3, 4, 5, 6]
    assert not net.meter.counted["channel_given_up"]
    assert net.quiet()


def test_a_datagram_of_the_dead_does_not_take_messages_from_the_living() -> None:
    a, b = (Reliable(Mailbox(Place(me, 2, incarnation=1))) for me in (A, B))
    (message,) = segments(say(a, B))
    late = segments(say(process(B), A))[0]  # of B's first life, for A's
    list(a.receive(late, B, 1))
    (refusal,) = segments(list(b.receive(message, A, 2)))
    effects = list(a.receive(refusal, B, 3))
    assert Count("channel_given_up", 1) not in effects
    list(b.receive(segments(effects)[0], A, 4))
    assert got(b) == [1]


def test_who_learns_of_a_new_incarnation_forgets_the_old_one() -> None:
    a, b, again = process(A), process(B), Reliable(Mailbox(Place(B, 2, incarnation=1)))
    list(a.receive(segments(say(b, A))[0], B, 0))
    say(a, B)
    effects = list(a.receive(segments(say(again, A))[0], B, 1))
    assert Count("channel_given_up", 1) in effects
    assert timers(effects) == [SetTimer(("ack", B), 10 * MS), CancelTimer(("retransmit", B))]
    assert got(a) == [1, 1]


def test_streams_of_copies_start_anew_too() -> None:
    a, b, again = process(A), process(B), Reliable(Mailbox(Place(B, 2, incarnation=1)))
    for now, sender in enumerate((b, again)):
        list(a.receive(segments(say(sender, TO_ALL))[0], B, now))
    assert got(a) == [1, 1]


def test_datagrams_of_a_dead_incarnation_are_refused() -> None:
    a, b = process(A), process(B)
    old = segments(say(a, B))[0]
    again = Reliable(Mailbox(Place(A, 2, incarnation=1)))
    new = segments(say(again, B))[0]
    list(b.receive(new, A, 0))
    effects = list(b.receive(old, A, 1))
    assert effects == [Count("channel_stale")]
    assert got(b) == [1]
    dead_b = process(B)
    list(dead_b.receive(old, A, 0))
    (late_ack,) = segments(list(dead_b.timeout(("ack", A), 2)))
    assert list(again.receive(late_ack, B, 2)) == [Count("channel_stale")]
    assert again.connections[B].unacknowledged() == 1


@given(
    weather=weathers,
    n=st.integers(2, 3),
    seed=st.integers(),
    announce=st.booleans(),
    data=st.data(),
)
def test_incarnations_see_a_gapless_part_of_each_other_and_the_living_the_end_of_it(
    weather: Weather, n: int, seed: int, announce: bool, data: st.DataObject
) -> None:
    net = Lossy(Mailbox, n, weather, seed, PATIENT)
    rng = random.Random(seed)
    lives: list[tuple[int, Reliable]] = []
    for _ in range(data.draw(st.integers(1, 5))):
        talk(net, rng, data.draw(st.integers(0, 12)))
        node = rng.randrange(n)
        lives.append((node, net.channel(node)))
        net.restart(node, announce)
    talk(net, rng, data.draw(st.integers(0, 20)))
    net.run()
    assert net.settled()
    assert (
        net.quiet() or not announce
    )  # what a dead process left unfinished is kept until it is known
    lives += [(node, net.channel(node)) for node in range(n)]
    sent = sent_streams(net, lives)
    for node, channel in lives:
        assert isinstance(channel.inner, Mailbox)
        received: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
        for sender, seq, to, incarnation in channel.inner.got:
            received[sender, incarnation, to].append(seq)
        for stream, seqs in received.items():
            whole = sent[stream]
            begin = whole.index(seqs[0])
            assert seqs == whole[begin : begin + len(seqs)]
            sender, incarnation, _ = stream
            if net.channel(node) is channel and net.channel(sender).incarnation == incarnation:
                assert seqs[-1] == whole[-1]


def sent_streams(
    net: Lossy, lives: list[tuple[int, Reliable]]
) -> dict[tuple[int, int, int], list[int]]:
    """The sequence numbers of each sender's incarnation to each destination."""
    streams: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for sender, channel in lives:
        assert isinstance(channel.inner, Mailbox)
        for seq, payload in enumerate(channel.inner.said, 1):
            streams[sender, channel.incarnation, payload[0]].append(seq)
    return streams


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
    assert type(effects[-1].message) is Message  # type: ignore[union-attr]


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
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|rise in this order"):
        Reliable.Settings(**wrong)  # type: ignore[arg-type]


def test_more_restarts_than_the_header_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="the last is 4095"):
        Reliable(Mailbox(Place(0, 2, incarnation=4096)))


# what it costs


def test_at_a_loss_of_a_fifth_little_is_sent_in_vain() -> None:
    net = Lossy(Mailbox, 2, Weather(loss=0.2), seed=1)
    for _ in range(2000):
        net.say(A, bytes([B]))
    net.run()
    counted: Counter[str] = net.meter.counted
    transmissions = 1 + counted["channel_retransmissions"] / 2000
    assert 1.2 < transmissions < 1.3  # 1.25 is what nobody can do better
    assert counted["channel_duplicates"] < 20
    assert counted["channel_acks"] < 2100


def test_without_loss_a_message_costs_twelve_bytes_and_half_an_acknowledgement() -> None:
    net = Lossy(Mailbox, 2, Weather())
    for _ in range(100):
        net.say(A, bytes([B]))
    net.run()
    assert net.meter.counted["channel_acks"] == 50
    assert net.channel_bytes == 100 * 12 + 50 * 40
    assert net.bytes == 100 * (32 + 1) + net.channel_bytes
