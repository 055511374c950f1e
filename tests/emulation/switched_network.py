"""Runs in a guest: five switches and hosts, a controller, and a record of what goes where.

    h0–s0 — s1–h1 — s4–h4        Links: 0–1, 1–2, 2–3, 0–3, 1–4. A link can be taken away from
        |     |                  the ring without harm; without 1–4, h4 is alone.
    h3–s3 — s2–h2

Prints one JSON object: what was found in each step. The tests look at that.
"""

import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from testbed.engines.mininet import plan as names
from testbed.engines.mininet.controller.controller import Controller, ControllerError
from testbed.engines.mininet.controller.process import Library
from testbed.engines.mininet.kernel.drops import drops
from testbed.engines.mininet.net import EmulatedNetwork, emulated_network
from testbed.engines.mininet.switches.openvswitch import Bridge, Settings, add_bridges
from tests.emulation.rings import inside, run

LINKS = [(0, 1), (0, 3), (1, 2), (1, 4), (2, 3)]
NETWORK = {
    "nodes": [{"id": node} for node in range(5)],
    "links": [{"a": a, "b": b, "delay_ns": 1000, "bandwidth_bps": 10**7} for a, b in LINKS],
}
NODES = range(5)
SIZES = {"whole": 100, "fragmented": 3000}
PLAN = names.build(NETWORK)
IPS = [names.host_ip(node) for node in NODES]
STRANGER = 99  # the number of a switch that is not in the network


def connect(switches: Iterable[str], controller: Controller) -> None:
    """Tell switches of the controller."""
    words = []
    for name in switches:
        words += ["--", "set-controller", name, f"tcp:127.0.0.1:{controller.port}"]
        words += ["--", "set", "controller", name, "inactivity_probe=0"]
    run("ovs-vsctl", *words)


class Hosts:
    """A socket of the experiment and a view of the wire, in every host."""

    def __init__(self, net: EmulatedNetwork) -> None:
        self.udp: list[socket.socket] = []
        self.wire: list[socket.socket] = []
        for node in NODES:
            with inside(net, node):
                udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
                udp.bind((IPS[node], names.UDP_PORT))
                raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK)
                raw.bind((f"h{node}-eth0", 3))
            self.udp.append(udp)
            self.wire.append(raw)

    def exchange(self) -> dict[str, list[list[int]]]:
        """Send every kind of datagram; return, for each that arrived, (sender, receiver) pairs."""
        return {
            f"{kind} {how}": self._exchange(addressees, size)
            for kind, addressees in (("unicast", IPS), ("multicast", [names.MULTICAST_IP]))
            for how, size in SIZES.items()
        }

    def _exchange(self, addressees: list[str], size: int) -> list[list[int]]:
        for sender in NODES:
            for address in addressees:
                if address != IPS[sender]:
                    self.udp[sender].sendto(content(sender, size), (address, names.UDP_PORT))
        time.sleep(0.1)
        arrived = []
        for receiver, udp in enumerate(self.udp):
            for data, (ip, _) in drain(udp):
                sender = IPS.index(ip)
                assert data == content(sender, size), f"{receiver} got something else from {sender}"
                arrived.append([sender, receiver])
        return sorted(arrived)

    def seen(self) -> list[list[Any]]:
        """Return (host, first bytes) of the frames that came in at the hosts since last asked."""
        return [
            [node, frame[:34].hex()]
            for node, raw in enumerate(self.wire)
            for frame, origin in drain(raw)
            if origin[2] != socket.PACKET_OUTGOING
        ]

    def send_junk(self) -> None:
        """Send from h0 what no rule is for."""
        mac = bytes.fromhex(names.host_mac(0).replace(":", ""))
        everyone, gateway = b"\xff" * 6, bytes.fromhex(names.GATEWAY_MAC.replace(":", ""))
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 28, 1, 0, 64, 17, 0)
        udp = struct.pack(">HHHH", 5000, 5000, 8, 0)

        def packet(source: str, destination: str) -> bytes:
            return ip + socket.inet_aton(source) + socket.inet_aton(destination) + udp

        for to, kind, content in [
            (everyone, 0x0806, bytes.fromhex("0001080006040001") + mac + bytes(18)),
            (everyone, 0x0800, packet(IPS[0], "255.255.255.255")),
            (everyone, 0x86DD, b"\x60" + bytes(59)),
            (bytes.fromhex("0180c200000e"), 0x88CC, bytes(40)),
            (gateway, 0x0800, packet(IPS[0], "10.0.77.77")),
            (gateway, 0x0800, packet(IPS[0], "239.0.0.2")),
            (gateway, 0x0800, packet("10.0.66.66", names.MULTICAST_IP)),
            (bytes.fromhex(names.host_mac(1).replace(":", "")), 0x1234, bytes(46)),
        ]:
            self.wire[0].send(to + mac + struct.pack(">H", kind) + content)
        time.sleep(0.1)


