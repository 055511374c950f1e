"""Channels between all pairs of processes; every copy draws its own transmission time.

The network of Chandra, Gambhire & Kshemkalyani, "Performance of the Optimal Causal Multicast
Algorithm", 2004, section 3.2: no routes and no packets, but one number, the mean transmission time,
that stands for distance, speed and load. Only the simulator has such channels.
"""

import random
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import networkx as nx

from . import errors
from .graph import Graph
from .textbook import SPACING, Textbook


@dataclass(frozen=True)
class ExponentialChannels(Textbook, model="exponential-channels"):
    """A FIFO channel from every process to every other; a copy takes ``mean_ms`` on average.

    A copy that would overtake the one before it arrives ``fifo_gap_ms`` after that one.
    """

    nodes: errors.TwoOrMore
    mean_ms: Annotated[errors.AboveZero, partial(errors.at_most, high=1e9)]
    fifo_gap_ms: Annotated[
        float, partial(errors.at_least, low=0), partial(errors.at_most, high=1e9)
    ] = 1.0

    def generate(self, rng: random.Random) -> Graph:
        """The complete graph; transmission times are drawn later, for each copy."""
        complete = nx.complete_graph(self.nodes)
        places = nx.circular_layout(complete, scale=SPACING)
        return self.place(complete, [(places[node][0], places[node][1]) for node in complete])
