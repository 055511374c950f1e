"""The oracle on tickets: logs by hand, and logs at random against every instant."""

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.check import CONFLICTS, NOTHING_SENT, Event, Verdict, check_events, check_run
from tests.check.events import MS, Logs, write_run
from tests.command_line import CommandLine


def owns(
    t: int,
    ticket: int,
    until: int | None = None,
    assigns: Sequence[int] = (),
    since: int = 0,
    epoch: int = 0,
) -> Event:
    claim = {"owns": ticket, "epoch": epoch, "until": until, "assigns": assigns, "from": since}
    return Event("tickets", t=t, facts=claim)


def owns_none(t: int) -> Event:
    return Event("tickets", t=t, facts={"owns": None})


def stamp(t: int, node: int, seq: int, ticket: int, number: int, epoch: int = 0) -> Event:
    names = {"source": node, "seq": seq, "ticket": ticket, "epoch": epoch, "number": number}
    return Event("stamp", t=t, facts=names)


def crash(t: int) -> Event:
    return Event("crash", t=t)


def check(*logs: list[Event]) -> Verdict:
    by_node = dict(enumerate(logs))
    return check_events(by_node, by_node)


# ---------------------------------------------------------------- one owner at a time


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ([owns(0, 2, 10)], [owns(10, 2)], False),
        ([owns(0, 2, 11)], [owns(10, 2)], True),
        ([owns(0, 2, 10)], [owns(9, 3)], False),  # another ticket
        ([owns(0, 2, 10), owns(8, 2, 18)], [owns(10, 2)], True),  # it was renewed
        ([owns(0, 2, 10), owns(12, 2, 18)], [owns(10, 2, 12)], False),  # too late
        ([owns(0, 2)], [owns(10, 2)], True),  # for good
        ([owns(0, 2), owns(9, 2, 10)], [owns(10, 2)], False),  # for good, but then not
        ([owns(0, 2, 20), owns_none(10)], [owns(10, 2)], False),
        ([owns(0, 2, 20), owns_none(11)], [owns(10, 2)], True),
        ([owns(0, 2, 20), owns(10, 3, 20)], [owns(10, 2)], False),
        ([owns(0, 2), crash(10)], [owns(10, 2)], False),
        ([owns(0, 2), crash(11)], [owns(10, 2)], True),
        ([owns(0, 2), Event("restart", t=10)], [owns(10, 2)], False),
        ([owns(0, 2), crash(5), Event("restart", t=6), owns(9, 2)], [owns(10, 2)], True),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_ticket_has_one_owner_at_a_time(
    before: list[Event], after: list[Event], wrong: bool, turned: bool
) -> None:
    verdict = check(after, before) if turned else check(before, after)
    assert verdict.faults == (("co_owned",) if wrong else ())
    assert verdict.verdict == ("invalid" if wrong else "valid")


def test_two_owners_are_one_conflict_however_often_they_say_so() -> None:
    renewed = [owns(t * MS, 2, (t + 15) * MS) for t in range(0, 100, 10)]
    verdict = check(renewed, [owns(30 * MS, 2, 90 * MS), owns(40 * MS, 2, 80 * MS)])
    assert [conflict.sentence for conflict in verdict.conflicts] == [
        "nodes 0 and 1 both owned ticket 2 from 30.000 ms to 80.000 ms"
    ]
    assert verdict.conflicts[0][:4] == ("co_owned", 30 * MS, 2, (0, 1))
    assert verdict.tickets == 1


