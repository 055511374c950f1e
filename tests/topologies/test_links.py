"""Links, textbook graphs, and filling the models from an experiment's tables."""

import json
import math
import random
from typing import Any

import networkx as nx
import pytest
from pydantic import TypeAdapter, ValidationError

from testbed.topologies import Graph, Level, Links, Model, TopologyError
from testbed.topologies.flat import FLAT
from testbed.topologies.hierarchical import Hierarchical
from testbed.topologies.textbook import SPACING
from testbed.topologies.transit_stub import TransitStub
from tests.topologies.registries import MODELS, OVERLAYS


def network(links: Links, nodes: int = 30, seed: int = 1) -> Graph:
    graph: Graph = MODELS["waxman-2"](nodes).generate(random.Random(7))
    links.apply(graph, random.Random(seed))
    return graph


def values(graph: Graph, key: str) -> list[float]:
    return [its[key] for *_, its in sorted(graph.edges(data=True), key=lambda edge: edge[:2])]


def test_defaults_are_those_of_the_paper() -> None:
    graph = network(Links())
    delays = values(graph, "delay_ns")
    assert all(type(delay) is int and 0 <= delay <= 1_000_000 for delay in delays)
    assert 0.4e6 < sum(delays) / len(delays) < 0.6e6
    assert set(values(graph, "bandwidth_bps")) == {10_000_000}
    assert set(values(graph, "queue_packets")) == {0}
    assert set(values(graph, "loss")) == {0.0}


def test_fixed_delay_and_the_other_figures() -> None:
    graph = network(Links(delay_ms=2.5, bandwidth_mbit=0.5, queue_packets=20, loss=0.01))
    assert set(values(graph, "delay_ns")) == {2_500_000}
    assert set(values(graph, "bandwidth_bps")) == {500_000}
    assert set(values(graph, "queue_packets")) == {20}
    assert set(values(graph, "loss")) == {0.01}


def test_ranges_are_uniform_between_their_bounds() -> None:
    graph = network(Links(delay_ms=(5.0, 7.0), bandwidth_mbit=(1.0, 100.0)), nodes=200)
    delays, speeds = values(graph, "delay_ns"), values(graph, "bandwidth_bps")
    assert min(delays) >= 5_000_000
    assert max(delays) <= 7_000_000
    assert max(delays) - min(delays) > 1_900_000
    assert min(speeds) >= 1_000_000
    assert max(speeds) <= 100_000_000
    assert max(speeds) - min(speeds) > 95_000_000
    assert all(type(speed) is int for speed in speeds)


def test_delay_from_distance() -> None:
    graph = network(Links(delay_ms_per_unit=0.02))
    for *_, its in graph.edges(data=True):
        assert its["delay_ns"] == round(its["length"] * 20_000)


def test_links_depend_on_the_seed_and_not_on_the_order_of_edges() -> None:
    links = Links(bandwidth_mbit=(1.0, 10.0))
    straight, again = network(links), network(links)
    assert values(straight, "delay_ns") == values(again, "delay_ns")
    assert values(straight, "delay_ns") != values(network(links, seed=2), "delay_ns")
    turned: Graph = nx.Graph()
    turned.add_nodes_from(straight.nodes(data=True))
    turned.add_edges_from((j, i, {"length": 1.0}) for i, j in reversed(list(straight.edges)))
    links.apply(turned, random.Random(1))
    for i, j in straight.edges:
        for key in ("delay_ns", "bandwidth_bps"):
            assert turned.edges[i, j][key] == straight.edges[i, j][key]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delay_ms": -1.0}, "delay_ms = -1.0 .*at least 0"),
        ({"delay_ms": (2.0, 1.0)}, r"delay_ms = \[2.0, 1.0\] .*low <= high"),
        ({"delay_ms": math.nan}, "delay_ms = "),
        ({"delay_ms": math.inf}, "delay_ms = inf"),
        ({"delay_ms": 1.0, "delay_ms_per_unit": 1.0}, "exclude each other"),
        ({"delay_ms_per_unit": -0.1}, "delay_ms_per_unit = -0.1 .*at least 0"),
        ({"delay_ms_per_unit": math.inf}, "delay_ms_per_unit = inf"),
        ({"bandwidth_mbit": 0.0}, "bandwidth_mbit = 0.0 "),
        ({"bandwidth_mbit": (0.0, 5.0)}, "bandwidth_mbit = 0.0 "),
        ({"queue_packets": -1}, "queue_packets = -1 .*at least 0"),
        ({"loss": 1.0}, "loss = 1.0 .*below 1"),
        ({"loss": -0.1}, "loss = -0.1 "),
    ],
)
def test_wrong_links_are_named_with_their_range(given: dict[str, Any], words: str) -> None:
    with pytest.raises(TopologyError, match=words):
        Links(**given)


