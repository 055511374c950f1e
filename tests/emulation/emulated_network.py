"""Runs in a guest: brings emulated networks up, looks at them, and takes or kills them down.

Prints one JSON object: what was found in each step that was asked for, or what went wrong in it. The
tests look at that. The rules of the switches are installed by ovs-ofctl, in a controller's stead.
"""

import argparse
import contextlib
import io
import json
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx

import testbed.commands.shell as shell_command
from testbed.engines.mininet import plan as names
from testbed.engines.mininet.kernel import machine, namespaces, netem, netlink
from testbed.engines.mininet.kernel.netlink import Netlink
from testbed.engines.mininet.net import EmulatedNetwork, emulated_network
from testbed.engines.mininet.plan import Plan, PlannedLink
from testbed.engines.mininet.shell import interact
from testbed.engines.mininet.switches import openvswitch
from testbed.errors import UserError
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


def udp(net: EmulatedNetwork, node: int) -> socket.socket:
    """A socket of a host."""
    with namespaces.returning():
        namespaces.enter(net.namespaces[node])
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

    with (
        patch.object(machine, "prepare_namespace", prepare_and_capture),
        network(ring(4)) as net,
    ):
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


def state() -> dict[str, Any]:
    """What a run could leave behind."""
    processes, spaces = [], set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            if words:  # not a thread of the kernel's
                processes.append(words)
                spaces.add(os.stat(entry / "ns" / "net").st_ino)
    return {
        "interfaces": sorted(link["ifname"] for link in json.loads(run("ip", "-j", "link"))),
        "named": run("ip", "netns"),
        "processes": sorted(processes),
        "namespaces": sorted(spaces),
        "files": sorted(str(path) for path in machine.RUN.glob("causal-testbed-*")),
        "mounts": Path("/proc/mounts").read_text(),
        "environment": sorted(name for name in os.environ if name.startswith("OVS_")),
    }


def settle(before: dict[str, Any]) -> dict[str, Any]:
    """What differs from before, once the kernel had time to clear up."""
    for _ in range(50):
        after = state()
        if after == before:
            break
        time.sleep(0.1)
    return {key: [before[key], after[key]] for key in before if before[key] != after[key]}


def occupy(net: EmulatedNetwork) -> None:
    """Have all sorts of processes in the network, and a link to outside, which must vanish with it."""
    net.hosts[0].cmd("sleep 1000 &")
    net.switches[1].cmd("sleep 1000 &")
    net.hosts[1].popen(["sh", "-c", "trap '' TERM HUP INT; sleep 1000; sleep 1000"])
    words = f"ip link add probe{os.getpid()} netns 1 type veth peer name inside"
    run(*words.split())


def guard_of(pid: int) -> int:
    """The guard of a process: its child that has a session of its own."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[3] == entry.parent.name:
                return int(entry.parent.name)
    raise LookupError(f"process {pid} has no guard")


def unguarded() -> dict[str, Any]:
    """What is left of a network whose guard was killed before it ended."""
    before = state()
    with network(ring(3)) as net:
        os.kill(guard_of(os.getpid()), signal.SIGKILL)
        occupy(net)
    return settle(before)


def hold(plan: Plan) -> int:
    """A process that has a network and keeps it; returns when it is up."""
    ready, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(KeyboardInterrupt), network(plan) as net:
            occupy(net)
            if os.fork() == 0:  # as the processes of hosts are: it has all that its parent has
                signal.pause()
            os.write(say, b"up")
            while True:
                signal.pause()
        os._exit(0)
    os.close(say)
    assert os.read(ready, 2) == b"up"
    os.close(ready)
    return pid


def killed(number: int) -> dict[str, Any]:
    """What is left of a network whose process a signal ends."""
    before = state()
    pid = hold(ring(3))
    during = state()
    os.kill(pid, number)
    _, status = os.waitpid(pid, 0)
    return {
        "status": status,
        "appeared": sorted(key for key in before if before[key] != during[key]),
        "left": settle(before),
    }


def failed() -> dict[str, Any]:
    """What is left of a network that an exception ends: in use, and half made."""
    found: dict[str, Any] = {}
    before = state()
    with contextlib.suppress(ZeroDivisionError), network(ring(3)) as net:
        occupy(net)
        raise ZeroDivisionError
    found["in use"] = settle(before)
    unmade = patch.object(EmulatedNetwork, "_make_switches", None)
    with contextlib.suppress(TypeError), unmade, network(ring(3)):
        found["half made"] = "was made"
    found.setdefault("half made", settle(before))
    return found


def two_at_once() -> dict[str, Any]:
    """Two networks of the same plan; the one that is left must not notice the other's end."""
    before = state()
    other = hold(ring(3))
    with network(ring(3)) as net:
        replies = net.hosts[0].cmd("ping -c 1 -W 2", names.host_ip(2))
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
        time.sleep(1)
        replies += net.hosts[0].cmd("ping -c 1 -W 2", names.host_ip(2))
    return {"received": replies.count("1 received"), "left": settle(before)}