# ---------------------------------------------------------------- who may give a ticket away


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [
        (owns(0, 5, 20, assigns=[4, 3]), owns(5, 2, 20, assigns=[1, 0]), False),
        (owns(0, 5, 20, assigns=[4, 3]), owns(5, 2, 20, assigns=[1, 3]), True),
        (owns(0, 5, 20, assigns=[4, 3]), owns(5, 3, 20), True),
        (owns(0, 5, 20, assigns=[4, 3]), owns(5, 4, 20), True),
        (owns(0, 5, 20, assigns=[5]), owns(5, 3, 20, assigns=[3]), False),
        (owns(0, 5, 20, assigns=[3]), owns(20, 3), False),  # both are over with the lease
        (owns(0, 5, 20, assigns=[3], since=10), owns(5, 3, 10), False),
        (owns(0, 5, 20, assigns=[3], since=10), owns(5, 3, 11), True),
        (owns(0, 5, 20, assigns=[3], since=30), owns(5, 3, 40), False),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_ticket_is_given_away_by_one_and_not_while_another_owns_it(
    one: Event, other: Event, wrong: bool, turned: bool
) -> None:
    verdict = check([other], [one]) if turned else check([one], [other])
    assert verdict.faults == (("co_assigned",) if wrong else ())


def test_what_may_be_given_away_is_told_with_the_owner() -> None:
    verdict = check(
        [owns(MS, 2)], [owns(2 * MS, 4, assigns=[3, 2])], [owns(3 * MS, 7, assigns=[3])]
    )
    assert verdict.explain()[1:] == [
        "node 1 could assign ticket 2, which node 0 owned, from 2.000 ms on",
        "nodes 1 and 2 could both assign ticket 3 from 3.000 ms on",
    ]
    assert "2 × ticket that one node could assign while" in verdict.explain()[0]


# ---------------------------------------------------------------- what events are made with


def test_an_event_is_made_with_a_ticket_that_its_node_owns() -> None:
    log = [owns(0, 2, 10, epoch=1), stamp(9, 0, 1, 2, 1, epoch=1)]
    assert check(log).ok
    for wrong in (
        [stamp(9, 0, 1, 2, 1), *log[:1]],
        [*log[:1], stamp(9, 0, 1, 3, 1, epoch=1)],
        [*log[:1], stamp(9, 0, 1, 2, 1, epoch=2)],
        [*log[:1], stamp(10, 0, 1, 2, 1, epoch=1)],
        [*log[:1], owns_none(8), stamp(9, 0, 1, 2, 1, epoch=1)],
        [*log[:1], crash(8), stamp(9, 0, 1, 2, 1, epoch=1)],
    ):
        assert check(wrong).faults == ("unowned",)
    assert check([owns(0, 2, 10, epoch=1)], [stamp(9, 1, 1, 2, 1, epoch=1)]).faults == ("unowned",)


def test_an_event_that_was_made_too_late_is_told_with_the_lease() -> None:
    late = check([owns(0, 2, 10 * MS), stamp(12 * MS, 0, 7, 2, 1)])
    assert late.explain()[1] == (
        "m(0,7) of node 0 at 12.000 ms was made with ticket 2 in epoch 0, "
        "but its node owned ticket 2 in epoch 0 until 10.000 ms, and none then"
    )


@pytest.mark.parametrize(
    ("second", "wrong"),
    [
        (stamp(20, 1, 1, 2, 2), ()),
        (stamp(20, 1, 1, 2, 1, epoch=1), ()),
        (stamp(20, 1, 1, 2, 1), ("restamped",)),
    ],
)
def test_no_two_events_have_the_same_stamp(second: Event, wrong: tuple[str, ...]) -> None:
    epoch = second.facts["epoch"] if second.facts else 0
    first = [owns(0, 2, 10), stamp(5, 0, 1, 2, 1)]
    verdict = check(first, [owns(10, 2, epoch=epoch), second])
    assert verdict.faults == wrong


def test_no_event_of_an_older_epoch_follows_one_of_a_newer() -> None:
    def verdict(t: int) -> Verdict:
        old = [owns(0, 2, 10), owns_none(5), owns(20, 2, 30), stamp(t, 0, 1, 2, 1)]
        return check(old, [owns(10, 2, 20, epoch=1), stamp(15, 1, 1, 2, 1, epoch=1)])

    assert verdict(25).faults == ("outdated",)
    assert "in epoch 0 of ticket 2, after m(1,1) of node 1" in verdict(25).explain()[1]
    assert "outdated" not in verdict(14).faults


# ---------------------------------------------------------------- at random


def invent(seed: int, nodes: int, tickets: int, lines: int) -> Logs:
    """Claims of any kind at small times, so that much happens at one instant."""
    rng = random.Random(seed)
    logs: Logs = {node: [] for node in range(nodes)}
    for log in logs.values():
        t = 0
        for _ in range(rng.randint(0, lines)):
            t += rng.randint(0, 4)
            own, *others = rng.sample(range(tickets), rng.randint(1, min(3, tickets)))
            until, since = rng.choice([None, t + rng.randint(0, 9)]), rng.choice([0, t + 2])
            log.append(
                rng.choice([owns(t, own, until, others, since), owns_none(t), crash(t)])
                if rng.random() < 0.3
                else owns(t, own, until, others, since)
            )
    return logs


def looked_at(logs: Logs, until: int) -> set[tuple[str, int, tuple[int, ...]]]:
    """What is wrong at any instant, from the line that each node wrote last."""
    found: set[tuple[str, int, tuple[int, ...]]] = set()
    for now in range(until):
        held: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
        for node, log in logs.items():
            said = next((event for event in reversed(log) if event.t <= now), None)
            facts = (said.facts if said else None) or {"owns": None}
            if facts["owns"] is None or (facts["until"] is not None and now >= facts["until"]):
                continue
            held[facts["owns"]].append((node, True))
            for ticket in facts["assigns"] if now >= facts["from"] else ():
                held[ticket].append((node, False))
        for ticket, some in held.items():
            for (a, owned), (b, owned_too) in combinations(some, 2):
                kind = "co_owned" if owned and owned_too else "co_assigned"
                found.add((kind, ticket, (a, b)))
    return found


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32),
    nodes=st.integers(1, 4),
    tickets=st.integers(1, 5),
    lines=st.integers(0, 6),
)
def test_agrees_with_a_look_at_every_instant(
    seed: int, nodes: int, tickets: int, lines: int
) -> None:
    logs = invent(seed, nodes, tickets, lines)
    verdict = check_events(logs, logs)
    found = {(c.kind, c.ticket, tuple(sorted(c.nodes))) for c in verdict.conflicts}
    assert found == looked_at(logs, until=60)


