"""A topology from a file: a graph that GT-ITM made, or a specification from which one is drawn.

A file named ``….alt`` is a graph (see ``topologies.alt``). Any other is a specification (see
``topologies.itm``), of which graph number ``graph`` is taken, counted from 0. In both cases the file
alone decides the graph, so that runs with different seeds share it.
"""

import random
from dataclasses import asdict, dataclass
from pathlib import Path

import networkx as nx
from typing_extensions import override

from . import errors
from .alt import read_alt
from .graph import Graph, Model
from .itm import read_itm


@dataclass(frozen=True)
class File(Model, model="file"):
    """The graph in a file."""

    path: str
    graph: int = 0

    def __post_init__(self) -> None:
        errors.require(bool(self.path), "path is empty: it must name an .alt or itm file")
        errors.at_least("graph", self.graph, 0)

    @override
    def generate(self, rng: random.Random) -> Graph:
        if Path(self.path).suffix.lower() == ".alt":
            graph = read_alt(self.path)
        else:
            specifications = read_itm(self.path)
            errors.require(
                self.graph < len(specifications),
                f"graph = {self.graph} is out of range: {self.path} specifies "
                f"{len(specifications)}, so it must be from 0 to {len(specifications) - 1}",
            )
            graph = specifications[self.graph].generate()
        self._check(graph)
        graph.graph["file"] = asdict(self)
        return graph

    def _check(self, graph: Graph) -> None:
        errors.require(
            len(graph) > 1, f"{self.path} has {len(graph)} nodes: it must have 2 or more"
        )
        parts = list(nx.connected_components(graph))
        errors.require(
            len(parts) == 1,
            f"{self.path} holds a graph in {len(parts)} parts (node {min(parts[-1])} cannot be "
            f"reached from node {min(parts[0])}): it must be connected",
        )
