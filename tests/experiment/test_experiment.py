"""The experiment file: what is right is read, what is wrong is said in one sentence."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tomli_w

from testbed.errors import UserError
from testbed.experiment import Network, Scenario, build_network, load, parse
from testbed.protocols import Overlay, Timestamp
from testbed.sweep.points import load_sweep
from testbed.topologies.alt import write_alt
from testbed.topologies.textbook import LineGraph

MINIMAL: dict[str, Any] = {
    "name": "small",
    "protocol": {"name": "overlay"},
    "topology": {"model": "pure-random", "nodes": 16, "edge_probability": 0.4},
}


def with_(path: str, value: Any) -> dict[str, Any]:
    """The minimal document with one key set."""
    document = {k: dict(v) if isinstance(v, dict) else v for k, v in MINIMAL.items()}
    *tables, key = path.split(".")
    table = document
    for name in tables:
        table = table.setdefault(name, {})
    table[key] = value
    return document


def test_defaults_are_the_papers() -> None:
    (experiment,) = parse(MINIMAL, Path("x.toml"))
    assert experiment.protocol is Overlay
    assert experiment.workload.senders == 10
    assert experiment.overlay.model == "hypercube"
    assert experiment.links.bandwidth_mbit == 10
    assert experiment.transport.routing == "hops"


def test_one_experiment_for_each_protocol() -> None:
    protocols = [{"name": "overlay"}, {"name": "timestamp", "multicast": "unicast"}]
    found = parse({**MINIMAL, "protocol": protocols}, Path("x.toml"))
    assert [e.protocol for e in found] == [Overlay, Timestamp]
    assert found[1].settings.multicast == "unicast"


def test_the_resolved_experiment_is_the_experiment(tmp_path: Path) -> None:
    document = with_("workload", {"model": "reply", "depth": 2, "senders": 4})
    (experiment,) = parse({**document, "links": {"delay_ms": [0, 2]}}, tmp_path / "x.toml")
    file = tmp_path / "resolved.toml"
    file.write_text(experiment.to_toml())
    (again,) = load(file)
    assert again == experiment
    assert build_network(again).to_json() == build_network(experiment).to_json()


def test_a_network_is_the_same_when_read_again() -> None:
    network = build_network(parse(MINIMAL, Path("x.toml"))[0])
    written = json.loads(json.dumps(network.to_json()))
    again = Network.from_json(written)
    assert again.to_json() == written
    assert [again.neighbours(i) for i in range(16)] == [network.neighbours(i) for i in range(16)]


def test_the_same_seed_is_the_same_network_and_another_is_another() -> None:
    networks = [
        build_network(parse(with_("seed", seed), Path("x.toml"))[0]).to_json() for seed in (1, 2, 1)
    ]
    assert networks[0] == networks[2] != networks[1]


def test_experiments_that_differ_in_other_things_share_a_graph() -> None:
    one, other, faster = (
        build_network(parse(document, Path("x.toml"))[0]).graph
        for document in (MINIMAL, with_("name", "other"), with_("links.bandwidth_mbit", 20))
    )
    assert one is other is not faster


def test_a_network_in_a_file_is_read_each_time(tmp_path: Path) -> None:
    document = with_("topology", {"model": "file", "path": "net.alt"})
    (experiment,) = parse(document, tmp_path / "x.toml")
    sizes = []
    for nodes in (4, 5):
        write_alt(LineGraph(nodes).generate(Random(1)), tmp_path / "net.alt")
        sizes.append(build_network(experiment).processes)
    assert sizes == [4, 5]


@pytest.mark.parametrize("file", sorted(Path("scripts/experiments").rglob("*.toml")), ids=str)
def test_the_experiments_that_ship_are_valid(file: Path) -> None:
    for experiment in load_sweep(file).points.values():  # of a file without lists: itself
        Scenario.of(experiment)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("topology.edge_prob", 0.2, ["[topology]", "edge_prob", "edge_probability"]),
        ("topology.nodes", "sixteen", ["topology.nodes", "sixteen", "integer"]),
        ("topology.nodes", 1, ["topology", "nodes", "2"]),
        ("topology.edge_probability", 1.5, ["edge_probability", "1.5"]),
        ("topology.model", "pure-randum", ["topology.model", "pure-randum", "pure-random"]),
        ("protocol.name", "overlord", ["protocol.name", "overlord", "overlay", "timestamp"]),
        (
            "protocol.name",
            "timestmp",
            ["unknown (did you mean 'timestamp'?); it is one of overlay"],
        ),
        ("protocol.multicast", "unicast", ["[protocol]", "multicast"]),
        ("workload", {"model": "bursts", "senders": -1}, ["workload", "senders", "-1"]),
        ("workload", {"senders": 3}, ["[workload]", "model", "bursts"]),
        ("workload", {"model": "reply", "payload_bytes": 0}, ["payload_bytes", "4"]),
        ("links", {"delay_ms": [2.0, 1.0]}, ["links", "delay_ms"]),
        ("links", {"loss": 1.0}, ["links", "loss"]),
        ("transport", {"mtu": 10}, ["transport", "mtu", "68"]),
        ("transport", {"routing": "luck"}, ["transport.routing", "luck", "hops"]),
        ("engine", "warp", ["engine", "warp", "simulate"]),
        ("seed", 1.5, ["seed", "1.5", "integer"]),
        ("name", "../elsewhere", ["name", "../elsewhere"]),
        ("packets", "some", ["packets", "some", "full"]),
        ("protocol", [], ["protocol", "overlay"]),
        ("colour", "red", ["colour"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(path: str, value: Any, words: list[str]) -> None:
    with pytest.raises(UserError) as error:
        parse(with_(path, value), Path("dir/bad.toml"))
    sentence = str(error.value)
    assert sentence.startswith("dir/bad.toml: ")
    assert "\n" not in sentence
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    "tables",
    [
        {"knots": 1},
        {"protocol": {"name": "daisy", "knots": 1}},
        {"topology": {"model": "line", "nodes": 4, "knots": 1}},
        {"topology": {"model": "hierarchical", "levels": [{"nodes": 4, "knots": 1}]}},
        {"links": {"knots": 1}},
        {"overlay": {"model": "ring", "knots": 1}},
        {"groups": {"model": "ring", "knots": 1}},
        {"transport": {"knots": 1}},
        {"workload": {"model": "steady", "knots": 1}},
        {"channel": {"model": "reliable", "knots": 1}},
        {"fault": [{"kind": "crash", "node": 1, "knots": 1}]},
        {"fault": [{"kind": "crash", "when": {"node": 1, "delivered": 3, "knots": 1}}]},
    ],
    ids=str,
)
def test_an_unknown_key_is_refused_at_every_level(tables: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="has an unknown key 'knots'"):
        parse({**MINIMAL, **tables}, Path("x.toml"))


def test_the_keys_of_an_inner_table_are_told() -> None:
    crash = {"kind": "crash", "when": {"node": 1, "evnt": "stamp"}}
    with pytest.raises(UserError, match="unknown key 'evnt'; did you mean 'event'"):
        parse({**MINIMAL, "fault": [crash]}, Path("x.toml"))


def test_what_only_the_network_shows(tmp_path: Path) -> None:
    many = parse(with_("workload", {"model": "bursts", "senders": 17}), Path("x.toml"))[0]
    with pytest.raises(UserError, match=r"senders = 17.*16 nodes"):
        Scenario.of(many)
    sparse = parse(with_("topology.edge_probability", 0.01), Path("x.toml"))[0]
    with pytest.raises(UserError, match=r"x.toml: topology: .*connected"):
        Scenario.of(sparse)


def test_a_disconnected_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.alt").write_text(
        "GRAPH (#nodes #edges id uu vv ww xx yy zz):\n4 4 g 0 0 0 0 0 0\n\n"
        "VERTICES (index name u v w x y z):\n"
        + "".join(f"{i} {i} {i} {i}\n" for i in range(4))
        + "\nEDGES (from-node to-node length a b):\n0 1 5 0 0\n2 3 5 0 0\n"
    )
    document = {**MINIMAL, "topology": {"model": "file", "path": "g.alt"}}
    (experiment,) = parse(document, tmp_path / "x.toml")
    with pytest.raises(UserError, match="parts"):
        Scenario.of(experiment)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("name = \n")
    with pytest.raises(UserError, match=r"broken.toml: cannot be read as TOML.*line 1"):
        load(tmp_path / "broken.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path / "binary.toml")


def test_overrides_replace_keys(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(tomli_w.dumps(MINIMAL))
    assert load(tmp_path / "x.toml", seed=9, packets=None)[0].seed == 9


def test_settings_that_do_not_fit_the_network_are_told_in_a_sentence() -> None:
    document = with_("protocol", {"name": "cluster", "coordinators": 99})
    what = parse(document, Path("x.toml"))[0]
    with pytest.raises(UserError, match=r"x\.toml: protocol: 99 coordinators"):
        Scenario.of(what)
