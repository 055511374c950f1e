"""Runs that are stepped through: the same as any run, up to the moment at which one interferes."""

import random
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from testbed.check.memory import MemoryLog
from testbed.engines.simulate.engine import Simulation
from testbed.errors import UserError
from testbed.experiment import Scenario
from testbed.live import log_session, trace
from testbed.live import session as live_session
from testbed.live.log_session import LogSession
from testbed.live.session import Session
from testbed.live.trace import Trace
from testbed.live.watched import traced
from testbed.progress import silent
from tests.experiments import log_of, parsed, run

TRIANGLE: dict[str, Any] = {
    "name": "triangle",
    "protocol": [{"name": "broken-impatient"}, {"name": "timestamp"}],
    "topology": {"model": "ring", "nodes": 3},
    "links": {"delay_ms": 1.0},
    "workload": {"model": "script", "send": [{"node": 0, "at_ms": 1.0}, {"node": 1, "answers": 0}]},
}
BUSY: dict[str, Any] = {
    "name": "busy",
    "protocol": {"name": "timestamp"},
    "channel": "reliable",
    "topology": {"model": "pure-random", "nodes": 5, "edge_probability": 0.6},
    "workload": {"model": "reply", "senders": 3, "duration_ms": 20, "interval_ms": 5, "depth": 2},
    "fault": [
        {"kind": "loss", "rate": 0.1},
        {"kind": "crash", "node": 2, "at_ms": 8.0, "for_ms": 10.0},
        {"kind": "pause", "node": 3, "at_ms": 3.0, "for_ms": 4.0},
    ],
}
DAISY = {
    **BUSY,
    "name": "flowers",
    "protocol": {"name": "daisy", "group_size": 2},
    "channel": "raw",
}


def session(document: dict[str, Any], directory: Path) -> Session:
    file = directory / "experiment.toml"
    file.write_text(tomli_w.dumps(document))
    return Session(file)


def late(**keys: Any) -> dict[str, Any]:
    return {"kind": "delay", "sender": 0, "receiver": 2, "count": 1, "late_ms": 5.0, **keys}


@pytest.mark.parametrize("document", [BUSY, DAISY], ids=lambda document: str(document["name"]))
def test_a_run_that_is_watched_is_the_same_run(document: dict[str, Any]) -> None:
    scenario = Scenario.of(parsed(document))
    log, trace = MemoryLog(), Trace()
    Simulation(scenario, log).run(silent)
    assert traced(scenario, trace)
    assert trace.events == log.events
    delivered = sum(len(step.delivers) for step in trace.steps)
    assert delivered == sum(e.event == "deliver" for events in log.events.values() for e in events)


def test_the_steps_tell_what_each_process_did_and_how_its_state_changed(tmp_path: Path) -> None:
    told = session(TRIANGLE, tmp_path).run(1, [late()])
    held = next(step for step in told["steps"] if step["holds"])
    assert held["node"] == 2
    assert held["words"] == [
        "process 2 receives VectorMessage m(1,1) [vector [1, 1, 0]] from 1",
        "holds m(1,1) back until m(0,1) is delivered",
    ]
    assert held["changes"] == [("waiting", "{}", "{(0, 1): [m(1,1)]}")]
    question = told["copies"][1]
    assert (question["name"], question["receiver"], question["count"]) == ("m(0,1)", 2, 1)
    got = told["steps"][question["got"]]
    assert got["t"] == question["arrived"] + 5_000_000
    assert got["delivers"] == ["m(0,1)", "m(1,1)"]
    assert told["verdict"] == "valid"


def test_a_violation_is_found_at_its_step(tmp_path: Path) -> None:
    told = session(TRIANGLE, tmp_path).run(0, [late()])
    (violation,) = told["violations"]
    step = told["steps"][violation["step"]]
    assert told["verdict"] == "invalid"
    assert (step["node"], step["delivers"]) == (2, ["m(1,1)"])


def test_what_never_comes_is_told_without_a_step(tmp_path: Path) -> None:
    told = session(TRIANGLE, tmp_path).run(1, [drop()])
    assert [violation["step"] for violation in told["violations"]] == [None, None]
    assert told["copies"][1]["got"] is None


def drop() -> dict[str, Any]:
    return {"kind": "drop", "sender": 0, "receiver": 2, "count": 1}


