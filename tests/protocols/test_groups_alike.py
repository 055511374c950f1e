"""What protocols for groups have in common: entries, strays, and groups that are not the sender's."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.protocols import BSS, Message, MostefaouiRaynal, Phases, Place
from testbed.protocols.bss import Vectors
from testbed.protocols.grouped import has_cycle
from testbed.protocols.resynching import PhaseMessage, Resynch
from tests.protocols.grouped import TRIANGLE, Grouped, Groups, Watched, draw_tree, faults, played

BOTH = pytest.mark.parametrize(
    ("protocol", "kind"), [(MostefaouiRaynal, Grouped), (BSS, Watched)], ids=["phases", "vectors"]
)
PAIR: Groups = (frozenset({0, 1}),)


def variant(protocol: Any, **keys: Any) -> Callable[[Place], Any]:
    return partial(protocol, settings=protocol.Settings(**keys))


@BOTH
@given(st.integers(0, 2**32 - 1), st.sampled_from(["auto", "all", "own"]), st.booleans())
@settings(max_examples=300)
def test_without_a_cycle_a_few_entries_are_enough(
    protocol: Any, kind: type[Grouped[Any]], seed: int, entries: str, fifo: bool
) -> None:
    draw = lambda rng: draw_tree(rng, rng.randint(2, 5))  # noqa: E731
    fifo = fifo or protocol is MostefaouiRaynal
    world = played(seed, variant(protocol, entries=entries), draw, kind=kind, fifo=fifo)
    assert not has_cycle(world.groups)
    assert world.check().ok
    of_a_stamp = len(world.groups) if protocol is MostefaouiRaynal else sum(map(len, world.groups))
    most = 4 * of_a_stamp * world.meter.counted["stamped_copies"]
    assert world.meter.counted["stamp_bytes"] <= most
    assert world.meter.counted["stamp_bytes"] == most or entries != "all"


@BOTH
def test_with_a_cycle_the_same_entries_are_too_few(protocol: Any, kind: type[Grouped[Any]]) -> None:
    assert faults(150, variant(protocol, entries="own"), lambda rng: TRIANGLE, kind=kind) > 0
    assert faults(150, variant(protocol, entries="auto"), lambda rng: TRIANGLE, kind=kind) == 0


@pytest.mark.parametrize("protocol", [MostefaouiRaynal, BSS])
def test_a_message_goes_to_a_group_of_its_sender_and_nowhere_else(protocol: Any) -> None:
    process = protocol(Place(0, 3, groups=TRIANGLE))
    assert process.peers() == (1, 2)
    for wrong in (frozenset({1, 2}), frozenset({0}), frozenset[int](), None):
        with pytest.raises(ValueError, match="none of the groups it is in"):
            list(process.multicast(b"", wrong, 0))
    everybody = protocol(Place(0, 2, groups=PAIR))
    assert list(everybody.multicast(b"", None, 0))


def stamped(*stamp: int, source: int = 0, group: int = 0) -> PhaseMessage:
    return PhaseMessage(source, 1, group=group, stamp=stamp)


def vectors(source: int, group: int, entries: int = 6) -> Vectors:
    return Vectors(source, 1, group=group, VT=np.zeros(entries, int))


@pytest.mark.parametrize(
    ("protocol", "groups", "strays"),
    [
        (
            Phases,
            PAIR,
            [stamped(1, 1), stamped(1, source=1), Resynch(0, 0, stamp=())],
        ),
        (
            variant(MostefaouiRaynal, entries="all"),
            TRIANGLE,
            [
                stamped(0, 0),
                stamped(0, 0, 0, group=1),
                stamped(0, 0, 0, group=2, source=2),
                stamped(0, 0, 0, group=7),
                stamped(0, 0, 0, source=1),
                Resynch(0, 0, group=0, stamp=(1, 1)),
                Resynch(0, 0, group=2, stamp=(1,)),
            ],
        ),
        (variant(MostefaouiRaynal, numbered=True), TRIANGLE, []),
        (BSS, TRIANGLE, [vectors(0, 0, 5), vectors(0, 1), vectors(2, 2), vectors(1, 0)]),
    ],
    ids=["one group", "phases", "numbered phases", "vectors"],
)
def test_copies_that_come_twice_and_strays_are_dropped(
    protocol: Callable[[Place], Any], groups: Groups, strays: Sequence[Message]
) -> None:
    world = Grouped(protocol, groups)
    name = world.say_to(0, 0)
    (copy,) = world.copies
    world.run()
    world.inject(0, 1, copy.message)
    assert world.meter.discarded == {"duplicate": 1}
    for stray in strays:
        world.inject(0 if groups == PAIR else stray.source, 1, stray)
    assert world.meter.discarded == {"duplicate": 1} | (
        {"malformed": len(strays)} if strays else {}
    )
    assert world.delivered(1) == [name]
    assert not world.copies


@pytest.mark.parametrize(
    ("protocol", "groups", "expected"),
    [(Phases, PAIR, [1, 1]), (MostefaouiRaynal, TRIANGLE, {0: {0: 1, 1: 1}, 1: {1: 0, 2: 0}})],
)
def test_a_stale_resynch_does_not_put_a_process_back(
    protocol: Any, groups: Groups, expected: Any
) -> None:
    world = Grouped(protocol, groups)
    world.say_to(0, 0)
    world.run()
    world.inject(0, 1, Resynch(0, 0, group=0, stamp=(0,)))
    assert world.protocols[1].expected == expected
