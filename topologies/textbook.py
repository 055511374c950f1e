"""Line, ring, star and grid: graphs on which a lab's answer can be worked out by hand.

Neighbours lie ten units apart, so that every link is alike, and nodes are numbered along the line
or ring, row by row in the grid, and from the hub of the star.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
from typing_extensions import override

from . import errors
from .graph import Graph, Model

SPACING = 10.0
MAX_NODES = 20_000  # more would need gigabytes: there is a route for every pair of nodes


class Textbook(Model):
    """A model without chance, all of whose links have one length."""

    def __post_init__(self) -> None:
        super().__post_init__()
        nodes: int = self.nodes  # type: ignore[attr-defined]  # a field, or rows × columns
        errors.at_most("nodes", nodes, MAX_NODES)

    def place(self, plain: Graph, points: Sequence[tuple[float, float]]) -> Graph:
        """The graph with its nodes at these points."""
        edges = [(i, j, SPACING) for i, j in plain.edges]
        return self.build([str(node) for node in range(len(points))], points, edges)


def _circle(count: int, radius: float) -> list[tuple[float, float]]:
    turns = [2 * math.pi * k / count for k in range(count)]
    return [(radius * math.cos(turn), radius * math.sin(turn)) for turn in turns]


@dataclass(frozen=True)
class LineGraph(Textbook, model="line"):
    """0 - 1 - 2 - … - n-1."""

    nodes: errors.TwoOrMore

    @override
    def generate(self, rng: random.Random) -> Graph:
        return self.place(
            nx.path_graph(self.nodes), [(SPACING * k, 0.0) for k in range(self.nodes)]
        )


@dataclass(frozen=True)
class RingGraph(Textbook, model="ring"):
    """A closed line."""

    nodes: errors.ThreeOrMore

    @override
    def generate(self, rng: random.Random) -> Graph:
        radius = SPACING / (2 * math.sin(math.pi / self.nodes))
        return self.place(nx.cycle_graph(self.nodes), _circle(self.nodes, radius))


@dataclass(frozen=True)
class StarGraph(Textbook, model="star"):
    """Node 0 is joined to all others, which have no other neighbour."""

    nodes: errors.TwoOrMore

    @override
    def generate(self, rng: random.Random) -> Graph:
        points = [(0.0, 0.0), *_circle(self.nodes - 1, SPACING)]
        return self.place(nx.star_graph(self.nodes - 1), points)


@dataclass(frozen=True)
class GridGraph(Textbook, model="grid"):
    """Rows and columns; node r·columns + c is at row r and column c."""

    rows: errors.OneOrMore
    columns: errors.OneOrMore

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.at_least("rows × columns", self.nodes, 2)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.rows * self.columns

    @override
    def generate(self, rng: random.Random) -> Graph:
        plain = nx.convert_node_labels_to_integers(nx.grid_2d_graph(self.rows, self.columns))
        places = [divmod(node, self.columns) for node in range(self.nodes)]
        return self.place(plain, [(SPACING * c, SPACING * (self.rows - 1 - r)) for r, c in places])
