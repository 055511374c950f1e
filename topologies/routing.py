"""Shortest-path trees, the routes of the simulator and of the emulated network alike.

Both must send a packet over the same links, so routes follow from the graph alone: the tree of a
root holds, for each node, the parent on its shortest path to the root, and among parents that are
equally near the one with the smallest number. Neither the order of the edges nor that of a search
matters. By ``hops`` all links count alike; by ``delay`` the sum of ``delay_ns`` counts, and among
equal sums the fewer hops (so that links without delay make no cycles).

A unicast packet for d goes from v to parent[v] in the tree of d; a multicast of s goes down the
tree of s. A tree is a list: parent[root] is root itself, and -1 marks a node that has no path.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Literal

from . import errors
from .errors import TopologyError
from .graph import Graph

Metric = Literal["hops", "delay"]
RoutingTree = list[int]  # each node's parent towards the root

UNREACHED = -1


def shortest_path_tree(graph: Graph, root: int, metric: Metric = "hops") -> RoutingTree:
    """The tree of shortest paths to a root."""
    errors.require(root in graph, f"root = {root} is out of range: nodes are 0 to {len(graph) - 1}")
    return _searcher(graph, metric)(root)


def shortest_path_trees(graph: Graph, metric: Metric = "hops") -> list[RoutingTree]:
    """The trees of all roots, in the order of the roots."""
    search = _searcher(graph, metric)
    return [search(root) for root in range(len(graph))]


def path(tree: Sequence[int], node: int) -> list[int]:
    """The path from a node to the root, both included."""
    if tree[node] == UNREACHED:
        raise TopologyError(f"node {node} has no path to the root of this tree")
    way = [node]
    while tree[node] != node:
        node = tree[node]
        way.append(node)
    return way


def children(tree: Sequence[int]) -> list[list[int]]:
    """For each node the nodes to which it forwards a multicast, in ascending order."""
    result: list[list[int]] = [[] for _ in tree]
    for node, parent in enumerate(tree):
        if parent not in (node, UNREACHED):
            result[parent].append(node)
    return result


def _searcher(graph: Graph, metric: Metric) -> Callable[[int], RoutingTree]:
    errors.require(
        metric in ("hops", "delay"), f"metric = {metric!r} is unknown: it must be hops or delay"
    )
    adjacency = dict(graph.adjacency())
    nodes = range(len(adjacency))
    if metric == "hops":
        neighbours = [list(adjacency[node]) for node in nodes]
        return lambda root: _breadth_first(neighbours, root)
    # One integer holds (delay, hops): a link costs its delay times n, which no hop count reaches.
    arcs = [
        [(other, link["delay_ns"] * len(nodes) + 1) for other, link in adjacency[node].items()]
        for node in nodes
    ]
    return lambda root: _dijkstra(arcs, root)


def _breadth_first(neighbours: Sequence[Sequence[int]], root: int) -> RoutingTree:
    parent = [UNREACHED] * len(neighbours)
    parent[root] = root
    frontier = [root]
    while frontier:
        # In ascending order, the first to reach a node is the smallest of its possible parents.
        frontier.sort()
        reached = []
        for node in frontier:
            for other in neighbours[node]:
                if parent[other] == UNREACHED:
                    parent[other] = node
                    reached.append(other)
        frontier = reached
    return parent


def _dijkstra(arcs: Sequence[Sequence[tuple[int, int]]], root: int) -> RoutingTree:
    parent = [UNREACHED] * len(arcs)
    parent[root] = root
    cost: list[float] = [float("inf")] * len(arcs)
    cost[root] = 0
    heap = [(0, root)]
    while heap:
        so_far, node = heappop(heap)
        if so_far > cost[node]:
            continue
        for other, step in arcs[node]:
            total = so_far + step
            if total < cost[other]:
                cost[other] = total
                parent[other] = node
                heappush(heap, (total, other))
            elif total == cost[other] and node < parent[other]:
                parent[other] = node
    return parent
