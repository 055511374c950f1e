"""The reliable channel when processes start again without their memory."""

import random
from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import CancelTimer, Count, Place, SetTimer
from testbed.protocols.channel import Reliable
from tests.protocols.channel.mailboxes import (
    PATIENT,
    TO_ALL,
    A,
    B,
    C,
    Lossy,
    Mailbox,
    got,
    mailbox,
    process,
    say,
    segments,
    talk,
    timers,
    weathers,
)
from tests.world import MS


def test_a_restarted_process_is_told_nothing_that_was_meant_for_the_dead() -> None:
    net = Lossy(Mailbox, 2)
    net.mail(A, B, times=3)
    net.run()
    net.mail(A, B)  # is under way when the process dies
    net.restart(B)
    net.run(5)
    assert net.meter.counted["channel_given_up"] == 1
    for _ in range(3):
        net.mail(A, B)
        net.mail(A)
    net.mail(B, A)
    net.run()
    assert [seq for _, seq, to in net.mailbox(B).got if to == B] == [5, 7, 9]
    assert [seq for _, seq, to in net.mailbox(B).got if to == TO_ALL] == [6, 8, 10]
    assert got(net.protocols[A]) == [1]
    assert net.quiet()


def test_a_process_that_restarts_in_a_multicast_stream_enters_it_in_the_middle() -> None:
    net = Lossy(Mailbox, 3)
    net.mail(A, times=5)
    net.run()
    net.restart(B)
    net.run()
    net.mail(A, times=5)
    net.run()
    assert got(net.protocols[B]) == [6, 7, 8, 9, 10]
    assert got(net.protocols[C]) == list(range(1, 11))
    assert net.meter.counted["channel_retransmissions"] - 1 <= 4  # the start, and what preceded it
    assert net.quiet()


def test_what_was_sent_before_a_peer_was_heard_of_is_for_whoever_is_there() -> None:
    net = Lossy(Mailbox, 2)
    net.restart(A, start=False)
    net.restart(B, start=False)
    for _ in range(3):
        net.mail(A, B)
        net.mail(A)
    net.run()
    assert sorted(got(net.protocols[B])) == [1, 2, 3, 4, 5, 6]
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
    weather: dict[str, Any], n: int, seed: int, announce: bool, data: st.DataObject
) -> None:
    net = Lossy(Mailbox, n, seed, PATIENT, **weather)
    rng = random.Random(seed)
    lives: list[tuple[int, Reliable]] = []
    for _ in range(data.draw(st.integers(1, 5))):
        talk(net, rng, data.draw(st.integers(0, 12)))
        node = rng.randrange(n)
        lives.append((node, net.protocols[node]))
        net.restart(node, announce)
    talk(net, rng, data.draw(st.integers(0, 20)))
    net.run()
    assert net.settled()
    assert (
        net.quiet() or not announce
    )  # what a dead process left unfinished is kept until it is known
    lives += [(node, net.protocols[node]) for node in range(n)]
    sent = sent_streams(net, lives)
    for node, channel in lives:
        received: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
        for sender, seq, to, incarnation in mailbox(channel).got:
            received[sender, incarnation, to].append(seq)
        for stream, seqs in received.items():
            whole = sent[stream]
            begin = whole.index(seqs[0])
            assert seqs == whole[begin : begin + len(seqs)]
            sender, incarnation, _ = stream
            if net.protocols[node] is channel and net.protocols[sender].incarnation == incarnation:
                assert seqs[-1] == whole[-1]


def sent_streams(
    net: Lossy, lives: list[tuple[int, Reliable]]
) -> dict[tuple[int, int, int], list[int]]:
    """The sequence numbers of each sender's incarnation to each destination."""
    streams: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for sender, channel in lives:
        for seq, payload in enumerate(mailbox(channel).said, 1):
            streams[sender, channel.incarnation, payload[0]].append(seq)
    return streams
