"""The simulated network: routes over links, messages cut into packets and put together again."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from itertools import pairwise

import networkx as nx
from typing_extensions import override

from testbed.engines.simulate.links import (
    Call,
    Destination,
    Flight,
    Hop,
    Link,
    Packet,
    Scheduler,
)
from testbed.faults import Condition
from testbed.node import Node
from testbed.node.meter import Carried, Sent
from testbed.packets.framing import Framing, frames
from testbed.protocols import Message
from testbed.topologies.routing import UNREACHED, Metric, children, path, shortest_path_tree

Receive = Callable[[Message, int, int], None]


class SimulatedNetwork(Destination):
    """Takes messages between nodes; the ``Runtime`` of every node of the simulator."""

    def __init__(
        self,
        graph: nx.Graph[int],
        *,
        metric: Metric,
        framing: Framing,
        mtu: int,
        rng: random.Random,
    ) -> None:
        self.graph = graph.copy()  # without the links that are down
        self.metric: Metric = metric
        self.framing: Framing = framing
        self.mtu = mtu
        self.links = directed_links(graph)
        self.blackhole = Link(len(self.links) + 1, -1, -1, 0, 1, 0, 0.0)
        self.blackhole.set_condition(Condition(up=False))
        self.scheduler = Scheduler([*self.links.values(), self.blackhole], self, rng)
        self.receivers: list[Receive] = []  # what each node does with a message
        self.sent = Sent()
        self.inspect: Callable[[Message], None] = _unseen  # is shown what is sent
        self._trees: dict[int, list[int]] = {}
        self._routes: list[dict[int, Hop]] = [{} for _ in graph]
        self._multicast_routes: dict[tuple[int, tuple[int, ...]], tuple[Hop, ...]] = {}
        self._partial: dict[tuple[int, int], int] = {}
        self._timers: dict[tuple[int, Hashable], Call] = {}
        self._asleep: dict[int, list[Callable[[], None]]] = {}

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """A copy for each peer along its shortest path."""
        packets = self._cut(sender, message, len(peers))
        routes = self._routes[sender]
        scheduler = self.scheduler
        for peer in peers:
            route = routes.get(peer) or self._route(sender, peer)
            for packet in packets:
                scheduler.transmit(Flight(route, packet), scheduler.now)

    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """One copy along the sender's shortest-path tree, pruned to the receivers."""
        routes = self._multicast_routes.get((sender, peers)) or self._tree_route(sender, peers)
        scheduler = self.scheduler
        for packet in self._cut(sender, message, len(peers)):
            for route in routes:
                scheduler.transmit(Flight(route, packet), scheduler.now)

    def carried(self) -> Carried:
        """What the links have carried so far."""
        links = [*self.links.values(), self.blackhole]
        return Carried(
            hops=sum(link.packets for link in links),
            wire_bytes=self.scheduler.wire_bytes,
            time=sum(link.time for link in links),
            byte_time=sum(link.byte_time for link in links),
            longest_queue=max(link.longest for link in links),
            longest_queue_bytes=max(link.longest_bytes for link in links),
            lost=sum(link.lost for link in links),
            dropped=sum(link.dropped for link in links),
            duplicated=sum(link.duplicated for link in links),
        )

    def set_link(self, a: int, b: int, condition: Condition) -> None:
        """Both directions are like this from now on; packets on their way keep their route."""
        for ends in ((a, b), (b, a)):
            self.links[ends].set_condition(condition)
            if not condition.up:
                self.scheduler.cut(self.links[ends])
        if condition.up != self.graph.has_edge(a, b):
            self._reroute(a, b, condition.up)

    def set_timer(self, node: Node, timer: Hashable, delay: int) -> None:
        """A timer set again replaces the one before."""
        self.cancel_timer(node, timer)

        def expire() -> None:
            if self._timers.get((node.id, timer)) is not call:  # cancelled while the node slept
                return
            if node.id in self._asleep:
                self._asleep[node.id].append(expire)
                return
            del self._timers[node.id, timer]
            node.timeout(timer, self.scheduler.now)

        call = self.scheduler.call_at(self.scheduler.now + delay, expire)
        self._timers[node.id, timer] = call

    def cancel_timer(self, node: Node, timer: Hashable) -> None:
        """One that is not set is no matter."""
        call = self._timers.pop((node.id, timer), None)
        if call is not None:
            call.cancel()

    def pause(self, node: int) -> None:
        """Whatever happens to a node waits until it is resumed."""
        self._asleep.setdefault(node, [])

    def resume(self, node: int) -> None:
        """What has waited happens now, in its order."""
        for happen in self._asleep.pop(node, ()):
            happen()

    def when_awake(self, node: int, happen: Callable[[], None]) -> None:
        """Have something happen to a node, now unless it sleeps."""
        if node in self._asleep:
            self._asleep[node].append(happen)
        else:
            happen()

    def kill(self, node: int) -> None:
        """A node's timers are cancelled; nothing happens to it any more."""
        self._asleep.pop(node, None)
        for key in [key for key in self._timers if key[0] == node]:
            self._timers.pop(key).cancel()

    def _cut(self, sender: int, message: Message, receivers: int) -> list[Packet]:
        """The packets of a message, counted once for each of its receivers."""
        self.inspect(message)
        size = message.size
        sizes = frames(size, self.mtu, self.framing)
        self.sent.add(receivers, len(sizes), size, message)
        return [
            Packet(message, sender, size, index, len(sizes), self.sent.copies)
            for index, size in enumerate(sizes)
        ]

    @override
    def arrive(self, node: int, packet: Packet, now: int) -> None:
        """A message is whole when all its fragments are here; each is a bit, as some come twice."""
        if packet.fragments > 1:
            key = (node, packet.copy)
            arrived = self._partial.get(key, 0) | 1 << packet.fragment
            if arrived + 1 < 1 << packet.fragments:
                self._partial[key] = arrived
                return
            self._partial.pop(key, None)
        self.receivers[node](packet.message, packet.sender, now)

    def _tree(self, root: int) -> list[int]:
        if root not in self._trees:
            self._trees[root] = shortest_path_tree(self.graph, root, self.metric)
        return self._trees[root]

    def _reroute(self, a: int, b: int, up: bool) -> None:
        if up:
            self.graph.add_edge(a, b, delay_ns=self.links[a, b].delay)
        else:
            self.graph.remove_edge(a, b)
        self._trees.clear()
        self._multicast_routes.clear()
        for routes in self._routes:
            routes.clear()

    def _route(self, sender: int, peer: int) -> Hop:
        """Towards the peer along its tree, built from the far end; nowhere if it has no path."""
        tree = self._tree(peer)
        hop: Hop | None = None
        if tree[sender] == UNREACHED:
            hop = Hop(self.blackhole, (), True)
            self._routes[sender][peer] = hop
            return hop
        nodes = path(tree, sender)
        for tail, head in reversed(list(pairwise(nodes))):
            hop = Hop(self.links[tail, head], (hop,) if hop else (), head == peer, peer)
        if hop is None or peer < 0:
            raise ValueError(f"process {sender} sends to {peer}")  # ``misuse`` has better words
        self._routes[sender][peer] = hop
        return hop

    def _tree_route(self, sender: int, peers: tuple[int, ...]) -> tuple[Hop, ...]:
        if sender in peers or min(peers, default=0) < 0:
            raise ValueError(f"process {sender} sends to {peers}")
        tree = self._tree(sender)
        below = children(tree)
        receivers = frozenset(peers)
        nodes = [sender]
        for node in nodes:  # grows as it goes: the tree's nodes from the root down
            nodes.extend(below[node])
        hops: dict[int, tuple[Hop, ...]] = {}
        for node in reversed(nodes):
            hops[node] = tuple(
                Hop(self.links[node, child], hops[child], child in receivers)
                for child in below[node]
                if hops[child] or child in receivers
            )
        lost = tuple(Hop(self.blackhole, (), True) for peer in peers if tree[peer] == UNREACHED)
        routes = self._multicast_routes[sender, peers] = hops[sender] + lost
        return routes


def _unseen(message: Message) -> None:
    """Look at nothing."""


def directed_links(graph: nx.Graph[int]) -> dict[tuple[int, int], Link]:
    """Both directions of every link of the graph, numbered from 1 in order."""
    links: dict[tuple[int, int], Link] = {}
    for tail, head in sorted((*graph.edges, *((b, a) for a, b in graph.edges))):
        data = graph.edges[tail, head]
        links[tail, head] = Link(
            len(links) + 1,
            tail,
            head,
            data["delay_ns"],
            data["bandwidth_bps"],
            data["queue_packets"],
            data["loss"],
        )
    return links
