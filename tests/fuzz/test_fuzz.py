"""Fault testing: correct protocols pass, broken ones are found, and what is found is small."""

import tomllib
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from testbed.commands import fuzz as fuzz_command
from testbed.errors import UserError
from testbed.experiment import load, parse
from testbed.fuzz import Origin, Tally, attempt, batches, draw, shrunk, try_batch, write_example
from testbed.protocols import PROTOCOLS
from testbed.protocols.broken import BROKEN
from testbed.protocols.daisy import Daisy
from testbed.run import run_experiment
from tests.fuzz.daisies import daisies

SEEDS = range(1, 41)
MEMBERS = ("daisy", "wait-stable", "broadcast-all", "piggyback")  # of groups with views


def tried(name: str, seeds: range) -> Tally:
    total = Tally(name)
    for batch in batches([total], seeds):
        total.add(try_batch(batch))
    return total


def options(tmp_path: Path, **changes: Any) -> Namespace:
    given = {
        "protocol": None,
        "seeds": 3,
        "first_seed": 1,
        "master": None,
        "json": False,
        "large": False,
    }
    return Namespace(**{**given, "runs": tmp_path, **changes})


@pytest.mark.parametrize("name", PROTOCOLS)
def test_nothing_goes_wrong_with_a_correct_protocol(name: str) -> None:
    seeds = range(1, 25) if name in MEMBERS else SEEDS  # heartbeats take their time
    seeds = range(1, 6) if name == "daisy" else seeds  # and mutants
    tally = tried(name, seeds)
    assert tally.wrong == {}
    assert tally.seeds == len(seeds)
    assert (tally.runs > 4 * len(seeds)) if name == "daisy" else (tally.runs == len(seeds))
    assert tally.faults > len(seeds)
    assert tally.deliveries > tally.messages > 5 * len(seeds)


@pytest.mark.parametrize("name", [n for n, p in BROKEN.items() if not issubclass(p, Daisy)])
def test_a_mistake_is_found_made_small_and_repeated_by_a_run(name: str, tmp_path: Path) -> None:
    found = next(s for s in range(1, 201) if attempt(draw(BROKEN[name], s)).wrong)  # type: ignore[union-attr]
    example = shrunk(name, Origin(found))
    drawn = draw(BROKEN[name], found)
    assert len(example.document["workload"]["send"]) <= len(drawn["workload"]["send"])
    assert len(example.document["workload"]["send"]) <= 6
    assert example.document["topology"].get("nodes", 8) <= 8
    assert len(example.document["fault"]) <= 2
    (experiment,) = load(write_example(example, tmp_path))
    run = run_experiment(experiment, tmp_path, lambda stage, done, of: None)
    assert run.verdict.verdict == "invalid"
    assert run.verdict.count(example.trial.wrong or "")
    if name != "broken-echo":  # which never ends, so that one sees more of it than the other
        assert run.verdict.explain(1)[1] == example.trial.sentence


def test_one_seed_is_one_experiment_and_one_outcome() -> None:
    for name, protocol in PROTOCOLS.items():
        assert draw(protocol, 5) == draw(protocol, 5) != draw(protocol, 6), name
        assert attempt(draw(protocol, 5)) == attempt(draw(protocol, 5))


def test_what_is_drawn_is_within_what_protocols_promise() -> None:
    for name, protocol in PROTOCOLS.items():
        for seed in range(1, 101):
            document = draw(protocol, seed)
            kinds = {fault["kind"] for fault in document["fault"]}
            raw, floods = document["channel"] == "raw", protocol.needs_overlay
            if protocol.optimistic or name in MEMBERS:
                continue
            if raw:
                assert not kinds & {"loss", "link-down", "partition"}, (name, seed)
                assert not (floods and "reordering" in kinds)
            if "crash" in kinds:
                assert raw or floods
            for fault in document["fault"]:
                assert fault["kind"] not in ("link-down", "partition", "pause") or fault["for_ms"]
                assert fault["kind"] != "crash" or "for_ms" not in fault


def test_every_kind_of_fault_is_drawn_for_each_protocol_that_may_meet_it() -> None:
    for name, protocol in PROTOCOLS.items():
        drawn = [draw(protocol, seed) for seed in range(1, 161 if name in MEMBERS else 121)]
        kinds = {fault["kind"] for document in drawn for fault in document["fault"]}
        assert kinds >= {"loss", "duplication", "reordering", "slow", "link-down", "partition"}
        assert "pause" in kinds
        assert ("crash" in kinds) == (not protocol.needs_everybody)
        raw = {fault["kind"] for d in drawn if d["channel"] == "raw" for fault in d["fault"]}
        assert ({"loss", "link-down", "partition"} <= raw) == (
            protocol.optimistic or name in MEMBERS
        )
        again = any("for_ms" in f for d in drawn for f in d["fault"] if f["kind"] == "crash")
        assert again == (protocol.optimistic or name in MEMBERS)
        lines = [line for document in drawn for line in document["workload"]["send"]]
        assert any("answers" in line for line in lines)
        grouped = any("group" in line for line in lines)
        assert grouped == protocol.needs_groups
        some = any("to" in line for line in lines)
        assert some == (protocol.takes_subsets and not grouped)


