"""Figures: distances and connectivity against networkx, and quick enough at 600 nodes."""

import random
import time

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.topologies import Graph, Links, describe
from testbed.topologies.connectivity import (
    disjoint_paths,
    edge_connectivity,
    node_connectivity,
    short_paths,
)
from testbed.topologies.distances import diameter, neighbour_lists, pairs_by_distance
from tests.topologies.registries import MODELS, OVERLAYS


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    nodes = draw(st.integers(2, 12))
    possible = [(i, j) for j in range(nodes) for i in range(j)]
    chosen = draw(st.lists(st.sampled_from(possible), unique=True))
    if draw(st.booleans()):  # dense ones as well
        chosen = [edge for edge in possible if edge not in chosen]
    graph: Graph = nx.empty_graph(nodes)
    graph.add_edges_from(chosen)
    return graph


def shuffled(graph: Graph, rng: random.Random) -> Graph:
    order = rng.sample(list(graph), len(graph))
    return nx.relabel_nodes(graph, dict(zip(graph, order, strict=True)))


def assert_agrees(graph: Graph) -> None:
    assert node_connectivity(graph) == nx.node_connectivity(graph)
    assert edge_connectivity(graph) == nx.edge_connectivity(graph)


@settings(max_examples=250, deadline=None)
@given(graphs())
def test_connectivity_agrees_with_networkx(graph: Graph) -> None:
    assert_agrees(graph)
    assert edge_connectivity(graph, node_connectivity(graph)) == nx.edge_connectivity(graph)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 5), st.integers(2, 5), st.integers(0, 3), st.integers(0, 3), st.integers(0, 99)
)
def test_connectivity_finds_bottlenecks(
    left: int, right: int, shared: int, bridges: int, seed: int
) -> None:
    """Two cliques with some common nodes and some links between: the cut is in the middle."""
    rng = random.Random(seed)
    a, b = range(left + shared), range(left, left + shared + right)
    graph: Graph = nx.Graph()
    for clique in (a, b):
        graph.add_edges_from((i, j) for i in clique for j in clique if i < j)
        graph.add_nodes_from(clique)
    for _ in range(bridges):
        graph.add_edge(rng.choice(a), rng.choice(b))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    assert_agrees(shuffled(graph, rng))


@settings(max_examples=150, deadline=None)
@given(st.integers(3, 7), st.integers(3, 7), st.integers(1, 4), st.randoms(use_true_random=False))
def test_connectivity_finds_ferries(
    left: int, right: int, ferries: int, rng: random.Random
) -> None:
    """Two cliques and a few nodes between them, each landing at some nodes of either side."""
    a, b = range(left), range(left, left + right)
    graph = nx.Graph((i, j) for side in (a, b) for i in side for j in side if i < j)
    for ferry in range(left + right, left + right + ferries):
        for side in (a, b):
            graph.add_edges_from((ferry, i) for i in rng.sample(side, rng.randint(1, len(side))))
    assert_agrees(shuffled(graph, rng))


def test_a_path_in_the_way_of_two_others_is_undone() -> None:
    # 0-1-2-7 is shortest, but 0-1-3-4-7 and 0-5-6-2-7 are two that share nothing.
    arcs = [[1, 5], [2, 3], [7], [4], [7], [6], [2], []]
    assert disjoint_paths(arcs, 0, {7}, 5) == 2
    assert disjoint_paths(arcs, 0, {7}, 1) == 1
    assert disjoint_paths(arcs, 7, {0}, 5) == 0


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(1, 2**12))
def test_short_paths_never_promise_too_much(graph: Graph, chosen: int) -> None:
    bits = [sum(1 << other for other in graph[node]) for node in range(len(graph))]
    targets = chosen & ((1 << len(graph)) - 2)
    split = [
        arcs
        for node in range(len(graph))
        for arcs in ([2 * node + 1], [2 * other for other in graph[node]])
    ]
    exits = {2 * node + 1 for node in graph if targets >> node & 1}
    found = short_paths(bits, 0, targets)
    assert (targets & bits[0]).bit_count() <= found <= disjoint_paths(split, 1, exits, 99)


@pytest.mark.parametrize(
    ("graph", "nodes", "edges"),
    [
        (nx.empty_graph(1), 0, 0),
        (nx.complete_graph(2), 1, 1),
        (nx.complete_graph(9), 8, 8),
        (nx.cycle_graph(9), 2, 2),
        (nx.path_graph(4), 1, 1),
        (nx.petersen_graph(), 3, 3),
        (nx.barbell_graph(5, 0), 1, 1),
        (nx.convert_node_labels_to_integers(nx.circular_ladder_graph(6)), 3, 3),
        (nx.complete_bipartite_graph(3, 5), 3, 3),
    ],
)
def test_connectivity_by_hand(graph: Graph, nodes: int, edges: int) -> None:
    assert (node_connectivity(graph), edge_connectivity(graph)) == (nodes, edges)


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_distances_agree_with_networkx(graph: Graph) -> None:
    expected: dict[int, int] = {}
    for _, lengths in nx.all_pairs_shortest_path_length(graph):
        for length in lengths.values():
            expected[length] = expected.get(length, 0) + 1
    found = pairs_by_distance(neighbour_lists(len(graph), graph.edges))
    assert dict(enumerate(found)) == expected
    assert diameter(len(graph), graph.edges) == max(expected)


def test_describe_a_small_network_by_hand() -> None:
    graph = MODELS["star"](nodes=5).generate(random.Random(1))
    assert describe(graph).mean_delay_ms is None
    Links(delay_ms=2.0).apply(graph, random.Random(1))
    its = describe(graph)
    assert (its.nodes, its.links) == (5, 4)
    assert (its.degree_min, its.degree_mean, its.degree_max) == (1, 1.6, 4)
    assert (its.diameter, its.mean_distance) == (2, 1.6)
    assert (its.node_connectivity, its.edge_connectivity) == (1, 1)
    assert its.mean_delay_ms == 2.0


def test_describe_a_graph_in_pieces_and_a_single_node() -> None:
    pieces = describe(nx.disjoint_union(nx.path_graph(3), nx.path_graph(2)))
    assert (pieces.node_connectivity, pieces.edge_connectivity) == (0, 0)
    assert (pieces.diameter, pieces.mean_distance) == (2, 10 / 8)
    assert describe(nx.empty_graph(1)).mean_distance == 0


@pytest.mark.parametrize(
    ("graph", "connectivity"),
    [
        (OVERLAYS["hypercube"]().generate(600, random.Random(1)), 9),
        (OVERLAYS["regular"](degree=8).generate(600, random.Random(1)), 8),
        (OVERLAYS["ring"]().generate(600, random.Random(1)), 2),
        (MODELS["pure-random"](600, 0.04).generate(random.Random(1)), 12),
        (MODELS["pure-random"](200, 0.5).generate(random.Random(1)), 82),
    ],
    ids=["hypercube", "regular", "ring", "random", "dense"],
)
def test_describe_is_quick_for_six_hundred_nodes(graph: Graph, connectivity: int) -> None:
    start = time.process_time()
    its = describe(graph)
    assert time.process_time() - start < 5
    assert its.node_connectivity == connectivity <= its.edge_connectivity <= its.degree_min
