"""How long an emulated network takes to come up: ours, and the same network as Mininet makes it.

Both run in one guest of the virtual engine, one after the other: hosts, switches, links with delay and
bandwidth, and a rule in each switch for each host. Ours sets links, addresses and queues by netlink
in bulk, and the rules by the controller of an experiment. Mininet's own way is a shell for each node,
``ip``, ``ifconfig`` and ``tc`` commands for each end of a link (TCLink), and ``ovs-ofctl`` for each
switch.

Then a whole experiment on that network, from the command to its first message: boot, network, rules,
capture, host processes and warm flows.

In a guest time stands still while something computes. So the time is taken outside, when the line that
reports the end of a stage arrives.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from pathlib import Path
from typing import Any

from scripts import parser
from testbed.engines.mininet.plan import Plan, build, host_ip, host_mac
from testbed.engines.virtual.guest import GuestSettings, run_guest
from testbed.experiment import Experiment, Network, build_network, parse
from testbed.run import run_experiment
from testbed.topologies.routing import shortest_path_trees

ROOT = Path(__file__).parents[2]
OURS = ("ours: network", "ours: rules")
STOCK = ("Mininet: network", "Mininet: rules")


def main() -> None:
    """Measure each size, and print a table for it."""
    command = parser("bench emulation", __doc__)
    command.add_argument("--nodes", type=int, nargs="+", default=[16, 64])
    command.add_argument("--ours", action="store_true", help="only ours: Mininet's takes minutes")
    command.add_argument("--inside", type=int, help=SUPPRESS)
    options = command.parse_args()
    if options.inside is not None:
        inside(options.inside, options.ours)
        return
    for nodes in options.nodes:
        show(nodes, measure(nodes, options.ours))
        print(f"  command to first message{first_message(nodes):>8.1f} s\n", flush=True)


class _FirstMessage(Exception):  # noqa: N818
    """The first message has been sent."""


def first_message(nodes: int) -> float:
    """Seconds from the command of an experiment to its first message."""

    def stop(stage: str, done: int, of: int) -> None:
        if stage == "emulate":
            raise _FirstMessage

    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as runs:
        try:
            run_experiment(experiment_of(nodes), Path(runs), stop)
        except _FirstMessage:
            return time.monotonic() - begun
    sys.exit("the experiment ended before its first message")


def network_of(nodes: int) -> Network:
    """The network of the experiment."""
    return build_network(experiment_of(nodes))


def experiment_of(nodes: int) -> Experiment:
    """A random network in which a node has about four links."""
    document = {
        "name": "bench-emulation",
        "protocol": {"name": "overlay"},
        "topology": {"model": "pure-random", "nodes": nodes, "edge_probability": 4 / nodes},
        "links": {"delay_ms": [0.0, 5.0], "bandwidth_mbit": 10},
        "engine": "virtual",
    }
    return parse(document, Path("bench-emulation"))[0]


class Stopwatch:
    """The seconds of each stage, taken when the guest prints the line that reports its end."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._text = ""
        self._last = time.monotonic()

    def __call__(self, data: bytes) -> None:
        """Take output of the guest, whole lines or not."""
        self._text += data.decode()
        *lines, self._text = self._text.split("\n")
        for line in lines:
            now = time.monotonic()
            self.seconds[line] = now - self._last
            self._last = now
            print(f"  {line:<24}{self.seconds[line]:>8.1f} s", file=sys.stderr, flush=True)


def measure(nodes: int, only_ours: bool) -> dict[str, float]:
    """The seconds that each stage took."""
    print(f"{nodes} nodes, {len(network_of(nodes).graph.edges)} links", file=sys.stderr)
    command = [sys.executable, "-m", "scripts.benchmarks.emulation", "--inside", str(nodes)]
    if only_ours:
        command.append("--ours")
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as results:
        settings = GuestSettings(results=Path(results), cwd=ROOT, stdout=stopwatch, stall_s=600)
        result = run_guest(command, settings)
    if result.returncode:
        sys.exit(f"the benchmark failed in the guest with status {result.returncode}")
    return stopwatch.seconds


