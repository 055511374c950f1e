"""Faults of one message: dropped, late, twice, and counted as it arrives."""

from typing import Any

import pytest

from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario
from tests.engines.simulate.test_faults import judged
from tests.experiments import parsed

QUESTION, ANSWER = (0, 1), (1, 1)


def triangle(*faults: dict[str, Any], protocol: str = "timestamp", **changes: Any) -> Experiment:
    """Process 0 asks everybody, 1 answers everybody at once, 2 receives both."""
    document = {
        "name": "triangle",
        "protocol": {"name": protocol},
        "topology": {"model": "ring", "nodes": 3},
        "links": {"delay_ms": 1.0},
        "workload": {
            "model": "script",
            "send": [{"node": 0, "at_ms": 1.0}, {"node": 1, "answers": 0}],
        },
        "fault": list(faults),
    }
    return parsed(document, **changes)


def delivered(experiment: Experiment, node: int) -> list[tuple[int, int]]:
    _, _, log = judged(experiment)
    return [(e.source, e.seq) for e in log.events[node] if e.event == "deliver"]


def to_carol(kind: str, sender: int = 0, **keys: Any) -> dict[str, Any]:
    return {"kind": kind, "sender": sender, "receiver": 2, **keys}


def test_an_answer_overtakes_a_question_that_is_late() -> None:
    late = to_carol("delay", late_ms=5.0)
    verdict, *_ = judged(triangle(late, protocol="broken-impatient"))
    assert verdict.counts["order"] == 1
    assert delivered(triangle(late, protocol="broken-impatient"), 2) == [ANSWER, QUESTION]
    assert delivered(triangle(late), 2) == [QUESTION, ANSWER]


def test_a_dropped_message_is_lost_to_its_receiver_alone() -> None:
    lost = triangle(to_carol("drop"))
    assert delivered(lost, 2) == []
    assert delivered(lost, 1) == [QUESTION, ANSWER]
    verdict, simulation, _ = judged(lost)
    assert verdict.count("loss") == 2
    assert simulation.network.carried().lost == 0  # the network has carried it


def test_the_reliable_channel_repairs_one_that_is_dropped() -> None:
    verdict, simulation, _ = judged(triangle(to_carol("drop"), channel="reliable"))
    assert verdict.ok
    assert simulation.meter.counted["channel_retransmissions"] == 1


def test_of_a_message_that_comes_twice_the_protocol_gets_two() -> None:
    _, simulation, _ = judged(triangle(to_carol("duplicate", late_ms=1.0)))
    assert sum(simulation.meter.discarded.values()) == 1


def test_what_is_counted_is_what_arrives_from_that_sender_in_that_incarnation() -> None:
    assert delivered(triangle(to_carol("drop", count=2)), 2) == [QUESTION, ANSWER]
    assert delivered(triangle(to_carol("drop", incarnation=1)), 2) == [QUESTION, ANSWER]
    assert delivered(triangle(to_carol("drop", sender=1)), 2) == [QUESTION]


def test_a_late_message_does_not_reach_a_process_that_crashed_meanwhile() -> None:
    late = to_carol("delay", late_ms=5.0)
    crash = {"kind": "crash", "node": 2, "at_ms": 3.0, "for_ms": 1.0}
    assert delivered(triangle(late, crash), 2) == []


def test_the_log_says_what_was_done() -> None:
    _, _, log = judged(triangle(to_carol("drop")))
    drops = [(e.event, e.facts) for node in range(3) for e in log.events[node] if e.event == "drop"]
    assert drops == [("drop", {"sender": 0, "count": 1})]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (to_carol("drop", at_ms=1.0), "it has no time"),
        (to_carol("delay"), "needs the key 'late_ms'"),
        (to_carol("delay", late_ms=-1.0), "late_ms must not be negative"),
        (to_carol("drop", count=0), "count must be at least 1"),
        (to_carol("drop", sender=2), "sends no messages to itself"),
        (to_carol("drop", sender=7), "there is no node 7"),
    ],
)
def test_what_makes_no_sense_is_refused(fault: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Scenario.of(triangle(fault))
