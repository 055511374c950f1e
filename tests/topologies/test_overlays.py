"""Overlays, and the guarantees of the incomplete hypercube for every size."""

import random

import networkx as nx
import pytest

from testbed.topologies import Figures, TopologyError, describe
from testbed.topologies.hypercube import dimension, hypercast, hypercube, hypercube_neighbours
from tests.topologies.registries import OVERLAYS

SIZES = range(2, 131)


@pytest.fixture(scope="module")
def figures() -> dict[int, Figures]:
    return {n: describe(hypercube(n)) for n in SIZES}


def test_dimension() -> None:
    assert [dimension(n) for n in (1, 2, 3, 4, 5, 8, 9, 16, 17)] == [1, 1, 2, 2, 3, 3, 4, 4, 5]


@pytest.mark.parametrize("bits", range(1, 8))
def test_a_power_of_two_gives_the_full_cube(bits: int) -> None:
    graph = hypercube(1 << bits)
    assert all((i ^ j).bit_count() == 1 for i, j in graph.edges)
    assert graph.number_of_edges() == bits << (bits - 1)


def test_neighbours_are_mutual_and_never_oneself() -> None:
    for n in range(1, 131):
        around = [hypercube_neighbours(i, n) for i in range(n)]
        for i in range(n):
            assert i not in around[i]
            assert all(0 <= j < n and i in around[j] for j in around[i])


def test_the_graph_is_the_full_cube_with_stand_ins() -> None:
    for n in SIZES:
        top = 1 << (dimension(n) - 1)
        stand_in = [j if j < n else j - top for j in range(2 * top)]
        joined = {
            frozenset((stand_in[j], stand_in[j ^ (1 << k)]))
            for j in range(2 * top)
            for k in range(dimension(n))
        }
        assert {frozenset(edge) for edge in hypercube(n).edges} == {e for e in joined if len(e) > 1}


def test_degree_and_connectivity_are_guaranteed(figures: dict[int, Figures]) -> None:
    for n in SIZES:
        bits = dimension(n)
        full = n == 1 << bits or 4 * n >= 3 << bits
        promised = bits if full else bits - 1
        assert figures[n].degree_min == promised
        assert figures[n].node_connectivity == promised
        assert figures[n].degree_max <= max(bits, 2 * bits - 2)
        assert figures[n].diameter <= bits


def test_the_greatest_degree_is_reached_where_one_node_is_missing(
    figures: dict[int, Figures],
) -> None:
    for bits in range(3, 8):
        assert figures[(1 << bits) - 1].degree_max == 2 * bits - 2


@pytest.mark.parametrize("n", [5, 7, 11, 17, 24, 33])
def test_connectivity_agrees_with_networkx(n: int, figures: dict[int, Figures]) -> None:
    assert nx.node_connectivity(hypercube(n)) == figures[n].node_connectivity
    assert nx.edge_connectivity(hypercube(n)) == figures[n].edge_connectivity


@pytest.mark.parametrize(
    ("sizes", "known"),  # the bounds of least, greatest and mean degree, and of the diameter
    [
        (range(2, 5), [(1, 2), (1, 2), (1.00, 2.00), (1, 2)]),
        (range(5, 9), [(2, 3), (3, 4), (2.80, 3.14), (2, 3)]),
        (range(9, 17), [(3, 4), (4, 6), (3.56, 4.15), (3, 4)]),
        (range(17, 33), [(4, 5), (5, 8), (4.35, 5.19), (4, 5)]),
        (range(33, 65), [(5, 6), (6, 10), (5.21, 6.19), (5, 6)]),
        (range(65, 129), [(6, 7), (7, 12), (6.12, 7.20), (6, 7)]),
    ],
)
def test_known_ranges(
    figures: dict[int, Figures], sizes: range, known: list[tuple[float, float]]
) -> None:
    def bounds(key: str) -> tuple[float, float]:
        found = [round(getattr(figures[n], key), 2) for n in sizes]
        return min(found), max(found)

    keys = ("degree_min", "degree_max", "degree_mean", "diameter")
    assert [bounds(key) for key in keys] == known
    assert bounds("node_connectivity") == bounds("degree_min")


