"""The registry of graph models: the names that an experiment may give."""

import random
from typing import ClassVar, Protocol

from .channels import ExponentialChannels
from .files import File
from .flat import DoarLeslie, Exponential, Locality, PureRandom, Waxman1, Waxman2
from .graph import Graph
from .hierarchical import Hierarchical
from .textbook import GridGraph, LineGraph, RingGraph, StarGraph
from .transit_stub import TransitStub


class Model(Protocol):
    """A graph model: a frozen dataclass of its parameters that can draw a graph."""

    model: ClassVar[str]

    def generate(self, rng: random.Random) -> Graph:
        """Return a connected graph as described in `topologies.graph`."""
        ...


MODELS: dict[str, type[Model]] = {
    kind.model: kind
    for kind in (
        PureRandom,
        Waxman1,
        Waxman2,
        DoarLeslie,
        Exponential,
        Locality,
        Hierarchical,
        TransitStub,
        LineGraph,
        RingGraph,
        StarGraph,
        GridGraph,
        File,
        ExponentialChannels,
    )
}
"""The models by name."""
