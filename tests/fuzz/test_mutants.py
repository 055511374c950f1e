"""Mutants: what changes meets the moments of a run, and every kind of change is made."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from testbed.check import Event
from testbed.fuzz import attempt
from testbed.fuzz.corpus import scenes
from testbed.fuzz.coverage import sequences
from testbed.fuzz.messages import stream, triangles
from testbed.fuzz.mutants import (
    CHANGES,
    CROSSINGS,
    Moment,
    crossing,
    faults,
    moments,
    mutant,
    words,
)
from testbed.fuzz.mutants.scope import Scope
from testbed.fuzz.mutants.talk import STYLES, talk
from tests.fuzz.daisies import daisies

PARTITION = {"kind": "partition", "nodes": [1], "at_ms": 50.0, "for_ms": 150.0}
Document = dict[str, Any]
Change = Callable[[Scope], Document]


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


@pytest.fixture(scope="module")
def parent() -> Document:
    send = [{"node": 0, "at_ms": 0.0}, {"node": 2, "at_ms": 50.0}]
    return daisies(send, [PARTITION], nodes=4, group_size=2)


@pytest.fixture(scope="module")
def shown(parent: Document) -> tuple[Moment, ...]:
    trial = attempt(parent)
    assert trial is not None
    return trial.moments


def scope(document: Document, shown: tuple[Moment, ...] = (), seed: int = 1) -> Scope:
    return Scope(document, shown, None, random.Random(seed))


def times(document: Document) -> list[float]:
    return [
        what["at_ms"]
        for what in (*document["workload"]["send"], *document["fault"])
        if "at_ms" in what
    ]


def test_most_that_is_added_is_near_something(parent: Document, shown: tuple[Moment, ...]) -> None:
    anchors = {moment.at_ms for moment in shown} | {0.0, 50.0, 200.0}
    anchors |= {end + later for end in (50.0, 200.0) for later in (70.0, 210.0)}
    near = beyond = 0
    for seed in range(60):
        for at in times(talk(scope(parent, shown, seed))):
            away = min(abs(at - anchor) for anchor in anchors)
            near, beyond = near + (away <= 60.0), beyond + (away > 60.0)
    assert near > 4 * beyond


def test_what_is_around_a_focus_is_near_it(parent: Document, shown: tuple[Moment, ...]) -> None:
    focused = Scope(parent, shown, 5000.0, random.Random(1))
    drawn = [focused.time() for _ in range(200)]
    assert 80 < sum(abs(at - 5000.0) <= 60.0 for at in drawn) < 160


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES), ids=lambda change: change.__name__)
def test_a_change_changes_something_and_leaves_the_parent_as_it_was(
    change: Change, parent: Document, shown: tuple[Moment, ...]
) -> None:
    before = repr(parent)
    changed = [change(scope(parent, moments, seed)) for seed in range(8) for moments in ((), shown)]
    assert any(document != parent for document in changed)
    assert repr(parent) == before


@pytest.mark.parametrize("change", dict.fromkeys(CROSSINGS), ids=lambda change: change.__name__)
def test_what_is_taken_from_another_scene_names_no_process_that_is_not_there(
    change: Callable[[Scope, Document], Document], parent: Document
) -> None:
    small = {**parent, "topology": {**parent["topology"], "nodes": 3}}
    changed = [change(scope(small), other) for other in scenes().values()]
    assert any(document != small for document in changed)
    for document in changed:
        named = [line["node"] for line in document["workload"]["send"]]
        named += [node for line in document["workload"]["send"] for node in line.get("to", ())]
        assert max(named) < 3


def test_faults_move_strike_others_take_other_shapes_and_happen_to_two(parent: Document) -> None:
    def drawn(change: Change) -> list[list[Document]]:
        return [change(scope(parent, seed=seed))["fault"] for seed in range(40)]

    moved = [fault for [fault] in drawn(faults.move)]
    assert any(fault["at_ms"] == 50.0 and fault["for_ms"] != 150.0 for fault in moved)
    assert any(fault["at_ms"] != 50.0 and fault["for_ms"] == 150.0 for fault in moved)
    assert {fault["kind"] for [fault] in drawn(faults.reshape)} == {"crash", "leave", "pause"}
    assert {tuple(fault["nodes"]) for [fault] in drawn(faults.divert)} >= {(0,), (0, 1), (2,)}
    pairs = drawn(faults.echo)
    assert all(pair[0] == PARTITION and len(pair) == 2 for pair in pairs)
    assert any(also["at_ms"] == 50.0 and also.get("nodes") == [2] for _, also in pairs)


def test_heartbeats_of_another_scene_change_all_times_alike(parent: Document) -> None:
    other = {
        **parent,
        "protocol": {**parent["protocol"], "heartbeat_ms": 10.0, "patience_ms": 35.0},
    }
    [fault] = (faster := crossing.times_of(scope(parent), other))["fault"]
    assert (fault["at_ms"], fault["for_ms"]) == (25.0, 75.0)
    assert faster["protocol"] == other["protocol"]


def test_nobody_answers_a_message_twice(parent: Document) -> None:
    document = parent
    for seed in range(60):
        document = (words.say if seed % 3 else words.retell)(scope(document, seed=seed))
    answers = [
        (line["node"], line["answers"])
        for line in document["workload"]["send"]
        if "answers" in line
    ]
    assert len(answers) == len({*answers}) > 5


@pytest.mark.parametrize("style", dict.fromkeys(STYLES), ids=lambda style: style.__name__)
@pytest.mark.parametrize("faults", [[PARTITION], []], ids=["a fault", "no fault"])
def test_every_style_gives_a_script(
    style: Callable[[Scope], list[Any]], faults: list[Any], parent: Document
) -> None:
    said = style(scope({**parent, "fault": faults}))
    assert any("at_ms" in line for line in said)
    assert all(line.get("answers", -1) < number for number, line in enumerate(said))


def test_mutants_of_scenes_are_mostly_within_the_promises() -> None:
    rng, corpus = random.Random(1), [*scenes().values()]
    drawn = [mutant(rng.choice(corpus), (), corpus, rng) for _ in range(40)]
    assert len({repr(document) for document in drawn}) == 40
    assert sum(attempt(document) is not None for document in drawn) > 20


def test_a_kind_that_is_rare_is_taken_as_often_as_a_frequent_one(parent: Document) -> None:
    many = [Moment(float(at), 0, "often") for at in range(99)]
    draws = scope(parent, (*many, Moment(500.0, 1, "once")))
    assert 30 < sum(draws.moment().node for _ in range(100)) < 70


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
