"""The alternatives to the daisy: each as the paper has it, at what price, and what they survive."""

import random
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

from testbed.protocols import BroadcastAll, MessageId, Piggyback, WaitStable
from testbed.protocols.daisy import Daisy
from testbed.protocols.flat import Flat
from testbed.protocols.groups.laden_cast import LadenCast
from testbed.protocols.groups.messages import Cast, Report
from testbed.protocols.groups.stamped_cast import StampedCast
from tests.protocols.daisy.daisies import Daisies, Members, lose_casts, scenario, watch

QUICK = Flat.Settings(heartbeat_ms=20, patience_ms=70, grace_ms=200, ack_ms=1)
ALL = [WaitStable, BroadcastAll, Piggyback]
every = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)


class Flats(Members[Flat]):
    """One group of all processes."""

    def __init__(
        self,
        kind: type[Flat],
        processes: int,
        seed: int = 0,
        settings: Flat.Settings | None = None,
        **more: Any,
    ) -> None:
        chosen = settings or kind.Settings(**asdict(QUICK))
        make = lambda place: kind(place, chosen)  # noqa: E731
        super().__init__(make, processes, seed, **{"delays_ms": (1, 3), **more})

    def keeps(self, *nodes: int) -> bool:
        """Whether some of these processes, or of all, keep a message."""
        return any(self.protocols[p].group.history for p in nodes or range(len(self.nodes)))


# Figure 2


@every
@pytest.mark.parametrize(("a", "b", "c"), [(1, 2, 3), (0, 1, 2), (1, 0, 2)])
def test_a_crash_and_an_omission_do_not_block_others(
    kind: type[Flat], a: int, b: int, c: int
) -> None:
    world = Flats(kind, 4)
    scenario(world, a, b, c, (a, b))
    assert (c, 1) in world.delivered(b)
    world.sound()


# a. wait


def test_who_has_sent_or_received_waits_until_that_is_stable_before_it_sends_to_others() -> None:
    world = Flats(WaitStable, 4)
    world.run(30)
    casts = watch(world, Cast, lambda sender, peer, message: peer == 2)
    world.say(0, [1, 2])
    world.say(0, [3])
    world.run(5)
    assert world.delivered(1) == [(0, 1)]
    world.say(1, [3])
    world.run(10)
    assert world.delivered(3) == []
    assert {cast.id for *_, cast in casts} == {(0, 1)}
    world.drops = lambda sender, peer, message: False
    world.settle()
    assert sorted(world.delivered(3)) == [(0, 2), (1, 1)]
    world.sound()


def test_a_message_to_the_same_recipients_names_the_unstable_ones_instead() -> None:
    world = Flats(WaitStable, 4)
    world.run(30)
    casts = watch(world, Cast, lose_casts((0, 2)))
    world.say(0, [1, 2])
    world.say(0, [1, 2])
    while len(world.delivered(1)) < 2:
        world.step()
    world.say(1, [1, 2])
    world.run(5)
    last = next(cast for *_, cast in casts if cast.source == 1)
    assert isinstance(last, StampedCast)
    assert last.after == (MessageId(0, 1), MessageId(0, 2))
    assert world.delivered(2) == []
    world.drops = lambda sender, peer, message: False
    world.settle()
    assert world.delivered(2) == [(0, 1), (0, 2), (1, 1)]


def test_it_waits_for_its_causal_past_only_and_not_for_what_comes_while_it_waits() -> None:
    world = Flats(WaitStable, 6)
    world.run(30)
    for number in range(40):  # at each moment process 1 has received something unstable
        world.at(world.now / 1e6 + number, partial(world.say, 2 + number % 2, [1, 4]))
    world.run(10)
    world.say(1, [5])
    world.run(15)
    assert (1, 1) in world.delivered(5)


def test_only_destinations_get_a_message_and_it_costs_no_vector() -> None:
    world = Flats(WaitStable, 30)
    world.run(30)
    casts = watch(world, Cast)
    world.say(0, [7, 9])
    world.settle()
    assert {peer for _, peer, _ in casts} == {7, 9}
    assert {cast.control_size for *_, cast in casts} == {24 + 8}
    world.run(200)
    assert not world.keeps()


# b. broadcast


def test_to_broadcast_everything_is_a_daisy_of_one_level() -> None:
    def said(world: Members[Any]) -> Any:
        for number in range(20):
            world.at(30 + 3 * number, partial(world.say, number % 8, [number * 3 % 8, 5]))
        world.at(60, partial(world.crash, 0))
        world.run(1500)
        world.sound()
        return [[(e.t, e.source, e.seq) for e in world.log.events[p]] for p in range(8)]

    one_level = Daisies(8, settings=Daisy.Settings(levels=1, **asdict(QUICK)), delays_ms=(1, 3))
    assert said(Flats(BroadcastAll, 8)) == said(one_level)


# c. piggyback


