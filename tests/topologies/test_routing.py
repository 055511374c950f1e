"""Shortest-path trees: right, deterministic, and the same for everybody."""

import random
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.topologies import (
    Graph,
    Links,
    TopologyError,
    children,
    path,
    shortest_path_tree,
    shortest_path_trees,
)
from testbed.topologies.routing import Metric
from tests.topologies.registries import MODELS

METRICS: tuple[Metric, ...] = ("hops", "delay")


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """A connected graph whose delays are few and small, so that ties abound, and zeros occur."""
    nodes = draw(st.integers(1, 14))
    delay = st.integers(0, 3)
    edges = {(draw(st.integers(0, v - 1)), v): draw(delay) for v in range(1, nodes)}
    for _ in range(draw(st.integers(0, 2 * nodes))):
        i, j = sorted((draw(st.integers(0, nodes - 1)), draw(st.integers(0, nodes - 1))))
        if i < j:
            edges[i, j] = draw(delay)
    return built(nodes, edges.items())


def built(nodes: int, edges: Iterable[tuple[tuple[int, int], int]]) -> Graph:
    graph: Graph = nx.empty_graph(nodes)
    graph.add_edges_from((i, j, {"delay_ns": delay}) for (i, j), delay in edges)
    return graph


def cost(graph: Graph, way: Sequence[int], metric: Metric) -> int:
    steps = list(pairwise(way))
    return len(steps) if metric == "hops" else sum(graph.edges[s]["delay_ns"] for s in steps)


@settings(max_examples=150, deadline=None)
@given(networks(), st.sampled_from(METRICS))
def test_paths_are_as_short_as_networkx_says(graph: Graph, metric: Metric) -> None:
    weight = None if metric == "hops" else "delay_ns"
    for root, tree in enumerate(shortest_path_trees(graph, metric)):
        expected = nx.single_source_dijkstra_path_length(
            graph, root, weight=weight or (lambda *_: 1)
        )
        assert tree[root] == root
        for node in graph:
            way = path(tree, node)
            assert way[0] == node
            assert way[-1] == root
            assert len(set(way)) == len(way)
            assert cost(graph, way, metric) == expected[node]


@settings(max_examples=150, deadline=None)
@given(networks(), st.sampled_from(METRICS))
def test_among_equal_parents_the_smallest_is_taken(graph: Graph, metric: Metric) -> None:
    for root, tree in enumerate(shortest_path_trees(graph, metric)):

        def rank(way: Sequence[int]) -> tuple[float, int]:
            return cost(graph, way, metric), len(way)

        for node in set(graph) - {root}:
            own = rank(path(tree, node))
            equal = [
                parent
                for parent in graph[node]
                if node not in path(tree, parent) and rank([node, *path(tree, parent)]) == own
            ]
            assert tree[node] == min(equal)


@given(networks(), st.sampled_from(METRICS), st.randoms(use_true_random=False))
def test_the_order_of_edges_does_not_matter(
    graph: Graph, metric: Metric, rng: random.Random
) -> None:
    edges = [((i, j), its["delay_ns"]) for i, j, its in graph.edges(data=True)]
    rng.shuffle(edges)
    turned = [((j, i) if rng.random() < 0.5 else (i, j), delay) for (i, j), delay in edges]
    shuffled = built(len(graph), turned)
    assert shortest_path_trees(shuffled, metric) == shortest_path_trees(graph, metric)


@settings(max_examples=60, deadline=None)
@given(networks(), st.sampled_from(METRICS))
def test_hop_by_hop_forwarding_follows_the_path(graph: Graph, metric: Metric) -> None:
    trees = shortest_path_trees(graph, metric)
    for target, tree in enumerate(trees):
        assert tree == shortest_path_tree(graph, target, metric)
        for node in graph:
            # whoever lies on the way sends on by the rest of the same way
            way = path(tree, node)
            assert all(path(tree, via) == way[k:] for k, via in enumerate(way))


@settings(max_examples=60, deadline=None)
@given(networks(), st.sampled_from(METRICS))
def test_a_multicast_reaches_everybody_once(graph: Graph, metric: Metric) -> None:
    for source in graph:
        tree = shortest_path_tree(graph, source, metric)
        below = children(tree)
        reached, waiting = [], [source]
        while waiting:
            node = waiting.pop()
            reached.append(node)
            assert below[node] == sorted(below[node])
            assert all(tree[child] == node and graph.has_edge(node, child) for child in below[node])
            waiting += below[node]
        assert sorted(reached) == sorted(graph)


def test_ties_by_hand() -> None:
    #  1   both 1 and 2 lead from 3 to 0; the smaller is taken, also if it was entered last
    diamond = built(4, [((2, 3), 1), ((0, 2), 1), ((1, 3), 1), ((0, 1), 1)])
    assert shortest_path_tree(diamond, 0, "hops") == [0, 0, 0, 1]
    assert shortest_path_tree(diamond, 0, "delay") == [0, 0, 0, 1]
    assert shortest_path_tree(diamond, 3, "hops") == [1, 3, 3, 3]
    # a shorter delay by way of 2 outweighs the smaller number
    diamond.edges[1, 3]["delay_ns"] = 2
    assert shortest_path_tree(diamond, 0, "delay") == [0, 0, 0, 2]
    assert shortest_path_tree(diamond, 0, "hops") == [0, 0, 0, 1]


def test_links_without_delay_make_no_cycles_and_no_detours() -> None:
    graph = built(6, ((edge, 0) for edge in nx.complete_graph(6).edges))
    assert shortest_path_tree(graph, 4, "delay") == [4] * 6


def test_what_cannot_be_reached_is_marked() -> None:
    graph = built(4, [((0, 1), 1), ((2, 3), 1)])
    for metric in METRICS:
        tree = shortest_path_tree(graph, 0, metric)
        assert tree == [0, 0, -1, -1]
        assert children(tree) == [[1], [], [], []]
        with pytest.raises(TopologyError, match="node 3 has no path"):
            path(tree, 3)


def test_kind_errors() -> None:
    with pytest.raises(TopologyError, match=r"root = 9 .*0 to 2"):
        shortest_path_tree(nx.path_graph(3), 9)
    with pytest.raises(TopologyError, match="'length' is unknown: it must be hops or delay"):
        shortest_path_tree(nx.path_graph(3), 0, cast(Any, "length"))


def test_six_hundred_trees_are_quick() -> None:
    graph = MODELS["pure-random"](600, 0.02).generate(random.Random(1))
    Links().apply(graph, random.Random(1))
    start = time.process_time()
    shortest_path_trees(graph, "hops")
    assert time.process_time() - start < 2
