"""Daisies under losses and under faults that a seed draws, however messages travel in a group."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from tests.protocols.daisy.daisies import QUICK, RECIPIENTS, STAR, Daisies

LOSSES = [0.0, 0.1, 0.2, 0.3]


def nothing_is_lost(world: Daisies, to: Callable[[int], list[int] | None]) -> None:
    """All talk for a while, and everything arrives."""
    processes = len(world.nodes)
    for number in range(2 * processes):
        sender = number * 7 % processes
        world.at(30 + 5 * number, partial(world.say, sender, to(number)))
    world.run(200)
    world.settle()
    assert world.due() == 0
    world.sound()


@pytest.mark.parametrize(
    ("processes", "settings"),
    [
        *((16, replace(QUICK, group_size=3, levels=levels)) for levels in (2, 3, 4)),
        *((12, replace(STAR, group_size=3, levels=levels)) for levels in (1, 2, 3)),
    ],
    ids=lambda value: getattr(value, "levels", value),
)
@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_lost_is_sent_again(processes: int, settings: Any, loss: float) -> None:
    world = Daisies(processes, settings.levels, settings, loss=loss, answering=0.03, wire=False)
    nothing_is_lost(world, lambda number: None)


@pytest.mark.parametrize(("loss", "levels", "k"), list(product(LOSSES, [2, 3], [1, 2])))
def test_what_is_lost_is_sent_again_to_recipients(loss: float, levels: int, k: int) -> None:
    rng = random.Random(levels)
    settings = replace(RECIPIENTS, resilience=k, levels=levels)
    world = Daisies(16, levels, settings, loss=loss, answering=0.03, wire=False)
    nothing_is_lost(world, lambda number: rng.sample(range(16), 3) if number % 3 else None)


# faults


def drawn(
    rng: random.Random, processes: int, seed: int, settings: Any, losses: tuple[float, ...]
) -> Daisies:
    """A daisy on a network that is drawn."""
    return Daisies(
        processes,
        seed,
        settings,
        loss=rng.choice(losses),
        delays_ms=rng.choice([(1, 3), (0.1, 1), (1, 15)]),
        answering=rng.choice([0, 0.05]),
        wire=False,
    )


def plan_message(
    world: Daisies, rng: random.Random, at: float, process: int, subsets: float = 0.7
) -> None:
    """A process will send, to some others or to all."""
    everybody = range(len(world.nodes))
    to = rng.sample(everybody, rng.randint(1, 3)) if rng.random() < subsets else None
    world.at(at, partial(world.say, process, to))


def storm(seed: int) -> Daisies:
    """Crashes, restarts, losses, partitions and pauses, as the seed has it."""
    rng = random.Random(seed)
    processes, levels, size = rng.choice([3, 6, 8, 12]), rng.choice([2, 2, 3]), rng.choice([3, 4])
    settings = replace(QUICK, levels=levels, group_size=size)
    world = drawn(rng, processes, seed, settings, (0, 0, 0.05, 0.2))
    for _ in range(rng.randint(5, 30)):
        plan_message(world, rng, rng.uniform(20, 400), rng.randrange(processes))
    deeds = [world.crash] * 2 + [world.restart, world.pause]
    for _ in range(rng.randint(0, 4)):
        deed, process, at = rng.choice(deeds), rng.randrange(processes), rng.uniform(20, 450)
        world.at(at, partial(deed, process))
        world.at(at + rng.choice([30, 100, 250]), partial(world.resume, process))
    if rng.random() < 0.5:
        island = rng.sample(range(processes), rng.randint(1, processes // 2))
        at = rng.uniform(20, 400)
        world.at(at, lambda: world.part(island))
        world.at(at + rng.choice([20, 80, 150]), world.part)
    world.run(800)
    return world


def storm_for_recipients(seed: int) -> Daisies:
    """Losses, and now and then k processes that crash, start again, stand still or are cut off."""
    rng = random.Random(seed)
    processes, k = rng.choice([3, 6, 8, 12]), rng.choice([1, 2])
    settings = replace(RECIPIENTS, resilience=k, levels=rng.choice([2, 2, 3]))
    world = drawn(rng, processes, seed, settings, (0, 0, 0.05))
    at = rng.uniform(20, 200)
    for _ in range(rng.randint(1, 2)):
        struck = rng.sample(range(processes), rng.randint(1, k))
        deed = rng.choice([world.crash, world.crash, world.restart, world.pause, None])
        if deed is None:
            world.at(at, partial(world.part, struck))
            world.at(at + rng.choice([20, 80, 150, 400]), world.part)
        else:
            for process in struck:
                when = at + rng.choice([0, 0, 1, 30, 80])
                world.at(when, partial(deed, process))
                world.at(when + rng.choice([30, 100, 250]), partial(world.resume, process))
        at += 1000
    for _ in range(rng.randint(5, 30)):
        process, when = rng.randrange(processes), rng.uniform(20, at - 700)
        for number in range(rng.choice([1, 3])):
            plan_message(world, rng, when + number / 3, process, subsets=0.8)
    world.run(at)
    return world


def storm_for_a_star(seed: int) -> Daisies:
    """One after the other, processes crash, start again, stand still or are cut off."""
    rng = random.Random(seed)
    processes, size = rng.choice([4, 6, 8, 12]), rng.choice([3, 4])
    settings = replace(STAR, levels=rng.choice([1, 2, 2, 3]), group_size=size)
    world = drawn(rng, processes, seed, settings, (0, 0, 0.05, 0.2))
    isolate = lambda process: world.part([process])  # noqa: E731
    at = rng.uniform(20, 150)
    for _ in range(rng.randint(1, 2)):
        for _ in range(rng.randint(10, 25)):
            when = max(20, at + rng.uniform(-30, 150))
            plan_message(world, rng, when, rng.randrange(processes))
        process = rng.choice([rng.randrange(processes), rng.randrange(0, processes, size)])
        deed = rng.choice([world.crash, world.crash, world.restart, world.pause, isolate])
        world.at(at, partial(deed, process))
        later = at + rng.choice([30, 100, 250])
        world.at(later, partial(world.resume, process))
        world.at(later, world.part)
        at += rng.uniform(800, 1000)
    world.run(at)
    return world


def storm_while_groups_change(seed: int) -> Daisies:
    """Groups are split and merged, or levels grow, while one crashes and others are cut off."""
    rng = random.Random(seed)
    processes = rng.choice([6, 9, 13])
    growing = {"group_size": processes, "split_above": 2, "max_levels": 4}
    merging = {"group_size": 4, "split_above": 3, "merge_below": 2}
    settings = replace(QUICK, **rng.choice([growing, merging]))  # type: ignore[arg-type]
    world = drawn(rng, processes, seed, settings, (0, 0, 0.05, 0.2))
    for _ in range(rng.randint(10, 40)):
        plan_message(world, rng, rng.uniform(5, 900), rng.randrange(processes))
    island, at = rng.sample(range(processes), rng.randint(1, processes // 2)), rng.uniform(10, 700)
    world.at(at, lambda: world.part(island))
    world.at(at + rng.choice([100, 150, 180]), world.part)
    world.at(rng.uniform(10, 900), partial(world.crash, rng.randrange(processes)))
    world.run(1000)
    world.answering = 0
    return world


@pytest.mark.parametrize(
    ("make", "start", "seeds"),
    [
        *product([storm], range(0, 100, 10), [10]),
        *product([storm_for_recipients], range(0, 40, 10), [10]),
        *product([storm_for_a_star], range(0, 60, 10), [10]),
        *product([storm_while_groups_change], [0, 50], [3]),
    ],
)
def test_no_storm_makes_a_violation(make: Callable[[int], Daisies], start: int, seeds: int) -> None:
    for seed in range(start, start + seeds):
        world = make(seed)
        world.settle()
        verdict = world.check()
        assert verdict.ok, (seed, verdict.explain(2))
