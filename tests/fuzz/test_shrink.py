"""Shrinking: what names a process that is gone goes too, and triggers become times."""

from typing import Any

from testbed.fuzz import attempt, draw
from testbed.fuzz.shrink import Shrinker, faults_at_times, fewer_nodes
from testbed.fuzz.trial import Triggered
from testbed.protocols.broken import BROKEN
from testbed.workloads.script import without


def document(*faults: dict[str, Any], protocol: str = "overlay") -> dict[str, Any]:
    return {
        "name": "shrinks",
        "protocol": {"name": protocol},
        "topology": {"model": "pure-random", "nodes": 4, "edge_probability": 1.0},
        "links": {"delay_ms": 1.0},
        "workload": {
            "model": "script",
            "send": [{"node": 0, "at_ms": 0.0}, {"node": 3, "answers": 0}],
        },
        "fault": list(faults),
    }


def test_faults_of_a_process_that_is_gone_are_gone_and_the_others_are_renumbered() -> None:
    when = {"event": "flush"}
    faults = (
        {"kind": "pause", "node": "same", "when": when, "for_ms": 1.0},
        {"kind": "partition", "nodes": "same", "when": {"node": 3, **when}, "for_ms": 1.0},
        {"kind": "partition", "nodes": [1, 2], "for_ms": 1.0},
        {"kind": "partition", "nodes": [1], "for_ms": 1.0},
        {"kind": "pause", "node": 1, "for_ms": 1.0},
        {"kind": "pause", "node": 0, "when": {"node": 1, "delivered": 1}, "for_ms": 1.0},
    )
    one_less = [d for d in fewer_nodes(document(*faults)) if d["topology"]["nodes"] == 3]
    smaller = [d for d in one_less if len(d["fault"]) == 3]
    assert smaller[0]["fault"] == [
        faults[0],
        {**faults[1], "when": {"node": 2, **when}},
        {**faults[2], "nodes": [1]},
    ]


def test_a_trigger_becomes_a_time_and_same_the_process_where_it_was() -> None:
    crash = {"kind": "crash", "node": "same", "when": {"node": 3, "delivered": 1}}
    cut = {"kind": "partition", "nodes": "same", "when": {"delivered": 99}, "for_ms": 1.0}
    never = {"kind": "pause", "node": 1, "when": {"event": "flush"}, "for_ms": 1.0}
    trial = attempt(document(crash, never))
    assert trial is not None
    ((index, node, at),) = trial.triggered
    assert (index, node) == (0, 3)
    (timed,) = faults_at_times(document(crash, never), trial.triggered)
    assert timed["fault"] == [{"kind": "crash", "node": 3, "at_ms": (at // 1000 + 1) / 1000}, never]
    again = attempt(timed)
    assert again is not None
    assert (again.deliveries, again.triggered) == (trial.deliveries, ())
    (cut_off,) = faults_at_times(document(cut), [Triggered(0, 2, 5_000)])
    assert cut_off["fault"] == [
        {**{k: v for k, v in cut.items() if k != "when"}, "nodes": [2], "at_ms": 0.006}
    ]


def test_shrinking_stops_when_its_trials_are_used_up() -> None:
    name = "broken-last-cause"
    seed = next(s for s in range(1, 201) if attempt(draw(BROKEN[name], s)).wrong)  # type: ignore[union-attr]
    document = draw(BROKEN[name], seed)
    wrong = attempt(document).wrong  # type: ignore[union-attr]
    assert wrong is not None
    assert Shrinker(document, wrong, trials=0).shrink() == document
    shrinker = Shrinker(document, wrong, trials=25)
    assert attempt(shrinker.shrink()).wrong == wrong  # type: ignore[union-attr]
    assert shrinker.left == 0


def test_a_message_goes_with_its_answers() -> None:
    send: Any = [
        {"node": 0, "at_ms": 0.0},
        {"node": 1, "answers": 0},
        {"node": 2, "at_ms": 0.0},
        {"node": 3, "answers": 2},
        {"node": 4, "answers": 1},
    ]
    assert without(send, {0}) == [{"node": 2, "at_ms": 0.0}, {"node": 3, "answers": 0}]
    assert without(send, {3}) == [*send[:3], {"node": 4, "answers": 1}]
