"""Overlay graphs: who talks to whom among n processes, whatever the network below looks like.

A flooding protocol is as fast as its overlay's diameter, as frugal as it has few links (a flooded
message crosses 2·links - (n - 1) of them) and survives as many crashes as its node connectivity
less one:

    hypercube   log n neighbours, log n diameter, log n connectivity: see `topologies.hypercube`
    ring        fewest links that survive a crash, greatest diameter
    tree        fewest links of all, survives none; every node but the leaves has `arity` children
    complete    one hop to everybody, n(n-1)/2 links
    regular     a random graph in which everybody has `degree` neighbours
"""

import random
from dataclasses import dataclass
from typing import ClassVar, Protocol

import networkx as nx

from . import errors
from .errors import TopologyError
from .graph import Graph
from .hypercube import hypercube
from .plane import MAX_TRIES


class OverlayModel(Protocol):
    """A rule that gives an overlay for any number of processes."""

    model: ClassVar[str]

    def generate(self, nodes: int, rng: random.Random) -> Graph:
        """Return a connected graph of nodes 0..nodes-1."""
        ...


@dataclass(frozen=True)
class Hypercube:
    """The incomplete hypercube."""

    model: ClassVar[str] = "hypercube"

    def generate(self, nodes: int, rng: random.Random) -> Graph:
        """Return the hypercube; nothing is random about it."""
        errors.at_least("nodes", nodes, 1)
        return hypercube(nodes)


@dataclass(frozen=True)
class RingOverlay:
    """Everybody has two neighbours (of two processes, each has the other)."""

    model: ClassVar[str] = "ring"

    def generate(self, nodes: int, rng: random.Random) -> Graph:
        """Return the ring; nothing is random about it."""
        errors.at_least("nodes", nodes, 1)
        graph: Graph = nx.cycle_graph(nodes) if nodes > 2 else nx.path_graph(nodes)
        return graph


@dataclass(frozen=True)
class TreeOverlay:
    """A balanced tree: the children of i are arity·i + 1 … arity·i + arity."""

    model: ClassVar[str] = "tree"
    arity: int = 2

    def __post_init__(self) -> None:
        errors.at_least("arity", self.arity, 1)

    def generate(self, nodes: int, rng: random.Random) -> Graph:
        """Return the tree; nothing is random about it."""
        errors.at_least("nodes", nodes, 1)
        graph: Graph = nx.full_rary_tree(self.arity, nodes)
        return graph


@dataclass(frozen=True)
class Complete:
    """Everybody is a neighbour of everybody."""

    model: ClassVar[str] = "complete"

    def generate(self, nodes: int, rng: random.Random) -> Graph:
        """Return the complete graph; nothing is random about it."""
        errors.at_least("nodes", nodes, 1)
        graph: Graph = nx.complete_graph(nodes)
        return graph


@dataclass(frozen=True)
class Regular:
    """A random graph of equal degrees, drawn until connected; degree 3 or more does so at once."""

    model: ClassVar[str] = "regular"
    degree: int = 4

    def __post_init__(self) -> None:
        errors.at_least("degree", self.degree, 1)

    def generate(self, nodes: int, rng: random.Random) -> Graph:
        """Draw a connected regular graph."""
        self._check(nodes)
        for _ in range(MAX_TRIES):
            drawn = nx.random_regular_graph(self.degree, nodes, seed=rng)
            if nx.is_connected(drawn):
                graph: Graph = nx.empty_graph(nodes)
                graph.add_edges_from(sorted((min(edge), max(edge)) for edge in drawn.edges))
                return graph
        raise TopologyError(
            f"regular: none of {MAX_TRIES} graphs with nodes = {nodes} and degree = {self.degree} "
            "was connected: degree = 3 or more would do"
        )

    def _check(self, nodes: int) -> None:
        errors.require(
            self.degree < nodes,
            f"degree = {self.degree} is out of range: with {nodes} nodes it must be at most "
            f"{nodes - 1}",
        )
        errors.require(
            self.degree * nodes % 2 == 0,
            f"degree = {self.degree} is out of range: with {nodes} nodes, an odd number, it must "
            "be even",
        )
        errors.require(
            self.degree > 1 or nodes == 2,
            f"degree = 1 is out of range: with {nodes} nodes it must be at least 2 to connect them",
        )


OVERLAYS: dict[str, type[OverlayModel]] = {
    kind.model: kind for kind in (Hypercube, RingOverlay, TreeOverlay, Complete, Regular)
}
"""The overlays by name."""
