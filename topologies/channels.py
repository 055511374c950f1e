"""Channels between all pairs of processes; every copy draws its own transmission time.

The network of Chandra, Gambhire & Kshemkalyani, "Performance of the Optimal Causal Multicast
Algorithm", 2004, section 3.2: no routes and no packets, but one number, the mean transmission time,
that stands for distance, speed and load. Only the simulator has such channels.
"""

import random
from dataclasses import asdict, dataclass
from typing import ClassVar

import networkx as nx

from . import errors
from .graph import Graph, Model, build_graph
from .textbook import SPACING


@dataclass(frozen=True)
class ExponentialChannels(Model):
    """A FIFO channel from every process to every other; a copy takes ``mean_ms`` on average."""

    model: ClassVar[str] = "exponential-channels"
    nodes: int
    mean_ms: float

    def __post_init__(self) -> None:
        errors.at_least("nodes", self.nodes, 2)
        errors.above("mean_ms", self.mean_ms, 0)
        errors.at_most("mean_ms", self.mean_ms, 1e9)

    def generate(self, rng: random.Random) -> Graph:
        """The complete graph; transmission times are drawn later, for each copy."""
        complete = nx.complete_graph(self.nodes)
        places = nx.circular_layout(complete, scale=SPACING)
        return build_graph(
            [str(node) for node in complete],
            [(places[node][0], places[node][1]) for node in complete],
            [(i, j, SPACING) for i, j in complete.edges],
            model=self.model,
            tries=1,
            parameters=asdict(self),
        )
