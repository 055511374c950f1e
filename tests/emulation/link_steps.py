"""Steps of ``emulated_network`` that look at links: times, queues, losses, and what is captured."""

import json
import time
from typing import Any
from unittest.mock import patch

from testbed.engines.mininet.kernel import machine, netem
from testbed.engines.mininet.kernel.netlink import Netlink
from testbed.engines.mininet.net import EmulatedNetwork
from testbed.engines.mininet.plan import Plan
from tests.emulation.rings import MS, Capture, arrivals, network, ring, send, udp


def timing() -> list[dict[str, Any]]:
    """Errors of a link against the model: alone and in bursts, of mixed sizes."""
    mixed = [74, 474, 1514, 74, 1514, 474, 74, 74]
    bursts = [[74], [474], [1514], mixed, [1514] * 20, [74] * 40, mixed * 3]
    found = []
    for bandwidth, delay, queue in (
        (10**7, 0, 0),
        (10**7, 1_234_567, 0),
        (9_999_999, 1_234_567, 0),
        (10**9, 5 * MS, 0),
        (10**7, 5 * MS, 1000),
        (10**9, 0, 1000),
    ):
        plan = ring(2, delay_ns=delay, bandwidth_bps=bandwidth, queue_packets=queue)
        errors, order = hop_errors(plan, bursts)
        found.append({"link": str(plan.links[0]), "errors": errors, "in_order": order})
    return found


def hop_errors(plan: Plan, bursts: list[list[int]]) -> tuple[list[int], bool]:
    with network(plan) as net:
        capture, sender, _receiver = Capture(), udp(net, 0), udp(net, 1)
        send(sender, 1, [74])  # Open vSwitch looks at the first of a flow
        time.sleep(1)
        number = 1
        for burst in bursts:
            send(sender, 1, burst, number)
            number += len(burst)
            time.sleep(0.1)
        seen = arrivals(capture)
    link, free, errors, order = plan.links[0], 0, [], []
    for packet in range(1, number):
        entered, size = seen["s0-eth1", packet]
        free = max(free, entered) + size * 8 * 10**9 // link.bandwidth_bps
        errors.append(seen["s1-eth2", packet][0] - free - link.delay_ns)
    order = [packet for interface, packet in seen if interface == "s1-eth2"]
    return errors, order == sorted(order)


def rough_timing() -> list[int]:
    """Errors of single packets and of a burst, where time is real."""
    return hop_errors(ring(2, delay_ns=20 * MS), [[74], [474], [1514], [1514] * 10])[0]


def queue() -> tuple[list[int], dict[str, int]]:
    """Which of a burst arrive where three may wait: the first, three more, and one that is later."""
    with network(ring(2, delay_ns=5 * MS, bandwidth_bps=10**6, queue_packets=3)) as net:
        capture, sender, _receiver = Capture(), udp(net, 0), udp(net, 1)
        send(sender, 1, [100])
        time.sleep(1)
        send(sender, 1, [1000] * 8, 1)
        time.sleep(0.0085)  # of which each takes 8 ms: one has left
        send(sender, 1, [1000] * 2, 9)
        time.sleep(1)
        arrived = sorted(n for interface, n in arrivals(capture) if interface == "s1-eth2")
        return arrived, lost()


def lost() -> dict[str, int]:
    """What the links have counted as lost."""
    with Netlink() as kernel:
        return netem.losses(kernel)


def loss() -> tuple[int, dict[str, int]]:
    """How many of 2,000 packets arrive where 30 % are lost."""
    with network(ring(2, bandwidth_bps=10**9, loss=0.3)) as net:
        capture, sender, _receiver = Capture(), udp(net, 0), udp(net, 1)
        send(sender, 1, [74] * 2000)
        time.sleep(1)
        return sum(interface == "s1-eth2" for interface, _ in arrivals(capture)), lost()


def chatter() -> dict[str, Any]:
    """What is captured from before the first link is there: in a minute of nothing, and of a packet.

    Also what the hosts' interfaces count, and whether the packet's checksums are right.
    """
    captures: list[Capture] = []
    prepare = machine.prepare_namespace

    def prepare_and_capture() -> None:
        prepare()
        captures.append(Capture())

    with patch.object(machine, "prepare_namespace", prepare_and_capture), network(ring(4)) as net:
        time.sleep(60)
        silence = [data.hex() for _, _, data in captures[0].frames()]
        counted = [statistics(net, node) for node in range(4)]
        sender, _receiver = udp(net, 0), udp(net, 2)
        send(sender, 2, [474])
        time.sleep(60)
        frames = [(interface, data.hex()) for interface, _, data in captures[0].frames()]
    return {"silence": silence, "counted": counted, "frames": frames}


def statistics(net: EmulatedNetwork, node: int) -> list[int]:
    words = ["ip", "-j", "-s", "link", "show", f"h{node}-eth0"]
    out, _, _ = net.hosts[node].pexec(words)
    counts = json.loads(out)[0]["stats64"]
    return [counts[way]["packets"] for way in ("rx", "tx")]


STEPS = (timing, rough_timing, queue, loss, chatter)
