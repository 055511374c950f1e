"""How long emulation takes: kernel by kernel, as networks grow, and against plain Mininet.

1. The default experiment on each kernel that is built (``scripts/kernel 6.12`` builds the older one),
   with programs that are traced and, where the kernel can do without, not. Event logs must be the same.
2. A burst of the paper on networks of up to 600 nodes: what each stage of a run takes, and all of them
   for each node and link. The simulator must count the same.
3. The same network as Mininet makes it, in one guest after ours: hosts, switches, links with delay and
   bandwidth, and a rule in each switch for each host. Ours sets links, addresses and queues by netlink
   in bulk, and the rules by the controller of an experiment. Mininet's way is a shell for each node,
   ``ip``, ``ifconfig`` and ``tc`` commands for each end of a link (TCLink), and ``ovs-ofctl`` for each
   switch.

In a guest time stands still while something computes. So the time is taken outside, when the line that
reports the end of a stage arrives. CPU time is the guest's alone, and other load changes it little.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts import parser
from testbed.engines.mininet.plan import Plan, build, host_ip, host_mac
from testbed.engines.virtual.engine import VirtualEngine
from testbed.engines.virtual.guest import GuestSettings, run_guest
from testbed.engines.virtual.kernel import Kernel, built_kernels
from testbed.experiment import Experiment, Network, Scenario, build_network, load, parse
from testbed.progress import silent
from testbed.run import prepare, run_experiment
from testbed.topologies.routing import shortest_path_trees

ROOT = Path(__file__).parents[2]
DEFAULT = ROOT / "scripts" / "experiments" / "overlay-vs-timestamp.toml"
PARTS = ("kernels", "growth", "mininet")
SIZES = {"growth": [16, 100, 300, 600], "mininet": [16, 64]}
LINKS_PER_NODE = 6  # of 600 nodes with the edge probability 0.02
# Not the hops: an Overlay process sends no copy back to whom it heard a message from first, and in a
# network whose links are full that differed in some cases (of 1.5 million hops, a thousand).
SAME = ("multicasts", "deliveries", "copies")
OURS = ("ours: network", "ours: rules")
STOCK = ("Mininet: network", "Mininet: rules")


def main() -> None:
    """Measure the parts that are asked for, and print a table of each."""
    command = parser("bench emulation", __doc__)
    command.add_argument("--only", choices=PARTS, help="one part; Mininet's own takes minutes")
    command.add_argument("--nodes", type=int, nargs="+", help="sizes other than the usual ones")
    command.add_argument("--inside", type=int, help=SUPPRESS)
    options = command.parse_args()
    if options.inside is not None:
        inside(options.inside)
        return
    for part in (options.only,) if options.only else PARTS:
        if part == "kernels":
            compare_kernels()
        for nodes in (options.nodes or SIZES[part]) if part in SIZES else ():
            {"growth": grow, "mininet": compare_with_mininet}[part](nodes)


def compare_kernels() -> None:
    """Run the default experiment on every kernel in every mode; the oldest comes first."""
    print(
        f"{'kernel':<26}{'mode':<10}{'protocol':<12}{'wall':>8}{'ratio':>8}{'CPU':>8}{'ratio':>8}"
    )
    for experiment in load(DEFAULT, engine="virtual"):
        oldest: tuple[dict[str, Any], dict[str, bytes]] | None = None
        for kernel in reversed(built_kernels()):
            for trusted in (False, True) if kernel.release.can_leave_untraced else (False,):
                guest, logs = default_run(experiment, kernel, trusted)
                oldest = oldest or (guest, logs)
                times = [
                    f"{guest[time]:>6.1f} s{guest[time] / oldest[0][time]:>8.2f}"
                    for time in ("wall_s", "cpu_s")
                ]
                print(
                    f"{guest['kernel']:<26}{guest['mode']:<10}{experiment.protocol.name:<12}"
                    + "".join(times),
                    flush=True,
                )
                if logs != oldest[1]:
                    sys.exit("the event logs differ")
    print(f"event logs are identical; load {os.getloadavg()[0]:.1f}\n")


def default_run(
    experiment: Experiment, kernel: Kernel, trusted: bool
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a run says of its guest, and its event logs."""
    scenario = Scenario.of(experiment)
    with tempfile.TemporaryDirectory() as runs:
        with prepare(scenario, Path(runs)) as directory:
            VirtualEngine(trusted=trusted, kernel=kernel).run(scenario, directory, silent)
        logs = {file.name: file.read_bytes() for file in (directory.path / "events").iterdir()}
    return directory.manifest["guest"], logs


