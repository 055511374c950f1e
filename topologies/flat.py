"""GT-ITM's six flat random graphs: nodes on a grid, one coin toss for each pair of them.

Source: Zegura, Calvert & Bhattacharjee, "How to model an internetwork" (INFOCOM 1996), and the
generator they published, GT-ITM. With d the distance of a pair, L = √2 · scale the longest
distance there can be and n the number of nodes, a pair is joined with probability

    pure-random   edge_probability
    waxman-1      alpha · exp(−e / (beta·L)),  e uniform in [0, L] instead of the distance
    waxman-2      alpha · exp(−d / (beta·L))
    exponential   alpha · exp(−d / (L − d))
    doar-leslie   (gamma / n) · alpha · exp(−d / (beta·L)), so that degree does not grow with n
    locality      alpha if d <= gamma·L, else beta

alpha raises the number of edges, beta that of the long ones. A draw that is not connected is
discarded as a whole. If alpha is left out, it is chosen for a mean degree of about ln n + 2.
"""

import math
import random
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from . import errors
from .errors import TopologyError
from .graph import Graph, Model
from .plane import MAX_TRIES, Floats, Point, Sketch, place, uniforms

DIAGONAL = math.sqrt(2.0)
MAX_NODES = 5000  # more would need gigabytes, since every pair of nodes is looked at
HOPELESS = 14.0  # isolated nodes in a usual draw: e^-14 times 1000 draws is 0.001 connected graphs


class FlatModel(Model):
    """What the six models share: they draw again until the graph is connected."""

    method: ClassVar[int]  # the number by which GT-ITM's specification files know the model
    alpha_field: ClassVar[str] = "alpha"
    nodes: int
    scale: int

    @abstractmethod
    def shape(self, length: Floats, longest: float) -> Floats:
        """Each pair's probability as a multiple of alpha, for 0 <= length < longest."""

    def __post_init__(self) -> None:
        self._check()
        super().__post_init__()
        if getattr(self, self.alpha_field) is None:
            object.__setattr__(self, self.alpha_field, self._usual_alpha())
        errors.probability(self.alpha_field, getattr(self, self.alpha_field))

    @classmethod
    def from_gtitm(
        cls, nodes: int, scale: int, alpha: float | None, beta: float | None, gamma: float | None
    ) -> "FlatModel":
        """Make the model from GT-ITM's parameters; None, or one it does not have, is left out."""
        given = {cls.alpha_field: alpha, "beta": beta, "gamma": gamma}
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]  # a dataclass
        chosen = {k: v for k, v in given.items() if k in known and v is not None}
        make: Callable[..., FlatModel] = cls
        return make(nodes=nodes, scale=scale, **chosen)

    def gtitm(self) -> tuple[float, float, float]:
        """GT-ITM's alpha, beta and gamma; 0 for those that the model does not have."""
        alpha, beta, gamma = (getattr(self, f, 0.0) for f in (self.alpha_field, "beta", "gamma"))
        return float(alpha), float(beta), float(gamma)

    def braces(self, nodes: int, scale: int) -> str:
        """The parameters as GT-ITM writes them inside a graph's id."""
        alpha, beta, gamma = self.gtitm()
        return f"{{{nodes},{scale},{self.method},{alpha:.3f},{beta:.3f},{gamma:.3f}}}"

    @override
    def generate(self, rng: random.Random) -> Graph:
        sketch, tries = self.draw(rng, self.nodes, self.scale)
        return self.build(
            [str(node) for node in range(self.nodes)],
            sketch.points,
            sketch.edges,
            tries,
            id=f"geo(0,{self.braces(self.nodes, self.scale)})",
            scale=self.scale,
        )

    def draw(
        self, rng: random.Random, nodes: int, scale: int, taken: Collection[Point] = ()
    ) -> tuple[Sketch, int]:
        """A connected sketch on points that are not taken, and the number of draws it took."""
        errors.fits(nodes, scale)
        pairs = np.triu_indices(nodes, 1)
        degrees = isolated = 0.0
        for tries in range(1, MAX_TRIES + 1):
            sketch = self._toss(rng, place(rng, nodes, scale, taken), scale, pairs)
            if not sketch.isolated and sketch.is_connected:
                return sketch, tries
            degrees += sketch.mean_degree
            isolated += sketch.isolated
            if tries >= 10 and isolated > HOPELESS * tries:
                break
        raise TopologyError(self._advice(nodes, tries, degrees / tries))

    def _toss(
        self, rng: random.Random, points: list[Point], scale: int, pairs: tuple[Any, ...]
    ) -> Sketch:
        x, y = np.array(points, dtype=np.float64).T
        first, second = pairs
        longest = DIAGONAL * scale
        distance = np.sqrt((x[first] - x[second]) ** 2 + (y[first] - y[second]) ** 2)
        length = self._lengths(rng, distance, longest)
        chance = self.gtitm()[0] * self._density(len(points)) * self.shape(length, longest)
        joined = np.flatnonzero(uniforms(rng, len(length)) < chance)
        ends = (first[joined].tolist(), second[joined].tolist())
        return Sketch(points, list(zip(*ends, np.rint(length[joined]).tolist(), strict=True)))

    def _lengths(self, rng: random.Random, distance: Floats, longest: float) -> Floats:
        return distance

    def _density(self, nodes: int) -> float:
        return 1.0

    def _check(self) -> None:
        errors.at_least("nodes", self.nodes, 2)
        errors.at_most("nodes", self.nodes, MAX_NODES)
        errors.fits(self.nodes, self.scale)

    def _usual_alpha(self) -> float:
        mean = float(self.shape(self._usual_lengths(), 1.0).mean()) * self._density(self.nodes)
        if not mean > 0:  # no value would do
            return 1.0
        degree = math.log(self.nodes) + 2
        return round(min(1.0, degree / (self.nodes - 1) / mean), 4)

    def _usual_lengths(self) -> Floats:
        return _lattice_distances()

    def _advice(self, nodes: int, tries: int, degree: float) -> str:
        alpha, needed = self.gtitm()[0], math.log(nodes)
        right = math.ceil(1000 * alpha * needed / degree) / 1000 if degree else math.inf
        advice = (
            f"{self.alpha_field} = {right} or more"
            if right <= 1
            else f"a greater beta or gamma beside {self.alpha_field} = 1"
        )
        return (
            f"{self.model}: none of {tries} graphs with nodes = {nodes} and "
            f"{self.alpha_field} = {alpha} was connected (mean degree {degree:.1f}), but {nodes} "
            f"nodes need a mean degree of about ln n = {needed:.1f}: {advice} would do"
        )


