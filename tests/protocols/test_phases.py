"""The basic protocol of phases in one group, with stamps and without."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.protocols import MessageId, Place
from testbed.protocols.broken.groups import Unstamped
from testbed.protocols.phases import Phases
from testbed.protocols.resynching import Resynch
from tests.protocols.grouped import Grouped, played

SEEDS = st.integers(0, 2**32 - 1)


def everybody(processes: int) -> tuple[frozenset[int]]:
    return (frozenset(range(processes)),)


def play(seed: int, protocol: Callable[[Place], Phases], **how: Any) -> Grouped[Phases]:
    draw = lambda rng: everybody(rng.randint(2, 6))  # noqa: E731
    return played(seed, protocol, draw, **how)


def play_in_step(seed: int, protocol: type[Phases]) -> Grouped[Phases]:
    rng = random.Random(seed)
    world = Grouped(protocol, everybody(rng.randint(2, 6)), seed, longest=100)
    for _ in range(4):
        for me in rng.sample(world.everybody, len(world.everybody)):
            world.say_to(me, 0)
        world.run()
    return world


def stamps(world: Grouped[Phases], sender: int, peer: int) -> list[Any]:
    copies = [copy.message for copy in world.channel(sender, peer)]
    return [(isinstance(m, Resynch), *m.stamp) for m in copies]


def test_who_is_behind_goes_on_to_the_next_phase_and_says_so() -> None:
    world = Grouped(Phases, everybody(3))
    first, second = world.say_to(0, 0), world.say_to(0, 0)
    assert stamps(world, 0, 1) == [(False, 0), (False, 1)]
    world.pass_on(0, 1)
    world.pass_on(0, 1)
    assert stamps(world, 1, 2) == [(True, 1), (True, 2)]
    assert world.delivered(1) == [first]
    assert world.log.held == [(1, second, None)]  # until process 2 says that it has come to phase 1
    world.pass_on(0, 2)
    world.pass_on(2, 1)
    assert world.delivered(1) == [first, second]
    world.run()
    assert world.protocols[2].expected == [2, 2, 2]
    assert world.meter.counted["resynchs"] == 4
    assert world.meter.counted["resynch_bytes"] == 8 * 36
    assert world.meter.counted["stamp_bytes"] == 4 * world.meter.counted["stamped_copies"] == 4 * 4


@given(SEEDS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_random_executions_with_fifo_channels(seed: int, one_sender: bool) -> None:
    world = play(seed, Phases, one_sender=one_sender)
    assert world.check().ok
    assert not world.meter.discarded


@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from([0, 1, 50]))
@settings(max_examples=300, deadline=None)
def test_numbers_put_messages_in_order_and_resynchs_may_wait_for_a_timer(
    seed: int, one_sender: bool, numbered: bool, delay: int
) -> None:
    chosen = Phases.Settings(numbered=numbered, resynch_after_ms=delay)
    late = partial(Phases, settings=chosen)
    assert play(seed, late, one_sender=one_sender, fifo=not numbered).check().ok


@given(SEEDS, st.sampled_from([Phases, Unstamped]))
@settings(max_examples=60, deadline=None)
def test_in_step_nobody_resynchronises_or_waits_and_no_stamp_is_needed(
    seed: int, protocol: type[Phases]
) -> None:
    world = play_in_step(seed, protocol)
    assert world.check().ok
    assert world.meter.counted["resynchs"] == 0
    assert not world.log.held
    assert (
        world.meter.counted["stamp_bytes"]
        == (protocol is Phases) * 4 * world.meter.counted["stamped_copies"]
    )


def out_of_step(protocol: type[Phases]) -> tuple[Grouped[Phases], MessageId]:
    """Process 2 hears of phase 2 before it has heard of phases 0 and 1, and so goes on to 3 at once."""
    world = Grouped(protocol, everybody(4))
    world.say_to(0, 0)
    world.pass_on(0, 1)
    world.pass_on(0, 3)
    world.say_to(1, 0)
    world.pass_on(1, 3)  # its resynch
    world.pass_on(1, 3)
    last = world.say_to(3, 0)
    for _ in range(3):  # two resynchs and the message
        world.pass_on(3, 2)
    assert world.protocols[2].expected == [0, 0, 3, 3]
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
    assert world.protocols[0].expected[2] == 1
    assert world.check().where("loss") == [(0, last), (1, last)]


def test_the_oracle_catches_the_protocol_without_stamps() -> None:
    found = [play(seed, Unstamped).check() for seed in range(150)]
    assert any(verdict.count("order") for verdict in found)
    assert any(verdict.count("loss") for verdict in found)
