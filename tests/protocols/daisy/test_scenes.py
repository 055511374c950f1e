"""The same scenes for all three ways in which messages travel inside a daisy's groups."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import pytest

from testbed.protocols import RST
from testbed.protocols.daisy import Daisy
from tests.protocols.daisy.daisies import (
    PLACES,
    QUICK,
    RECIPIENTS,
    SERVERS,
    STAR,
    Daisies,
    Members,
    crash_at,
    crash_in_a_row,
    heal,
    leave_and_join,
    scenario,
    stand_still,
    start_again,
)

Messages = tuple[tuple[int, list[int] | None], ...]


class Way(NamedTuple):
    """A way, with what is said in a busy run of it."""

    name: str
    settings: Daisy.Settings
    messages: Messages

    def busy_run(self, seed: int) -> Daisies:
        world = Daisies(12, seed, self.settings, answering=0.1, wire=False)
        world.run(25)
        for process, to in self.messages:
            world.say(process, to)
        return world


ALL = Way("all", QUICK, ((1, [2, 6, 10]), (5, None), (9, [0, 4])))
SOME = Way(
    "recipients",
    RECIPIENTS,
    ((1, [2, 6, 10]), (1, [3, 7]), (5, None), (9, [0, 4]), (5, [6])),
)
SOME_TWICE = SOME._replace(name="two recipients", settings=replace(RECIPIENTS, resilience=2))
SERVER = Way("server", STAR, ((1, [2, 6, 10]), (5, None), (9, [0, 4]), (4, [6]), (4, [1, 7])))


ways = partial(pytest.mark.parametrize, ids=lambda value: getattr(value, "name", str(value)))


# Fig. 2 of the paper


def test_an_omission_and_a_crash_block_a_matrix_for_ever() -> None:
    world = Members(RST, 3)
    scenario(world, a=0, b=1, c=2, lost=(0, 1))
    assert world.delivered(1) == []
    assert not world.check().ok  # never delivered


@pytest.mark.parametrize(("a", "b", "c", "lost"), PLACES)
@ways("way", [ALL, SOME, SOME_TWICE])
def test_an_omission_and_a_crash_do_not_block_the_daisy(
    way: Way, a: int, b: int, c: int, lost: tuple[int, int]
) -> None:
    world = Daisies(8, settings=way.settings)
    scenario(world, a, b, c, lost)
    assert world.delivered(b) == [(a, 1), (c, 1)]
    world.sound()


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize(
    ("a", "b", "c", "lost"),
    [
        pytest.param(1, 2, 3, (1, 0), id="nobody serves, lost on the way to the server"),
        pytest.param(1, 2, 3, (0, 2), id="nobody serves, lost on the way from the server"),
        *PLACES[1:],
    ],
)
def test_an_omission_and_a_crash_do_not_block_the_star(
    a: int, b: int, c: int, lost: tuple[int, int], levels: int
) -> None:
    world = Daisies(8, settings=replace(STAR, levels=levels))
    scenario(world, a, b, c, lost)
    assert world.delivered(b) == [(a, 1), (c, 1)]
    world.sound()


# crashes


@ways(
    ("way", "seed", "server", "first", "every"),
    [
        *((ALL, 4, server, 0, 1) for server in SERVERS),
        *((SOME, 6, server, server // 4, 4) for server in SERVERS),
        *((SERVER, 7, server, 0, 1 if server == 4 else 4) for server in SERVERS),
    ],
)
def test_a_server_may_crash_at_any_event_and_nothing_is_lost_twice_or_out_of_order(
    way: Way, seed: int, server: int, first: int, every: int
) -> None:
    crash_at(partial(way.busy_run, seed), server, first, every)


PAIRS = [(0, 1), (4, 5), (4, 5, 6), (0, 4), (0, 4, 8)]


@ways(
    ("way", "servers", "gap_ms", "moments"),
    [
        *product([ALL], PAIRS, [0, 1, 20, 75, 85, 95, 110, 150], [(2, 5, 9, 14)]),
        *product(
            [SOME_TWICE], [(0, 1), (4, 5), (0, 4), (5, 6)], [0, 1, 20, 85, 110, 150], [(2, 9)]
        ),
        *product([SERVER], PAIRS, [110, 150, 300], [(2, 5, 9, 14)]),
    ],
)
def test_the_old_and_the_new_server_crash_in_a_row(
    way: Way, servers: Iterable[int], gap_ms: int, moments: Iterable[int]
) -> None:
    for first_ms in moments:
        crash_in_a_row(way.busy_run(seed=first_ms), servers, first_ms, gap_ms)


# partitions, suspicion, coming and going


@pytest.mark.parametrize("ms", [40, 150, 900])
@ways(
    ("way", "island"),
    [
        *product([ALL], [[4], [5], [4, 5], [6, 7], [0, 4], [4, 5, 6, 7], [1, 5, 9]]),
        *product([SOME], [[4], [5], [4, 5, 6, 7], [1, 5, 9]]),
        *product([SOME_TWICE], [[4, 5], [6, 7]]),
        *product([SERVER], [[4], [5], [6, 7], [4, 5, 6, 7], [1, 5, 9]]),
    ],
)
def test_a_partition_heals_and_nothing_is_lost(way: Way, island: list[int], ms: int) -> None:
    heal(Daisies(12, ms + 1, way.settings, answering=0.03, wire=False), island, ms)


def test_a_partition_of_a_server_and_a_member_heals_in_this_run_too() -> None:
    """An answer inside a delivery once made one of the two deliver others in the wrong order."""
    heal(Daisies(12, 150, SOME_TWICE.settings, answering=0.03, wire=False), [4, 5], 150)


@pytest.mark.parametrize("process", [4, 5])
@ways("way", [ALL, SOME, SERVER])
def test_a_process_that_stands_still_is_suspected_and_returns(way: Way, process: int) -> None:
    stand_still(Daisies(12, settings=way.settings), process)


@ways(("way", "gap_ms"), [(ALL, 40), (SOME, 200), (SERVER, 40)])  # with 200, one at a time
def test_processes_that_start_again_are_members_again(way: Way, gap_ms: int) -> None:
    start_again(Daisies(12, settings=way.settings, answering=0.03), gap_ms)


@ways(("way", "process"), [(ALL, 4), (SOME, 4), (SERVER, 4), (SERVER, 5)])
def test_a_process_leaves_while_messages_flow_and_joins_again(way: Way, process: int) -> None:
    leave_and_join(Daisies(12, settings=way.settings), process)