def test_members_are_drawn_with_all_that_happens_to_them() -> None:
    drawn = [draw(PROTOCOLS["daisy"], seed) for seed in range(1, 121)]
    assert {d["protocol"]["levels"] for d in drawn} == {1, 2, 3, 4}
    for setting in ("split_above", "merge_below"):
        assert 10 < sum(setting in d["protocol"] for d in drawn) < 60
    for kind in ("crash", "leave"):
        ends = {"for_ms" in f for d in drawn for f in d["fault"] if f["kind"] == kind}
        assert ends == {True, False}


@pytest.mark.parametrize(
    ("faults", "settings", "allowed"),
    [
        ([{"kind": "partition", "nodes": [0], "for_ms": 500.0}], {}, True),
        ([{"kind": "partition", "nodes": [0]}], {}, False),
        ([{"kind": "partition", "nodes": [0], "for_ms": 50_000.0}] * 2, {}, False),
        ([{"kind": "pause", "node": 0, "for_ms": 150.0}, {"kind": "crash", "node": 1}], {}, True),
        ([{"kind": "pause", "node": 0, "for_ms": 300.0}, {"kind": "crash", "node": 1}], {}, False),
        ([{"kind": "pause", "node": 0, "for_ms": 300.0}, {"kind": "leave", "node": 1}], {}, False),
        ([{"kind": "crash", "node": 0}, {"kind": "crash", "node": 3}], {}, True),
        ([{"kind": "crash", "node": node} for node in (0, 1, 2)], {}, True),
        ([{"kind": "crash", "node": node} for node in (0, 1, 2, 3)], {}, False),
        ([{"kind": "crash", "node": 0}, {"kind": "leave", "node": 3}], {"split_above": 5}, True),
        ([{"kind": "crash", "node": 0}, {"kind": "crash", "node": 3}], {"split_above": 4}, False),
        ([{"kind": "slow", "factor": 9.0, "link": [0, 1], "for_ms": 50.0}], {}, True),
        ([{"kind": "slow", "factor": 9.0, "link": [0, 1], "for_ms": 50.0}] * 2, {}, False),
        ([{"kind": "loss", "rate": 0.02}], {}, True),
        ([{"kind": "loss", "rate": 0.2}], {}, False),
        ([], {"safe": False}, True),
        ([], {"safe": False, "early": True}, True),
        ([{"kind": "crash", "node": 0}], {"safe": False}, False),
        ([{"kind": "pause", "node": 0, "for_ms": 150.0}], {"safe": False}, False),
        ([{"kind": "crash", "node": 0}], {"inside": "server"}, True),
        ([{"kind": "crash", "node": node} for node in (0, 3)], {"inside": "server"}, False),
        ([{"kind": "crash", "node": node} for node in (0, 3)], {"inside": "recipients"}, False),
        (
            [{"kind": "crash", "node": node} for node in (0, 3)],
            {"inside": "recipients", "resilience": 2},
            True,
        ),
        ([{"kind": "pause", "node": 0, "for_ms": 300.0}], {"inside": "recipients"}, False),
        ([], {"patience_ms": 25.0}, False),
    ],
)
def test_members_meet_nothing_beyond_the_limits_of_their_protocol(
    faults: list[Any], settings: dict[str, Any], allowed: bool
) -> None:
    document = daisies([{"node": 0, "at_ms": 0.0}], faults, **{"group_size": 3, **settings})
    trial = attempt(document)
    assert (trial is not None) == allowed
    assert trial is None or trial.wrong is None


@pytest.mark.parametrize(
    ("late", "allowed"),
    [
        ([{"rate": 0.5, "late_ms": 4.0}], True),
        ([{"rate": 0.5, "late_ms": 9.0}], False),
        ([{"rate": 0.5, "late_ms": 4.0}, {"rate": 0.1, "late_ms": 4.0}], False),
        ([{"rate": 0.5, "late_ms": 9.0, "link": [0, 1]}], True),
        ([{"rate": 1.0, "late_ms": 4.0}], True),
    ],
)
def test_packets_are_late_by_a_heartbeat_at_most_on_the_whole_way(
    late: list[dict[str, Any]], allowed: bool
) -> None:
    faults = [{"kind": "reordering", **fault} for fault in late]
    document = daisies([{"node": 0, "at_ms": 0.0}], faults, group_size=3)
    document["topology"] = {"model": "line", "nodes": 6}
    document["protocol"] |= {"patience_ms": 115.0, "grace_ms": 230.0}
    document["workload"]["settle_ms"] = 1500.0
    assert (attempt(document) is not None) == allowed