@contextlib.contextmanager
def heard() -> Iterator[io.StringIO]:
    """What Mininet says, which it does by its logger."""
    handler = logging.getLogger("mininet").handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(text := io.StringIO())
    try:
        yield text
    finally:
        handler.setStream(before)


def command_line() -> str:
    """What Mininet's command line says."""
    commands = (
        "nodes\nnet\nlinks\ndump\nh0 ping -c 1 h2\npingpair\npy h1.cmd('echo', 'from h1')\n"
        "link s0 s1 down\nlinks\nlink s0 s1 up\nswitch s1 stop\nswitch s1 start\ndpctl show\n"
        "h0 no-such-command\nexit\nh0 echo not reached\n"
    )
    with network(ring(3)) as net, heard() as text:
        interact(net, io.StringIO(commands))
        text.write(run("tc", "qdisc", "show", "dev", "s1-eth2"))
        return text.getvalue()


def shell() -> str:
    """What `testbed shell` says, with its own controller."""
    file = Path("/tmp/pair.toml")
    file.write_text(
        'name = "pair"\nprotocol = {name = "timestamp"}\n'
        'topology = {model = "line", nodes = 2}\nlinks = {delay_ms = 1}\n'
        "workload = {model = 'poisson', senders = 1}\n"
    )
    parser = argparse.ArgumentParser()
    shell_command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["shell", str(file)])
    before, sys.stdin = sys.stdin, io.StringIO("h0 ping -c 1 h1\nlink s0 s1 down\n")
    try:
        with heard() as text, contextlib.redirect_stdout(text):
            assert options.command(options) == 0
            return text.getvalue()
    finally:
        sys.stdin = before


def errors() -> dict[str, str]:
    """What is said when something does not work."""
    found: dict[str, str] = {}
    genuine = netem.requests

    def slower(index: int, wanted: dict[int, netem.Netem], name: str) -> Iterator[netlink.Request]:
        return genuine(index, {handle: netem.Netem(delay_ns=7) for handle in wanted}, name)

    others = patch.object(netem, "requests", slower)
    with others, contextlib.suppress(UserError), said(found, "other queues"), network(ring(2)):
        pass
    with Netlink() as kernel:  # the second is refused, and the last not: it shall be told
        try:
            kernel.ask([netlink.link_up(1), netlink.link_up(9999), netlink.link_up(1)])
        except netlink.NetlinkError as error:
            found["netlink"] = str(error)
    with network(ring(2)):
        with contextlib.suppress(UserError), said(found, "ovs-vsctl"):
            openvswitch.vsctl(["no-such-command"])
        with contextlib.suppress(UserError), said(found, "port"):
            openvswitch.vsctl(["add-port", "s0", "no-such-port"])
    numbers = openvswitch.port_numbers
    openvswitch.port_numbers = lambda: {**numbers(), "s1-eth2": 7}
    with contextlib.suppress(UserError), said(found, "port number"), network(ring(2)):
        pass
    openvswitch.port_numbers = numbers
    with contextlib.suppress(UserError), said(found, "no daemon"):
        os.environ["OVS_LOGDIR"] = os.environ["OVS_RUNDIR"] = "/nowhere"
        openvswitch.vsctl(["--timeout=1", "show"])
    return found


@contextlib.contextmanager
def said(found: dict[str, str], what: str) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        found[what] = str(error)
        raise


def netdev() -> list[int]:
    """Errors of a link where the kernel has no Open vSwitch, and packets pass through a process."""
    genuine, machine.datapath = machine.datapath, lambda: "netdev"
    try:
        return hop_errors(ring(2), [[74], [474], [1514]])[0]
    finally:
        machine.datapath = genuine


STEPS: dict[str, Callable[[], Any]] = {
    "timing": timing,
    "rough_timing": rough_timing,
    "queue": queue,
    "loss": loss,
    "chatter": chatter,
    "sigkill": lambda: killed(signal.SIGKILL),
    "sigterm": lambda: killed(signal.SIGTERM),
    "sigint": lambda: killed(signal.SIGINT),
    "failed": failed,
    "unguarded": unguarded,
    "two_at_once": two_at_once,
    "command_line": command_line,
    "shell": shell,
    "errors": errors,
    "netdev": netdev,
}


def main() -> None:
    found = {}
    for step in sys.argv[1:]:
        try:
            found[step] = STEPS[step]()
        except Exception:  # of interest to the tests of this step only
            found[step] = {"error": traceback.format_exc()}
        print(step, "done", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