@cache
def _lattice_distances() -> Floats:
    """Distances between points spread over a square, in units of its diagonal."""
    side = (np.arange(12) + 0.5) / 12
    x, y = (axis.ravel() for axis in np.meshgrid(side, side))
    first, second = np.triu_indices(len(x), 1)
    result: Floats = np.hypot(x[first] - x[second], y[first] - y[second]) / DIAGONAL
    return result


@dataclass(frozen=True)
class PureRandom(FlatModel, model="pure-random"):
    """Every pair is joined with the same probability."""

    method: ClassVar[int] = 3
    alpha_field: ClassVar[str] = "edge_probability"
    nodes: int
    edge_probability: float | None = None
    scale: int = 100

    @override
    def shape(self, length: Floats, longest: float) -> Floats:
        return np.ones_like(length)


@dataclass(frozen=True)
class Waxman2(FlatModel, model="waxman-2"):
    """Waxman's RG1: near nodes are joined more often than far ones."""

    method: ClassVar[int] = 2
    nodes: int
    alpha: float | None = None
    beta: errors.AboveZero = 0.3
    scale: int = 100

    @override
    def shape(self, length: Floats, longest: float) -> Floats:
        return _falling(length, self.beta * longest)


@dataclass(frozen=True)
class Waxman1(Waxman2, model="waxman-1"):
    """Waxman's RG2: a random number takes the place of the distance, also as edge length."""

    method: ClassVar[int] = 1

    def _lengths(self, rng: random.Random, distance: Floats, longest: float) -> Floats:
        return uniforms(rng, len(distance)) * longest

    def _usual_lengths(self) -> Floats:
        return np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Exponential(FlatModel, model="exponential"):
    """Probability falls to zero at the longest distance."""

    method: ClassVar[int] = 4
    nodes: int
    alpha: float | None = None
    scale: int = 100

    @override
    def shape(self, length: Floats, longest: float) -> Floats:
        return _falling(length, longest - length)


@dataclass(frozen=True)
class DoarLeslie(FlatModel, model="doar-leslie"):
    """Waxman's model with the degree held steady as n grows; gamma is about that degree."""

    method: ClassVar[int] = 5
    nodes: int
    alpha: float | None = None
    beta: errors.AboveZero = 0.3
    gamma: errors.AboveZero = 30.0
    scale: int = 100

    @override
    def shape(self, length: Floats, longest: float) -> Floats:
        return _falling(length, self.beta * longest)

    def _density(self, nodes: int) -> float:
        return self.gamma / nodes


@dataclass(frozen=True)
class Locality(FlatModel, model="locality"):
    """Two probabilities: alpha for pairs within gamma·L, beta (usually a tenth) for the others."""

    method: ClassVar[int] = 6
    nodes: int
    alpha: float | None = None
    beta: float | None = None
    gamma: float = 0.25
    scale: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta is None:
            object.__setattr__(self, "beta", round((self.alpha or 0.0) / 10, 5))

    @override
    def shape(self, length: Floats, longest: float) -> Floats:
        far = 0.1 if self.beta is None else self.beta / (self.alpha or 1.0)
        return np.where(length <= self.gamma * longest, 1.0, far)

    def _check(self) -> None:
        super()._check()
        errors.at_least("gamma", self.gamma, 0)
        errors.fraction("beta", self.beta or 0.0)


def _falling(length: Floats, reach: float | Floats) -> Floats:
    result: Floats = np.exp(-length / reach)
    return result


FLAT: dict[str, type[FlatModel]] = {
    kind.model: kind for kind in (Waxman1, Waxman2, PureRandom, Exponential, DoarLeslie, Locality)
}  # the flat models by name, in the order of GT-ITM's method numbers
