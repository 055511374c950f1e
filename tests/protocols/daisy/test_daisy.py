"""The daisy: the paper's scenarios, crashes of servers at every moment, and what chance makes."""

import dataclasses
import random
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from testbed.protocols import RST, Deliver, Place, Send
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.messages import Cast, Part
from testbed.protocols.daisy.tree import daisy
from tests.protocols.daisy.daisies import (
    QUICK,
    SERVERS,
    afterwards,
    crash_at,
    crash_in_a_row,
    heal,
    leave_and_join,
    scenario,
    stand_still,
    start_again,
    weather,
)
from tests.protocols.members import Members


def flowers(processes: int, seed: int = 0, levels: int = 2, size: int = 4, **more: Any) -> Members:
    settings = dataclasses.replace(QUICK, levels=levels, group_size=size)
    world = {"protocol": lambda place: Daisy(place, settings), "delays_ms": (1, 3), **more}
    return Members(processes, seed, **world)


# the tree


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
@pytest.mark.parametrize("processes", [1, 2, 5, 8, 12, 64, 256])
def test_every_process_is_below_one_group_of_each_level_and_servers_are_the_first(
    processes: int, levels: int
) -> None:
    tree = daisy(processes, 4, levels)
    paths = [tree.path(p) for p in range(processes)]
    assert len({path[-1] for path in paths}) == 1
    assert tree.rosters[paths[0][-1]] == frozenset(range(processes))
    for p, path in enumerate(paths):
        assert p in tree.members[path[0]]
        for below, above in pairwise(path):
            assert tree.members[below][0] in tree.members[above]
            assert tree.below(above, tree.members[below][0]) == (tree.rosters[below], below)
    if levels > 1:
        assert max(len(tree.members[path[0]]) for path in paths) <= 4


def test_consecutive_processes_share_a_group() -> None:
    tree = daisy(12, 4, 2)
    assert tree.members == {0: (0, 1, 2, 3), 1: (4, 5, 6, 7), 2: (8, 9, 10, 11), 4096: SERVERS}


# Fig. 2 of the paper


def test_an_omission_and_a_crash_block_a_matrix_for_ever() -> None:
    world = Members(3, protocol=RST)
    scenario(world, a=0, b=1, c=2, lost=(0, 1))
    assert world.delivered(1) == []
    assert not world.check().ok  # never delivered


@pytest.mark.parametrize(
    ("a", "b", "c", "lost"),
    [
        pytest.param(1, 2, 3, (1, 2), id="nobody serves"),
        pytest.param(0, 1, 2, (0, 1), id="a serves"),
        pytest.param(1, 0, 2, (1, 0), id="b serves"),
        pytest.param(1, 5, 2, (1, 0), id="b elsewhere, lost on the way to the server"),
        pytest.param(0, 5, 1, (0, 4), id="b elsewhere, lost between servers, a serves"),
        pytest.param(1, 5, 2, (0, 4), id="b elsewhere, lost between servers"),
        pytest.param(1, 5, 2, (4, 5), id="b elsewhere, lost on the way from the server"),
        pytest.param(1, 4, 0, (0, 4), id="b and c serve"),
        pytest.param(1, 5, 6, (4, 5), id="b and c elsewhere"),
    ],
)
def test_an_omission_and_a_crash_do_not_block_the_daisy(
    a: int, b: int, c: int, lost: tuple[int, int]
) -> None:
    world = flowers(8)
    scenario(world, a, b, c, lost)
    assert world.delivered(b) == [(a, 1), (c, 1)]
    world.sound()


# relaying


def test_only_groups_with_destinations_and_those_on_the_way_hear_of_a_message() -> None:
    world = flowers(12)
    world.run(30)
    reached: set[tuple[int, int]] = set()

    def watch(sender: int, peer: int, message: Any) -> bool:
        if isinstance(message, Cast):
            reached.add((message.group, peer))
        return False

    world.drops = watch
    world.say(1, [2, 6])
    world.settle()
    assert world.delivered(6) == world.delivered(2) == [(1, 1)]
    assert {group for group, _ in reached} == {0, 1, 4096}
    assert world.counted["broadcasts"] == 3
    world.say(1, [1, 2])
    world.settle()
    assert world.counted["broadcasts"] == 4
    assert all(not world.delivered(p) for p in (0, 3, 4, 5, 7, 8, 9, 10, 11))


