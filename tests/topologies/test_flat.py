"""GT-ITM's flat models: the graph contract, the probabilities, the seeds, the kind errors."""

import math
import random
from collections.abc import Callable, Iterator

import networkx as nx
import pytest

from testbed.topologies import Graph, Model, TopologyError
from testbed.topologies.flat import (
    FLAT,
    DoarLeslie,
    Exponential,
    Locality,
    PureRandom,
    Waxman1,
    Waxman2,
)
from testbed.topologies.plane import MAX_TRIES, spread
from tests.topologies.registries import MODELS

FLAT_NAMES = sorted(FLAT)


def pairs(graph: Graph) -> Iterator[tuple[int, int, float]]:
    """Every pair of nodes with its plane distance."""
    at = [(graph.nodes[v]["x"], graph.nodes[v]["y"]) for v in range(len(graph))]
    for i in range(len(at)):
        for j in range(i + 1, len(at)):
            yield i, j, math.dist(at[i], at[j])


@pytest.mark.parametrize("name", FLAT_NAMES)
@pytest.mark.parametrize("nodes", [2, 3, 16, 50, 150])
def test_contract_with_nothing_given_but_nodes(name: str, nodes: int) -> None:
    graph = MODELS[name](nodes=nodes).generate(random.Random(nodes))
    assert list(graph) == list(range(nodes))
    assert nx.is_connected(graph)
    assert not any(nx.selfloop_edges(graph))
    places = {(its["x"], its["y"]) for _, its in graph.nodes(data=True)}
    assert len(places) == nodes
    assert all(c in range(100) and isinstance(c, float) for place in places for c in place)
    assert all(its["name"] == str(node) for node, its in graph.nodes(data=True))
    assert graph.graph["model"] == name
    assert 1 <= graph.graph["tries"] <= MAX_TRIES
    assert graph.graph["parameters"]["nodes"] == nodes
    assert None not in graph.graph["parameters"].values()
    assert all(type(its["length"]) is float for *_, its in graph.edges(data=True))


@pytest.mark.parametrize("name", sorted(set(FLAT_NAMES) - {"waxman-1"}))
def test_length_is_the_rounded_distance(name: str) -> None:
    graph = MODELS[name](nodes=40).generate(random.Random(1))
    distance = {(i, j): d for i, j, d in pairs(graph)}
    for i, j, its in graph.edges(data=True):
        assert abs(its["length"] - distance[min(i, j), max(i, j)]) <= 0.5
        assert its["length"].is_integer()


LONGEST = 100 * math.sqrt(2)
FORMULAS = [
    (PureRandom(300, 0.1), lambda d: 0.1),
    (Waxman2(300, 0.6, 0.2), lambda d: 0.6 * math.exp(-d / (0.2 * LONGEST))),
    (Exponential(300, 0.3), lambda d: 0.3 * math.exp(-d / (LONGEST - d))),
    (
        DoarLeslie(300, 0.9, 0.25, 120.0),
        lambda d: 120 / 300 * 0.9 * math.exp(-d / (0.25 * LONGEST)),
    ),
    (Locality(300, 0.4, 0.05, 0.2), lambda d: 0.4 if d <= 0.2 * LONGEST else 0.05),
]


@pytest.mark.parametrize(("model", "formula"), FORMULAS, ids=[m.model for m, _ in FORMULAS])
def test_edges_come_with_the_probability_of_the_model(
    model: Model, formula: Callable[[float], float]
) -> None:
    graph = model.generate(random.Random(5))
    for near in (True, False):  # a wrong dependence on distance would show in one of the halves
        chosen = [(i, j, formula(d)) for i, j, d in pairs(graph) if (d < LONGEST / 4) == near]
        found = sum(graph.has_edge(i, j) for i, j, _ in chosen)
        expected = sum(p for *_, p in chosen)
        spread = math.sqrt(sum(p * (1 - p) for *_, p in chosen))
        assert abs(found - expected) < 4.5 * spread


def test_waxman_1_draws_a_random_length() -> None:
    alpha, beta = 0.8, 0.15
    graph = Waxman1(300, alpha, beta).generate(random.Random(6))
    possible = 300 * 299 / 2
    reach = 1 - math.exp(-1 / beta)
    expected = alpha * beta * reach * possible
    assert abs(graph.number_of_edges() - expected) < 5 * math.sqrt(expected)
    lengths = [its["length"] for *_, its in graph.edges(data=True)]
    mean = beta * LONGEST * (1 - math.exp(-1 / beta) / beta / reach)
    assert abs(sum(lengths) / len(lengths) - mean) < 5 * beta * LONGEST / math.sqrt(len(lengths))
    near = {(i, j): d for i, j, d in pairs(graph)}
    assert any(abs(near[e] - graph.edges[e]["length"]) > 30 for e in near if graph.has_edge(*e))