@pytest.mark.parametrize(
    ("n", "least", "greatest", "mean", "diameter"),
    [
        (200, 8, 9, 8.1, 7),
        (300, 8, 11, 8.7, 8),
        (400, 9, 10, 9.1, 8),
        (500, 9, 13, 9.1, 8),
        (600, 9, 12, 9.7, 9),
    ],
)
def test_known_values_at_the_sizes_of_the_paper(
    n: int, least: int, greatest: int, mean: float, diameter: int
) -> None:
    its = describe(hypercube(n))
    assert (its.degree_min, its.degree_max) == (least, greatest)
    assert its.node_connectivity == least
    assert round(its.degree_mean, 1) == mean
    assert its.diameter == diameter


def test_hypercast_leaves_one_node_with_a_single_neighbour() -> None:
    for bits in range(1, 8):
        full, more = hypercast(1 << bits), hypercast((1 << bits) + 1)
        assert nx.is_isomorphic(full, hypercube(1 << bits))
        degrees = sorted(degree for _, degree in more.degree)
        assert degrees[0] == more.degree[1 << bits] == 1
        assert degrees[1] >= min(2, bits)
    for n in SIZES:
        gray = [i ^ i >> 1 for i in range(n)]
        pairs = {(i, j) for j in range(n) for i in range(j) if (gray[i] ^ gray[j]).bit_count() == 1}
        assert {(min(edge), max(edge)) for edge in hypercast(n).edges} == pairs


@pytest.mark.parametrize(
    ("n", "sends"), [(100, 613), (200, 1425), (300, 2317), (400, 3249), (600, 5233)]
)
def test_sends_of_a_flooded_message(n: int, sends: int) -> None:
    assert 2 * hypercube(n).number_of_edges() - (n - 1) == sends


@pytest.mark.parametrize("name", sorted(OVERLAYS))
@pytest.mark.parametrize("nodes", [5, 6, 16, 33, 100])
def test_every_overlay_joins_all_processes(name: str, nodes: int) -> None:
    graph = OVERLAYS[name]().generate(nodes, random.Random(1))
    assert sorted(graph) == list(range(nodes))
    assert nx.is_connected(graph)
    assert not any(nx.selfloop_edges(graph))


@pytest.mark.parametrize("name", sorted(set(OVERLAYS) - {"regular"}))
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_the_smallest_overlays(name: str, nodes: int) -> None:
    graph = OVERLAYS[name]().generate(nodes, random.Random(1))
    assert sorted(graph) == list(range(nodes))
    assert nx.is_connected(graph)
    with pytest.raises(TopologyError, match="nodes = 0 "):
        OVERLAYS[name]().generate(0, random.Random(1))


def test_ring_tree_and_complete_are_what_they_say() -> None:
    rng = random.Random(1)
    ring = OVERLAYS["ring"]().generate(7, rng)
    assert set(dict(ring.degree).values()) == {2}
    tree = OVERLAYS["tree"](arity=3).generate(20, rng)
    assert nx.is_tree(tree)
    assert all((child - 1) // 3 == parent for parent, child in map(sorted, tree.edges))
    assert OVERLAYS["complete"]().generate(7, rng).number_of_edges() == 21


def test_regular_has_equal_degrees_and_goes_by_its_seed() -> None:
    def drawn(seed: int) -> object:
        return sorted(OVERLAYS["regular"](degree=3).generate(40, random.Random(seed)).edges)

    graph = OVERLAYS["regular"](degree=3).generate(40, random.Random(1))
    assert set(dict(graph.degree).values()) == {3}
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize(
    ("degree", "nodes", "words"),
    [
        (5, 5, "degree = 5 .*at most 4"),
        (3, 7, "degree = 3 .*must be even"),
        (1, 4, "degree = 1 .*at least 2"),
    ],
)
def test_impossible_regular_graphs(degree: int, nodes: int, words: str) -> None:
    with pytest.raises(TopologyError, match=words):
        OVERLAYS["regular"](degree=degree).generate(nodes, random.Random(1))


def test_a_regular_graph_that_never_connects_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    monkeypatch.setattr(nx, "random_regular_graph", lambda *_, **__: pairs)
    with pytest.raises(TopologyError, match=r"nodes = 6 and degree = 2 .*degree = 3 or more"):
        OVERLAYS["regular"](degree=2).generate(6, random.Random(1))


def test_a_regular_graph_in_pieces_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    draws = iter([pieces, nx.cycle_graph(6)])
    monkeypatch.setattr(nx, "random_regular_graph", lambda *_, **__: next(draws))
    graph = OVERLAYS["regular"](degree=2).generate(6, random.Random(1))
    assert sorted(graph.edges) == sorted(nx.cycle_graph(6).edges)
