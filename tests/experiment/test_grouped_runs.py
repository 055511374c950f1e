"""Experiments with groups: who may send to whom, and runs of them in the simulator."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UserError
from testbed.experiment import Experiment, Network, Scenario, build_network
from testbed.protocols import PROTOCOLS
from tests.command_line import CommandLine
from tests.experiments import events_of, parsed, run

TAKERS = [name for name, protocol in PROTOCOLS.items() if protocol.takes_subsets]
RANDOM = {"model": "random", "groups": 5, "size": 4}
LINKS = {"delay_ms": [0.0, 20.0]}


def experiment(
    name: str = "rst",
    groups: dict[str, Any] = RANDOM,
    workload: dict[str, Any] | None = None,
    **keys: Any,
) -> Experiment:
    document = {
        "name": "grouped",
        "protocol": {"name": name},
        "topology": {"model": "pure-random", "nodes": 10, "edge_probability": 0.5},
        "links": LINKS,
        "workload": workload or {"model": "poisson", "senders": 6, "duration_ms": 100},
        "groups": groups,
    }
    return parsed(document, **keys)


@pytest.mark.parametrize("name", TAKERS)
def test_every_message_and_every_answer_goes_to_a_group_of_its_sender(
    name: str, tmp_path: Path
) -> None:
    workload = {"model": "reply", "senders": 6, "interval_ms": 10, "duration_ms": 40, "depth": 3}
    what = experiment(name, workload=workload)
    done = run(what, tmp_path)
    assert done.verdict.ok, done.verdict.explain(3)
    groups = {frozenset(g) for g in build_network(what).groups.values()}
    sent = [event for event in events_of(done) if event["event"] == "send"]
    assert len({frozenset(event["to"]) for event in sent}) > 1
    for event in sent:
        assert frozenset(event["to"]) in groups
        assert event["node"] in event["to"]
    assert any(event["t"] > 40e6 for event in sent)  # answers to answers


def test_answers_are_the_same_whatever_the_order_of_deliveries(tmp_path: Path) -> None:
    workload = {"model": "reply", "senders": 6, "interval_ms": 2, "duration_ms": 20, "depth": 4}
    runs = [run(experiment(name, workload=workload), tmp_path) for name in TAKERS]
    sent = [
        sorted((e["node"], e["to"]) for e in events_of(done) if e["event"] == "send")
        for done in runs
    ]
    assert all(one == sent[0] for one in sent)
    orders = {tuple(e["node"] for e in events_of(d) if e["event"] == "send") for d in runs}
    assert len(orders) > 1


def test_a_sender_can_send_to_each_of_its_groups_at_once() -> None:
    workload = {"model": "steady", "senders": 6, "interval_ms": 10, "each_group": True}
    what = experiment(workload={**workload, "duration_ms": 10})
    scenario = Scenario.of(what)
    network, sends = scenario.network, scenario.sends
    for node in {sending.node for sending in sends}:
        own = [to for to in network.groups.values() if node in to]
        assert [sending.to for sending in sends if sending.node == node] == own


def test_a_script_names_groups() -> None:
    lines = [{"node": 1, "at_ms": 0, "group": "b"}, {"node": 2, "answers": 0, "group": "a"}]
    groups = {"model": "named", "members": {"a": [0, 2], "b": [1, 2]}}
    what = experiment(groups=groups, workload={"model": "script", "send": lines})
    assert Scenario.of(what).sends[0].to == frozenset({1, 2})


def test_the_answer_of_a_script_goes_to_its_group(tmp_path: Path) -> None:
    lines = [{"node": 1, "at_ms": 0, "group": "b"}, {"node": 2, "answers": 0, "group": "a"}]
    groups = {"model": "named", "members": {"a": [0, 2], "b": [1, 2]}}
    what = experiment(groups=groups, workload={"model": "script", "send": lines})
    assert [e["to"] for e in events_of(run(what, tmp_path)) if e["event"] == "send"] == [
        [1, 2],
        [0, 2],
    ]


def test_groups_are_kept_with_the_network() -> None:
    network = build_network(experiment())
    assert Network.from_json(json.loads(json.dumps(network.to_json()))).groups == network.groups
    assert len(network.groups) == 5


def test_the_same_seed_gives_the_same_groups() -> None:
    assert build_network(experiment()).groups == build_network(experiment("ks")).groups
    assert build_network(experiment()).groups != build_network(experiment(seed=2)).groups


def test_an_experiment_with_groups_can_be_run_again_from_its_own_file(
    tmp_path: Path, testbed: CommandLine
) -> None:
    done = run(experiment(), tmp_path)
    testbed("run", done.path / "experiment.toml", "--runs", tmp_path, "--no-digest")


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"name": "timestamp"}, "timestamp sends every message to everybody"),
        ({"groups": {"model": "random", "size": 11}}, "groups: .*needs 11 processes"),
        ({"groups": {"model": "rnadom"}}, "did you mean 'random'"),
        ({"groups": {"model": "ring", "grups": 4}}, "did you mean 'groups'"),
        (
            {"workload": {"model": "random-destinations", "messages": 5}},
            "random-destinations draws destinations of its own",
        ),
        (
            {"groups": {"model": "triangle"}},
            "workload: senders = 6, and only 3 processes are in a group",
        ),
        (
            {"workload": {"model": "script", "send": [{"node": 0, "at_ms": 0, "group": "h"}]}},
            "message 0 of the script names group 'h', and there are g1, g2",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(what: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Scenario.of(experiment(**what))


def test_the_topology_command_shows_groups_and_their_cycle(
    tmp_path: Path, testbed: CommandLine
) -> None:
    file = tmp_path / "grouped.toml"
    file.write_text(experiment().to_toml())
    assert "5 groups, their graph has a cycle" in testbed("topology", file).out
    groups = testbed("topology", file, "--json").json()["groups"]
    assert groups["cycle"] is True
    assert groups["members"].keys() == {"g1", "g2", "g3", "g4", "g5"}
