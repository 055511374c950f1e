"""The daisy: its tree, relaying, crashes at awkward moments, groups that are split and merged."""

import random
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from testbed.protocols import Deliver, Place, Send
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.tree import daisy
from testbed.protocols.groups.flush import FLUSHED, INSTALL, Part
from testbed.protocols.groups.messages import Cast
from tests.protocols.daisy.daisies import QUICK, SERVERS, TOP, Daisies, afterwards, watch


def flowers(processes: int, levels: int = 2, size: int = 4, **more: Any) -> Daisies:
    return Daisies(processes, settings=replace(QUICK, levels=levels, group_size=size), **more)


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
    assert tree.members == {0: (0, 1, 2, 3), 1: (4, 5, 6, 7), 2: (8, 9, 10, 11), TOP: SERVERS}


# relaying


def test_only_groups_with_destinations_and_those_on_the_way_hear_of_a_message() -> None:
    world = flowers(12)
    world.run(30)
    casts = watch(world, Cast)
    world.say(1, [2, 6])
    world.settle()
    assert world.delivered(6) == world.delivered(2) == [(1, 1)]
    assert {cast.group for *_, cast in casts} == {0, 1, TOP}
    assert world.meter.counted["broadcasts"] == 3
    world.say(1, [1, 2])
    world.settle()
    assert world.meter.counted["broadcasts"] == 4
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
    assert not world.has_history()


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
    casts = watch(world, Cast)
    world.run(30)
    for sender in range(0, processes, 3):
        world.say(sender, [(sender + processes // 2) % processes])
    world.settle()
    world.sound()
    assert world.due() == 0
    for *_, cast in casts:
        assert cast.control_size == 16 + 4 * len(cast.vector) + 4 * len(cast.dests or ())
    sizes = {cast.control_size for *_, cast in casts}
    local = 16 + 4 * 4 + 4
    assert local in sizes
    if levels == 4:
        assert max(sizes) <= local  # crashes


def busy_run(seed: int = 1) -> Daisies:
    world = Daisies(12, seed, answering=0.1, wire=False)
    world.run(25)
    for process, to in ((1, [2, 6, 10]), (5, None), (9, [0, 4])):
        world.say(process, to)
    return world


def crash_in_transfer(what: int, end: int, number: int) -> bool:
    """The first group's server crashes, and then who sends or receives a part of a certain number."""
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


@pytest.mark.parametrize("what", [FLUSHED, INSTALL], ids=["flushed", "install"])
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
    world = Daisies(8, settings=replace(QUICK, safe=safe))
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


@pytest.mark.parametrize("second_ms", [60, 85, 105, 115, 120])
def test_servers_of_a_level_that_crash_leave_no_gap_in_the_groups_below(second_ms: float) -> None:
    """Their successors once relayed answers to each other before they were back in the tree."""
    world = flowers(12, levels=3, size=3, wire=False)
    assert world.view(6, 1) == (6, 9)
    world.at(2, lambda: world.crash(9))
    world.at(30, lambda: world.say(1, [2, 4, 10]))
    world.at(35, lambda: world.say(2))
    world.at(second_ms, lambda: world.crash(6))
    world.run(200)
    world.settle(2000)
    world.sound()
    assert world.due() == 0


# partitions, suspicion, coming and going


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


def growing(processes: int, seed: int = 0, messages: int = 60, **settings: Any) -> Daisies:
    """A group's size is seen to while messages flow."""
    rng = random.Random(seed)
    wanted = replace(QUICK, **settings)
    world = Daisies(processes, seed, wanted, answering=0.02, wire=False)
    for _ in range(messages):
        to = rng.sample(range(processes), rng.randint(1, 3)) if rng.random() < 0.7 else None
        process = rng.randrange(processes)
        world.at(rng.uniform(5, 800), partial(world.say, process, to))
    return world


def sizes(world: Daisies) -> list[int]:
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
