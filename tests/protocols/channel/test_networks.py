"""The reliable channel on networks that lose, duplicate and reorder, and what it costs there."""

import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Effects, Message, Multicast, Overlay, Protocol, Timestamp
from testbed.protocols.channel import Reliable
from testbed.protocols.channel.segments import Segment
from testbed.topologies.overlays import Hypercube
from testbed.workloads import Bursts, Reply, Workload
from tests.protocols.channel.mailboxes import (
    PATIENT,
    TO_ALL,
    A,
    B,
    C,
    Lossy,
    Mailbox,
    got,
    talk,
    weathers,
)
from tests.world import MS, World

# networks of chance


@given(weather=weathers, n=st.integers(2, 4), messages=st.integers(1, 60), seed=st.integers())
def test_every_stream_is_handed_over_once_and_in_order(
    weather: dict[str, Any], n: int, messages: int, seed: int
) -> None:
    net = Lossy(Mailbox, n, seed, PATIENT, **weather)
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
    protocol: type[Protocol], workload: Workload, weather: dict[str, Any], n: int, seed: int
) -> None:
    graph = Hypercube().generate(n, random.Random(0))
    rng = random.Random(seed)
    neighbours = lambda node: tuple(sorted(graph[node]))  # noqa: E731
    net = Lossy(protocol, n, seed, PATIENT, neighbours=neighbours, application=workload, **weather)
    for _ in range(10):
        net.say(rng.randrange(n))
        net.run(rng.uniform(0, 10))
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
    net = World(
        lambda place: Careless(Overlay(place)),
        5,
        seed=1,
        loss=0.1,
        neighbours=lambda node: tuple(sorted(graph[node])),
        wire=True,
    )
    for _ in range(20):
        net.say(A)
    net.run()
    assert not net.check().ok


def test_a_network_that_reorders_is_not_taken_for_one_that_loses() -> None:
    net = Lossy(Mailbox, 2, seed=6, delays_ms=(4, 6))
    net.mail(A, B, times=1000)
    net.run()
    assert got(net.protocols[B]) == list(range(1, 1001))
    assert net.protocols[A].connections[B].outgoing[0].reordering > 32
    assert net.meter.counted["channel_retransmissions"] < 100


# the window


def test_relayed_traffic_waits_and_is_never_lost() -> None:
    """A hub that relays more than its window takes."""
    star = {0: (1, 2, 3), 1: (0,), 2: (0,), 3: (0,)}
    net = Lossy(Overlay, 4, settings=Reliable.Settings(window=1), neighbours=star.__getitem__)
    for _ in range(30):
        for node in (1, 2, 3):
            net.say(node)
    assert net.protocols[1].busy()
    net.run()
    assert net.check().ok
    assert net.quiet()
    assert net.meter.deliveries == 4 * 90


def test_without_loss_a_window_is_sent_each_round_trip() -> None:
    net = Lossy(Mailbox, 2, settings=Reliable.Settings(window=10))
    net.mail(A, B, times=100)
    net.run()
    assert net.log.events[B][-1].t == 9 * 10 * MS + 5 * MS  # the tenth window arrives
    assert not net.meter.counted["channel_retransmissions"]


# one copy for many


def test_a_multicast_is_one_copy_and_only_who_missed_it_gets_it_again() -> None:
    net = Lossy(Mailbox, 4)
    missed = iter([True])
    net.drops = lambda sender, peer, segment: (
        peer == C and segment.channel.number == 5 and next(missed, False)
    )
    net.mail(A, times=10)
    net.run()
    assert net.multicasts == 10
    assert net.meter.counted["channel_retransmissions"] == 1
    assert all(got(net.protocols[node]) == list(range(1, 11)) for node in (1, 2, 3))
    assert net.quiet()


def test_copies_for_other_receivers_have_streams_of_their_own() -> None:
    class Halves(Mailbox):
        def multicast(self, payload: bytes, destinations: object, now: int) -> Effects:
            self.sent += 1
            message = Message(self.me, self.sent, payload, sent_at=now)
            yield Multicast(((1, 2), (2, 3))[payload[0]], message)

    net = Lossy(Halves, 4, loss=0.3, delays_ms=(1, 20), seed=5)
    for turn in range(40):
        net.mail(A, turn % 2)
    net.run()
    assert got(net.protocols[1]) == list(range(1, 41, 2))
    assert got(net.protocols[3]) == list(range(2, 41, 2))
    assert sorted(got(net.protocols[2])) == list(range(1, 41))
    assert net.quiet()


def test_the_slowest_receiver_holds_the_window_until_it_is_given_up() -> None:
    settings = Reliable.Settings(window=4, retries=3)
    net = Lossy(Mailbox, 3, settings=settings)
    net.crash(C)
    net.mail(A, times=12)
    net.run(400)
    assert got(net.protocols[B]) == [1, 2, 3, 4]
    net.run()
    assert got(net.protocols[B]) == list(range(1, 13))
    assert net.meter.counted["channel_given_up"] == 12
    assert net.quiet()


def test_what_waits_is_dropped_when_all_receivers_are_given_up() -> None:
    net = Lossy(Mailbox, 2, settings=Reliable.Settings(window=2, retries=1))
    net.crash(B)
    net.mail(A, times=6)
    net.run()
    assert net.multicasts == 2
    assert net.meter.counted["channel_given_up"] == 6
    assert not any(stream.waiting for stream in net.protocols[A].groups.values())


# the dead


def test_a_peer_that_stays_silent_is_given_up_and_the_sender_is_quiet() -> None:
    net = Lossy(Mailbox, 2, settings=Reliable.Settings(window=4, retries=5))
    net.crash(B)
    net.mail(A, B, times=10)
    net.run()
    assert net.sent[Segment].copies == 4 + 5 * 2
    assert net.meter.counted["channel_given_up"] == 10
    assert net.quiet()
    assert net.now == (500 + 1000 + 2000 * 4) * MS
    net.mail(A, B)
    net.run()
    assert net.sent[Segment].copies == 14
    assert net.meter.counted["channel_given_up"] == 11


# what it costs


def test_at_a_loss_of_a_fifth_little_is_sent_in_vain() -> None:
    net = Lossy(Mailbox, 2, loss=0.2, seed=1)
    net.mail(A, B, times=2000)
    net.run()
    counted: Counter[str] = net.meter.counted
    transmissions = 1 + counted["channel_retransmissions"] / 2000
    assert 1.2 < transmissions < 1.3  # 1.25 is what nobody can do better
    assert counted["channel_duplicates"] < 20
    assert counted["channel_acks"] < 2100


def test_without_loss_a_message_costs_twelve_bytes_and_half_an_acknowledgement() -> None:
    net = Lossy(Mailbox, 2)
    net.mail(A, B, times=100)
    net.run()
    sent = net.sent[Segment]
    assert net.meter.counted["channel_acks"] == 50
    assert sent.channel_bytes == 100 * 12 + 50 * 40
    assert sent.bytes == 100 * (32 + 1) + sent.channel_bytes