def show(nodes: int, seconds: dict[str, float]) -> None:
    """Print a table of both, and the ratio."""
    compared = all(stage in seconds for stage in STOCK)
    print(f"{nodes} nodes{'ours':>18}" + f"{'Mininet':>12}{'ratio':>8}" * compared)
    rows = {"network": slice(0, 1), "rules": slice(1, 2), "both": slice(0, 2)}
    for name, stages in rows.items():
        ours, stock = (sum(seconds.get(s, 0) for s in both[stages]) for both in (OURS, STOCK))
        ratio = f"{stock:>10.1f} s{stock / ours:>8.1f}" * compared
        print(f"  {name:<10}{ours:>12.1f} s{ratio}")


def inside(nodes: int, only_ours: bool) -> None:
    """In the guest: bring up both, and report the end of each stage."""
    content = network_of(nodes).to_json()
    plan = build(content)
    import_all()
    say("start")
    bring_up_ours(plan, content)
    if not only_ours:
        bring_up_stock(plan)
    os._exit(0)  # taking it down is not measured, and the guest ends anyway


def say(stage: str) -> None:
    """Report the end of a stage to the outside."""
    print(stage, flush=True)


def import_all() -> None:
    """Import what both need, so that it is in the time of neither."""
    for module in ("mininet.net", "testbed.engines.mininet.net"):
        importlib.import_module(module)


def bring_up_ours(plan: Plan, content: dict[str, Any]) -> None:
    """Bring the network up as an experiment does, until the rules are in place."""
    from testbed.engines.mininet.controller.controller import Controller
    from testbed.engines.mininet.net import emulated_network

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "network.json")
        file.write_text(json.dumps(content))
        with emulated_network(plan):
            say(OURS[0])
            with Controller(file, Path(directory)) as controller:
                controller.wait_until_ready()
                say(OURS[1])
    say("ours: gone")


def bring_up_stock(plan: Plan) -> None:
    """Bring the network up as Mininet's documentation has it."""
    from mininet.link import TCLink
    from mininet.net import Mininet
    from mininet.node import OVSSwitch
    from mininet.topo import Topo

    from testbed.engines.mininet.switches.daemons import open_vswitch

    topo = Topo()
    for node in range(plan.nodes):
        topo.addHost(f"h{node}", ip=f"{host_ip(node)}/16", mac=host_mac(node))
        topo.addSwitch(f"s{node}", dpid=f"{node + 1:x}")
        topo.addLink(f"h{node}", f"s{node}", port1=0, port2=1)
    for link in plan.links:
        ports = {"port1": plan.ports[link.a][link.b], "port2": plan.ports[link.b][link.a]}
        shape = {"bw": link.bandwidth_bps / 1e6, "delay": f"{link.delay_ns / 1e6}ms"}
        topo.addLink(f"s{link.a}", f"s{link.b}", **ports, **shape)
    with open_vswitch():
        net = Mininet(topo, link=TCLink, switch=OVSSwitch, controller=None)
        net.start()
        say(STOCK[0])
        install_by_commands(plan)
        say(STOCK[1])


def install_by_commands(plan: Plan) -> None:
    """Install the rules by one ``ovs-ofctl`` for each switch."""
    import networkx as nx

    trees = shortest_path_trees(nx.Graph([(link.a, link.b) for link in plan.links]))
    for node, ports in enumerate(plan.ports):
        rules = [f"ip,nw_dst={host_ip(node)},actions=mod_dl_dst:{host_mac(node)},output:1"]
        for other, tree in enumerate(trees):
            if other != node:
                rules.append(f"ip,nw_dst={host_ip(other)},actions=output:{ports[tree[node]]}")
        command = ["ovs-ofctl", "add-flows", f"s{node}", "-"]
        subprocess.run(command, input="\n".join(rules), text=True, check=True)


if __name__ == "__main__":
    main()
