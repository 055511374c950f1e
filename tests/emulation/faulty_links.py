"""Runs in a guest: one link in one condition after the other, and what it does to datagrams.

Prints one JSON object: for each condition what arrived, how late, and what was lost on the way in.
"""

import json
import socket
import time
from collections import Counter
from typing import Any

from testbed.engines.mininet import plan as names
from testbed.engines.mininet.hosts.conditions import Conditions
from testbed.engines.mininet.kernel.drops import drops
from testbed.engines.mininet.net import EmulatedNetwork
from testbed.faults import Condition
from tests.emulation.rings import MS, UDP_HEADERS, Capture, inside, network, ring, send, udp

PACKETS = 2000
SIZE = 100
CONDITIONS = {
    "loss": Condition(loss=0.2),
    "duplication": Condition(duplication=0.05),
    "reordering": Condition(reordering=0.1, late_ns=5 * MS),
    "all": Condition(loss=0.2, duplication=0.05, reordering=0.1, late_ns=5 * MS),
    "slow": Condition(slowness=10),
    "down": Condition(up=False),
    "up": Condition(),
}


def crossing(net: EmulatedNetwork, conditions: Conditions, condition: Condition) -> dict[str, Any]:
    """Send a burst over the link in a condition: copies of each datagram, and errors of all."""
    conditions.set(0, 1, condition)
    conditions.apply(0)
    time.sleep(2)  # after exactly one second others look at the link too, and packets wait for them
    capture, sender, receiver = Capture(), udp(net, 0), udp(net, 1)
    send(sender, 1, [SIZE] * PACKETS)
    time.sleep(30)
    link, free, errors, order = net.plan.links[0], 0, [], []
    entered = {}
    for interface, at, data in capture.frames():
        number = int.from_bytes(data[UDP_HEADERS : UDP_HEADERS + 4], "little")
        if interface == "s0-eth1":
            entered[number] = at
        elif interface == "s1-eth2":
            free = max(free, entered[number]) + SIZE * 8 * 10**9 // link.bandwidth_bps
            errors.append(at - free - link.delay_ns)
            order.append(number)
    sender.close()
    receiver.close()
    copies = Counter(Counter(order).values())
    late = sum(number < max(order[:place], default=0) for place, number in enumerate(order))
    return {"copies": copies, "late": late, "errors": sorted(errors)}


def overflow(net: EmulatedNetwork) -> dict[str, int]:
    """What is counted when a socket is too small for what comes."""
    before = drops(net.namespaces)
    with inside(net, 0):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        small = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.bind((names.host_ip(0), names.UDP_PORT))
    for _ in range(100):
        sender.sendto(bytes(1000), (names.host_ip(0), names.UDP_PORT))
    sender.close()
    small.close()
    return {key: count - before[key] for key, count in drops(net.namespaces).items()}


def main() -> None:
    found: dict[str, Any] = {}
    for queue in (0, 10_000):
        with network(ring(2, queue_packets=queue)) as net:
            conditions = Conditions(net.plan)
            crossing(net, conditions, Condition())  # Open vSwitch looks at the first of a flow
            found[f"queue {queue}"] = {
                name: crossing(net, conditions, condition) for name, condition in CONDITIONS.items()
            }
            found["drops"] = overflow(net)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