def test_a_seed_means_the_same_graph_for_ever() -> None:
    graph = PureRandom(8, 0.3).generate(random.Random(2004))
    places = [(its["x"], its["y"]) for _, its in graph.nodes(data=True)]
    assert places[:3] == [(64, 37), (89, 54), (60, 0)]
    edges = "03 04 07 16 17 24 27 34 36 46 57"
    assert sorted(graph.edges) == [(int(i), int(j)) for i, j in map(tuple, edges.split())]


def test_tries_are_counted_and_each_is_a_new_draw() -> None:
    model = PureRandom(100, 0.04)
    tries = [model.generate(random.Random(seed)).graph["tries"] for seed in range(60)]
    # P(connected) is .17 at this size: about six tries, and hardly ever one only.
    assert 4 < sum(tries) / len(tries) < 9
    assert min(tries) < 3 < max(tries)


def test_graphs_in_pieces_are_drawn_again() -> None:
    # of so few nodes two pieces without an isolated node are common
    assert all(
        nx.is_connected(PureRandom(8, 0.25).generate(random.Random(seed))) for seed in range(80)
    )


def test_hopeless_probability_is_refused_with_the_right_one() -> None:
    with pytest.raises(TopologyError) as caught:
        PureRandom(100, 0.01).generate(random.Random(1))
    message = str(caught.value)
    assert "none of 10 graphs" in message  # it is no use to try a thousand times
    assert "edge_probability = 0.01" in message
    assert "nodes = 100" in message
    suggested = float(message.split("edge_probability = ")[2].split()[0])
    assert suggested == pytest.approx(math.log(100) / 100, rel=0.15)
    assert "\n" not in message


def test_hopeless_beta_is_refused_with_advice_on_beta() -> None:
    with pytest.raises(TopologyError, match="greater beta"):
        Waxman2(30, 1.0, 0.01).generate(random.Random(1))


def test_the_papers_largest_graph_comes_at_once() -> None:
    assert PureRandom(600, 0.02).generate(random.Random(1)).graph["tries"] <= 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PureRandom(1, 0.5), ["nodes = 1 ", "at least 2"]),
        (lambda: PureRandom(10, 0.0), ["edge_probability = 0.0 ", "above 0 and at most 1"]),
        (lambda: PureRandom(10, 1.2), ["edge_probability = 1.2 ", "above 0 and at most 1"]),
        (lambda: PureRandom(10, math.nan), ["edge_probability = nan "]),
        (lambda: PureRandom(10, 0.5, scale=3), ["nodes = 10 ", "at most 9", "scale at least 4"]),
        (lambda: PureRandom(10, 0.5, scale=0), ["scale = 0 ", "at least 1"]),
        (lambda: PureRandom(10, 0.5, scale=10**10), ["scale = 10000000000 ", "at most 1000000"]),
        (lambda: PureRandom(10**6, 0.5, scale=10**4), ["nodes = 1000000 ", "at most 5000"]),
        (lambda: Waxman1(10, 0.5, 0.0), ["beta = 0.0 ", "above 0"]),
        (lambda: Waxman2(10, 1.5), ["alpha = 1.5 "]),
        (lambda: Exponential(10, -1), ["alpha = -1 "]),
        (lambda: DoarLeslie(10, gamma=0), ["gamma = 0 ", "above 0"]),
        (lambda: Locality(10, beta=2.0), ["beta = 2.0 ", "from 0 to 1"]),
        (lambda: Locality(10, gamma=-0.1), ["gamma = -0.1 ", "at least 0"]),
    ],
)
def test_a_wrong_parameter_is_named_with_its_range(make: Callable[[], object], words: str) -> None:
    with pytest.raises(TopologyError) as caught:
        make()
    assert all(word in str(caught.value) for word in words)


def test_a_full_grid_is_allowed() -> None:
    graph = PureRandom(9, 0.9, scale=3).generate(random.Random(1))
    places = {(its["x"], its["y"]) for _, its in graph.nodes(data=True)}
    assert places == {(x, y) for x in range(3) for y in range(3)}


def test_spread_keeps_the_total_and_the_floor() -> None:
    for seed in range(50):
        sizes = spread(random.Random(seed), 12, 2)
        assert sum(sizes) == 24
        assert min(sizes) >= 1
    assert len({tuple(spread(random.Random(seed), 12, 6)) for seed in range(5)}) > 1
    assert spread(random.Random(1), 1, 7) == [7]
    assert spread(random.Random(1), 0, 7) == []