def test_an_answer_carries_the_question_to_who_does_not_have_it_yet() -> None:
    world = Flats(Piggyback, 4)
    world.run(30)
    world.drops = lose_casts((0, 2))
    world.say(0, [1, 2])
    while not world.delivered(1):
        world.step()
    casts = watch(world, LadenCast, lose_casts((0, 2)))
    world.say(1, [3])
    while not world.delivered(3):
        world.step()
    world.say(3, [2])
    world.run(8)
    assert world.delivered(2) == [(0, 1), (3, 1)]
    assert world.delivered(3) == [(1, 1)]  # what is attached is not for it
    laden = next(m for _, peer, m in casts if peer == 2 and m.source == 3)
    assert [c.id for c in laden.attached] == [(0, 1), (1, 1)]
    world.drops = lambda sender, peer, message: False
    world.run(300)
    assert not world.keeps()
    world.sound()


def test_nothing_is_attached_that_is_stable() -> None:
    world = Flats(Piggyback, 4)
    world.run(30)
    world.say(0, [1, 2])
    world.run(30)
    casts = watch(world, LadenCast)
    world.say(1, [3])
    world.run(10)
    assert [cast.attached for *_, cast in casts] == [()]


def test_what_would_not_fit_a_datagram_waits() -> None:
    world = Flats(Piggyback, 4, settings=Piggyback.Settings(**asdict(QUICK), most_bytes=300))
    world.run(30)
    casts = watch(world, LadenCast)
    for _ in range(20):
        world.say(0, [1, 2])
    world.settle()
    assert len(world.delivered(1)) == 20
    assert 200 < max(cast.size for *_, cast in casts) <= 300
    world.sound()


# all


@every
def test_a_lost_acknowledgement_is_repeated(kind: type[Flat]) -> None:
    world = Flats(kind, 5)
    world.run(30)
    world.drops = lambda sender, peer, m: sender == 2 and isinstance(m, Report)
    world.say(1, [2, 3])
    world.run(30)
    assert world.delivered(2)
    assert world.keeps(1)
    world.drops = lambda sender, peer, message: False
    world.run(150)
    assert not world.keeps()


@every
def test_who_leaves_sends_first_what_waits_and_may_come_back(kind: type[Flat]) -> None:
    world = Flats(kind, 4)
    world.run(30)
    world.say(0, [1, 2])
    world.say(0, [3])
    world.leave(0)
    world.run(400)
    assert world.delivered(3) == [(0, 2)]
    assert world.protocols[0].group.out
    world.join(0)
    world.run(400)
    world.say(3, [0])
    world.settle()
    assert world.delivered(0) == [(3, 1)]


@every
def test_what_is_for_one_that_is_away_is_kept_by_others_than_its_sender(kind: type[Flat]) -> None:
    world = Flats(kind, 3)
    world.drops = lambda sender, peer, message: 2 in (sender, peer)
    world.run(130)
    world.say(0, [2])
    world.say(0)
    world.run(20)
    world.crash(0)
    world.drops = lambda sender, peer, message: False
    world.run(400)
    assert world.delivered(2) == [(0, 1), (0, 2)]


@every
def test_one_that_leaves_and_comes_back_brings_what_others_may_lack(kind: type[Flat]) -> None:
    world = Flats(kind, 3)
    world.drops = lambda sender, peer, message: 1 in (sender, peer)
    world.run(130)
    world.say(0)
    world.run(20)
    world.leave(2)
    world.run(60)
    assert world.protocols[2].group.out
    world.crash(0)
    world.join(2)
    world.drops = lambda sender, peer, message: False
    world.run(400)
    world.say(2)
    world.run(100)
    assert world.delivered(1) == [(0, 1), (2, 1)]


@every
@pytest.mark.parametrize("seed", range(12))
def test_crashes_restarts_pauses_losses_and_partitions(kind: type[Flat], seed: int) -> None:
    rng = random.Random(seed)
    processes = rng.choice([3, 5, 8])
    world = Flats(kind, processes, seed, loss=rng.choice([0, 0.1]), answering=0.3, wire=seed < 3)
    for _ in range(30):
        to = rng.choice([None, rng.sample(range(processes), rng.randint(1, 3))])
        world.at(rng.uniform(20, 400), partial(world.say, rng.randrange(processes), to))
    for _ in range(rng.randint(0, 3)):
        deed, at = rng.choice([world.crash, world.restart, world.pause]), rng.uniform(20, 450)
        process = rng.randrange(processes)
        world.at(at, partial(deed, process))
        world.at(at + rng.choice([30, 100, 250]), partial(world.resume, process))
    if rng.random() < 0.5:
        island, at = (
            rng.sample(range(processes), rng.randint(1, processes // 2)),
            rng.uniform(20, 400),
        )
        world.at(at, partial(world.part, island))
        world.at(at + rng.choice([20, 80, 150]), world.part)
    world.run(800)
    world.answering = 0
    world.settle(1000)
    world.sound()
