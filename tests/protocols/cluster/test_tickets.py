"""Tickets without failures: base cases, random and all interleavings, and versions that fail."""

import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from testbed.explore.tickets.system import ViolationError
from testbed.protocols.broken import tickets as broken
from testbed.protocols.cluster.tickets import LEASE_MESSAGES, TICKET_MESSAGES, Granted, Ring
from testbed.protocols.wire import Message
from tests.protocols.cluster.ring import Holders
from tests.protocols.cluster.ring_search import Search
from tests.world import MS


def world(
    processes: int, tickets: int, seed: int = 0, kind: type[Ring] = Ring, **more: Any
) -> Holders:
    founders = {tickets - 1: 0}
    return Holders(lambda place: kind(place, tickets, founders, 20 * MS), processes, seed, **more)


def churn(seed: int, kind: type[Ring] = Ring, processes: int = 12, tickets: int = 16) -> Holders:
    """Users join and leave at random while messages are under way; the founder stays."""
    rng = random.Random(seed)
    ring = world(processes, tickets, seed, kind)
    for _ in range(60):
        p = rng.randrange(processes)
        if rng.random() < 0.55:
            ring.join(p)
        elif p:
            ring.leave(p)
        for q in range(processes):
            if rng.random() < 0.3:
                ring.use(q)
        ring.run(rng.choice((0, 1, 3, 20)))
    ring.run(20_000)
    return ring


def test_a_founder_alone_owns_one_ticket_and_may_assign_the_others() -> None:
    ring = world(1, 4)
    founder = ring.machines[0]
    assert ring.grants[0] == Granted(3, 0, 0)
    assert (founder.owns(0), founder.assignable(0)) == (3, [2, 1, 0])
    assert founder.succ.process == founder.pred == 0


def test_founders_share_the_tickets() -> None:
    ring = Holders(lambda place: Ring(place, 7, {5: 0, 3: 1, 0: 2}), 3)
    assert [m.coordinated() for m in ring.machines.values()] == [[5, 4], [3, 2, 1], [0, 6]]
    assert [m.pred for m in ring.machines.values()] == [2, 0, 1]
    assert ring.complete()


def test_two_are_each_others_neighbours_and_either_may_leave() -> None:
    for leaver in (0, 1):
        ring = world(2, 3)
        ring.join(1)
        ring.run(100)
        assert ring.members() == [0, 1]
        assert [m.succ.process for m in ring.machines.values()] == [1, 0]
        ring.leave(leaver)
        ring.run(100)
        stays = ring.machines[1 - leaver]
        assert ring.members() == [1 - leaver]
        assert stays.succ.process == stays.pred == 1 - leaver
        assert ring.complete()


def test_the_last_one_stays_until_another_has_joined() -> None:
    ring = world(2, 3)
    ring.leave(0)
    ring.run(100)
    assert ring.members() == [0]
    ring.join(1)
    ring.run(200)
    assert ring.members() == [1]
    assert ring.complete()


def test_who_finds_no_free_ticket_gets_one_when_another_leaves() -> None:
    ring = world(3, 2)
    ring.join(1)
    ring.run(100)
    ring.join(2)
    ring.run(500)
    assert ring.members() == [0, 1]
    ring.leave(1)
    ring.run(500)
    assert ring.members() == [0, 2]


def test_a_ticket_is_handed_on_with_its_last_number() -> None:
    ring = world(3, 2)
    ring.join(1)
    ring.run(100)
    for _ in range(5):
        ring.use(1)
    ring.leave(1)
    ring.run(100)
    ring.join(2)
    ring.run(100)
    assert ring.grants[2] == Granted(0, 0, 5)


@given(st.integers(0, 2**32))
@example(1027980)  # once: the only one with tickets to spare was in nobody's view
@settings(max_examples=60, deadline=None)
def test_random_churn_is_safe_and_nobody_is_stuck(seed: int) -> None:
    ring = churn(seed)
    assert {m.state for m in ring.machines.values()} <= {"out", "coordinator"}
    assert ring.complete()


@pytest.mark.parametrize(
    ("founders", "operations"),
    [({2: 0}, (0, 3, 3)), ({2: 0, 1: 1, 0: 2}, (0, 4, 4)), ({2: 0, 0: 1}, (0, 3, 4))],
)
def test_all_interleavings_of_three_processes_are_safe_and_come_to_an_end(
    founders: dict[int, int], operations: tuple[int, ...]
) -> None:
    search = Search(lambda place: Ring(place, 3, founders), operations)
    assert search.run() > 5000


def test_if_all_leave_it_is_still_safe_but_somebody_must_stay() -> None:
    search = Search(lambda place: Ring(place, 3, {2: 0, 1: 1}), (2, 2, 2))
    with pytest.raises(ViolationError, match="never get any further"):
        search.run()


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (broken.PrintedRing, "may assign"),
        (broken.AnySuccessor, "may assign"),
        (broken.Clinging, "may assign"),
        (broken.Undated, "may assign"),
        (broken.Hasty, "never get any further"),
    ],
)
def test_the_search_catches_the_broken_versions(kind: type[Ring], complaint: str) -> None:
    with pytest.raises(ViolationError, match=complaint):
        Search(lambda place: kind(place, 3, {2: 0}), (0, 3, 3)).run()


@pytest.mark.parametrize(
    "kind", [broken.PrintedRing, broken.AnySuccessor, broken.Clinging, broken.Forgetting]
)
def test_random_churn_catches_broken_versions(kind: type[Ring]) -> None:
    assert kind in broken.BROKEN_RINGS

    def many() -> None:
        for seed in range(20):
            churn(seed, kind)

    with pytest.raises(ViolationError):
        many()


MESSAGES: tuple[type[Message], ...] = (*TICKET_MESSAGES, *LEASE_MESSAGES[2:])


def test_every_message_has_a_kind_of_its_own() -> None:
    assert len({message.kind for message in MESSAGES}) == len(MESSAGES)
    assert min(message.kind for message in MESSAGES) >= 32