def test_the_first_thing_that_a_multicast_does_is_to_send() -> None:
    process = Daisy(Place(1, 8), QUICK)
    effects = [e for e in process.multicast(b"", None, 0) if isinstance(e, Send | Deliver)]
    assert isinstance(effects[0], Send)
    assert isinstance(effects[1], Deliver)
    assert effects[1].message.id == (1, 1)


def test_a_message_is_forgotten_everywhere_once_it_has_arrived_everywhere() -> None:
    world = flowers(16, levels=3, size=3)
    world.run(30)
    for process in range(16):
        world.say(process)
    world.run(12)
    assert any(world.group(p).history for p in range(16))
    world.run(1500)
    for process in range(16):
        assert not any(group.history for group in world.daisy(process).groups)


def test_a_sender_keeps_its_message_until_the_farthest_destination_has_it() -> None:
    world = flowers(12)
    world.run(30)
    world.drops = lambda sender, peer, message: peer == 11 and isinstance(message, Cast)
    world.say(1, [11])
    world.run(60)
    assert (1, 1) in world.group(2).history
    assert (1, 1) in world.group(4, 1).history
    world.drops = lambda sender, peer, message: False
    world.settle()
    world.run(200)
    assert not world.group(2).history
    assert world.delivered(11) == [(1, 1)]


