"""Channels between all pairs of processes; every copy draws its own transmission time.

The network of Chandra, Gambhire & Kshemkalyani, "Performance of the Optimal Causal Multicast
Algorithm", 2004, section 3.2: no routes and no packets, but one number, the mean transmission time,
that stands for distance, speed and load. Only the simulator has such channels.

The processes of that paper take turns (section 3.3): each is in control for a slot of 500 ms, in which
it first takes all that has arrived for it and then sends, and a clock of the whole system knows the
current slot. Either this clock goes on with every turn, so that a round of n processes takes n slots;
or it goes on with every round, so that all processes play the same slot one after another. The paper
does not say which.
"""

import random
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple

import networkx as nx

from . import errors
from .graph import Graph
from .textbook import SPACING, Textbook

NS_PER_MS = 1_000_000
TAKING_NS = 1_000_000  # the longest that a process takes for what has waited for its turn


class Turns(NamedTuple):
    """Who has its turn when: the processes in order, again and again, for ``slot`` nanoseconds each.

    A process's own clock runs only in its turns.
    """

    processes: int
    slot: int

    def at(self, process: int, own: int) -> int:
        """When a process's own clock shows a time."""
        played, rest = divmod(own, self.slot)
        return (played * self.processes + process) * self.slot + rest

    def own(self, time: int) -> int:
        """What the own clock of the process shows whose turn it is."""
        turn, rest = divmod(time, self.slot)
        return turn // self.processes * self.slot + rest

    def next(self, process: int, time: int) -> int:
        """Soon after a process's next turn begins.

        What has waited for it is taken in the order in which it came.
        """
        turn, rest = divmod(time, self.slot)
        whole = self.processes * self.slot
        waits = (process - turn) % self.processes * self.slot - rest
        waits += whole if waits <= 0 else 0
        return time + waits + (whole - waits) * min(TAKING_NS, self.slot // 2) // whole


@dataclass(frozen=True)
class ExponentialChannels(Textbook, model="exponential-channels"):
    """A FIFO channel from every process to every other; a copy takes ``mean_ms`` on average.

    A copy that would overtake the one before it arrives ``fifo_gap_ms`` after that one. With
    ``turn_ms`` processes take turns of that length; the clock, by which copies travel, goes on with
    every turn or with every round.
    """

    nodes: errors.TwoOrMore
    mean_ms: Annotated[errors.AboveZero, partial(errors.at_most, high=1e9)]
    fifo_gap_ms: Annotated[
        float, partial(errors.at_least, low=0), partial(errors.at_most, high=1e9)
    ] = 1.0
    turn_ms: Annotated[
        float, partial(errors.at_least, low=0), partial(errors.at_most, high=1e6)
    ] = 0.0
    clock: Literal["turns", "rounds"] = "turns"

    @property
    def turns(self) -> "Turns | None":
        """The turns that processes take, if they do."""
        return Turns(self.nodes, round(self.turn_ms * NS_PER_MS)) if self.turn_ms else None

    def generate(self, rng: random.Random) -> Graph:
        """The complete graph; transmission times are drawn later, for each copy."""
        complete = nx.complete_graph(self.nodes)
        places = nx.circular_layout(complete, scale=SPACING)
        return self.place(complete, [(places[node][0], places[node][1]) for node in complete])
