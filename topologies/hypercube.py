"""The incomplete hypercube: an overlay for any number of nodes that keeps log n neighbours.

A hypercube of D dimensions joins the numbers 0..2^D - 1 that differ in one bit. When n is no power
of two, merely leaving out the numbers from n on may leave a node with a single neighbour (as at
n = 2^m + 1). Instead, every missing number j is represented by j with its top bit cleared, a number
that always exists, and the representative takes over the neighbours of the missing number:

    rep(j) = j if j < n else j - 2^(D-1),   joined: rep(a), rep(b) for all a, b that differ in a bit

Friedman & Manor (2004) want "log n" neighbours and disjoint paths of such a graph without printing
its rule; this rule gives them, and a node needs only n to work out its own neighbours. With
D = ceil(log2 n), for n from 2: node connectivity and least degree are equal, D if n = 2^D or
n >= 3·2^(D-2), else D - 1; the greatest degree is at most max(D, 2D - 2), the diameter at most D.

For comparison there is the cube that they compare it with, of which nodes are merely left out: that of
HyperCast (Liebeherr & Beam 1999), which gives its nodes the numbers of a Gray code in their order.
"""

import networkx as nx

from .graph import Graph


def dimension(nodes: int) -> int:
    """The number of bits that the nodes' numbers need, at least 1."""
    return max(1, (nodes - 1).bit_length())


def hypercube_neighbours(node: int, nodes: int) -> set[int]:
    """The neighbours of a node in the incomplete hypercube."""
    bits = dimension(nodes)
    top = 1 << (bits - 1)
    numbers = (node ^ (1 << k) for k in range(bits))
    found = {number if number < nodes else number - top for number in numbers}
    partner = node + top
    if node < top and partner >= nodes:
        # The partner is missing and this node stands in for it: links to the partner's existing
        # neighbours come along, or the high half would not hear what the low half floods.
        found |= {partner ^ (1 << k) for k in range(bits - 1) if partner ^ (1 << k) < nodes}
    return {other for other in found if other != node and other < nodes}


def hypercast(nodes: int) -> Graph:
    """The part of the hypercube that the first numbers of the Gray code are; there is no stand-in."""
    graph: Graph = nx.empty_graph(nodes)
    gray = [i ^ i >> 1 for i in range(nodes)]
    place = {number: i for i, number in enumerate(gray)}
    for i, number in enumerate(gray):
        others = (place.get(number ^ 1 << k, -1) for k in range(dimension(nodes)))
        graph.add_edges_from((i, j) for j in sorted(others) if j > i)
    return graph


def hypercube(nodes: int) -> Graph:
    """The incomplete hypercube."""
    graph: Graph = nx.empty_graph(nodes)
    for node in range(nodes):
        graph.add_edges_from((node, other) for other in sorted(hypercube_neighbours(node, nodes)))
    return graph
