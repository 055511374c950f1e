"""Mutants: what is drawn again meets the moments of a run, and a seed repeats all that it tries."""

import random
import re
from typing import Any

import pytest

from testbed.check import Event
from testbed.fuzz import Origin, Tally, attempt, experiments, try_batch
from testbed.fuzz.coverage import sequences
from testbed.fuzz.messages import stream, triangles
from testbed.fuzz.mutants import Moment, Mutation, moments
from testbed.fuzz.profiles import profile_of
from testbed.fuzz.profiles.plain import resolved
from testbed.protocols import PROTOCOLS
from tests.fuzz.daisies import daisies

DAISY = PROTOCOLS["daisy"]
PARTITION = {"kind": "partition", "nodes": [1], "at_ms": 50.0, "for_ms": 150.0}


def flush(t: int, group: int) -> Event:
    return Event("flush", t=t, facts={"state": "member", "next": "flushing", "group": group})


def test_moments_are_changes_of_states_comings_goings_and_the_start() -> None:
    logs = {0: [flush(2_000_000, 7), Event("deliver", 1, 1, None, 3)], 1: [Event("leave", t=5)]}
    found = moments(logs)
    assert [(m.at_ms, m.node) for m in found] == [(0.0, 0), (0.0, 1), (2.0, 0), (5e-06, 1)]
    assert len({moment.what for moment in found}) == 3


def test_sequences_are_what_processes_did_in_a_row() -> None:
    log = [flush(1, 0), Event("deliver", 0, 1), Event("send", 0, 2), Event("deliver", 0, 2)]
    assert sequences({0: log, 1: log[1:]}) == {
        ("flush member", "deliver ", "send "),
        ("deliver ", "send ", "deliver "),
    }


def test_a_seed_tries_the_same_again_and_all_are_within_the_promises() -> None:
    runs = [[*experiments(DAISY, Origin(3))] for _ in range(2)]
    assert runs[0] == runs[1]
    profile = profile_of(DAISY)
    storms = [document for document, _ in runs[0] if "-storm-" in document["name"]]
    assert len(storms) == profile.storms
    assert profile.storms + 1 < len(runs[0]) <= profile.storms + 1 + profile.mutants
    for document, trial in runs[0]:
        assert profile_of(DAISY).promised(resolved(document))
        assert trial.wrong is None
    names = [document["name"] for document, _ in runs[0]]
    assert len({*names}) == len(names)
    assert {re.sub("-(mutant|storm)-.*", "", name) for name in names} == {names[0]}


@pytest.fixture
def run() -> tuple[dict[str, Any], Mutation]:
    document = daisies([{"node": 0, "at_ms": 0.0}], [PARTITION], nodes=4, group_size=2)
    trial = attempt(document)
    assert trial is not None
    return document, Mutation(4, trial.moments, random.Random(1))


def test_most_that_is_added_is_near_a_moment(run: tuple[dict[str, Any], Mutation]) -> None:
    document, mutation = run
    times = {moment.at_ms for moment in mutation.moments}
    near = beyond = 0
    for _ in range(60):
        mutant = mutation.of(document)
        added = [line for line in mutant["workload"]["send"] if line.get("at_ms")]
        added += [fault for fault in mutant["fault"] if fault != PARTITION]
        for what in added:
            away = min(abs(what.get("at_ms", 0.0) - at) for at in times)
            near, beyond = near + (away <= 60.0), beyond + (away > 60.0)
    assert near > 4 * beyond


def test_every_kind_of_change_is_made(run: tuple[dict[str, Any], Mutation]) -> None:
    document, mutation = run
    mutants = [mutation.of(document) for _ in range(200)]
    kinds = {fault["kind"] for mutant in mutants for fault in mutant["fault"]}
    assert kinds == {"partition", "pause", "leave", "crash"}
    assert any(not mutant["fault"] for mutant in mutants)
    assert any(mutant["seed"] != document["seed"] for mutant in mutants)
    cuts = [fault for mutant in mutants for fault in mutant["fault"] if fault.get("nodes") == [1]]
    assert any(cut["at_ms"] == 50.0 and cut["for_ms"] != 150.0 for cut in cuts)
    assert any(cut["at_ms"] != 50.0 and cut["for_ms"] == 150.0 for cut in cuts)


def test_a_kind_that_is_rare_is_taken_as_often_as_a_frequent_one() -> None:
    many = [Moment(float(at), 0, "often") for at in range(99)]
    mutation = Mutation(2, [*many, Moment(500.0, 1, "once")], random.Random(1))
    drawn = [mutation._moment().node for _ in range(100)]
    assert 30 < sum(drawn) < 70


def test_streams_are_answered_and_triangles_end_where_they_began() -> None:
    lines = stream(2, [0, 1], 3, lambda: 1.0)
    assert [line["node"] for line in lines] == [2, 0, 1] * 3
    assert [line.get("answers") for line in lines] == [None, 0, 0, None, 3, 3, None, 6, 6]
    lines = triangles([3, 0], 5, 12, lambda: 1.0, random.Random(1))
    for number, line in enumerate(lines):
        if "at_ms" in line:
            assert {0, 3} <= {*line["to"]}
        last = number + 1 == len(lines) or "at_ms" in lines[number + 1]
        if last:
            assert line["to"] == [0, 3]


def test_runs_are_counted() -> None:
    from testbed.fuzz import Batch

    tally = try_batch(Batch("daisy", (Origin(3),)))
    assert tally.runs == len([*experiments(DAISY, Origin(3))])
    total = Tally("daisy")
    total.add(tally)
    total.add(tally)
    assert (total.seeds, total.runs) == (2, 2 * tally.runs)
