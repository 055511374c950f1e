"""The basic protocol of phases in one group, with stamps and without."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.protocols import MessageId
from testbed.protocols.broken.groups import Unstamped
from testbed.protocols.phases import PhaseMessage, Phases, Resynch
from tests.protocols.grouped import World

SEEDS = st.integers(0, 2**32 - 1)


def everybody(processes: int) -> tuple[frozenset[int]]:
    return (frozenset(range(processes)),)


def play(seed: int, protocol: type[Phases], one_sender: bool = False) -> World:
    rng = random.Random(seed)
    groups = everybody(rng.randint(2, 6))
    world = World(protocol, groups, rng=rng, longest=rng.choice([3, 30, 100, 300]))
    world.answers = 0 if one_sender else rng.randrange(6)
    world.play(10, [rng.choice(world.everybody)] if one_sender else None)
    return world


def play_in_step(seed: int, protocol: type[Phases]) -> World:
    rng = random.Random(seed)
    world = World(protocol, everybody(rng.randint(2, 6)), rng=rng)
    for _ in range(4):
        for me in rng.sample(world.everybody, len(world.everybody)):
            world.multicast(me, 0)
        world.run()
    return world


def stamps(world: World, sender: int, peer: int) -> list[Any]:
    copies = [c.message for c in sorted(world.copies) if (c.sender, c.peer) == (sender, peer)]
    return [(isinstance(m, Resynch), *m.stamp) for m in copies]  # type: ignore[attr-defined]


def test_who_is_behind_goes_on_to_the_next_phase_and_says_so() -> None:
    world = World(Phases, everybody(3))
    first, second = world.multicast(0, 0), world.multicast(0, 0)
    assert stamps(world, 0, 1) == [(False, 0), (False, 1)]
    world.pass_on(0, 1)
    world.pass_on(0, 1)
    assert stamps(world, 1, 2) == [(True, 1), (True, 2)]
    assert world.delivered[1] == [first]
    assert world.held == [(1, second, None)]  # until process 2 says that it has come to phase 1
    world.pass_on(0, 2)
    world.pass_on(2, 1)
    assert world.delivered[1] == [first, second]
    world.run()
    assert world.protocols[2].expected == [2, 2, 2]  # type: ignore[attr-defined]
    assert world.counted["resynchs"] == 4
    assert world.counted["resynch_bytes"] == 8 * 36
    assert world.counted["stamp_bytes"] == 4 * world.counted["stamped_copies"] == 4 * 4


@given(SEEDS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_random_executions_with_fifo_channels(seed: int, one_sender: bool) -> None:
    world = play(seed, Phases, one_sender)
    assert world.check().ok
    assert not world.discarded


@given(SEEDS, st.sampled_from([Phases, Unstamped]))
@settings(max_examples=60, deadline=None)
def test_in_step_nobody_resynchronises_or_waits_and_no_stamp_is_needed(
    seed: int, protocol: type[Phases]
) -> None:
    world = play_in_step(seed, protocol)
    assert world.check().ok
    assert world.counted["resynchs"] == 0
    assert not world.held
    assert (
        world.counted["stamp_bytes"] == (protocol is Phases) * 4 * world.counted["stamped_copies"]
    )


def out_of_step(protocol: type[Phases]) -> tuple[World, MessageId]:
    """Process 2 hears of phase 2 before it has heard of phases 0 and 1, and so goes on to 3 at once."""
    world = World(protocol, everybody(4))
    world.multicast(0, 0)
    world.pass_on(0, 1)
    world.pass_on(0, 3)
    world.multicast(1, 0)
    world.pass_on(1, 3)  # its resynch
    world.pass_on(1, 3)
    last = world.multicast(3, 0)
    for _ in range(3):  # two resynchs and the message
        world.pass_on(3, 2)
    assert world.protocols[2].expected == [0, 0, 3, 3]  # type: ignore[attr-defined]
    return world, last


def test_out_of_step_a_resynch_says_how_far_its_sender_has_come() -> None:
    world, _ = out_of_step(Phases)
    assert stamps(world, 2, 0) == [(True, 3)]
    world.run()
    assert world.check().ok


def test_out_of_step_a_resynch_without_a_stamp_is_misunderstood() -> None:
    world, last = out_of_step(Unstamped)
    assert stamps(world, 2, 0) == [(True,)]
    world.run()
    assert world.protocols[0].expected[2] == 1  # type: ignore[attr-defined]
    assert world.check().where("loss") == [(0, last), (1, last)]


def test_the_oracle_catches_the_protocol_without_stamps() -> None:
    found = [play(seed, Unstamped).check() for seed in range(150)]
    assert any(verdict.count("order") for verdict in found)
    assert any(verdict.count("loss") for verdict in found)


def test_copies_that_come_twice_and_strays_are_dropped() -> None:
    world = World(Phases, everybody(2))
    world.multicast(0, 0)
    (copy,) = world.copies
    world.run()
    world.receive(0, 1, copy.message)
    world.receive(0, 1, PhaseMessage(0, 2, stamp=(1, 1)))
    world.receive(0, 1, PhaseMessage(1, 2, stamp=(1,)))
    world.receive(0, 1, Resynch(0, 0, stamp=()))
    assert world.discarded == ["duplicate", *["malformed"] * 3]
    assert len(world.delivered[1]) == 1


def test_a_stale_resynch_does_not_put_a_process_back() -> None:
    world = World(Phases, everybody(2))
    world.multicast(0, 0)
    world.run()
    world.receive(0, 1, Resynch(0, 0, stamp=(0,)))
    assert world.protocols[1].expected == [1, 1]  # type: ignore[attr-defined]
