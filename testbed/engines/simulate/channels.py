"""Channels between all pairs of processes: a network without routes, packets or bandwidth.

The model of Chandra, Gambhire & Kshemkalyani 2004, section 3.2. A copy takes an exponential time of
its own. FIFO is enforced as the paper does: a copy that would overtake the one before it on its
channel arrives a while after that one, in the paper a millisecond. A channel is a link without
transmission time whose delay is drawn for each copy, so that all that is counted on links is counted
here. Where processes take turns, a copy that has arrived waits for its receiver's.
"""

import random
from itertools import permutations

import networkx as nx
from typing_extensions import override

from testbed.engines.simulate.links import Flight, Hop, Link, Scheduler
from testbed.engines.simulate.network import SimulatedNetwork
from testbed.packets.framing import Framing
from testbed.protocols import Message
from testbed.protocols.base import NS_PER_MS
from testbed.topologies.channels import ExponentialChannels

UNDIVIDED = 1 << 40  # an MTU that no message exceeds


class Channels(SimulatedNetwork):
    """Takes copies of messages, each by itself and whole."""

    def __init__(self, model: ExponentialChannels, *, framing: Framing, rng: random.Random) -> None:
        processes = model.nodes
        super().__init__(
            nx.empty_graph(processes), metric="hops", framing=framing, mtu=UNDIVIDED, rng=rng
        )
        self.mean = model.mean_ms * NS_PER_MS
        self.gap = round(model.fifo_gap_ms * NS_PER_MS)
        self.rng = rng
        self.links = {
            ends: Link(number, *ends, 0, 0, 0, 0.0)
            for number, ends in enumerate(permutations(range(processes), 2), 1)
        }
        self.scheduler = Scheduler(list(self.links.values()), self, rng)
        self._hops = {ends: Hop(link, (), True, ends[1]) for ends, link in self.links.items()}
        self._last_arrival = dict.fromkeys(self.links, 0)  # the paper's LM
        self._last_receipt = dict.fromkeys(self.links, 0)
        self.turns, self.by_rounds = model.turns, model.clock == "rounds"

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """A copy for each peer, not to overtake the one before."""
        now = self.scheduler.now
        clock = self.turns.own(now) if self.turns and self.by_rounds else now
        (packet,) = self._cut(sender, message, len(peers))
        for peer in peers:
            channel = sender, peer
            hop, last = self._hops[channel], self._last_arrival[channel]
            arrival = clock + round(self.mean * self.rng.expovariate(1.0))
            if arrival < last:
                arrival = last + self.gap
            self._last_arrival[channel] = arrival
            receipt = arrival if self.turns is None else self._in_turn(channel, arrival, now)
            hop.link.delay = receipt - now
            self.scheduler.transmit(Flight(hop, packet), now)

    @override
    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """The network has no trees: it copies."""
        self.unicast(sender, peers, message)

    def _in_turn(self, channel: tuple[int, int], arrival: int, now: int) -> int:
        """When the receiver has its turn, for what has arrived by the clock."""
        assert self.turns is not None
        _, receiver = channel
        time = self.turns.at(receiver, arrival) if self.by_rounds else arrival
        receipt = self.turns.next(receiver, max(now, time))
        receipt = self._last_receipt[channel] = max(receipt, self._last_receipt[channel])
        return receipt