# ---------------------------------------------------------------- run directories

TWO_OWNERS = {0: [owns(0, 2, 10 * MS), stamp(1, 0, 1, 2, 1)], 1: [owns(5 * MS, 2)]}


def test_the_command_tells_of_conflicts_and_its_status_too(
    tmp_path: Path, testbed: CommandLine
) -> None:
    path = write_run(tmp_path / "run", TWO_OWNERS, TWO_OWNERS)
    told = testbed("check", path, status=1).out
    assert "1 × ticket owned by two nodes at once" in told
    assert "nodes 0 and 1 both owned ticket 2 from 5.000 ms to 10.000 ms" in told
    (found,) = testbed("check", "--json", path, status=1).json().values()
    assert found["conflicts"][0]["sentence"] in told
    assert (found["tickets"], found["counts"]["co_owned"], found["counts"]["unowned"]) == (1, 1, 0)
    in_memory = check_events(TWO_OWNERS, TWO_OWNERS).to_json()
    assert check_run(path).to_json() == in_memory | {"problems": [NOTHING_SENT]}


@pytest.mark.parametrize(
    "line",
    [
        {"event": "tickets"},
        {"event": "tickets", "owns": 1.0, "epoch": 0, "until": 9, "assigns": [], "from": 0},
        {"event": "tickets", "owns": 1, "epoch": 0, "until": "9", "assigns": [], "from": 0},
        {"event": "tickets", "owns": 1, "epoch": 0, "until": 9, "assigns": 3, "from": 0},
        {"event": "stamp", "source": 0, "seq": 1, "ticket": None, "epoch": 0, "number": 1},
        {"event": "stamp", "source": 0, "seq": 1, "ticket": 1, "epoch": 0},
        {"event": "crash", "t": "late"},
    ],
)
def test_a_line_that_cannot_be_used_leaves_doubt(tmp_path: Path, line: dict[str, Any]) -> None:
    path = write_run(tmp_path / "run", (0, 1), {0: [owns(0, 2, 5)], 1: []})
    with (path / "events" / "h0.jsonl").open("a") as file:
        file.write(json.dumps({"t": 1, "node": 0, **line}) + "\n")
    verdict = check_run(path)
    assert (verdict.verdict, verdict.malformed, verdict.damaged) == ("unknown", 1, (0,))


def test_of_a_damaged_log_a_line_proves_its_own_instant_only(tmp_path: Path) -> None:
    def judged(t: int) -> str:
        logs = {0: [owns(0, 2), owns(5, 2)], 1: [owns(t, 2)]}
        path = write_run(tmp_path / f"run{t}", logs, logs)
        with (path / "events" / "h0.jsonl").open("a") as file:
            file.write("?\n")
        return check_run(path).verdict

    assert judged(6) == "unknown"  # the lost line may have said that it owns none
    assert judged(5) == "invalid"


def test_an_engine_that_writes_no_such_lines_is_judged_as_before() -> None:
    verdict = check([Event("send", 0, 1), Event("deliver", 0, 1)])
    assert (verdict.ok, verdict.tickets, verdict.conflicts) == (True, 0, ())
    assert "ticket" not in verdict.explain()[0]
    assert set(CONFLICTS) <= set(verdict.counts)