@pytest.mark.parametrize("seed", range(8))
def test_whoever_interferes_changes_nothing_that_was_before(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    shown = session(DAISY if seed % 2 else BUSY, tmp_path)
    before = shown.run(0, [])
    now = rng.randrange(len(before["steps"]))
    t = before["steps"][now]["t"]
    coming = [
        c for c in before["copies"] if c["sent"] <= now and (c["arrived"] or 0) > t and c["count"]
    ]
    faults: list[dict[str, Any]] = [{"kind": "crash", "node": 1, "at_ms": (t + 1) / 1e6}]
    if coming:
        copy = rng.choice(coming)
        chosen = {key: copy[key] for key in ("sender", "receiver", "count", "incarnation")}
        faults.append({"kind": "drop", **chosen})
    after = shown.run(0, faults)
    same = [step for step in before["steps"][: now + 1] if step["t"] <= t]
    assert after["steps"][: len(same)] == same
    if coming and copy["receiver"] != 1:  # which may crash before
        drops = [
            step
            for step in after["steps"]
            if "drop" in step["kind"] or "drop" in str(step["words"])
        ]
        assert copy["receiver"] in {step["node"] for step in drops}


def test_what_was_done_is_saved_and_repeats(tmp_path: Path) -> None:
    shown = session(TRIANGLE, tmp_path)
    first, second = shown.save(0, [late()]), shown.save(0, [late()])
    assert first != second
    saved = tomllib.loads(first.read_text())
    assert saved["protocol"] == {"name": "broken-impatient"}
    assert saved["fault"] == [late()]
    assert run(parsed(saved), tmp_path).verdict.verdict == "invalid"


def test_what_a_protocol_does_wrong_is_told_with_the_steps_before(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from testbed.protocols.timestamp import Timestamp\n"
        "class Mine(Timestamp):\n"
        "    name = 'mine'\n"
        "    def receive(self, message, sender, now):\n"
        "        raise KeyError(7)\n"
    )
    told = session({**TRIANGLE, "protocol": {"name": "./mine.py:Mine"}}, tmp_path).run(0, [])
    assert "KeyError" in told["failure"]
    assert told["verdict"] == "unknown"
    assert any(step["kind"] == "send" for step in told["steps"])


def test_a_fault_that_makes_no_sense_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no node 9"):
        session(TRIANGLE, tmp_path).run(0, [late(sender=9)])
    with pytest.raises(UserError, match="there is no protocol 5"):
        session(TRIANGLE, tmp_path).run(5, [])


def test_a_run_that_was_made_before_is_shown_by_its_log(tmp_path: Path) -> None:
    made = run(
        parsed({**TRIANGLE, "protocol": {"name": "broken-impatient"}, "fault": [late()]}), tmp_path
    )
    shown = LogSession(made.path)
    told = shown.run(0, [])
    (violation,) = told["violations"]
    assert told["steps"][violation["step"]]["delivers"] == ["m(1,1)"]
    assert {(c["sender"], c["receiver"]) for c in told["copies"]} == {
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 2),
    }
    assert not told["changeable"]
    with pytest.raises(UserError, match="cannot be changed"):
        shown.run(0, [late()])


def test_a_run_whose_logs_are_damaged_is_told_so(tmp_path: Path) -> None:
    made = run(parsed({**TRIANGLE, "protocol": {"name": "timestamp"}}), tmp_path)
    with log_of(made).open("a") as file:
        file.write('{"t":')
    with pytest.raises(UserError, match="event logs are damaged"):
        LogSession(made.path).run(0, [])


def test_of_a_long_run_one_sees_what_led_to_the_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_session, "MOST_STEPS", 6)
    monkeypatch.setattr(log_session, "AFTER", 2)
    sends = [{"node": node, "at_ms": at} for at in (100.0, 200.0) for node in range(3)]
    asked = [{"node": 0, "at_ms": 300.0}, {"node": 1, "answers": 6}]
    document = {**TRIANGLE, "workload": {"model": "script", "send": [*sends, *asked]}}
    fault = late(count=3, late_ms=50.0)
    for index, which in enumerate(("those around the first violation", "the first")):
        protocol = TRIANGLE["protocol"][index]
        made = run(parsed({**document, "protocol": protocol, "fault": [fault]}), tmp_path)
        found = LogSession(made.path).run(0, [])
        assert len(found["steps"]) == 6
        assert f"; here are {which} 6, and on the page" in found["failure"]
        assert f"testbed report {made.path}" in found["failure"]
        assert [v["step"] is not None for v in found["violations"]] == [True] * (1 - index)


def test_of_an_endless_run_one_sees_the_beginning_and_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (trace, live_session):
        monkeypatch.setattr(module, "MOST_STEPS", 20)
    told = session(BUSY, tmp_path).run(0, [])
    assert len(told["steps"]) == 20
    assert (
        "more than 20 steps; here are the first of them. A smaller duration_ms" in told["failure"]
    )
    assert told["verdict"] == "unknown"