class Stages:
    """The seconds until each stage of a run is first heard of."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}

    def __call__(self, stage: str, done: int, of: int) -> None:
        """Take in progress of a run; that of the network has two ends."""
        self.began.setdefault("rest" if done and stage == "network" else stage, time.monotonic())


def grow(nodes: int) -> None:
    """Run a millisecond of the papers' bursts on both protocols, and print what it takes."""
    for protocol in ("overlay", "timestamp"):
        experiment = experiment_of(nodes, protocol)
        stages = Stages()
        with tempfile.TemporaryDirectory() as runs:
            begun = time.monotonic()
            done = run_experiment(experiment, Path(runs), stages)
            simulated = run_experiment(replace(experiment, engine="simulate"), Path(runs), silent)
        if any(done.summary[key] != simulated.summary[key] for key in SAME):
            sys.exit(f"{protocol}, {nodes} nodes: emulation and simulation do not count the same")
        began = stages.began
        network, hosts = began["rest"] - began["network"], began["emulate"] - began["rest"]
        guest, links = done.manifest["guest"], network_of(nodes).graph.number_of_edges()
        print(
            f"{nodes:>4} nodes, {links:>5} links, {protocol:<10}{done.summary['hops']:>10,} hops "
            f"(simulated {simulated.summary['hops']:,}): "
            f"boot {began['network'] - begun:.0f} s, network {network:.0f} s, hosts {hosts:.0f} s, "
            f"in all {guest['wall_s']:.0f} s, {guest['cpu_s']:.0f} s of CPU, "
            f"{1000 * guest['cpu_s'] / (nodes + links):.0f} ms for each node and link; "
            f"{done.summary['fidelity']}, {done.verdict.verdict}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def network_of(nodes: int) -> Network:
    """The network of an experiment."""
    return build_network(experiment_of(nodes))


def experiment_of(nodes: int, protocol: str = "overlay") -> Experiment:
    """A random network in which a node has as many links at any size, and one burst of messages."""
    probability = min(1.0, 2 * LINKS_PER_NODE / nodes)
    document = {
        "name": "bench-emulation",
        "protocol": {"name": protocol},
        "topology": {"model": "pure-random", "nodes": nodes, "edge_probability": probability},
        "workload": {"model": "bursts", "duration_ms": 1},
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


def compare_with_mininet(nodes: int) -> None:
    """Bring the same network up in both ways, and print the seconds of each stage and the ratio."""
    print(f"{nodes} nodes, {len(network_of(nodes).graph.edges)} links", file=sys.stderr)
    command = [sys.executable, "-m", "scripts.benchmarks.emulation", "--inside", str(nodes)]
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as results:
        settings = GuestSettings(
            results=Path(results),
            trusted=True,
            cwd=ROOT,
            readable=[ROOT / "scripts"],
            stdout=stopwatch,
            stall_s=600,
        )
        result = run_guest(command, settings)
    if result.returncode:
        sys.exit(f"the benchmark failed in the guest with status {result.returncode}")
    print(f"{nodes} nodes{'ours':>18}{'Mininet':>12}{'ratio':>8}")
    rows = {"network": slice(0, 1), "rules": slice(1, 2), "both": slice(0, 2)}
    for name, stages in rows.items():
        ours, stock = (sum(stopwatch.seconds[s] for s in both[stages]) for both in (OURS, STOCK))
        print(f"  {name:<10}{ours:>12.1f} s{stock:>10.1f} s{stock / ours:>8.1f}", flush=True)


def inside(nodes: int) -> None:
    """In the guest: bring up both, and report the end of each stage."""
    content = network_of(nodes).to_json()
    plan = build(content)
    import_all()
    say("start")
    bring_up_ours(plan, content)
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