@pytest.mark.parametrize("levels", [2, 3, 4])
@pytest.mark.parametrize("processes", [8, 64])
def test_control_information_grows_with_the_group_and_not_with_the_processes(
    processes: int, levels: int
) -> None:
    world = flowers(processes, levels=levels, size=4, wire=False)
    sizes: Counter[int] = Counter()

    def watch(sender: int, peer: int, message: Any) -> bool:
        if isinstance(message, Cast):
            sizes[message.control_size] += 1
            assert message.control_size == 16 + 4 * len(message.vector) + 4 * len(
                message.dests or ()
            )
        return False

    world.drops = watch
    world.run(30)
    for sender in range(0, processes, 3):
        world.say(sender, [(sender + processes // 2) % processes])
    world.settle()
    world.sound()
    assert world.due() == 0
    local = 16 + 4 * 4 + 4
    assert local in sizes
    if levels == 4:
        assert max(sizes) <= local  # 64 processes and 8 alike


# crashes


def busy_run(seed: int = 1) -> Members:
    world = flowers(12, seed, answering=0.1, wire=False)
    world.run(25)
    for process, to in ((1, [2, 6, 10]), (5, None), (9, [0, 4])):
        world.say(process, to)
    return world


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_may_crash_at_any_event_and_nothing_is_lost_twice_or_out_of_order(
    server: int,
) -> None:
    crash_at(busy_run, server)


@pytest.mark.parametrize("gap_ms", [0, 1, 20, 75, 85, 95, 110, 150])
@pytest.mark.parametrize("servers", [(0, 1), (4, 5), (4, 5, 6), (0, 4), (0, 4, 8)])
def test_the_old_and_the_new_server_crash_in_a_row(servers: tuple[int, ...], gap_ms: int) -> None:
    for first_ms in (2, 5, 9, 14):
        crash_in_a_row(busy_run(seed=first_ms), servers, first_ms, gap_ms)


def crash_in_transfer(what: int, end: int, number: int) -> bool:
    """The first group's server crashes, and at some part of a state whoever is at an end of its way."""
    world = busy_run()
    seen = 0

    def watch(sender: int, peer: int, message: Any) -> bool:
        nonlocal seen
        if isinstance(message, Part) and message.what == what:
            seen += 1
            if seen == number:
                world.at(world.now / 1e6, partial(world.crash, (sender, peer)[end]))
        return False

    world.drops = watch
    world.run(4)
    world.crash(0)
    afterwards(world)
    return seen >= number


@pytest.mark.parametrize("what", [0, 1], ids=["state", "install"])
@pytest.mark.parametrize("end", [0, 1], ids=["sender", "receiver"])
def test_a_crash_during_state_transfer_loses_nothing(what: int, end: int) -> None:
    number = 1
    while crash_in_transfer(what, end, number):
        number += 1
    assert number > 4


@pytest.mark.parametrize("safe", [False, True])
def test_a_sender_and_its_server_that_crash_together_leave_a_hole_unless_it_is_safe(
    safe: bool,
) -> None:
    settings = dataclasses.replace(QUICK, safe=safe)
    world = flowers(8, protocol=lambda place: Daisy(place, settings))
    world.run(30)
    world.drops = lambda sender, peer, message: (
        sender == 1 and peer in (2, 3) and isinstance(message, Cast)
    )
    world.say(1, [2])
    world.say(1, [5])
    world.run(18)
    if (1, 2) in world.delivered(5):
        world.say(5, [2])
    world.crash(0)
    world.crash(1)
    world.settle(3000)
    assert world.check().ok == safe


def test_the_daisy_works_again_soon_after_a_server_has_crashed() -> None:
    world = flowers(12)
    world.run(100)
    world.crash(4)
    world.run(70 + 3 * 20 + 40)  # patience, some heartbeats, some messages there and back
    assert [world.view(p, 1) for p in (0, 8, 5)] == [(0, 8, 5)] * 3
    world.say(6, [2])
    world.run(30)
    assert world.delivered(2) == [(6, 1)]


def test_a_group_whose_members_have_all_crashed_does_not_stop_the_others() -> None:
    world = flowers(12)
    world.run(50)
    for process in (4, 5, 6, 7):
        world.crash(process)
    world.say(0)
    world.run(300)
    world.say(9)
    world.settle()
    assert world.delivered(2) == [(0, 1), (9, 1)]
    world.sound()


# partitions, suspicion, coming and going


@pytest.mark.parametrize("island", [[4], [5], [4, 5], [6, 7], [0, 4], [4, 5, 6, 7], [1, 5, 9]])
@pytest.mark.parametrize("ms", [40, 150, 900])
def test_a_partition_heals_and_nothing_is_lost(island: list[int], ms: int) -> None:
    heal(flowers(12, seed=ms, answering=0.03, wire=False), island, ms)


@pytest.mark.parametrize("process", [4, 5])
def test_a_process_that_stands_still_is_suspected_and_returns(process: int) -> None:
    stand_still(flowers(12), process)


def test_processes_that_start_again_are_members_again() -> None:
    start_again(flowers(12, answering=0.03), gap_ms=40)


def test_a_process_leaves_while_messages_flow_and_joins_again() -> None:
    leave_and_join(flowers(12), 4)


def test_who_is_expelled_while_it_wants_to_leave_first_brings_what_it_sent() -> None:
    world = flowers(3, levels=1)
    world.run(30)
    world.part([0])
    world.run(5)
    world.say(2, [0])
    world.run(40)
    world.crash(1)
    world.leave(2)
    world.run(50)
    assert world.view(0) == (0,)
    assert world.view(2) == (0, 1, 2)
    world.part()
    world.settle(3000)
    assert world.delivered(0) == [(2, 1)]
    world.run(500)
    assert world.group(2).out
    world.sound()


# growing and shrinking


def growing(processes: int, seed: int = 0, messages: int = 60, **settings: Any) -> Members:
    """A group's size is seen to while messages flow."""
    rng = random.Random(seed)
    wanted = dataclasses.replace(QUICK, **settings)
    world = flowers(
        processes, seed, protocol=lambda place: Daisy(place, wanted), answering=0.02, wire=False
    )
    for _ in range(messages):
        to = rng.sample(range(processes), rng.randint(1, 3)) if rng.random() < 0.7 else None
        process = rng.randrange(processes)
        world.at(rng.uniform(5, 800), partial(world.say, process, to))
    return world


def sizes(world: Members) -> list[int]:
    assert all(world.view(p) == world.view(q) for p in world.live() for q in world.view(p))
    return sorted(len(view) for view in {world.view(p) for p in world.live()})


@pytest.mark.parametrize(
    ("processes", "settings", "expected"),
    [
        (8, {"group_size": 8, "split_above": 5}, [4, 4]),
        (12, {"group_size": 12, "split_above": 4}, [3, 3, 3, 3]),
        (12, {"group_size": 2, "merge_below": 3, "split_above": 6}, [4, 4, 4]),
        (16, {"group_size": 6, "split_above": 4, "merge_below": 2}, [2, 2, 3, 3, 3, 3]),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_groups_are_split_and_merged_while_messages_flow(
    processes: int, settings: dict[str, int], expected: list[int], seed: int
) -> None:
    world = growing(processes, seed, **settings)
    world.run(1000)
    world.settle()
    world.sound()
    assert world.due() == 0
    world.run(3000)
    assert sizes(world) == expected
    for process in range(processes):
        world.say(process)
    world.settle()
    assert world.due() == 0
    world.sound()


@pytest.mark.parametrize("seed", range(12))
def test_servers_crash_while_groups_are_split_and_merged(seed: int) -> None:
    settings = [
        {"group_size": 8, "split_above": 5},
        {"group_size": 2, "merge_below": 4, "split_above": 6},
        {"group_size": 12, "split_above": 4},
    ][seed % 3]
    world = growing(12, seed, **settings)
    for process, at in ((0, 10), (2, 60), (8, 130), (6, 200))[seed % 4 :][:2]:
        world.at(at + 7 * seed, partial(world.crash, process))
    world.run(1000)
    world.settle()
    world.sound()
    assert world.due() == 0


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_merged_when_another_has_crashed_as_a_whole(seed: int) -> None:
    world = growing(10, seed, group_size=2, merge_below=3, split_above=6, forget_ms=1500)
    world.run(3)
    for process in (4, 5):
        world.crash(process)
    world.run(1000)
    world.settle()
    world.sound()
    assert world.due() == 0
    world.run(3000)
    assert sizes(world) == [4, 4]


def test_those_who_talk_to_each_other_stay_together() -> None:
    world = growing(8, messages=0, group_size=8, split_above=5)
    world.answering = 0
    for number in range(60):
        pair = (0, 5) if number % 2 else (1, 2)
        world.at(0.1 + number / 20, partial(world.say, pair[0], [pair[1]]))
    world.run(2000)
    assert sizes(world) == [4, 4]
    assert 5 in world.view(0)
    assert 2 in world.view(1)


# chance


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("levels", [2, 3, 4])
def test_nothing_is_lost_in_any_weather(rate: float, levels: int) -> None:
    world = flowers(16, seed=levels, levels=levels, size=3, loss=rate, answering=0.03, wire=False)
    for number in range(32):
        world.at(30 + 5 * number, partial(world.say, number * 7 % 16))
    world.run(200)
    world.settle()
    assert world.due() == 0
    world.sound()


def storm(seed: int) -> Members:
    """Crashes, restarts, losses, partitions and pauses, as the seed has it."""
    rng = random.Random(seed)
    processes, levels, size = rng.choice([3, 6, 8, 12]), rng.choice([2, 2, 3]), rng.choice([3, 4])
    world = flowers(
        processes,
        seed,
        levels,
        size,
        loss=rng.choice([0, 0, 0.05, 0.2]),
        delays_ms=rng.choice([(1, 3), (0.1, 1), (1, 15)]),
        answering=rng.choice([0, 0.05]),
        wire=False,
    )
    for _ in range(rng.randint(5, 30)):
        to = rng.sample(range(processes), rng.randint(1, 3)) if rng.random() < 0.7 else None
        process = rng.randrange(processes)
        world.at(rng.uniform(20, 400), partial(world.say, process, to))
    deeds = [world.crash] * 2 + [world.restart, world.pause]
    for _ in range(rng.randint(0, 4)):
        deed, process, at = rng.choice(deeds), rng.randrange(processes), rng.uniform(20, 450)
        world.at(at, partial(deed, process))
        world.at(at + rng.choice([30, 100, 250]), partial(world.resume, process))
    if rng.random() < 0.5:
        island, at = (
            rng.sample(range(processes), rng.randint(1, processes // 2)),
            rng.uniform(20, 400),
        )
        world.at(at, lambda: world.part(island))
        world.at(at + rng.choice([20, 80, 150]), world.part)
    world.run(800)
    world.settle()
    return world


@pytest.mark.parametrize("start", range(0, 100, 10))
def test_no_storm_makes_a_violation(start: int) -> None:
    weather(storm, range(start, start + 10))
