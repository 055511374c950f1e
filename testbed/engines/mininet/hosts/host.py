"""One host: a process that drives one protocol instance over UDP in its host's network namespace.

It is the same Node as in the simulator, with sockets for a network. System calls are expensive in
a user-mode kernel: a copy costs one ``sendto``, a datagram one ``recvfrom``; a host that still has
something of its own to send also polls its timer.
"""

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict
from functools import cache, partial
from heapq import heappop, heappush
from typing import Any, NoReturn

from testbed.engines.mininet.hosts.counters import SharedCounters
from testbed.engines.mininet.kernel.timerfd import TimerFd
from testbed.engines.mininet.plan import MULTICAST_IP, UDP_PORT, group_ip, host_ip
from testbed.engines.mininet.ways import Ways
from testbed.experiment import Scenario
from testbed.faults import Arrivals, Join, Leave
from testbed.node import Node
from testbed.node.meter import Meter, Sent
from testbed.node.node import check, endless
from testbed.node.trouble import trouble
from testbed.packets.framing import LONGEST_DATAGRAM, frames
from testbed.plugins.limits import limited
from testbed.protocols import Message, MessageId, Multicast, Send, WireError
from testbed.protocols.channel import Reliable
from testbed.runs.events import EventLog
from testbed.workloads import own_groups

BUFFER_BYTES = 64 << 20

JOIN, LEAVE = b"j", b"l"  # orders to a host that runs
NEVER = 0  # what the timer is set to when there is nothing to wait for
WARM_PORT = UDP_PORT + 1
WARM_PATIENCE_S = 2.0
VAIN_EVENTS = 5_000  # of one host without a delivery at any: a protocol that rests has no more


class StopHostError(Exception):
    """The run is over."""