TEXTBOOK = {
    "line": ({"nodes": 5}, nx.path_graph(5)),
    "ring": ({"nodes": 5}, nx.cycle_graph(5)),
    "star": ({"nodes": 5}, nx.star_graph(4)),
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_graphs(name: str) -> None:
    given, expected = TEXTBOOK[name]
    graph = MODELS[name](**given).generate(random.Random(1))
    assert nx.utils.edges_equal(graph.edges, expected.edges)
    assert graph.graph == {"model": name, "tries": 1, "parameters": given}
    for i, j, its in graph.edges(data=True):
        a, b = graph.nodes[i], graph.nodes[j]
        assert its["length"] == SPACING
        assert math.dist((a["x"], a["y"]), (b["x"], b["y"])) == pytest.approx(SPACING)


def test_grid_is_numbered_row_by_row() -> None:
    graph = MODELS["grid"](rows=3, columns=4).generate(random.Random(1))
    assert len(graph) == MODELS["grid"](3, 4).nodes == 12
    for i, j in graph.edges:
        assert j - i == 4 or (j - i == 1 and j % 4)
    assert graph.number_of_edges() == 3 * 3 + 2 * 4
    assert graph.nodes[0]["y"] > graph.nodes[11]["y"]


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("line", {"nodes": 1}, "at least 2"),
        ("ring", {"nodes": 2}, "at least 3"),
        ("star", {"nodes": 1}, "at least 2"),
        ("grid", {"rows": 1, "columns": 1}, "at least 2"),
        ("grid", {"rows": 0, "columns": 9}, "rows = 0"),
    ],
)
def test_textbook_graphs_have_a_least_size(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(TopologyError, match=words):
        MODELS[name](**given)


def filled(kind: Any, table: dict[str, Any]) -> Any:
    """Fill a class from a table as an experiment file does."""
    return TypeAdapter(kind).validate_json(json.dumps(table), strict=True, extra="forbid")


def test_models_can_be_filled_from_tables() -> None:
    assert filled(MODELS["waxman-2"], {"nodes": 50}).nodes == 50
    assert filled(MODELS["pure-random"], {"nodes": 9, "edge_probability": 1}).edge_probability == 1
    levels = [{"nodes": 3}, {"nodes": 4, "method": "waxman-1", "alpha": 1, "beta": 0.5}]
    model = filled(MODELS["hierarchical"], {"levels": levels, "connection": "threshold"})
    assert model.levels[1] == Level(4, "waxman-1", 1.0, 0.5)
    assert filled(MODELS["transit-stub"], {"stub": {"nodes": 2}}).nodes == 28
    assert filled(Links, {"delay_ms": [1, 2.5]}).delay_ms == (1.0, 2.5)
    assert filled(Links, {"delay_ms": 3}).delay_ms == 3.0
    assert filled(OVERLAYS["tree"], {"arity": 3}).arity == 3


@pytest.mark.parametrize(
    ("kind", "table", "words"),
    [
        (MODELS["waxman-2"], {"nodes": 5, "aplha": 0.5}, "aplha"),
        (MODELS["waxman-2"], {"nodes": 1}, "nodes = 1 is out of range"),
        (MODELS["waxman-2"], {"nodes": 2.5}, "nodes"),
        (MODELS["waxman-2"], {}, "nodes"),
        (MODELS["transit-stub"], {"stub": {"nodes": 2, "nods": 2}}, "nods"),
        (MODELS["transit-stub"], {"stub": {"nodes": 0}}, "nodes = 0 is out of range"),
        (Links, {"delay": 1}, "delay"),
        (OVERLAYS["hypercube"], {"degree": 1}, "degree"),
        (OVERLAYS["regular"], {"degree": 0}, "degree = 0 is out of range"),
    ],
)
def test_wrong_tables_are_refused(kind: Any, table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        filled(kind, table)


DRAWN = [*(MODELS[name](nodes=30) for name in sorted(FLAT)), Hierarchical(), TransitStub()]


@pytest.mark.parametrize("model", DRAWN, ids=lambda model: model.model)
def test_one_seed_one_graph(model: Model) -> None:
    def drawn(seed: int) -> object:
        graph = model.generate(random.Random(seed))
        return sorted(graph.nodes(data="x")), sorted(graph.edges(data="length"))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("registry", [MODELS, OVERLAYS])
def test_registries_go_by_the_models_own_names(registry: dict[str, Any]) -> None:
    assert all(kind.model == name for name, kind in registry.items())
    assert all(name == name.lower() and " " not in name for name in registry)


def test_every_model_has_a_name_to_write_in_an_experiment() -> None:
    assert set(MODELS) == {
        *("pure-random", "waxman-1", "waxman-2", "doar-leslie", "exponential", "locality"),
        *("hierarchical", "transit-stub", "line", "ring", "star", "grid", "file"),
        "exponential-channels",
    }
