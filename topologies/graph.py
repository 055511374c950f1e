"""Graphs, as every model generates them and everything else uses them.

A ``networkx.Graph`` whose nodes are 0..n-1. A node has a ``name`` and a position ``x``, ``y``; an edge
has a ``length`` (in grid units) and, where GT-ITM gives it one, a ``policy`` weight, the cost of
crossing it. ``topologies.links`` adds delay, bandwidth, queue and loss. The graph itself carries
``model``, ``tries`` (draws until it was connected) and ``parameters``.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

import networkx as nx

from .errors import Checked

if TYPE_CHECKING:
    Graph: TypeAlias = nx.Graph[int]
else:
    Graph = nx.Graph

Edge = tuple[int, int, float]  # two nodes and the length
WeightedEdge = tuple[int, int, float, int]  # the same and GT-ITM's policy weight


class Model(Checked, ABC):
    """A graph model: a frozen dataclass of its parameters that can draw a graph."""

    @abstractmethod
    def generate(self, rng: random.Random) -> Graph:
        """Draw a connected graph; whatever is random about it comes from ``rng``."""

    def build(
        self,
        names: Sequence[str],
        points: Sequence[tuple[float, float]],
        edges: Iterable[Edge] | Iterable[WeightedEdge],
        tries: int = 1,
        **about: Any,
    ) -> Graph:
        """Build a graph of this model, drawn in so many tries, with its parameters."""
        own = asdict(self)  # type: ignore[call-overload]  # every model is a dataclass
        about = {"model": self.model, "tries": tries, "parameters": own, **about}
        return build_graph(names, points, edges, **about)


def build_graph(
    names: Sequence[str],
    points: Sequence[tuple[float, float]],
    edges: Iterable[Edge] | Iterable[WeightedEdge],
    **about: Any,
) -> Graph:
    """Build a graph, its edges in order; ``about`` becomes the graph's own attributes."""
    graph: Graph = nx.Graph(**about)
    for node, (name, (x, y)) in enumerate(zip(names, points, strict=True)):
        graph.add_node(node, name=name, x=float(x), y=float(y))
    for i, j, length, *policy in sorted((min(e[:2]), max(e[:2]), *e[2:]) for e in edges):
        graph.add_edge(i, j, length=float(length), **({"policy": policy[0]} if policy else {}))
    return graph
