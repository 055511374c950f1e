"""GT-ITM's transit–stub graph (``ts``): backbones, and the networks attached to them.

The top level is a flat graph whose nodes stand for transit domains; each becomes a flat graph of
transit nodes; each of those has stub domains, flat graphs too, attached by one edge each. Edges
between transit domains join random nodes of theirs, two for each pair of neighbouring domains since
GT-ITM enters them once a direction (or one, if both hit the same nodes). The extra edges come last:
transit to stub, to a stub that is attached elsewhere, and stub to stub.

Sizes vary around their means, the total T·Nt·(1 + S·Ns) is kept. Transit nodes are named
``T:domain.node``, stub nodes ``S:domain.node/stub.node``. The plane has 80 grid points for each node, a
stub's square in it 16; the scales given are not used.

Errors of GT-ITM are not repeated: there all transit domains but the first are drawn with the stubs'
parameters, nodes of different domains may share a point, and a stub's square is made for far more
nodes than it has, so that stubs overlap and their links are as long as the backbone's.
"""

import math
import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from typing_extensions import override

from . import errors
from .errors import TopologyError
from .graph import Graph, Model
from .level import Domain, Level
from .plane import MAX_TRIES, Point, distance, spread


@dataclass(frozen=True)
class TransitStub(Model, model="transit-stub"):
    """Transit domains joined to one another, with stub domains around their nodes."""

    top: Level = field(default_factory=lambda: Level(1))
    transit: Level = field(default_factory=lambda: Level(4))
    stub: Level = field(default_factory=lambda: Level(8))
    stubs_per_transit_node: errors.ZeroOrMore = 3
    extra_transit_stub_edges: errors.ZeroOrMore = 0
    extra_stub_stub_edges: errors.ZeroOrMore = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.at_least("the number of nodes of all domains together", self.nodes, 2)

    @property
    def nodes(self) -> int:
        """Number of nodes of the whole graph."""
        stubs = self.stubs_per_transit_node * self.stub.nodes
        return self.top.nodes * self.transit.nodes * (1 + stubs)

    @property
    def scales(self) -> tuple[int, int, int]:
        """Sides of the plane, of a transit domain's square in it, and of a usual stub's."""
        plane = round(math.sqrt(80.0 * self.nodes))
        return plane, (round(plane / 2) + 1) // 2 * 2, _stub_side(self.stub.nodes)

    @override
    def generate(self, rng: random.Random) -> Graph:
        drawing = _Drawing(self, rng)
        drawing.draw()
        weights = _policy_weights(*drawing.diameters)
        return self.build(
            drawing.names,
            drawing.points,
            [(i, j, length, weights[kind]) for (i, j), (length, kind) in drawing.links.items()],
            drawing.tries,
            id=self._id(),
            scale=self.scales[0],
            diameters=(drawing.diameters[1], drawing.diameters[2], drawing.diameters[0]),
        )

    def _id(self) -> str:
        counts = (
            self.stubs_per_transit_node,
            self.extra_transit_stub_edges,
            self.extra_stub_stub_edges,
        )
        levels = zip((self.top, self.transit, self.stub), self.scales, strict=True)
        braces = ",".join(level.braces(scale) for level, scale in levels)
        return f"transtub(0,{','.join(map(str, counts))},{braces})"


def _policy_weights(top: int, transit: int, stub: int) -> dict[str, int]:
    """Weights of links, from the diameters, with which paths respect the domains.

    A path between nodes of one domain stays inside, and none crosses a stub on its way.
    """

    def over_half(length: int) -> int:
        return length // 2 + 1

    between = over_half(transit)
    down = over_half(top * between) + over_half((top + 1) * transit)
    return {"inside": 1, "transit": between, "transit-stub": down, "stub-stub": stub + 2 * down}


