"""BSS: one vector for each group, and nothing held back without need."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from testbed.protocols import Message, MessageId, Place, Protocol
from testbed.protocols.bss import BSS, Vectors
from testbed.protocols.grouped import has_cycle
from testbed.protocols.mostefaoui_raynal import MostefaouiRaynal
from tests.protocols.executions import Graph
from tests.protocols.grouped import TRIANGLE, Grouped, draw_tree, faults, played
from tests.world import P

U32 = st.integers(0, 2**32 - 1)
P1, P2, P3 = range(3)
G1, G2, G3 = range(3)


def variant(**keys: Any) -> Callable[[Place], BSS]:
    return partial(BSS, settings=BSS.Settings(**keys))


class Watched(Grouped[P]):
    """Sees after every arrival that what is held back is held back for a reason."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self.graph = Graph(0)  # nothing goes to everybody
        super().__init__(*arguments, log=self.graph, **more)

    @override
    def receive(self, sender: int, peer: int, message: Message) -> None:
        super().receive(sender, peer, message)
        held = {name for me, name, _ in self.log.held if me == peer}
        assert all(self.graph.reasons(name, peer) for name in held.difference(self.delivered(peer)))


def test_what_went_round_behind_ones_back_is_waited_for() -> None:
    world = Grouped(BSS, TRIANGLE)
    m1 = world.say_to(P1, G1)
    m2 = world.say_to(P1, G3)
    world.pass_on(P1, P3)
    m3 = world.say_to(P3, G2)
    world.pass_on(P3, P2)
    assert world.log.held == [(P2, m3, m1)]
    world.pass_on(P1, P2)
    assert [world.delivered(p) for p in world.everybody] == [[m1, m2], [m1, m3], [m2, m3]]


def test_the_vectors_are_attached_as_they_were_before_the_message() -> None:
    world = Grouped(BSS, TRIANGLE)
    world.say_to(P1, G1)
    world.say_to(P1, G3)
    world.say_to(P1, G3)
    vectors = [copy.message.VT.tolist() for copy in world.copies]
    assert vectors == [[0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 2, 0]]


@given(U32, st.booleans())
@settings(max_examples=600, deadline=None)
def test_random_groups_with_any_channels_and_nothing_held_without_need(
    seed: int, fifo: bool
) -> None:
    world = played(seed, BSS, kind=Watched, fifo=fifo)
    assert world.check().ok
    assert not world.meter.discarded


def test_mostefaoui_and_raynal_hold_messages_that_this_does_not() -> None:
    """Of one schedule: as soon as all that a message needs has been delivered, BSS delivers it."""
    counts = []
    protocols: tuple[type[Protocol], ...] = (BSS, MostefaouiRaynal)
    for protocol in protocols:
        world = Grouped(protocol, (frozenset({0, 1, 2}),))
        world.say_to(0, 0)
        world.say_to(0, 0)
        world.pass_on(0, 1)
        world.pass_on(0, 1)
        counts.append(len(world.delivered(1)))
    assert counts == [2, 1]


@given(U32, st.sampled_from(["auto", "all", "own"]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_without_a_cycle_the_vectors_of_ones_own_groups_are_enough(
    seed: int, entries: str, fifo: bool
) -> None:
    draw = lambda rng: draw_tree(rng, 2 + seed % 4)  # noqa: E731
    world = played(seed, variant(entries=entries), draw, kind=Watched, fifo=fifo)
    assert not has_cycle(world.groups)
    assert world.check().ok
    most = 4 * sum(map(len, world.groups)) * world.meter.counted["stamped_copies"]
    assert world.meter.counted["stamp_bytes"] <= most
    assert world.meter.counted["stamp_bytes"] == most or entries != "all"


def test_with_a_cycle_they_are_not() -> None:
    assert faults(150, variant(entries="own"), lambda rng: TRIANGLE, kind=Watched) > 0
    assert faults(150, variant(entries="auto"), lambda rng: TRIANGLE, kind=Watched) == 0


def test_copies_that_come_twice_and_strays_are_dropped() -> None:
    world = Grouped(BSS, TRIANGLE)
    world.say_to(0, 0)
    (copy,) = world.copies
    world.run()
    world.inject(0, 1, copy.message)
    assert world.meter.discarded == {"duplicate": 1}
    for stray in (
        Vectors(0, 1, group=0, VT=np.zeros(5, int)),
        Vectors(0, 1, group=1, VT=np.zeros(6, int)),
        Vectors(2, 1, group=2, VT=np.zeros(6, int)),
        Vectors(1, 1, group=0, VT=np.zeros(6, int)),
    ):
        world.inject(stray.source, 1, stray)
    assert world.meter.discarded == {"duplicate": 1, "malformed": 4}
    assert world.delivered(1) == [MessageId(0, 1)]


def test_a_message_goes_to_a_group_of_its_sender_and_nowhere_else() -> None:
    protocol = BSS(Place(0, 3, groups=TRIANGLE))
    assert protocol.peers() == (1, 2)
    with pytest.raises(ValueError, match="none of the groups it is in"):
        list(protocol.multicast(b"", frozenset({1, 2}), 0))
