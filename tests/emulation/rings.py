"""Rings of emulated hosts, and sockets to send and capture with, for programs that run in a guest."""

import contextlib
import socket
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

import networkx as nx

from testbed.engines.mininet import plan as names
from testbed.engines.mininet.kernel import namespaces
from testbed.engines.mininet.net import EmulatedNetwork, emulated_network
from testbed.engines.mininet.plan import Plan, PlannedLink
from testbed.topologies.routing import shortest_path_trees

UDP_HEADERS = 42  # Ethernet, IP, UDP
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
PACKET_OUTGOING = 4
MS = 1_000_000


def ring(nodes: int, **link: Any) -> Plan:
    pairs = [(node, (node + 1) % nodes) for node in range(nodes if nodes > 2 else 1)]
    settings = {"delay_ns": MS, "bandwidth_bps": 10**7} | link
    return Plan(nodes, tuple(PlannedLink(min(pair), max(pair), **settings) for pair in pairs))


def run(*words: str, text: str | None = None) -> str:
    return subprocess.run(words, input=text, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def network(plan: Plan) -> Iterator[EmulatedNetwork]:
    """A network with rules for datagrams from any host to any other."""
    with emulated_network(plan, controller=None) as net:
        trees = shortest_path_trees(nx.Graph([(link.a, link.b) for link in plan.links]))
        for node in range(plan.nodes):
            rules = [
                f"ip,nw_dst={names.host_ip(node)},"
                f"actions=mod_dl_dst:{names.host_mac(node)},output:{names.HOST_PORT}"
            ]
            for other, tree in enumerate(trees):
                if other != node:
                    port = plan.ports[node][tree[node]]
                    rules.append(f"ip,nw_dst={names.host_ip(other)},actions=output:{port}")
            run("ovs-ofctl", "-OOpenFlow13", "add-flows", f"s{node}", "-", text="\n".join(rules))
        yield net


@contextlib.contextmanager
def inside(net: EmulatedNetwork, node: int) -> Iterator[None]:
    """Be in a host's network for a while: a socket stays where it was made."""
    with namespaces.returning():
        namespaces.enter(net.namespaces[node])
        yield


def udp(net: EmulatedNetwork, node: int) -> socket.socket:
    """A socket of a host."""
    with inside(net, node):
        host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    host.bind((names.host_ip(node), names.UDP_PORT))
    return host


class Capture:
    """Everything that comes in at an interface of the namespace, except at the loopback."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.setblocking(False)

    def frames(self) -> Iterator[tuple[str, int, bytes]]:
        while True:
            try:
                data, ancillary, _, address = self.socket.recvmsg(2048, 256)
            except BlockingIOError:
                return
            if address[0] != "lo" and address[2] != PACKET_OUTGOING:
                seconds, ns = struct.unpack("=qq", ancillary[0][2])
                yield address[0], seconds * 10**9 + ns, data


def send(sender: socket.socket, receiver: int, sizes: list[int], first: int = 0) -> None:
    """Datagrams that are numbered, and so many bytes long on the wire."""
    for number, size in enumerate(sizes, first):
        payload = struct.pack("=I", number) + bytes(size - UDP_HEADERS - 4)
        sender.sendto(payload, (names.host_ip(receiver), names.UDP_PORT))


def arrivals(capture: Capture) -> dict[tuple[str, int], tuple[int, int]]:
    """When each datagram came in at each interface, and how long it was."""
    return {
        (interface, struct.unpack_from("=I", data, UDP_HEADERS)[0]): (at, len(data))
        for interface, at, data in capture.frames()
    }