@dataclass
class _Drawing:
    """A transit–stub graph in the making."""

    model: TransitStub
    rng: random.Random
    names: list[str] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    links: dict[tuple[int, int], tuple[float, str]] = field(default_factory=dict)
    domains: list[list[int]] = field(default_factory=list)  # the nodes of each transit domain
    # for each stub node the transit node that its stub is attached to, and the stub's number there
    stub_of: dict[int, tuple[int, int]] = field(default_factory=dict)
    # the greatest at the top, in transit domains and in stubs
    diameters: list[int] = field(default_factory=lambda: [0, 0, 0])
    tries: int = 1

    def draw(self) -> None:
        """Draw everything, from the top down and then the extra edges."""
        top = self._domain(0, self.model.top.nodes, self.model.scales[0]).sketch
        for point, size in zip(
            top.points, spread(self.rng, len(top.points), self.model.transit.nodes), strict=True
        ):
            self._add_transit_domain(point, size)
        for i, j, _ in top.edges:
            for _direction in range(2):
                ends = self.rng.choice(self.domains[i]), self.rng.choice(self.domains[j])
                self._link(*ends, "transit")
        self._add_transit_stub_edges()
        self._add_stub_stub_edges()

    def _add_transit_domain(self, centre: Point, size: int) -> None:
        plane, side, _ = self.model.scales
        x, y = (min(max(0, c - side // 2), plane - side) for c in centre)
        nodes = self._settle(1, size, side, (x, y), f"T:{len(self.domains)}.")
        self.domains.append(nodes)
        stubs = spread(self.rng, size, self.model.stubs_per_transit_node)
        for node, count in zip(nodes, stubs, strict=True):
            sizes = spread(self.rng, count, self.model.stub.nodes)
            for number, stub_size in enumerate(sizes):
                self._add_stub(node, number, stub_size)

    def _add_stub(self, transit: int, number: int, size: int) -> None:
        side = _stub_side(size)
        name = f"S{self.names[transit].removeprefix('T')}/{number}."
        nodes = self._settle(2, size, side, self._near(self.points[transit], size, side), name)
        self.stub_of.update((node, (transit, number)) for node in nodes)
        self._link(transit, self.rng.choice(nodes), "transit-stub")

    def _near(self, centre: Point, size: int, side: int) -> Point:
        """Choose a corner for a stub in the share of the plane that its transit node has."""
        plane = self.model.scales[0]
        reach = round(plane / math.sqrt(self.model.top.nodes * self.model.transit.nodes) / 2)
        ranges = [
            (max(0, min(c - reach, plane - side)), min(plane, c + reach) - side) for c in centre
        ]
        for _ in range(MAX_TRIES):
            x, y = (self.rng.randint(low, max(low, high)) for low, high in ranges)
            if len(self._taken((x, y), side)) + size <= side * side:
                return x, y
        raise TopologyError("stub: the plane is too crowded here, fewer or smaller stubs would do")

    def _taken(self, corner: Point, side: int) -> set[Point]:
        """The points in a square, relative to its corner, that already have a node."""
        left, low = corner
        return {
            (x - left, y - low)
            for x, y in self.points
            if 0 <= x - left < side and 0 <= y - low < side
        }

    def _settle(self, depth: int, size: int, side: int, corner: Point, prefix: str) -> list[int]:
        """Draw a domain on the free points of a square, and add it; its nodes."""
        sketch = self._domain(depth, size, side, self._taken(corner, side)).sketch
        base = len(self.points)
        self.names += [f"{prefix}{k}" for k in range(size)]
        self.points += [(corner[0] + x, corner[1] + y) for x, y in sketch.points]
        self.links |= {(base + i, base + j): (d, "inside") for i, j, d in sketch.edges}
        return list(range(base, base + size))

    def _domain(self, depth: int, size: int, side: int, taken: Collection[Point] = ()) -> Domain:
        field = ("top", "transit", "stub")[depth]
        level: Level = getattr(self.model, field)
        try:
            domain = level.draw(self.rng, size, side, taken)
        except TopologyError as error:
            raise TopologyError(f"{field}: {error}") from None
        self.diameters[depth] = max(self.diameters[depth], domain.diameter)
        self.tries = max(self.tries, domain.tries)
        return domain

    def _link(self, i: int, j: int, kind: str) -> bool:
        """Add a link unless there is one; whether it is new."""
        key = min(i, j), max(i, j)
        new = key not in self.links
        if new:
            self.links[key] = distance(self.points[i], self.points[j]), kind
        return new

    def _add_transit_stub_edges(self) -> None:
        wanted, stubs = self.model.extra_transit_stub_edges, list(self.stub_of)
        possible = len(stubs) * (len(self.points) - len(stubs) - 1)
        _check_room("extra_transit_stub_edges", wanted, possible)
        while wanted:
            transit, stub = self.rng.choice(self.rng.choice(self.domains)), self.rng.choice(stubs)
            if self.stub_of[stub][0] != transit:
                wanted -= self._link(transit, stub, "transit-stub")

    def _add_stub_stub_edges(self) -> None:
        wanted, stubs = self.model.extra_stub_stub_edges, list(self.stub_of)
        sizes = Counter(self.stub_of.values()).values()
        _check_room(
            "extra_stub_stub_edges", wanted, (len(stubs) ** 2 - sum(s * s for s in sizes)) // 2
        )
        while wanted:
            a, b = self.rng.choice(stubs), self.rng.choice(stubs)
            if self.stub_of[a] != self.stub_of[b]:
                wanted -= self._link(a, b, "stub-stub")


def _stub_side(nodes: int) -> int:
    """The side of a stub's square: 16 grid points for each node."""
    return round(math.sqrt(16.0 * nodes))


def _check_room(field: str, wanted: int, possible: int) -> None:
    errors.require(
        wanted <= possible,
        f"{field} = {wanted} is out of range: in this graph there is room for at most {possible}",
    )
