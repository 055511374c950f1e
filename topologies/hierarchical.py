"""GT-ITM's N-level hierarchical graph (``hier``).

A flat graph is drawn; then every node is replaced by a flat graph of the next level, and so on for
up to five levels. The sizes of the graphs of a level vary around their mean while the total is
kept. Node c in the graph that replaced node b in the graph that replaced node a is named a.b.c.
The planes nest as well: scales multiply.

When a node turns into a graph, each of its edges must choose a node there, by ``connection``:

    random                  any node                                     (GT-ITM's number 0)
    least-degree-non-leaf   one with fewest links, but more than one     (1)
    least-degree            one with fewest links                        (2)
    threshold               the first with fewer than ``threshold`` links  (3, broken in GT-ITM)

Links are counted inside the new graph alone, so that all edges of a node choose alike.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, get_args

from typing_extensions import override

from . import errors
from .errors import TopologyError
from .graph import Graph, Model
from .level import Domain, Level
from .plane import Point, Sketch, distance, spread

ConnectionMethod = Literal["random", "least-degree-non-leaf", "least-degree", "threshold"]
CONNECTIONS: tuple[ConnectionMethod, ...] = get_args(ConnectionMethod)  # as GT-ITM numbers them
MAX_LEVELS = 5


@dataclass
class _Flattened:
    """The graph so far; an edge's last number is the level that it belongs to."""

    names: list[str]
    points: list[Point]
    edges: list[tuple[int, int, float, int]]
    scale: int


@dataclass(frozen=True)
class Hierarchical(Model, model="hierarchical"):
    """Graphs within graphs, the top level first."""

    levels: tuple[Level, ...] = (Level(5), Level(10))
    connection: ConnectionMethod = "random"
    threshold: int = 3

    def __post_init__(self) -> None:
        errors.require(
            1 <= len(self.levels) <= MAX_LEVELS,
            f"levels has {len(self.levels)} entries: there must be from 1 to {MAX_LEVELS}",
        )
        errors.require(
            self.connection in CONNECTIONS,
            f"connection = {self.connection!r} is unknown: it must be {', '.join(CONNECTIONS[:3])} "
            f"or {CONNECTIONS[3]}",
        )
        errors.at_least("threshold", self.threshold, 1)
        for level in self.levels:
            errors.fits(level.nodes, level.scale)
        errors.at_least("the number of nodes of all levels together", self.nodes, 2)

    @property
    def nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return math.prod(level.nodes for level in self.levels)

    @override
    def generate(self, rng: random.Random) -> Graph:
        drawn: list[list[Domain]] = []
        flattened = _Flattened([""], [(0, 0)], [], 1)
        for depth, level in enumerate(self.levels):
            sizes = spread(rng, len(flattened.points), level.nodes)
            drawn.append([self._domain(rng, depth, size) for size in sizes])
            flattened = self._expand(rng, flattened, drawn[-1], depth)
        weights = _policy_weights([max(d.diameter for d in domains) for domains in drawn])
        return self.build(
            [name.removeprefix(".") for name in flattened.names],
            flattened.points,
            [(i, j, length, weights[depth]) for i, j, length, depth in flattened.edges],
            max(domain.tries for domains in drawn for domain in domains),
            id=self._id(),
            scale=flattened.scale,
        )

    def _domain(self, rng: random.Random, depth: int, size: int) -> Domain:
        level = self.levels[depth]
        try:
            return level.draw(rng, size, level.scale)
        except TopologyError as error:
            raise TopologyError(f"level {depth + 1} of {len(self.levels)}: {error}") from None

    def _expand(
        self, rng: random.Random, old: _Flattened, domains: Sequence[Domain], depth: int
    ) -> _Flattened:
        scale = self.levels[depth].scale
        first = list(accumulate((domain.size for domain in domains), initial=0))
        names, points, edges = [], [], []
        for node, domain in enumerate(domains):
            (left, low), base = old.points[node], first[node]
            names += [f"{old.names[node]}.{k}" for k in range(domain.size)]
            points += [(left * scale + x, low * scale + y) for x, y in domain.sketch.points]
            edges += [(base + i, base + j, d, depth) for i, j, d in domain.sketch.edges]
        for i, j, _, level in old.edges:
            u = first[i] + self._attach(rng, domains[i].sketch)
            v = first[j] + self._attach(rng, domains[j].sketch)
            edges.append((u, v, distance(points[u], points[v]), level))
        return _Flattened(names, points, edges, old.scale * scale)

    def _attach(self, rng: random.Random, sketch: Sketch) -> int:
        nodes = range(len(sketch.points))
        if self.connection == "random":
            return rng.choice(nodes)
        degree = sketch.degrees()
        if self.connection == "threshold":
            return next((node for node in nodes if degree[node] < self.threshold), 0)
        leaves_too = self.connection == "least-degree" or len(nodes) < 3
        return min(
            (node for node in nodes if leaves_too or degree[node] > 1), key=degree.__getitem__
        )

    def _id(self) -> str:
        number = CONNECTIONS.index(self.connection)
        braces = "".join(level.braces(level.scale) for level in self.levels)
        return f"geo_hier(0,{len(self.levels)},{number},{self.threshold},[{braces}])"


def _policy_weights(diameters: Sequence[int]) -> list[int]:
    """Weights of the levels with which a path never leaves a domain for a short cut.

    Inside the lowest domains a link weighs 1; a link of a higher level weighs more than the longest
    path below it.
    """
    weights, longest = [], 0
    for hops in reversed(diameters):
        weights.append(longest + 1)
        longest = hops * weights[-1] + (hops + 1) * longest
    return weights[::-1]
