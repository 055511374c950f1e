"""How many crashes an overlay survives: runs in which processes are dead from the beginning.

The worst place for crashes is around a process with the fewest neighbours. So some or all of those are
killed; ten others send a message each, and what the survivors deliver is counted.
"""

import random
from math import ceil, log2
from typing import Any, NamedTuple

from scripts.reproductions.friedman.points import CUBE, FILE, HYPERCAST, ODD_SIZE
from testbed.check.memory import MemoryLog
from testbed.engines.simulate.engine import Simulation
from testbed.experiment import Scenario, parse
from testbed.progress import silent
from testbed.topologies import Graph
from testbed.topologies.connectivity import node_connectivity
from testbed.topologies.overlays import OVERLAYS


class Case(NamedTuple):
    """An overlay of some size, and how many of a process's neighbours crash."""

    overlay: str
    nodes: int
    crashes: int


class Survived(NamedTuple):
    """What was to be delivered by those that are alive, and what was."""

    connectivity: int
    least_degree: int
    due: int
    delivered: int


def graph(overlay: str, nodes: int) -> Graph:
    """An overlay that does not depend on chance."""
    return OVERLAYS[overlay]().generate(nodes, random.Random(0))


def cases(sizes: list[int]) -> list[Case]:
    """What is tried: one crash less than the connectivity, as many, log n, and fewer than log n."""
    found = []
    for n in sizes:
        connectivity = node_connectivity(graph(CUBE, n))
        tried = {connectivity - 1, connectivity, round(log2(n)), ceil(log2(n)) - 1}
        found += [Case(CUBE, n, crashes) for crashes in sorted(tried)]
    return [*found, Case(CUBE, ODD_SIZE, 1), Case(HYPERCAST, ODD_SIZE, 1)]


def survived(case: Case) -> Survived:
    """Kill neighbours of a process with the fewest, and see who is reached."""
    overlay = graph(case.overlay, case.nodes)
    lonely = min(overlay, key=overlay.degree)
    dead = sorted(overlay[lonely])[: case.crashes]
    document: dict[str, Any] = {
        "name": "friedman-crashes",
        "seed": 1,
        "protocol": {"name": "overlay"},
        "overlay": {"model": case.overlay},
        "topology": {"model": "star", "nodes": case.nodes},
        "workload": {"model": "bursts", "senders": 10, "burst": 1, "duration_ms": 1.0},
        "fault": [{"kind": "crash", "node": node} for node in dead],
    }
    simulation = Simulation(Scenario.of(parse(document, FILE)[0]), MemoryLog())
    simulation.run(silent)
    meter = simulation.meter
    due = meter.multicasts * (case.nodes - len(dead))
    return Survived(node_connectivity(overlay), overlay.degree[lonely], due, meter.deliveries)
