"""Mostefaoui and Raynal's protocol: the paper's example, random groups, and its variants."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.protocols import MessageId, Place, WireError
from testbed.protocols.broken.groups import ArrivalOrder, OwnGroups
from testbed.protocols.grouped import has_cycle
from testbed.protocols.mostefaoui_raynal import MostefaouiRaynal
from testbed.protocols.phases import PhaseMessage, Resynch
from tests.protocols.grouped import TRIANGLE, Groups, World, draw_groups, draw_tree

MS = 1_000_000
SEEDS = st.integers(0, 2**32 - 1)
P1, P2, P3 = range(3)
G1, G2, G3 = range(3)


def variant(protocol: type[MostefaouiRaynal] = MostefaouiRaynal, **keys: Any) -> Any:
    return partial(protocol, settings=protocol.Settings(**keys))


def draw_cyclic(rng: random.Random) -> Groups:
    return draw_groups(rng, rng.randint(3, 6), rng.randint(1, 5))


def draw_acyclic(rng: random.Random) -> Groups:
    return draw_tree(rng, rng.randint(2, 5))


def play(
    seed: int,
    protocol: Any,
    draw: Callable[[random.Random], Groups] = draw_cyclic,
    *,
    fifo: bool = True,
    one_sender: bool = False,
) -> World:
    """A random run with answers; delays are short or long against the time between messages."""
    rng = random.Random(seed)
    world = World(protocol, draw(rng), rng=rng, longest=rng.choice([3, 30, 100, 300]), fifo=fifo)
    world.answers = 0 if one_sender else rng.randrange(6)
    world.play(10, [rng.choice(world.everybody)] if one_sender else None)
    return world


def faults(seeds: int, protocol: Any, draw: Any = draw_cyclic, **keys: Any) -> int:
    return sum(not play(seed, protocol, draw, **keys).check().ok for seed in range(seeds))


class Example:
    """The example of section 4.2, with the vectors of the three processes."""

    def __init__(self) -> None:
        self.world = World(MostefaouiRaynal, TRIANGLE)

    def expect(self, *vectors: list[int]) -> None:
        assert [protocol.K for protocol in self.world.protocols] == list(vectors)  # type: ignore[attr-defined]

    def stamps(self, sender: int, peer: int) -> list[tuple[int, ...]]:
        copies = sorted(self.world.copies)
        return [c.message.stamp for c in copies if (c.sender, c.peer) == (sender, peer)]  # type: ignore[attr-defined]


def test_figure_5_step_by_step() -> None:
    example = Example()
    world, expect, stamps = example.world, example.expect, example.stamps
    expect([0, 0, 0], [0, 0, 0], [0, 0, 0])
    m1 = world.multicast(P1, G1)
    assert stamps(P1, P2) == [(0, 0, 0)]
    expect([1, 0, 0], [0, 0, 0], [0, 0, 0])
    m2 = world.multicast(P1, G3)
    assert stamps(P1, P3) == [(1, 0, 0)]
    expect([1, 0, 1], [0, 0, 0], [0, 0, 0])

    world.pass_on(P1, P3)
    assert world.delivered[P3] == [m2]
    assert stamps(P3, P1) == [(1,)]  # resynch(1, g3), since P3 was in phase 0 of g3
    expect([1, 0, 1], [0, 0, 0], [1, 0, 1])  # K[g1] by line 11, K[g3] by line 7
    m3 = world.multicast(P3, G2)
    assert stamps(P3, P2) == [(1, 0, 1)]
    expect([1, 0, 1], [0, 0, 0], [1, 1, 1])

    world.pass_on(P3, P2)
    assert world.held == [(P2, m3, None)]  # for phase 1 of g1, which P1 has not been seen to reach
    assert stamps(P2, P3) == [(1,)]  # resynch(1, g2)
    expect([1, 0, 1], [0, 1, 0], [1, 1, 1])
    world.pass_on(P1, P2)
    assert world.delivered[P2] == [m1, m3]
    assert stamps(P2, P1) == [(1,)]  # resynch(1, g1)
    expect([1, 0, 1], [1, 1, 1], [1, 1, 1])

    world.run()
    expect([1, 0, 1], [1, 1, 1], [1, 1, 1])
    assert world.counted["resynchs"] == 3
    assert world.check().ok


@given(SEEDS)
@settings(max_examples=1000, deadline=None)
def test_random_groups_with_fifo_channels(seed: int) -> None:
    world = play(seed, MostefaouiRaynal)
    assert world.check().ok
    assert not world.discarded


@given(SEEDS)
@settings(max_examples=300, deadline=None)
def test_everything_is_delivered_where_all_but_one_are_silent(seed: int) -> None:
    assert play(seed, MostefaouiRaynal, one_sender=True).check().ok


@given(SEEDS, st.sampled_from([1, 30, 200]))
@settings(max_examples=300, deadline=None)
def test_everything_is_delivered_where_resynchs_wait_for_a_timer(seed: int, delay: int) -> None:
    protocol = variant(resynch_after_ms=delay / MS)
    assert play(seed, protocol, one_sender=bool(seed % 2)).check().ok


@given(SEEDS, st.sampled_from([0, 50]))
@settings(max_examples=300, deadline=None)
def test_channels_need_not_be_fifo_where_messages_are_numbered(seed: int, delay: int) -> None:
    protocol = variant(numbered=True, resynch_after_ms=delay / MS)
    assert play(seed, protocol, fifo=False).check().ok


def test_channels_must_be_fifo_where_they_are_not() -> None:
    assert faults(30, MostefaouiRaynal, fifo=False) > 10
    assert MostefaouiRaynal.needs_fifo(MostefaouiRaynal.Settings())
    assert not MostefaouiRaynal.needs_fifo(MostefaouiRaynal.Settings(numbered=True))


@given(SEEDS, st.sampled_from(["auto", "all", "own"]))
@settings(max_examples=300, deadline=None)
def test_without_a_cycle_a_few_entries_are_enough(seed: int, entries: str) -> None:
    world = play(seed, variant(entries=entries), draw_acyclic)
    assert not has_cycle(world.groups)
    assert world.check().ok
    most = 4 * len(world.groups) * world.counted["stamped_copies"]
    assert world.counted["stamp_bytes"] <= most
    assert (world.counted["stamp_bytes"] == most) or entries != "all"


def test_with_a_cycle_the_same_entries_are_too_few() -> None:
    assert faults(150, variant(entries="own"), lambda rng: TRIANGLE) > 0
    assert faults(150, variant(entries="auto"), lambda rng: TRIANGLE) == 0


def test_entries_of_the_senders_groups_are_too_few_where_groups_share_two_members() -> None:
    """As section 4.3 has it: two groups, no cycle, and a message is delivered before its cause."""
    a, b = frozenset({0, 1, 2}), frozenset({0, 1, 3})
    world = World(OwnGroups, (a, b))
    assert not has_cycle(world.groups)
    news = world.multicast(3, 1)
    world.pass_on(3, 1)
    cause = world.multicast(1, 0)
    while world.pass_on(1, 2).id != cause:
        pass
    effect = world.multicast(2, 0)
    while world.pass_on(1, 0).id != cause:
        pass
    assert world.held == [(0, cause, None)]  # for phase 1 of b; and process 2 knows nothing of b
    world.pass_on(2, 0)
    world.pass_on(2, 0)
    assert world.delivered[0] == [effect]
    world.run()
    assert world.delivered[0] == [effect, news, cause]
    assert world.check().count("order") == 1
    assert faults(100, OwnGroups, draw_acyclic) > 0
    assert faults(100, OwnGroups, lambda rng: draw_tree(rng, 4, most_shared=1)) == 0


def test_messages_that_become_deliverable_together_go_in_the_order_of_their_stamps() -> None:
    assert faults(60, ArrivalOrder) > 0


def test_a_synchronous_execution_sends_no_resynch() -> None:
    rng = random.Random(3)
    for _ in range(20):
        world = World(MostefaouiRaynal, draw_cyclic(rng), rng=rng)
        for _ in range(4):
            for me in world.everybody:
                for x in world.protocols[me].others:  # type: ignore[attr-defined]
                    world.multicast(me, x)
            world.run()
        assert world.counted["resynchs"] == 0
        assert world.check().ok


def test_with_one_busy_sender_a_timer_saves_most_resynchs() -> None:
    groups = (frozenset(range(6)), frozenset({0, 1, 2, 6}), frozenset({0, 5, 6}))
    sent = {}
    for delay in (0, 500):
        protocol = variant(resynch_after_ms=delay / MS)
        world = World(protocol, groups, rng=random.Random(1), longest=100)
        world.play(200, [0], interval=20)
        assert world.check().ok
        assert not world.timers
        sent[delay] = world.counted["resynchs"]
    assert sent[0] > 3 * sent[500] > 0


def test_a_message_in_time_makes_the_resynch_needless() -> None:
    pair = (frozenset({0, 1}),)
    world = World(variant(resynch_after_ms=1.0), pair)
    world.multicast(0, 0)
    world.multicast(0, 0)
    world.pass_on(0, 1)
    assert world.timers == {(1, 0): MS}
    world.now = 5
    world.pass_on(0, 1)
    assert world.timers == {(1, 0): MS}  # armed once
    world.multicast(1, 0)
    assert not world.timers
    for _ in range(3):
        world.multicast(0, 0)
        world.pass_on(0, 1)
    world.fire(1, 0)
    assert [c.message.stamp for c in sorted(world.copies)] == [(2,), (5,)]  # type: ignore[attr-defined]
    world.run()
    assert world.counted["resynchs"] == 1
    assert world.check().ok


def test_a_resynch_costs_36_bytes_and_an_integer_more_if_numbered() -> None:
    for numbered, size in ((False, 36), (True, 40)):
        world = World(variant(numbered=numbered), (frozenset({0, 1, 2}),))
        world.multicast(0, 0)
        world.run()
        assert world.counted["resynchs"] == 2
        assert world.counted["resynch_copies"] == 4
        assert world.counted["resynch_bytes"] == 4 * size
        assert world.counted["stamped_copies"] == 2
        assert world.counted["stamp_bytes"] == 2 * 4 * (1 + numbered)


def test_copies_that_come_twice_are_dropped() -> None:
    for numbered in (False, True):
        world = World(variant(numbered=numbered), TRIANGLE)
        world.multicast(0, 0)
        (copy,) = world.copies
        world.run()
        world.receive(0, 1, copy.message)
        assert world.discarded == ["duplicate"]
    first, second = (MessageId(0, 1), MessageId(0, 2))
    world = World(variant(numbered=True), (frozenset({0, 1}),))
    assert [world.multicast(0, 0), world.multicast(0, 0)] == [first, second]
    late = sorted(world.copies)[1].message
    world.receive(0, 1, late)
    world.receive(0, 1, late)
    assert world.held == [(1, second, None)]
    world.run()
    assert world.discarded == ["duplicate", "duplicate"]
    assert world.delivered[1] == [first, second]


def test_a_stale_resynch_does_not_put_a_process_back() -> None:
    world = World(MostefaouiRaynal, TRIANGLE)
    world.multicast(0, 0)
    world.run()
    world.receive(0, 1, Resynch(0, 0, group=0, stamp=(0,)))
    assert world.protocols[1].expected[0] == {0: 1, 1: 1}  # type: ignore[attr-defined]


def test_what_does_not_belong_to_a_group_of_ours_is_dropped() -> None:
    world = World(variant(entries="all"), TRIANGLE)
    for stray in (
        PhaseMessage(0, 1, group=0, stamp=(0, 0)),
        PhaseMessage(0, 1, group=1, stamp=(0, 0, 0)),
        PhaseMessage(2, 1, group=2, stamp=(0, 0, 0)),
        PhaseMessage(0, 1, group=7, stamp=(0, 0, 0)),
        PhaseMessage(1, 1, group=0, stamp=(0, 0, 0)),
        Resynch(0, 0, group=0, stamp=(1, 1)),
        Resynch(0, 0, group=2, stamp=(1,)),
    ):
        world.receive(stray.source, 1, stray)
    assert world.discarded == ["malformed"] * 7
    assert not world.delivered[1]
    assert not world.copies


def test_a_message_goes_to_a_group_of_its_sender_and_nowhere_else() -> None:
    protocol = MostefaouiRaynal(Place(0, 3, groups=TRIANGLE))
    assert protocol.peers() == (1, 2)
    for wrong in (frozenset({1, 2}), frozenset({0}), frozenset[int](), None):
        with pytest.raises(ValueError, match="none of the groups it is in"):
            list(protocol.multicast(b"", wrong, 0))
    everybody = MostefaouiRaynal(Place(0, 2, groups=(frozenset({0, 1}),)))
    assert list(everybody.multicast(b"", None, 0))


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan")])
def test_the_timer_must_run_out_some_time(wrong: float) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        MostefaouiRaynal.Settings(resynch_after_ms=wrong)


@given(
    st.sampled_from([PhaseMessage, Resynch]),
    st.lists(SEEDS, max_size=9),
    st.binary(max_size=9),
    st.integers(0, 65535),
)
def test_encode_and_decode(
    kind: type[PhaseMessage], stamp: list[int], data: bytes, group: int
) -> None:
    codec = MostefaouiRaynal.codec(run=7, processes=5)
    message = kind(4, 9, data, 11, group, stamp=tuple(stamp))
    encoded = codec.encode(message)
    assert len(encoded) == message.size == 32 + 4 * len(stamp) + len(data)
    decoded = codec.decode(encoded)
    assert type(decoded) is kind
    assert (decoded.stamp, decoded.payload, decoded.group) == (tuple(stamp), data, group)
    assert (decoded.source, decoded.seq, decoded.sent_at) == (4, 9, 11)


@given(st.binary().filter(lambda control: len(control) % 4 != 0))
def test_what_is_not_whole_integers_is_refused(control: bytes) -> None:
    with pytest.raises(WireError):
        PhaseMessage.decode_control(control, 5)
