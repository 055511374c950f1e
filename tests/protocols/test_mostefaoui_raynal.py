"""Mostefaoui and Raynal's protocol: the paper's example, random groups, and its variants."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.protocols import BSS, MessageId, Multicast, OneInteger, Phases, Place, Send
from testbed.protocols.broken.groups import ArrivalOrder, OwnGroups, Unanswered
from testbed.protocols.grouped import has_cycle
from testbed.protocols.mostefaoui_raynal import MostefaouiRaynal
from tests.protocols.grouped import (
    TRIANGLE,
    Grouped,
    Groups,
    draw_cyclic,
    draw_tree,
    faults,
    played,
)
from tests.world import MS

SEEDS = st.integers(0, 2**32 - 1)
P1, P2, P3 = range(3)
G1, G2, G3 = range(3)


def variant(
    protocol: type[MostefaouiRaynal] = MostefaouiRaynal, **keys: Any
) -> Callable[[Place], MostefaouiRaynal]:
    return partial(protocol, settings=protocol.Settings(**keys))


def draw_acyclic(rng: random.Random) -> Groups:
    return draw_tree(rng, rng.randint(2, 5))


def test_figure_5_step_by_step() -> None:
    """The example of section 4.2, with the vectors of the three processes."""
    world = Grouped(MostefaouiRaynal, TRIANGLE)

    def expect(*vectors: list[int]) -> None:
        assert [protocol.K for protocol in world.protocols] == list(vectors)

    def stamps(sender: int, peer: int) -> list[tuple[int, ...]]:
        return [copy.message.stamp for copy in world.channel(sender, peer)]

    expect([0, 0, 0], [0, 0, 0], [0, 0, 0])
    m1 = world.say_to(P1, G1)
    assert stamps(P1, P2) == [(0, 0, 0)]
    expect([1, 0, 0], [0, 0, 0], [0, 0, 0])
    m2 = world.say_to(P1, G3)
    assert stamps(P1, P3) == [(1, 0, 0)]
    expect([1, 0, 1], [0, 0, 0], [0, 0, 0])

    world.pass_on(P1, P3)
    assert world.delivered(P3) == [m2]
    assert stamps(P3, P1) == [(1,)]  # resynch(1, g3), since P3 was in phase 0 of g3
    expect([1, 0, 1], [0, 0, 0], [1, 0, 1])  # K[g1] by line 11, K[g3] by line 7
    m3 = world.say_to(P3, G2)
    assert stamps(P3, P2) == [(1, 0, 1)]
    expect([1, 0, 1], [0, 0, 0], [1, 1, 1])

    world.pass_on(P3, P2)
    assert world.log.held == [
        (P2, m3, None)
    ]  # for phase 1 of g1, which P1 has not been seen to reach
    assert stamps(P2, P3) == [(1,)]  # resynch(1, g2)
    expect([1, 0, 1], [0, 1, 0], [1, 1, 1])
    world.pass_on(P1, P2)
    assert world.delivered(P2) == [m1, m3]
    assert stamps(P2, P1) == [(1,)]  # resynch(1, g1)
    expect([1, 0, 1], [1, 1, 1], [1, 1, 1])

    world.run()
    expect([1, 0, 1], [1, 1, 1], [1, 1, 1])
    assert world.meter.counted["resynchs"] == 3
    assert world.check().ok


EITHER = st.sampled_from([MostefaouiRaynal, OneInteger])


@given(SEEDS, EITHER)
@settings(max_examples=1200, deadline=None)
def test_random_groups_with_fifo_channels(seed: int, protocol: type[MostefaouiRaynal]) -> None:
    world = played(seed, protocol)
    assert world.check().ok
    assert not world.meter.discarded


@given(SEEDS, EITHER)
@settings(max_examples=400, deadline=None)
def test_everything_is_delivered_where_all_but_one_are_silent(
    seed: int, protocol: type[MostefaouiRaynal]
) -> None:
    assert played(seed, protocol, one_sender=True).check().ok


@given(SEEDS, EITHER, st.sampled_from([1, 30, 200]))
@settings(max_examples=400, deadline=None)
def test_everything_is_delivered_where_resynchs_wait_for_a_timer(
    seed: int, protocol: type[MostefaouiRaynal], delay: int
) -> None:
    late = variant(protocol, resynch_after_ms=delay)
    assert played(seed, late, one_sender=bool(seed % 2)).check().ok


@given(SEEDS, EITHER, st.sampled_from([0, 50]))
@settings(max_examples=400, deadline=None)
def test_channels_need_not_be_fifo_where_messages_are_numbered(
    seed: int, protocol: type[MostefaouiRaynal], delay: int
) -> None:
    numbered = variant(protocol, numbered=True, resynch_after_ms=delay)
    assert played(seed, numbered, fifo=False).check().ok


def test_one_integer_stands_for_the_phases_of_all_groups() -> None:
    world = Grouped(OneInteger, (frozenset({0, 1}), frozenset({1, 2}), frozenset({2, 3})))
    name = world.say_to(0, 0)
    world.pass_on(0, 1)
    assert [(copy.message.group, copy.message.stamp) for copy in world.copies] == [
        (0, (1,)),  # process 1 tells both its groups that it has reached phase 1,
        (1, (1,)),
    ]
    world.pass_on(1, 2)
    assert [copy.message.group for copy in world.channel(2, 1)] == [1]  # which 2 answers there,
    assert not world.channel(2, 3)  # and nowhere else
    second = world.say_to(0, 0)
    world.run()
    assert world.delivered(1) == [name, second]
    assert world.protocols[3].K == [0, 0, 0]
    assert world.meter.counted["stamp_bytes"] == 4 * 2


def test_an_unanswered_resynch_leaves_messages_undelivered() -> None:
    assert faults(40, OneInteger) == 0
    assert faults(40, Unanswered) > 0


@pytest.mark.parametrize(
    ("protocol", "integers"), [(MostefaouiRaynal, 5), (OneInteger, 4), (BSS, 6), (Phases, 3)]
)
def test_what_a_process_keeps(protocol: Any, integers: int) -> None:
    """Section 5.2: vectors of its own groups and an entry for each other one, or all vectors."""
    world = Grouped(protocol, TRIANGLE)
    world.run()
    assert world.meter.counted["memory_bytes"] == 3 * 4 * integers


@pytest.mark.parametrize("protocol", [MostefaouiRaynal, OneInteger, BSS, Phases])
def test_one_copy_goes_into_the_network_where_it_multicasts(protocol: Any) -> None:
    for how, effect in (("network", Multicast), ("unicast", Send)):
        process = variant(protocol, multicast=how)(Place(0, 3, groups=(frozenset(range(3)),)))
        sent = [e for e in process.multicast(b"", None, 0) if isinstance(e, Send | Multicast)]
        assert [(type(e), e.peers) for e in sent] == [(effect, (1, 2))]
        assert process.multicasts() == (how == "network")
        assert process.peers() == (() if how == "network" else (1, 2))


def test_channels_must_be_fifo_where_they_are_not() -> None:
    assert faults(30, MostefaouiRaynal, fifo=False) > 10
    assert MostefaouiRaynal.needs_fifo(MostefaouiRaynal.Settings())
    assert not MostefaouiRaynal.needs_fifo(MostefaouiRaynal.Settings(numbered=True))


def test_entries_of_the_senders_groups_are_too_few_where_groups_share_two_members() -> None:
    """As section 4.3 has it: two groups, no cycle, and a message is delivered before its cause."""
    a, b = frozenset({0, 1, 2}), frozenset({0, 1, 3})
    world = Grouped(OwnGroups, (a, b))
    assert not has_cycle(world.groups)
    news = world.say_to(3, 1)
    world.pass_on(3, 1)
    cause = world.say_to(1, 0)
    while world.pass_on(1, 2).id != cause:
        pass
    effect = world.say_to(2, 0)
    while world.pass_on(1, 0).id != cause:
        pass
    assert world.log.held == [
        (0, cause, None)
    ]  # for phase 1 of b; and process 2 knows nothing of b
    world.pass_on(2, 0)
    world.pass_on(2, 0)
    assert world.delivered(0) == [effect]
    world.run()
    assert world.delivered(0) == [effect, news, cause]
    assert world.check().count("order") == 1
    assert faults(200, OwnGroups, draw_acyclic) > 0
    assert faults(100, OwnGroups, lambda rng: draw_tree(rng, 4, most_shared=1)) == 0


def test_messages_that_become_deliverable_together_go_in_the_order_of_their_stamps() -> None:
    assert faults(60, ArrivalOrder) > 0


def test_a_synchronous_execution_sends_no_resynch() -> None:
    rng = random.Random(3)
    for _ in range(20):
        world = Grouped(MostefaouiRaynal, draw_cyclic(rng), rng.randrange(99), longest=100)
        for _ in range(4):
            for me in world.everybody:
                for x in world.protocols[me].others:
                    world.say_to(me, x)
            world.run()
        assert world.meter.counted["resynchs"] == 0
        assert world.check().ok


def test_with_one_busy_sender_a_timer_saves_most_resynchs() -> None:
    groups = (frozenset(range(6)), frozenset({0, 1, 2, 6}), frozenset({0, 5, 6}))
    sent = {}
    for delay in (0, 500):
        protocol = variant(resynch_after_ms=delay)
        world = Grouped(protocol, groups, seed=1, longest=100)
        world.talk(200, [0], interval=20)
        assert world.check().ok
        assert not world.timers
        sent[delay] = world.meter.counted["resynchs"]
    assert sent[0] > 3 * sent[500] > 0


def test_a_message_in_time_makes_the_resynch_needless() -> None:
    pair = (frozenset({0, 1}),)
    world = Grouped(variant(resynch_after_ms=1.0), pair)
    world.say_to(0, 0)
    world.say_to(0, 0)
    world.pass_on(0, 1)
    assert {key: call.due for key, call in world.timers.items()} == {(1, 0): MS}
    world.now = 5
    world.pass_on(0, 1)
    assert {key: call.due for key, call in world.timers.items()} == {(1, 0): MS}  # armed once
    world.say_to(1, 0)
    assert not world.timers
    for _ in range(3):
        world.say_to(0, 0)
        world.pass_on(0, 1)
    world.fire(1, 0)
    assert [c.message.stamp for c in world.copies] == [(2,), (5,)]
    world.run()
    assert world.meter.counted["resynchs"] == 1
    assert world.check().ok


def test_a_resynch_costs_36_bytes_and_an_integer_more_if_numbered() -> None:
    for numbered, size in ((False, 36), (True, 40)):
        world = Grouped(variant(numbered=numbered), (frozenset({0, 1, 2}),))
        world.say_to(0, 0)
        world.run()
        assert world.meter.counted["resynchs"] == 2
        assert world.meter.counted["resynch_copies"] == 4
        assert world.meter.counted["resynch_bytes"] == 4 * size
        assert world.meter.counted["stamped_copies"] == 2
        assert world.meter.counted["stamp_bytes"] == 2 * 4 * (1 + numbered)


def test_copies_that_come_twice_before_their_turn_are_dropped() -> None:
    first, second = (MessageId(0, 1), MessageId(0, 2))
    world = Grouped(variant(numbered=True), (frozenset({0, 1}),))
    assert [world.say_to(0, 0), world.say_to(0, 0)] == [first, second]
    late = world.copies[1].message
    world.inject(0, 1, late)
    world.inject(0, 1, late)
    assert world.log.held == [(1, second, None)]
    world.run()
    assert world.meter.discarded == {"duplicate": 2}
    assert world.delivered(1) == [first, second]


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan")])
def test_the_timer_must_run_out_some_time(wrong: float) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        MostefaouiRaynal.Settings(resynch_after_ms=wrong)