def content(sender: int, size: int) -> bytes:
    """What a host sends, so that it is not mistaken for another's."""
    return bytes([sender]) + bytes(i * (sender + 7) % 256 for i in range(size - 1))


def drain(sock: socket.socket) -> Iterator[tuple[bytes, Any]]:
    while True:
        try:
            yield sock.recvfrom(65536)
        except BlockingIOError:
            return


def tables(nodes: Iterable[int], *kinds: str) -> dict[str, list[str]]:
    """Return the rules of some switches, as Open vSwitch has them."""
    found = {}
    for node in nodes:
        for kind in kinds:
            words = ["--no-stats"] if kind == "flows" else []
            dump = run("ovs-ofctl", "-OOpenFlow13", *words, f"dump-{kind}", f"s{node}")
            found[f"s{node} {kind}"] = sorted(x for x in dump.splitlines() if "actions=" in x)
    return found


def switches_of_context(pid: int) -> int:
    """Return how often the threads of a process have gone to sleep."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        total += int(fields["voluntary_ctxt_switches"])
    return total


def set_link(a: int, b: int, state: str, log: Path) -> list[dict[str, Any]]:
    """Take a link down, or up, and return what the controller logged of it."""
    before = len(log.read_text().splitlines()) if log.exists() else 0
    run("ip", "link", "set", f"s{a}-eth{PLAN.ports[a][b]}", state)
    for _ in range(500):
        if log.exists() and len(log.read_text().splitlines()) > before:
            time.sleep(0.1)
            return [json.loads(line) for line in log.read_text().splitlines()[before:]]
        time.sleep(0.01)
    raise TimeoutError(f"no reroute after link {a}–{b} was set {state}")


def refusal(controller: Controller, timeout_s: float) -> str:
    try:
        controller.wait_until_ready(timeout_s)
    except ControllerError as error:
        return str(error)
    return ""


def scenario(net: EmulatedNetwork, library: Library, directory: Path) -> Iterator[tuple[str, Any]]:
    (directory / "network.json").write_text(json.dumps(NETWORK))
    hosts = Hosts(net)
    log = directory / "reroutes.jsonl"
    with Controller(directory / "network.json", directory, library=library, port=0) as controller:
        add_bridges([Bridge("stranger", STRANGER, {})], Settings(None))
        connect(["s3", "s1", "s0", "s2", "stranger"], controller)
        yield "one missing", refusal(controller, 3.0)
        yield "told in place", sorted(controller.in_place)
        connect(["s4"], controller)
        controller.wait_until_ready(30.0)
        yield "tables", tables(NODES, "flows", "groups")
        yield "fragments", run("ovs-ofctl", "-OOpenFlow13", "get-frags", "s0").strip()
        yield "reroutes before any", log.exists()
        hosts.seen()
        yield "arrived", hosts.exchange()
        yield "udp errors", drops(net.namespaces)["udp_errors"]  # wrong checksums among them
        hosts.seen()
        hosts.send_junk()
        yield "junk seen", hosts.seen()

        yield "cut 0-1", set_link(0, 1, "down", log)
        yield "arrived without 0-1", hosts.exchange()
        yield "tables without 0-1", tables([0], "flows", "groups")
        yield "cut 1-4", set_link(1, 4, "down", log)
        yield "tables without 0-1, 1-4", tables(range(4), "flows")
        yield "arrived without 0-1, 1-4", hosts.exchange()
        yield "healed 1-4", set_link(1, 4, "up", log)
        yield "healed 0-1", set_link(0, 1, "up", log)
        yield "tables at the end", tables(NODES, "flows", "groups")
        yield "arrived at the end", hosts.exchange()

        controller.check()
        before = switches_of_context(controller.pid)
        time.sleep(60)
        yield "wakings in 60 s", switches_of_context(controller.pid) - before
        start = time.monotonic()
    yield "stopped in", time.monotonic() - start
    yield "log", controller.log.read_text()


def main() -> None:
    library: Library = "os-ken" if sys.argv[1] == "os-ken" else "ryu"
    directory = Path(sys.argv[2])
    found = {}
    with emulated_network(PLAN, controller=None) as net:
        for name, value in scenario(net, library, directory):
            print(f"{name}", file=sys.stderr)
            found[name] = value
    (directory / "found.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    os.umask(0o022)
    main()
