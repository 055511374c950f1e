"""Link-hops per second: this simulator with the Overlay protocol on top, against SimPy and ns-3.

SimPy runs the same experiment: the same graph, links, routes, overlay and bursts, flooded over
store-and-forward links with FIFO queues. Its model is written as its documentation would have it: a
process for each direction of a link that takes packets from a Store, and one for each packet that
propagates. It floods with the least code that does so, while ours runs the protocol's own code, writes
the event log and keeps all measures. Both must count the same hops.

ns-3, where Debian's libns3-dev is installed, floods a hypercube over a ring of 32 nodes, with its own
UDP, IP and routing; where copies arrive at the same time, it may send a few over other links than ours.

Then gossip among thousands of processes: time, and memory per process. Seconds are of processor.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import simpy

from scripts import parser
from scripts.benchmarks import timed
from scripts.benchmarks._ring import has_ns3, ns3_rates, ring
from testbed.engines.simulate.engine import Simulation
from testbed.engines.simulate.links import COMPILED
from testbed.experiment import Experiment, Scenario, parse
from testbed.packets.framing import frames
from testbed.runs.events import EventLog
from testbed.topologies.routing import shortest_path_tree

NS_PER_S = 1_000_000_000
Events = Generator[simpy.Event, Any, None]


def main() -> None:
    """Measure all that is asked for."""
    command = parser("bench simulator", __doc__)
    command.add_argument("--nodes", type=int, default=100)
    command.add_argument("--milliseconds", type=float, default=2, help="of bursts")
    command.add_argument("--rounds", type=int, default=3)
    gossip = [1000, 3000, 10_000]
    command.add_argument(
        "--gossip", type=int, nargs="*", default=gossip, help="numbers of processes"
    )
    options = command.parse_args()
    print(f"the simulator's core is {'compiled' if COMPILED else 'Python'}", flush=True)
    flood(options.nodes, options.milliseconds, options.rounds)
    if has_ns3():
        on_ring(options.rounds)
    for processes in options.gossip:
        among(processes)


def flood(nodes: int, milliseconds: float, rounds: int) -> None:
    """Run this simulator and SimPy in turn, and print the best rate of each and the ratio."""
    scenario = Scenario.of(flooding(nodes, milliseconds))
    ours, theirs = [], []
    for _ in range(rounds):
        seconds, hops = timed(partial(run_ours, scenario), time.process_time)
        ours.append(hops / seconds)
        seconds, simpy_hops = timed(partial(run_simpy, scenario), time.process_time)
        theirs.append(simpy_hops / seconds)
        assert hops == simpy_hops, f"{hops} hops here, {simpy_hops} in SimPy"
    print(f"Overlay on {nodes} nodes, {hops:,} link-hops; best of {rounds} rounds")
    show(ours, f"SimPy {simpy.__version__}, flooding only", theirs)


def on_ring(rounds: int) -> None:
    """The same against ns-3."""
    scenario = Scenario.of(ring())
    ours = []
    for _ in range(rounds):
        seconds, hops = timed(partial(run_ours, scenario), time.process_time)
        ours.append(hops / seconds)
    print(f"Overlay on a ring of {scenario.network.processes} nodes, {hops:,} link-hops")
    show(ours, "ns-3, UDP over IP", ns3_rates(rounds))


def show(ours: list[float], name: str, theirs: list[float]) -> None:
    """Print the best rates."""
    print(f"  this simulator, protocol on top   {max(ours):>12,.0f} link-hops/s")
    print(f"  {name:<34}{max(theirs):>12,.0f} link-hops/s")
    print(f"  ratio                             {max(ours) / max(theirs):>12.1f}", flush=True)


def among(processes: int) -> None:
    """Gossip among so many processes."""
    words = [sys.executable, "-m", "scripts.benchmarks._gossip", str(processes)]
    told = json.loads(subprocess.check_output(words))
    each = (told["bytes"] - told["before"]) / processes
    print(
        f"gossip among {processes:,} processes: {told['deliveries']:,} deliveries, "
        f"{told['hops']:,} link-hops in {told['seconds']:.0f} s; {told['bytes'] / 1e9:.2f} GB, "
        f"{each / 1e3:,.0f} kB a process",
        flush=True,
    )


def flooding(nodes: int, milliseconds: float) -> Experiment:
    """The paper's network and bursts."""
    document = {
        "name": "bench-simulator",
        "protocol": {"name": "overlay"},
        "topology": {"model": "pure-random", "nodes": nodes, "edge_probability": 4 / nodes},
        "links": {"delay_ms": [0.0, 1.0], "bandwidth_mbit": 10},
        "workload": {"model": "bursts", "duration_ms": milliseconds},
    }
    return parse(document, Path("bench-simulator"))[0]


def run_ours(scenario: Scenario) -> int:
    """The hops of the simulator as ``testbed run`` uses it."""
    with tempfile.TemporaryDirectory() as directory:
        with EventLog(Path(directory) / "nodes.jsonl") as log:
            simulation = Simulation(scenario, log)
            simulation.run(lambda stage, done, of: None)
        return int(simulation.summary()["hops"])


class SimpyLink:
    """One direction of a link as SimPy's documentation would have it."""

    def __init__(self, env: simpy.Environment, delay: int, bps: int) -> None:
        self.env = env
        self.delay = delay
        self.bps = bps
        self.queue = simpy.Store(env)
        self.packets = 0
        env.process(self.transmit())

    def transmit(self) -> Events:
        """Send packets one after the other."""
        while True:
            packet, size, arrive = yield self.queue.get()
            self.packets += 1
            yield self.env.timeout(size * 8 * NS_PER_S // self.bps)
            self.env.process(self.propagate(packet, arrive))

    def propagate(self, packet: Any, arrive: Callable[[Any], None]) -> Events:
        """Let a packet arrive after the propagation delay."""
        yield self.env.timeout(self.delay)
        arrive(packet)


def run_simpy(scenario: Scenario) -> int:
    """The hops of the same flood over the same links in SimPy."""
    network = scenario.network
    env = simpy.Environment()
    links = {}
    for a, b, data in network.graph.edges(data=True):
        for ends in ((a, b), (b, a)):
            links[ends] = SimpyLink(env, data["delay_ns"], data["bandwidth_bps"])
    processes = range(network.processes)
    trees = [shortest_path_tree(network.graph, root, "hops") for root in processes]
    neighbours = [network.neighbours(me) for me in processes]
    seen = [[0] * network.processes for _ in processes]
    (size,) = frames(32 + scenario.experiment.workload.payload_bytes, 1500, "udp")

    def forward(packet: tuple[int, int, int, int, int]) -> None:
        source, seq, sender, peer, at = packet
        if at == peer:
            receive(source, seq, sender, peer)
            return
        towards = trees[peer][at]
        links[at, towards].queue.put(((source, seq, sender, peer, towards), size, forward))

    def receive(source: int, seq: int, sender: int, me: int) -> None:
        if seq <= seen[me][source]:
            return
        seen[me][source] = seq
        flood(source, seq, me, sender)

    def flood(source: int, seq: int, me: int, but: int | None) -> None:
        for peer in neighbours[me]:
            if peer != but:
                forward((source, seq, me, peer, me))

    def application() -> Events:
        for at, node, *_ in scenario.sends:
            if at > env.now:
                yield env.timeout(at - env.now)
            seen[node][node] += 1
            flood(node, seen[node][node], node, None)

    env.process(application())
    env.run()
    return sum(link.packets for link in links.values())


if __name__ == "__main__":
    main()
