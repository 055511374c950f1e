"""Groups of servers that are split while messages flow, and levels that are added and removed.

Baldoni, Friedman & van Renesse 1996, section 3.2.
"""

import random
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from testbed.check import Event
from testbed.protocols.daisy import Daisy, path
from testbed.protocols.daisy.tree import LEVEL
from testbed.protocols.groups.messages import Cast
from tests.protocols.daisy.daisies import QUICK, Daisies, watch
from tests.protocols.daisy.experiments import Run
from tests.world import MemoryLog

GROWING = replace(QUICK, group_size=2, split_above=2, max_levels=3)
TOP, HYPER = LEVEL, 2 * LEVEL
SPLIT = LEVEL // 2  # the least number of a local group that was split off


class Notes(MemoryLog):
    """The log with who joins and leaves, and what the protocol itself writes to it about levels."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[tuple[str, int]] = []

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        super().note(t, node, event, facts)
        if event.startswith("level-"):
            self.levels.append((event, facts["level"]))
        elif event in ("join", "leave"):
            self.events[node].append(Event(event, t=t))


def growing(processes: int, settings: Daisy.Settings = GROWING, **more: Any) -> Daisies:
    return Daisies(processes, settings=settings, **{"log": Notes(), **more})


def levels_of(world: Daisies) -> list[tuple[str, int]]:
    log = world.log
    assert isinstance(log, Notes)
    return log.levels


def agreed(world: Daisies) -> dict[int, tuple[int, ...]]:
    """The members of every group; all know their groups, and which are above."""
    here = [p for p in world.live() if not world.group(p).out]
    members: dict[int, tuple[int, ...]] = {}
    for p in here:
        for level, group in enumerate(world.protocols[p].groups):
            assert members.setdefault(group.number, world.view(p, level)) == world.view(p, level)
    for p in here:
        daisy, server = world.protocols[p], world.view(p)[0]
        assert daisy.path[1:] == world.protocols[server].path[1:]
        assert members.keys() >= set(daisy.path)
    return members


def unnumbered(world: Daisies) -> list[tuple[int, tuple[int, ...]]]:
    """The groups and their members; one that was split off has the least number of its kind."""
    kinds = (
        (number // SPLIT * SPLIT if number % LEVEL >= SPLIT else number, members)
        for number, members in agreed(world).items()
    )
    return sorted(kinds)


def all_talk(world: Daisies) -> None:
    """All who are there send to all who are there, and everything arrives."""
    here = [p for p in world.live() if not world.group(p).out]
    names = {world.say(p, here) for p in here}
    world.settle(4000, 100)
    world.run(300)
    assert all(names <= set(world.delivered(p)) for p in here)
    world.sound()


def test_a_servers_group_that_is_too_large_is_split_below_a_new_level_of_hyper_servers() -> None:
    world = growing(8)
    for number in range(20):
        to = [number * 7 % 8, number * 3 % 8] if number % 3 else None
        world.at(5 + 10 * number, partial(world.say, number * 5 % 8, to))
    world.run(600)
    assert levels_of(world) == [("level-added", 2)]
    local = {0: (0, 1), 1: (2, 3), 2: (4, 5), 3: (6, 7)}
    (other,) = agreed(world).keys() - {*local, TOP, HYPER}
    assert LEVEL + LEVEL // 2 <= other < HYPER
    assert agreed(world) == {**local, TOP: (0, 2), other: (4, 6), HYPER: (0, 4)}
    world.settle()
    world.sound()
    assert world.due() == 0
    casts = watch(world, Cast)
    name = world.say(3, [7])
    world.settle()
    way = dict.fromkeys((sender, c.group) for sender, _, c in casts if c.id == name)
    assert list(way) == [(3, 1), (2, TOP), (0, HYPER), (4, other), (6, 3)]
    assert not world.has_history()


def test_a_singleton_grows_by_joins_until_there_is_a_third_level_and_shrinks_again() -> None:
    world = growing(6, replace(GROWING, group_size=6))
    for process in range(1, 6):
        world.leave(process)
    world.run(2500)
    first: list[tuple[int, tuple[int, ...]]] = [(0, (0, 1)), (TOP, (0, 2)), (SPLIT, (2,))]
    expected: list[list[tuple[int, tuple[int, ...]]]]
    expected = [[(0, (0,)), (TOP, (0,))], [(0, (0, 1)), (TOP, (0,))], first]
    for process in (3, 4, 5):  # a local group, and with it the group of servers, is split again
        below = [pair for pair in expected[-1] if pair[0] != HYPER]
        alone = [(SPLIT, (process,)), (TOP + SPLIT, (process,))]
        expected.append([*below, *alone, (HYPER, (0, *range(3, process + 1)))])
    assert unnumbered(world) == sorted(expected[0])
    for process in range(1, 6):
        world.join(process)
        world.run(1500)
        all_talk(world)
        assert unnumbered(world) == sorted(expected[process])
    assert levels_of(world) == [("level-added", 2)]
    for process in (3, 4, 5):
        world.leave(process)
        world.run(1000)
    all_talk(world)
    assert unnumbered(world) == sorted(first)
    assert levels_of(world) == [("level-added", 2), ("level-removed", 2)]
    assert not world.has_history()


def test_levels_are_added_up_to_the_most_that_there_may_be() -> None:
    world = growing(10, replace(GROWING, max_levels=4), wire=False)
    world.run(4000)
    assert levels_of(world) == [("level-added", 2), ("level-added", 3)]
    assert all(len(m) <= 2 for m in agreed(world).values())
    all_talk(world)
    few = growing(10, wire=False)
    few.run(4000)
    assert levels_of(few) == [("level-added", 2)]
    assert len(agreed(few)[HYPER]) == 3


def test_processes_that_talk_to_each_other_stay_below_the_same_group_of_servers() -> None:
    world = growing(8, replace(GROWING, split_above=3))
    for number in range(30):
        world.at(0.05 + number / 20, partial(world.say, 0, [6]))
    world.run(600)
    assert world.protocols[6].path[1] == world.protocols[0].path[1] == TOP
    assert world.protocols[3].path[1] != TOP


# servers that do not know


def test_a_new_server_that_has_not_heard_of_the_split_is_told_whom_to_ask() -> None:
    world = growing(8)
    told = watch(world, path.Path)
    listen = world.drops
    world.drops = lambda a, b, message: (
        (b == 5 and isinstance(message, path.Path)) or listen(a, b, message)
    )
    world.run(400)
    assert world.protocols[4].path[1] != TOP
    assert world.protocols[5].path[1] == TOP
    told.clear()
    world.drops = listen
    world.crash(4)
    world.protocols[5].levels.on_path = lambda *_: iter(())  # type: ignore[method-assign, union-attr]
    world.run(200)
    assert len(world.protocols[5].groups) == 2
    assert world.group(5, 1).seeking  # not admitted where it does not belong
    del world.protocols[5].levels.on_path  # type: ignore[union-attr]
    world.say(5, [0, 6])
    world.say(0, [5, 7])
    world.settle()
    assert any(b == 5 and m.steps[0][0] != TOP for _, b, m in told)
    assert world.protocols[5].path == (2, *world.protocols[6].path[1:])
    world.sound()
    assert world.due() == 0


def test_a_server_of_the_top_learns_of_a_level_from_one_who_seeks_it() -> None:
    world = growing(8)
    world.run(20)  # the level is there, and nobody else knows
    assert levels_of(world) == [("level-added", 2)]
    hyper = world.protocols[0]
    world.drops = lambda a, b, message: isinstance(message, path.Path)
    while world.protocols[4].path[1] == TOP:
        world.step()
    world.crash(hyper.me)
    world.drops = lambda a, b, message: False
    world.run(1500)
    assert world.protocols[4].path[-1] == world.protocols[2].path[-1] == HYPER
    all_talk(world)


# faults while levels are added


@pytest.mark.parametrize("victim", [0, 2, 4, 6])
@pytest.mark.parametrize("moment", range(3))
def test_a_server_crashes_while_levels_are_added(victim: int, moment: int) -> None:
    for at in range(1 + 7 * moment, 160, 21):
        world = growing(8, wire=False, seed=at)
        for number in range(30):
            to = [number * 3 % 8, number * 5 % 8] if number % 3 else None
            world.at(1 + 6 * number, partial(world.say, number * 7 % 8, to))
        world.at(at, partial(world.crash, victim))
        world.run(300)
        world.settle(4000, 100)
        world.sound()
        assert world.due() == 0, at


def storm(seed: int) -> Daisies:
    """Levels grow while processes crash, come back, leave or are cut off, as the seed has it."""
    rng = random.Random(seed)
    n, deed = rng.choice([6, 8, 12]), rng.choice(["crash", "restart", "leave", "part", "crash"])
    settings = rng.choice(
        [
            replace(GROWING, max_levels=4),
            replace(GROWING, group_size=n),
            replace(GROWING, split_above=4, merge_below=2),
        ]
    )
    network = {
        "loss": rng.choice([0, 0, 0.05]),
        "delays_ms": rng.choice([(1, 3), (0.1, 1), (1, 15)]),
    }
    world = growing(n, settings, seed=seed, answering=0.1, wire=False, **network)
    for _ in range(rng.randint(10, 40)):
        to = rng.sample(range(n), rng.randint(1, 3)) if rng.random() < 0.7 else None
        world.at(rng.uniform(5, 500), partial(world.say, rng.randrange(n), to))
    process, at = rng.randrange(n), rng.uniform(5, 400)
    back = at + rng.choice([30, 100, 190])
    if deed == "part":
        world.at(at, partial(world.part, rng.sample(range(n), rng.randint(1, n // 2))))
        world.at(back, world.part)
    elif deed == "leave":
        world.at(at, partial(world.leave, process))
        world.at(back, partial(world.join, process))
    else:
        world.at(at, partial(world.crash, process))
    if deed == "restart":
        world.at(back, partial(world.restart, process))
    world.run(800)
    world.answering = 0
    return world


@pytest.mark.parametrize("start", range(0, 24, 6))
def test_no_storm_while_levels_grow_makes_a_violation(start: int) -> None:
    for seed in range(start, start + 6):
        world = storm(seed)
        world.settle(4000)
        verdict = world.check()
        assert verdict.ok, (seed, verdict.explain(2))
        world.run(1500)
        all_talk(world)


def test_the_process_that_adds_a_level_is_killed_in_an_experiment_as_users_write_it() -> None:
    file = Path(__file__).parents[3] / "scripts/experiments/levels.toml"
    run = Run({**tomllib.loads(file.read_text()), "engine": "simulate"})
    run.is_sound()
    assert len(run.live) == 23
    above = [run.protocol(p).path[1:] for p in run.live]
    assert {len(numbers) for numbers in above} == {2}
    assert len({numbers[0] for numbers in above}) > 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_levels": 3},
        {"max_levels": 9, "split_above": 3},
        {"max_levels": 2, "levels": 3, "split_above": 3},
    ],
)
def test_levels_that_cannot_be_added_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="max_levels"):
        Daisy.Settings(**wrong)
