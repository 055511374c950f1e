"""Footnote 5 of Baldoni et al.: groups by domain of the network, on a transit–stub graph.

Processes have numbers in any order, as in a real network: the generator's own order would put
neighbours into one group by number as well. Counted are packets on links between transit nodes.
"""

import os
import random
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

from scripts.reproductions import Claim, show_claims, show_table
from scripts.reproductions.baldoni.points import Seeds
from scripts.reproductions.intervals import is_less, shown
from testbed.check import check_events
from testbed.commands.terminal import progress_bar
from testbed.engines.simulate.engine import Simulation
from testbed.errors import UserError
from testbed.experiment import Scenario, load
from testbed.experiment.network import Network
from testbed.fuzz.trial import LimitedLog

FILE = Path(__file__).parents[2] / "experiments" / "domains.toml"
LEVELS = (2, 3)


class Grouped(NamedTuple):
    """By what processes are grouped, and on how many levels."""

    groups: str
    levels: int


class Crossed(NamedTuple):
    """Figures of each seed."""

    transit: Seeds  # packets on transit links, a message
    hops: Seeds  # a message
    delay: Seeds  # ms


CLAIMS: tuple[Claim[Any], ...] = tuple(
    Claim(("footnote 5", f"groups by domain: {words}, {levels} levels"),
          is_less(figure, Grouped("domains", levels), Grouped("numbers", levels)))
    for levels in LEVELS
    for figure, words in (("transit", "less on transit links"), ("delay", "less delay"))
)  # fmt: skip


def reproduce(seeds: int) -> None:
    """Run all points, show what was measured, and judge the claims."""
    points = [Grouped(*each) for each in product(("numbers", "domains"), LEVELS)]
    runs = list(product(points, range(1, seeds + 1)))
    measured: list[tuple[float, ...]] = []
    with progress_bar("baldoni") as progress, ProcessPoolExecutor(os.cpu_count()) as pool:
        for figures in pool.map(run, *zip(*runs, strict=True)):
            measured.append(figures)
            progress("groups by domain", len(measured), len(runs))
    found = {
        point: Crossed(*zip(*measured[n * seeds : (n + 1) * seeds], strict=True))
        for n, point in enumerate(points)
    }
    rows = [(f"by {p.groups}, {p.levels} levels", *map(shown, found[p])) for p in points]
    show_table(("", "packets on transit links a message", "hops a message", "delay, ms"), rows)
    show_claims(("section", "the paper"), CLAIMS, found)


def run(point: Grouped, seed: int) -> tuple[float, ...]:
    """The figures of one run."""
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
