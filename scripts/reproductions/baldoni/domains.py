"""Footnote 5 of Baldoni et al.: groups by domain of the network, on a transit–stub graph.

Processes have numbers in any order, as in a real network: the generator's own order would put
neighbours into one group by number as well. Counted are packets on links between transit nodes.
"""

import random
from argparse import Namespace
from itertools import product
from typing import NamedTuple

import networkx as nx
from typing_extensions import override

from scripts.reproductions.baldoni.points import Seeds
from scripts.reproductions.chapter import Cells, Table
from scripts.reproductions.intervals import cell
from scripts.reproductions.running import EXPERIMENTS, compute
from testbed.check import check_events
from testbed.engines.simulate.engine import Simulation
from testbed.errors import UserError
from testbed.experiment import Scenario, load
from testbed.experiment.network import Network
from testbed.fuzz.trial import LimitedLog

FILE = EXPERIMENTS / "domains.toml"
GROUPED_ON = (2, 3)  # levels


class Grouped(NamedTuple):
    """By what processes are grouped, and on how many levels."""

    groups: str
    levels: int

    @override
    def __str__(self) -> str:
        return f"by {self.groups}, {self.levels} levels"


class Crossed(NamedTuple):
    """Figures of each seed."""

    transit: Seeds  # packets on transit links, a message
    hops: Seeds  # a message
    delay: Seeds  # ms


def measured(options: Namespace) -> dict[Grouped, Crossed]:
    """Run all points."""
    points = [Grouped(*each) for each in product(("numbers", "domains"), GROUPED_ON)]
    pieces = {f"{p}, seed {s}": (p, s) for p in points for s in range(1, options.seeds + 1)}
    found = compute("baldoni-domains", run, pieces, options, ["daisy"])
    of_each = {p: [found[name] for name, (q, _) in pieces.items() if p == q] for p in points}
    return {point: Crossed(*zip(*runs, strict=True)) for point, runs in of_each.items()}


def table(found: dict[Grouped, Crossed]) -> Table:
    """What crosses the network, by number and by domain."""
    heads = ("", "packets on transit links a message", "hops a message", "delay, ms")
    rows: list[Cells] = [(str(point), *map(cell, its)) for point, its in found.items()]
    return Table("domains", "Groups by domain (footnote 5)", heads, rows)


def run(piece: tuple[Grouped, int]) -> tuple[float, ...]:
    """The figures of one run."""
    point, seed = piece
    scenario = shuffled(Scenario.of(*load(FILE, seed=seed, protocol=protocol(point))))
    log = LimitedLog(scenario.most_deliveries)
    simulation = Simulation(scenario, log)
    simulation.run(lambda stage, done, of: None)
    if not check_events(range(scenario.network.processes), log.events).ok:
        raise UserError(f"{FILE}: the order of seed {seed} is violated")
    summary, links = simulation.summary(), simulation.network.links
    names = nx.get_node_attributes(scenario.network.graph, "name")
    crossed = [
        link.packets for ends, link in links.items() if all(names[n][0] == "T" for n in ends)
    ]
    messages = summary["multicasts"]
    return sum(crossed) / messages, summary["hops"] / messages, summary["delay_ms_mean"]


def protocol(point: Grouped) -> dict[str, object]:
    """The daisy of a point."""
    times = {"heartbeat_ms": 200, "patience_ms": 2000, "grace_ms": 5000}
    return {"name": "daisy", **point._asdict(), "group_size": 4, **times}


def shuffled(scenario: Scenario) -> Scenario:
    """The same network with its processes numbered in any order."""
    graph = scenario.network.graph
    order = random.Random(scenario.experiment.seed).sample(range(len(graph)), len(graph))
    numbered: nx.Graph[int] = nx.Graph(**graph.graph)
    numbered.add_nodes_from((n, graph.nodes[old]) for n, old in enumerate(order))
    new = {old: n for n, old in enumerate(order)}
    numbered.add_edges_from((new[a], new[b], link) for a, b, link in graph.edges(data=True))
    return Scenario.on(scenario.experiment, Network(numbered, None))
