"""One line of parameters inside a graph of several levels (GT-ITM's <geo_parms>).

    nodes scale method alpha [beta] [gamma]

Hierarchical and transit–stub graphs are built of many small flat graphs; a level says how those of
one kind are drawn. What alpha, beta and gamma mean depends on the method: see ``topologies.flat``.
"""

import math
import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from . import errors
from .distances import diameter
from .flat import FLAT, FlatModel
from .plane import Point, Sketch

Method = Literal["waxman-1", "waxman-2", "pure-random", "exponential", "doar-leslie", "locality"]


@dataclass(frozen=True)
class Domain:
    """A small connected graph, drawn as a part of a larger one."""

    sketch: Sketch
    tries: int

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.sketch.points)

    @property
    def diameter(self) -> int:
        """Greatest hop distance inside."""
        return diameter(self.size, ((i, j) for i, j, _ in self.sketch.edges))


@dataclass(frozen=True)
class Level:
    """How the flat graphs of one level are drawn; nodes is the mean of their sizes."""

    nodes: int
    method: Method = "pure-random"
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None
    scale: int = 20

    def __post_init__(self) -> None:
        errors.at_least("nodes", self.nodes, 1)
        errors.at_least("scale", self.scale, 1)
        errors.require(
            self.method in FLAT, f"method = {self.method!r} is unknown: it must be {_one_of()}"
        )
        for field, value in zip(("alpha", "beta", "gamma"), self.flat.gtitm(), strict=True):
            object.__setattr__(self, field, value)

    @property
    def flat(self) -> FlatModel:
        """The flat model of this level, with the two nodes and the room that it needs at least."""
        nodes = max(2, self.nodes)
        scale = max(self.scale, math.isqrt(nodes) + 1)
        return FLAT[self.method].from_gtitm(nodes, scale, self.alpha, self.beta, self.gamma)

    def draw(
        self, rng: random.Random, nodes: int, scale: int, taken: Collection[Point] = ()
    ) -> Domain:
        """Draw one connected domain on points that are not taken."""
        return Domain(*self.flat.draw(rng, nodes, scale, taken))

    def braces(self, scale: int) -> str:
        """The parameters as GT-ITM writes them inside a graph's id."""
        return self.flat.braces(self.nodes, scale)


def _one_of() -> str:
    *names, last = FLAT
    return f"{', '.join(names)} or {last}"
