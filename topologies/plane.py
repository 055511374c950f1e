"""Points on a grid and random edges between them: the ground of every GT-ITM graph.

GT-ITM puts every node on an integer point of a square, 0..scale-1 each way and no two nodes on
one point, and then tosses a coin for each pair. A ``Sketch`` is one such toss; it becomes a
``networkx.Graph`` only when it has turned out connected, since most of the work of a sparse model
is in the sketches that are thrown away.

All randomness comes from the ``random.Random`` that the caller hands in. Arrays are drawn by a
``RandomState`` seeded from it: the one NumPy generator whose stream is promised never to change,
so that one seed means one graph whatever NumPy's version.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .distances import neighbour_lists
from .graph import Edge

Floats = NDArray[np.float64]
Point = tuple[int, int]

MAX_TRIES = 1000  # draws until a graph is connected; GT-ITM itself never gives up


@dataclass(frozen=True)
class Sketch:
    """One random draw: where the nodes are and which pairs are joined, connected or not."""

    points: list[Point]
    edges: list[Edge]

    @property
    def is_connected(self) -> bool:
        """Whether every node can be reached from node 0."""
        neighbours = neighbour_lists(len(self.points), ((i, j) for i, j, _ in self.edges))
        return len(_reachable(neighbours)) == len(self.points)

    @property
    def isolated(self) -> int:
        """Number of nodes without a link, in a graph of more than one node."""
        return self.degrees().count(0) if len(self.points) > 1 else 0

    def degrees(self) -> list[int]:
        """Links of each node."""
        result = [0] * len(self.points)
        for i, j, _ in self.edges:
            result[i] += 1
            result[j] += 1
        return result

    @property
    def mean_degree(self) -> float:
        """Links of an average node."""
        return 2 * len(self.edges) / len(self.points)


def _reachable(neighbours: Sequence[Sequence[int]]) -> set[int]:
    seen, frontier = {0}, [0]
    while frontier:
        for other in neighbours[frontier.pop()]:
            if other not in seen:
                seen.add(other)
                frontier.append(other)
    return seen


def uniforms(rng: random.Random, count: int) -> Floats:
    """Numbers drawn uniformly from [0, 1)."""
    words = [rng.getrandbits(32) for _ in range(8)]
    return np.random.RandomState(words).random_sample(count)


def place(rng: random.Random, nodes: int, scale: int, taken: Collection[Point] = ()) -> list[Point]:
    """Distinct grid points, one for each node, drawn from those that are not taken."""
    cells: Sequence[int] = range(scale * scale)
    if taken:
        cells = [cell for cell in cells if divmod(cell, scale) not in taken]
    return [divmod(cell, scale) for cell in rng.sample(cells, nodes)]


def distance(a: Point, b: Point) -> float:
    """Plane distance rounded to a whole number, as GT-ITM keeps edge lengths."""
    return float(round(((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5))


def spread(rng: random.Random, count: int, mean: int) -> list[int]:
    """Random sizes around a mean that keep the total; none is below 1.

    As in GT-ITM: three times as many steps as there are sizes, each taking 1 from one and giving
    it to another.
    """
    sizes = [mean] * count
    for _ in range(3 * count if count > 1 else 0):
        giver = rng.randrange(count)
        if sizes[giver] > 1:
            sizes[giver] -= 1
            sizes[rng.randrange(count)] += 1
    return sizes
