"""What a file with lists of values expands to."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import UserError
from testbed.experiment import parse
from testbed.experiment.expand import expand
from testbed.sweep.points import Sweep, swept_keys
from tests.command_line import CommandLine
from tests.sweep.small import FILE, PLAIN, SIZES, TIMESTAMPS, with_


def test_a_file_without_lists_is_one_point() -> None:
    assert expand(PLAIN, FILE) == parse(PLAIN, FILE)


@given(
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3),
    nodes=st.lists(st.integers(8, 99), min_size=1, max_size=3),
    sizes=st.lists(st.integers(0, 999), min_size=1, max_size=3),
)
def test_lists_expand_to_every_combination(
    seeds: list[int], nodes: list[int], sizes: list[int]
) -> None:
    document = with_(seed=seeds, topology={"nodes": nodes}, workload={"payload_bytes": sizes})
    found: list[Any] = expand(document, FILE)
    points = [(p.seed, p.topology.nodes, p.workload.payload_bytes) for p in found]
    assert sorted(points) == sorted(product(seeds, nodes, sizes))


def test_where_a_key_takes_a_list_it_is_one_value_and_a_list_of_lists_is_a_dimension() -> None:
    (one,) = expand({**PLAIN, "links": {"delay_ms": [0.0, 5.0]}}, FILE)
    assert one.links.delay_ms == (0.0, 5.0)
    both = expand({**PLAIN, "links": {"delay_ms": [[0.0, 1.0], [0.0, 5.0], 3.0]}}, FILE)
    assert [p.links.delay_ms for p in both] == [(0.0, 1.0), (0.0, 5.0), 3.0]
    three = expand({**PLAIN, "links": {"delay_ms": [1.0, 2.0, 3.0]}}, FILE)
    assert [p.links.delay_ms for p in three] == [1.0, 2.0, 3.0]


def test_an_array_of_tables_gives_alternatives_whose_values_go_together() -> None:
    points: list[Any] = expand(with_(topology=SIZES, seed=[1, 2]), FILE)
    found = {(p.topology.nodes, p.topology.edge_probability) for p in points}
    assert found == {(8, 0.5), (12, 0.4)}
    assert len(points) == 4


def test_lists_in_alternatives_and_in_tables_within_tables_are_dimensions() -> None:
    protocols = [{"name": "overlay"}, TIMESTAMPS]
    assert len(expand(with_(protocol=protocols, topology=SIZES), FILE)) == 6
    levels = {"model": "transit-stub", "stub": {"nodes": [2, 3, 4]}}
    points: list[Any] = expand({**PLAIN, "topology": levels}, FILE)
    assert [p.topology.stub.nodes for p in points] == [2, 3, 4]


def test_lists_in_faults_are_dimensions_and_all_faults_are_there() -> None:
    faults = [
        {"kind": "loss", "rate": [0.0, 0.1]},
        {"kind": "partition", "nodes": [1, 2], "at_ms": [1, 2, 3]},
        {"kind": ["crash", "pause"], "node": 3},
    ]
    points: list[Any] = expand(with_(fault=faults), FILE)
    assert {tuple(fault.kind for fault in e.faults) for e in points} == {
        ("loss", "partition", "crash"),
        ("loss", "partition", "pause"),
    }
    found = {(e.faults[0].rate, e.faults[1].at_ms, e.faults[1].nodes) for e in points}
    assert found == {(r, t, (1, 2)) for r in (0.0, 0.1) for t in (1, 2, 3)}
    assert len(points) == 12
    keys = swept_keys(Sweep.of(points))
    assert {"fault.1.rate", "fault.2.at_ms", "fault.3.kind"} <= set(keys)


def test_models_may_be_listed_and_each_brings_its_own_keys() -> None:
    points: list[Any] = expand(
        {**PLAIN, "topology": {"model": ["ring", "line"], "nodes": [8, 9]}}, FILE
    )
    assert [(p.topology.model, p.topology.nodes) for p in points] == [
        ("ring", 8),
        ("ring", 9),
        ("line", 8),
        ("line", 9),
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (with_(seed=[1, "two"]), "seed = 'two': should be a valid integer"),
        (with_(seed=[]), "seed = []: give at least one value"),
        (with_(topology={"nodes": []}), "topology.nodes = []: give at least one value"),
        (with_(topology={"nodes": [8, -1]}), "topology"),
        (with_(topology={"nodez": [8, 9]}), "did you mean 'nodes'?"),
        (with_(topology={"model": ["pure-random", "pure"]}), "topology.model = 'pure' is unknown"),
        (with_(protocol=[]), "protocol is empty"),
        (with_(name=["a", "b"]), "give one"),
    ],
)
def test_what_is_wrong_in_a_list_is_said_in_one_sentence(
    document: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError) as error:
        Sweep.of(expand(document, FILE))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "document",
    [
        with_(seed=[1, 2]),
        with_(topology={"nodes": [8, 9]}),
        with_(topology={"model": ["ring", "line"]}),
        with_(topology=SIZES),
        with_(protocol=TIMESTAMPS),
        with_(engine=["simulate", "virtual"]),
        {**PLAIN, "links": {"delay_ms": [[0.0, 1.0], [0.0, 5.0]]}},
    ],
)
def test_run_says_that_lists_are_for_sweep(document: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="`testbed sweep`"):
        parse(document, FILE)


def test_run_refuses_a_sweep_file(tmp_path: Path, testbed: CommandLine) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        'name = "x"\nseed = [1, 2]\nprotocol.name = "overlay"\ntopology.model = "ring"\n'
    )
    assert "`testbed sweep`" in testbed("run", file, status=2).err
