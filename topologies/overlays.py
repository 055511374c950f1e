"""Overlay graphs: the neighbours of each of n processes, whatever the network below looks like.

A flooding protocol is as fast as its overlay's diameter, as frugal as it has few links (a flooded
message crosses 2·links - (n - 1) of them) and survives as many crashes as its node connectivity
less one:

    hypercube   log n neighbours, log n diameter, log n connectivity: see ``topologies.hypercube``
    hypercast   the same where n is a power of two, else down to a single neighbour
    ring        fewest links that survive a crash, greatest diameter
    tree        fewest links of all, survives none; every node but the leaves has ``arity`` children
    complete    one hop to every process, n(n-1)/2 links
    regular     a random graph in which every process has ``degree`` neighbours
"""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass

import networkx as nx
from typing_extensions import override

from . import errors
from .errors import TopologyError
from .graph import Graph
from .hypercube import hypercast, hypercube
from .plane import MAX_TRIES


class OverlayModel(errors.Checked, ABC):
    """A rule that gives an overlay for any number of processes."""

    @abstractmethod
    def generate(self, nodes: int, rng: random.Random) -> Graph:
        """Draw a connected graph of nodes 0..nodes-1; whatever is random comes from ``rng``."""


@dataclass(frozen=True)
class Hypercube(OverlayModel, model="hypercube"):
    """The incomplete hypercube."""

    @override
    def generate(self, nodes: int, rng: random.Random) -> Graph:
        errors.at_least("nodes", nodes, 1)
        return hypercube(nodes)


@dataclass(frozen=True)
class HyperCast(OverlayModel, model="hypercast"):
    """A hypercube from which nodes are merely left out."""

    @override
    def generate(self, nodes: int, rng: random.Random) -> Graph:
        errors.at_least("nodes", nodes, 1)
        return hypercast(nodes)


@dataclass(frozen=True)
class RingOverlay(OverlayModel, model="ring"):
    """Every process has two neighbours (one, if there are two processes)."""

    @override
    def generate(self, nodes: int, rng: random.Random) -> Graph:
        errors.at_least("nodes", nodes, 1)
        graph: Graph = nx.cycle_graph(nodes) if nodes > 2 else nx.path_graph(nodes)
        return graph


@dataclass(frozen=True)
class TreeOverlay(OverlayModel, model="tree"):
    """A balanced tree: the children of i are arity·i + 1 … arity·i + arity."""

    arity: errors.OneOrMore = 2

    @override
    def generate(self, nodes: int, rng: random.Random) -> Graph:
        errors.at_least("nodes", nodes, 1)
        graph: Graph = nx.full_rary_tree(self.arity, nodes)
        return graph


@dataclass(frozen=True)
class Complete(OverlayModel, model="complete"):
    """Every process is a neighbour of every other."""

    @override
    def generate(self, nodes: int, rng: random.Random) -> Graph:
        errors.at_least("nodes", nodes, 1)
        graph: Graph = nx.complete_graph(nodes)
        return graph


@dataclass(frozen=True)
class Regular(OverlayModel, model="regular"):
    """A random graph of equal degrees, drawn until connected; with degree 3 or more, usually once."""

    degree: errors.OneOrMore = 4

    @override
    def generate(self, nodes: int, rng: random.Random) -> Graph:
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
    kind.model: kind for kind in (Hypercube, HyperCast, RingOverlay, TreeOverlay, Complete, Regular)
}