class HostProcess:
    """The ``Runtime`` of one node: a UDP socket, a clock, and what is to be done when.

    It counts the datagrams that it sends and receives, and the timers that are set, in ``counters``.
    """

    def __init__(
        self,
        me: int,
        scenario: Scenario,
        run: int,
        log: EventLog,
        counters: SharedCounters,
        ways: Ways,
        incarnation: int = 0,
    ) -> None:
        experiment, network = scenario.experiment, scenario.network
        self.me = me
        self.mtu = experiment.transport.mtu
        self.addresses, self.senders = _addresses(network.processes)
        self.ways = ways
        self.peers = frozenset(ways.peers[me])
        groups = enumerate(network.groups.values())
        self.audiences = {
            members - {me}: group_ip(x) for x, members in groups if me in members
        } or {frozenset(range(network.processes)) - {me}: MULTICAST_IP}
        self.workload = experiment.workload
        self.meter = Meter()
        self.log = log
        protocol = scenario.process(me, incarnation)
        self.codec = protocol.codec(run, network.processes)
        self.node = Node(
            protocol,
            self.workload,
            self,
            log,
            self.meter,
            network.groups,
            scenario.clock_rates,
            check,
        )
        self.rests = experiment.protocol.rests
        self.channelled = isinstance(protocol, Reliable)
        self.vain = self.delivered = 0  # events since somebody delivered; deliveries of all then
        self.timers: dict[Hashable, int] = {}
        self.sent = Sent()
        self.malformed = 0
        self.incarnation = incarnation
        self.ordered = any(isinstance(fault, Join | Leave) for fault in experiment.faults)
        self.arrivals = Arrivals(experiment.faults, me, incarnation)
        self.orders = -1
        self.counters = counters
        self.start = 0
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._entries = 0

    def will_send(self, at: int, payload: bytes, to: frozenset[int] | None) -> None:
        """The application shall multicast at that time of the run's clock."""
        self.at(at, lambda: self.node.multicast(payload, self.now(), to))

    def at(self, time: int, call: Callable[[], None]) -> None:
        """Something shall be done at that time of the run's clock."""
        self._entries += 1
        heappush(self.agenda, (time, self._entries, call))

    def open(self) -> None:
        """Open the sockets in the namespace that this process is in."""
        self.socket = _socket(self.me, UDP_PORT)
        self.warm_socket = _socket(self.me, WARM_PORT)
        self.timer = TimerFd()
        self.poll = select.poll()
        for file in (self.socket, self.timer):
            self.poll.register(file, select.POLLIN)

    def warm_up_targets(self) -> list[str]:
        """The addresses that this host will send to."""
        multicast = [*self.audiences.values()] if self.me in self.ways.multicasters else []
        return multicast + [host_ip(peer) for peer in self.ways.peers[self.me]]

    def warm_up(self, expected: int, sizes: Sequence[int]) -> int:
        """Send datagrams along every way that will be used; how many for this host are missing.

        A switch asks its own daemon about the first packet of a flow, which takes time that no
        packet of the experiment is to lose. The capture does not look at this port.
        """
        for ip in self.warm_up_targets():
            for size in sizes:
                self.warm_socket.sendto(bytes(size), (ip, WARM_PORT))
        self.warm_socket.settimeout(WARM_PATIENCE_S)
        missing = expected * len(sizes)
        with suppress(TimeoutError):
            while missing:
                self.warm_socket.recv(LONGEST_DATAGRAM)
                missing -= 1
        return missing

    @limited
    def largest_message(self) -> int:
        """The size of a message that this host may send, to see whether it needs fragments."""
        rehearsal = deepcopy(self.node.protocol)
        payload = bytes(self.workload.payload_bytes)
        own = own_groups(self.me, self.node.groups)
        # what is sent later, by a timer or for others, may be any size
        fragmented = min(2 * self.mtu, LONGEST_DATAGRAM)
        if rehearsal.busy():
            return fragmented
        if self.node.groups and not own:
            return 0
        effects: Any = None
        try:
            effects = rehearsal.multicast(payload, own[0] if own else None, 0)
            sends = (effect for effect in effects if isinstance(effect, Send | Multicast))
            return max((effect.message.size for effect in sends), default=fragmented)
        except BaseException as error:
            name = MessageId(self.me, rehearsal.place.base + 1)
            trouble(error, self.node).happened("multicast", (name,), 0, effects)
            raise

    def now(self) -> int:
        """The run's clock."""
        return time.monotonic_ns() - self.start

    def run(self, start: int, orders: int) -> NoReturn:
        """From the agreed instant until ``StopHostError``; a file brings orders meanwhile."""
        self.start = start
        self.orders = orders
        if self.ordered:
            self.poll.register(orders, select.POLLIN)
        heappush(self.agenda, (0, 0, lambda: self.node.start(self.now())))
        while True:
            self._go_on()
            if self.agenda and self.agenda[0][0] <= self.now():
                heappop(self.agenda)[2]()
            elif not (self.agenda or self.ordered) or self._arrived():
                self.counters.busy[self.me] = 0
                data, address = self.socket.recvfrom(LONGEST_DATAGRAM)
                self._go_on()
                self._receive(data, address)

    def _go_on(self) -> None:
        """Be busy, unless another host has failed: then wait to be ended, rather than fail as well."""
        if self.counters.failed[0]:
            signal.pause()
        self.counters.busy[self.me] = 1

    def close(self) -> None:
        """Write what is to be written."""
        self.log.close()
        for opened in (self.socket, self.warm_socket, self.timer):
            opened.close()

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """A datagram for each peer."""
        if not self.peers.issuperset(peers):
            stranger = min(set(peers) - self.peers)
            raise ValueError(f"it sends to {stranger}, which is not among its ``peers()``")
        data = self._encode(message)
        for peer in peers:
            self.socket.sendto(data, self.addresses[peer])
            self._count(message, len(data), 1)

    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """One datagram, which the switches copy along this host's tree."""
        ip = self.audiences.get(frozenset(peers))
        if ip is None:
            raise ValueError("the network's multicast goes to all other processes, or to a group's")
        if self.me not in self.ways.multicasters:
            raise ValueError("it multicasts, and was not expected to: there is no tree for it")
        data = self._encode(message)
        self.socket.sendto(data, (ip, UDP_PORT))
        self._count(message, len(data), len(peers))

    def set_timer(self, node: Node, timer: Hashable, delay: int) -> None:
        """An entry of the agenda; the newest of a name is the one that counts."""
        self.timers[timer] = self._entries + 1
        self.counters.timers[self.me] = len(self.timers)
        self.at(self.now() + delay, partial(self._expire, timer, self._entries + 1))

    def cancel_timer(self, node: Node, timer: Hashable) -> None:
        """Its entry in the agenda finds nothing to do."""
        self.timers.pop(timer, None)
        self.counters.timers[self.me] = len(self.timers)

    def figures(self) -> dict[str, Any]:
        """What this host counted, as plain data."""
        return {
            "meter": self.meter.to_json(),
            "sent": asdict(self.sent),
            "malformed": self.malformed,
        }

    def _expire(self, timer: Hashable, entry: int) -> None:
        if self.timers.get(timer) == entry:
            del self.timers[timer]
            self._count_event(own=not self.channelled or timer[0] == "inner")  # type: ignore[index]
            self.node.timeout(timer, self.now())
            self.counters.timers[self.me] = len(self.timers)

    def _arrived(self) -> bool:
        """Wait for a datagram, an order, or the next of what is to be done."""
        self.timer.set(self.start + self.agenda[0][0] if self.agenda else NEVER)
        self.counters.busy[self.me] = 0
        ready = [file for file, _ in self.poll.poll()]
        self._go_on()
        if self.orders in ready:
            for order in os.read(self.orders, 64):
                does = self.node.join if order == JOIN[0] else self.node.leave
                does(self.now())
        return self.socket.fileno() in ready

    def _receive(self, data: bytes, address: tuple[str, int]) -> None:
        self.counters.moved[self.me] += 1
        sender = self.senders.get(address)
        try:
            message = self.codec.decode(data)
        except WireError:
            sender = None
        if sender is None:
            self.malformed += 1
        else:
            self._arrive(message, sender)

    def _arrive(self, message: Message, sender: int) -> None:
        """The process gets a message, unless a fault has it dropped, late or twice."""
        fate = self.arrivals.next(sender)
        if fate.kind:
            self.log.note(self.now(), self.me, fate.kind, fate.facts)
        for late in fate.delays:
            if late:
                self._take_later(message, sender, late)
            else:
                self._take(message, sender)

    def _take_later(self, message: Message, sender: int, late: int) -> None:
        """Counted among the timers, so that the run does not end before."""
        key = ("late", self._entries)

        def take() -> None:
            del self.timers[key]
            self._take(message, sender)
            self.counters.timers[self.me] = len(self.timers)

        self.timers[key] = self._entries
        self.counters.timers[self.me] = len(self.timers)
        self.at(self.now() + late, take)

    def _take(self, message: Message, sender: int) -> None:
        self._count_event(own=not self.channelled)
        self.node.receive(message, sender, self.now())
        self.counters.deliveries[self.me] = self.meter.deliveries

    def _count_event(self, own: bool) -> None:
        """Stop at the next step if a protocol that should rest goes on in vain.

        Events of the channel beneath it are not its ``own``: that gives up by itself, in the end.
        """
        if self.counters.vain[0]:
            self.node.inspect = endless(self.counters.vain[0])
        self.counters.events[self.me] += own
        self.vain += 1
        if self.vain > VAIN_EVENTS:
            delivered = sum(self.counters.deliveries)
            if delivered == self.delivered and self.rests:
                self.node.inspect = endless(self.vain)
            self.vain, self.delivered = 0, delivered

    def _encode(self, message: Message) -> bytes:
        data = self.codec.encode(message)
        if len(data) > LONGEST_DATAGRAM:
            raise ValueError(
                f"a message of {len(data)} bytes; a datagram holds {LONGEST_DATAGRAM} at most"
            )
        return data

    def _count(self, message: Message, size: int, receivers: int) -> None:
        """After each datagram, so that a host that crashes has counted those that it sent."""
        self.counters.moved[self.me] += 1
        self.sent.add(receivers, len(frames(size, self.mtu, "udp")), size, message)


@cache
def _addresses(processes: int) -> tuple[list[tuple[str, int]], dict[tuple[str, int], int]]:
    """The addresses of all processes, and whose each is."""
    addresses = [(host_ip(node), UDP_PORT) for node in range(processes)]
    return addresses, {address: node for node, address in enumerate(addresses)}


def _socket(me: int, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # No path MTU discovery: large messages are cut into fragments, and all have an IP id.
    opened.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER, IP_PMTUDISC_DONT
    for option in (32, 33):  # SO_SNDBUFFORCE, SO_RCVBUFFORCE
        opened.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    opened.bind((host_ip(me), port))
    return opened
