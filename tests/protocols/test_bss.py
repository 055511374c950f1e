"""BSS: one vector for each group, and nothing held back without need."""

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.protocols import Protocol
from testbed.protocols.bss import BSS
from testbed.protocols.mostefaoui_raynal import MostefaouiRaynal
from tests.protocols.grouped import TRIANGLE, Grouped, Watched, played

U32 = st.integers(0, 2**32 - 1)
P1, P2, P3 = range(3)
G1, G2, G3 = range(3)


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
