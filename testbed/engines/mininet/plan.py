"""The names, numbers and addresses of an emulated network, as pure data.

Process i is host ``h<i>`` on switch ``s<i>``, whose datapath number is i + 1. Port 1 of a switch is its
host; ports 2, 3, … are its links in ascending order of the neighbour. Port p of switch i is the
interface ``s<i>-eth<p>``, and the host's only interface is ``h<i>-eth0``.

Hosts never ask who has an address: each has its own as a /32, one route for everything through one
gateway that does not exist, and one permanent entry for the gateway's MAC address. Switches look at IP
addresses alone; the last one makes its host the frame's destination. So setting up n hosts takes n
steps, not n². One datagram to ``MULTICAST_IP`` goes to everybody but its sender, along a tree that the
switches choose by the source address; one to ``group_ip(x)`` to the other members of group x.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network
from typing import Any

from testbed.errors import UserError

MULTICAST_IP = "239.0.0.1"
UDP_PORT = 5000  # of the experiment, on every host
CONTROLLER_PORT = 6653  # where OpenFlow controllers listen by convention
GATEWAY_IP = "10.0.255.254"
GATEWAY_MAC = "02:00:00:00:ff:fe"
MOST_NODES = 0xFFF0
HOST_PORT = 1
HOST_INDEX = 2  # the interface number of every host's interface, in its own namespace
# The interface number of the first switch port; those that Open vSwitch makes stay below.
FIRST_INDEX = 1000

HOST_NET = "10.0.0.0/16"
_HOSTS = IPv4Network(HOST_NET)
_GROUPS = IPv4Network("239.1.0.0/16")


def host_name(node: int) -> str:
    """The host of a process."""
    return f"h{node}"


def switch_name(node: int) -> str:
    """The switch of a process."""
    return f"s{node}"


def host_interface(node: int) -> str:
    """The interface of a host."""
    return f"h{node}-eth0"


def switch_interface(node: int, port: int) -> str:
    """The interface of a switch's port."""
    return f"s{node}-eth{port}"


def dpid(node: int) -> int:
    """The OpenFlow datapath number of a switch; 0 would mean none."""
    return node + 1


def host_ip(node: int) -> str:
    """The address of a host."""
    return str(_HOSTS[node + 1])


def group_ip(group: int) -> str:
    """The multicast address of a group of processes."""
    return str(_GROUPS[group + 1])


def host_mac(node: int) -> str:
    """The Ethernet address of a host."""
    return f"02:00:00:00:{_two_bytes(node + 1)}"


def port_mac(node: int, port: int) -> str:
    """The Ethernet address of a switch's port: no packet carries it, but it shall not be random."""
    return f"02:01:{_two_bytes(node + 1)}:{_two_bytes(port)}"


@dataclass(frozen=True)
class PlannedLink:
    """A link between two switches; both directions are alike."""

    a: int
    b: int
    delay_ns: int
    bandwidth_bps: int
    queue_packets: int = 0
    loss: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What network, controller, hosts and capture must agree on."""

    nodes: int
    links: tuple[PlannedLink, ...]
    mtu: int = 1500
    groups: tuple[frozenset[int], ...] = ()

    @cached_property
    def audiences(self) -> list[tuple[str, frozenset[int]]]:
        """The multicast addresses, and to whom each of them leads."""
        everybody = MULTICAST_IP, frozenset(range(self.nodes))
        return [everybody, *((group_ip(x), members) for x, members in enumerate(self.groups))]

    @cached_property
    def ports(self) -> list[dict[int, int]]:
        """``ports[i][j]`` is the port of switch i that leads to switch j."""
        neighbours: list[set[int]] = [set() for _ in range(self.nodes)]
        for link in self.links:
            neighbours[link.a].add(link.b)
            neighbours[link.b].add(link.a)
        return [
            {other: port for port, other in enumerate(sorted(others), HOST_PORT + 1)}
            for others in neighbours
        ]

    @cached_property
    def arrivals(self) -> dict[str, tuple[int | None, int]]:
        """Where a packet that comes in at a switch's interface is from, and which switch that is.

        A link's (tail, head), or (None, head) for what a host hands to its switch. For a packet
        that goes out by the interface it is the other way round.
        """
        found: dict[str, tuple[int | None, int]] = {}
        for node, others in enumerate(self.ports):
            found[switch_interface(node, HOST_PORT)] = (None, node)
            for other, port in others.items():
                found[switch_interface(node, port)] = (other, node)
        return found

    @cached_property
    def indexes(self) -> dict[str, int]:
        """The kernel's numbers of the switches' interfaces, the same in every run."""
        return {name: FIRST_INDEX + number for number, name in enumerate(self.arrivals)}

    def directions(self) -> Iterator[tuple[str, PlannedLink]]:
        """Each link twice, with the interface by which packets leave."""
        for link in self.links:
            for node, other in ((link.a, link.b), (link.b, link.a)):
                yield switch_interface(node, self.ports[node][other]), link


def build(network_json: Mapping[str, Any], mtu: int = 1500) -> Plan:
    """The plan of the network that a ``network.json`` describes."""
    try:
        ids = sorted(node["id"] for node in network_json["nodes"])
        fields = PlannedLink.__dataclass_fields__
        links = tuple(
            PlannedLink(**{name: link[name] for name in fields if name in link})
            for link in network_json["links"]
        )
    except (KeyError, TypeError) as error:
        raise UserError(f"network.json is not complete: {error!r}") from None
    if ids != list(range(len(ids))):
        raise UserError(f"network.json: nodes must be numbered from 0 to {len(ids) - 1}")
    if len(ids) > MOST_NODES:
        raise UserError(f"{len(ids)} nodes are too many: there are addresses for {MOST_NODES}")
    pairs = {(min(link.a, link.b), max(link.a, link.b)) for link in links}
    if len(pairs) < len(links) or any(a == b or not (a >= 0 and b < len(ids)) for a, b in pairs):
        raise UserError(
            "network.json: each link must join two nodes, and no two links the same two"
        )
    groups = tuple(map(frozenset, network_json.get("groups", {}).values()))
    return Plan(len(ids), links, mtu, groups)


def _two_bytes(number: int) -> str:
    return f"{number >> 8:02x}:{number & 0xFF:02x}"
