"""Who could not send for how long, and what the paper promised: by hand, and in whole runs."""

from pathlib import Path

import pytest

from testbed.check.availability import Availability, find_waits
from testbed.check.tickets import Claim
from tests.check.test_ticket_runs import NODES, play

MS = 1_000_000


def claims(*lines: tuple[float, int | None, float]) -> list[Claim]:
    """At a time a node owns a ticket until another time, in milliseconds."""
    return [Claim(round(t * MS), owns, 0, round(until * MS)) for t, owns, until in lines]


def look(
    owned: dict[int, list[Claim]],
    wishes: dict[int, list[tuple[float, str]]],
    end: float,
    k: int = 1,
) -> Availability:
    told = {node: [(round(t * MS), what) for t, what in some] for node, some in wishes.items()}
    return find_waits(owned, told, round(end * MS), k)


def test_who_owns_a_ticket_all_the_time_does_not_wait() -> None:
    found = look({0: claims((0, 3, 20), (10, 3, 30), (20, 3, 40))}, {0: [(5, "join")]}, 40)
    assert found == Availability(None, (), ())
    assert found.figures() == {"ticket_wait_ms_max": 0, "no_owner_ms_max": 0}


@pytest.mark.parametrize(
    ("wishes", "waits"),
    [
        ([], [(20, 30)]),
        ([(25, "leave")], [(20, 25)]),
        ([(15, "leave")], []),
        ([(25, "crash")], [(20, 25)]),
        ([(21, "crash"), (24, "restart")], [(20, 21), (24, 30)]),
    ],
)
def test_a_wait_begins_when_the_lease_ends_and_ends_with_another(
    wishes: list[tuple[float, str]], waits: list[tuple[float, float]]
) -> None:
    found = look({0: claims((0, 3, 20), (30, 3, 50))}, {0: wishes}, 50)
    assert [(w.start / MS, w.end / MS) for w in found.waits] == waits


def test_a_joiner_waits_and_may_wait_in_vain() -> None:
    owned = {0: claims((0, 3, 100)), 1: claims((30, 2, 100))}
    found = look(owned, {1: [(10, "join")], 2: [(40, "join")]}, 100)
    assert found.figures() == {"ticket_wait_ms_max": 60, "no_owner_ms_max": 0}
    assert found.sentences == (
        "node 1 waited longest of those that got a ticket: it could not send for 20 ms from 10 ms on, "
        "after its join",
        "node 2 wanted a ticket from 40 ms to the end, and had none",
    )


def test_who_lost_its_ticket_is_told_and_whether_the_paper_promised_otherwise() -> None:
    others = {p: claims((0, 4 - p, 100)) for p in range(1, 5)}
    found = look({0: claims((0, 4, 20), (30, 4, 100)), **others}, {}, 100)
    assert found.sentences == (
        "node 0 waited longest of those that got a ticket: it could not send for 10 ms from 20 ms on, "
        "having lost its ticket; of 5 coordinators 0 had crashed or left: the paper promised that "
        "nodes 4, 3, 2, 1, 0 go on, unless links failed",
    )


def dead(members: int, crashed: int, k: int = 1) -> str:
    owned = {p: claims((0, members - p, 20)) for p in range(members)}
    return look(owned, {p: [(10, "crash")] for p in range(crashed)}, 100, k).sentences[0]


def test_a_dead_cluster_is_told_with_what_the_paper_promised() -> None:
    assert dead(2, 1) == (
        "from 20 ms to the end nobody owned a ticket: node 1 could not send for 80 ms; of 2 "
        "coordinators 1 had crashed or left, and with fewer than 2k+2 = 4 the paper promises nothing"
    )
    promised = "1 had crashed or left: the paper promised that nodes 4, 3, 2, 1 go on"
    assert f"{promised}, unless links failed" in dead(5, 1)
    assert dead(4, 3).endswith("more than k = 1 of 2k+1 neighbours: the paper promises nothing")


def test_a_run_says_who_could_not_send(tmp_path: Path) -> None:
    crash = [{"kind": "crash", "node": p, "at_ms": 150.0} for p in range(1, NODES - 1)]
    done = play(tmp_path, "cluster", coordinators=3, fault=crash)
    assert done.summary["no_owner_ms_max"] > 500
    assert done.verdict.ok
    (told,) = [line for line in done.verdict.explain() if "nobody owned a ticket" in line]
    assert "the paper promises nothing" in told