def test_members_that_are_never_admitted_again_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol: Any = PROTOCOLS["daisy"]
    monkeypatch.setattr(protocol, "_return", lambda self, now: None)
    away = [{"kind": "leave", "node": 1, "for_ms": 300.0}]
    waits = attempt(daisies([{"node": 1, "at_ms": 100.0}], away))
    assert waits is not None
    assert (waits.wrong, "waits to send" in waits.sentence) == ("unrepaired", True)
    lacks = attempt(daisies([{"node": 0, "at_ms": 2500.0}], away))
    assert lacks is not None
    assert (lacks.wrong, "never delivered" in lacks.sentence) == ("unrepaired", True)


def test_what_does_not_end_or_raises_is_wrong_too(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = PROTOCOLS["overlay"]
    document = draw(protocol, 1)

    def stumble(*_: object) -> Any:
        raise IndexError("out of it")
        yield

    monkeypatch.setattr(protocol, "receive", stumble)
    trial = attempt(document)
    assert trial is not None
    assert trial.wrong == "error"
    assert "on receiving m(" in trial.sentence
    assert "IndexError: out of it" in trial.sentence

    def chat(self: Any, message: Any, sender: int, now: int) -> Any:
        from testbed.protocols import Send

        yield Send((sender,), message)

    monkeypatch.setattr(protocol, "receive", chat)
    trial = attempt({**document, "fault": [], "channel": "raw", "links": {}})
    assert trial is not None
    assert trial.wrong == "endless"


def test_what_is_no_experiment_is_no_trial() -> None:
    document = draw(PROTOCOLS["timestamp"], 1)
    assert attempt({**document, "topology": {"model": "line", "nodes": 1}}) is None


def test_what_no_protocol_promises_to_survive_is_no_trial() -> None:
    down = {"kind": "link-down", "link": [0, 1]}
    heals = {**down, "for_ms": 5.0}
    late = {"kind": "reordering", "rate": 0.5}
    crashes = [{"kind": "crash", "node": node, "at_ms": 1.0} for node in (1, 3)]
    reliable = {"model": "reliable"}
    for protocol, channel, faults, allowed in (
        ("overlay", reliable, [heals], True),
        ("overlay", reliable, [down], False),
        ("overlay", "raw", [heals], False),
        ("overlay", "raw", [late], False),
        ("timestamp", "raw", [late], True),
        ("overlay", reliable, [crashes[0]], True),
        ("timestamp", reliable, [crashes[0]], False),
        ("timestamp", "raw", crashes, True),
        ("overlay", "raw", crashes, False),  # on a ring, 2 is alone then
    ):
        document = {
            "name": "promises",
            "protocol": {"name": protocol},
            "topology": {"model": "ring", "nodes": 5},
            "overlay": {"model": "ring"},
            "workload": {"model": "script", "send": [{"node": 0, "at_ms": 0.0}]},
            "channel": channel,
            "fault": faults,
        }
        trial = attempt(document)
        assert (trial is not None) == allowed, document
        assert trial is None or trial.wrong is None


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([{"node": 0}], "either at_ms or answers"),
        ([{"node": 0, "answers": 0}], "answers one that is not before it"),
        ([{"node": 0, "at_ms": -1}], "at_ms must not be negative"),
        ([{"node": 0, "at_ms": 0, "to": [1], "group": "g1"}], "both a group and a list"),
        ([{"node": 0, "at_ms": 0}, *[{"node": 1, "answers": 0}] * 2], "once at most"),
        ([], "at least one message"),
        ([{"node": 0, "at_ms": 0, "payload_bytes": 2}], "payload_bytes must be from 4"),
        ([{"node": 0, "at": 0}], "unknown key 'at'"),
    ],
)
def test_a_script_without_meaning_is_refused(lines: Any, says: str) -> None:
    document = {
        "name": "script",
        "protocol": {"name": "overlay"},
        "topology": {"model": "line", "nodes": 3},
        "workload": {"model": "script", "send": lines},
    }
    with pytest.raises(UserError, match=r"script\.toml") as refused:
        parse(document, Path("script.toml"))
    assert says in str(refused.value)


def test_the_command_tells_what_it_found(tmp_path: Path, capsys: Any) -> None:
    chosen = ["overlay", "broken-impatient"]
    assert fuzz_command.command(options(tmp_path, protocol=chosen)) == 1
    told = capsys.readouterr().out
    files = list((tmp_path / "fuzz").glob("*.toml"))
    assert len(files) == 1
    assert files[0].name in told.replace("\n", "")
    assert tomllib.loads(files[0].read_text())["protocol"]["name"] == "broken-impatient"
    assert fuzz_command.command(options(tmp_path, protocol=["timestamp"], json=True)) == 0
    assert '"seeds": 3' in capsys.readouterr().out


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'overlay'"):
        fuzz_command.command(options(tmp_path, protocol=["overly"]))
    with pytest.raises(UserError, match="--seeds 0"):
        fuzz_command.command(options(tmp_path, seeds=0))
