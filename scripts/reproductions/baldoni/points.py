"""What the reproduction of Baldoni et al. runs and measures, and the formula of section 3.3."""

from argparse import Namespace
from math import ceil, nan
from typing import Any, NamedTuple

from typing_extensions import override

from scripts.reproductions.running import EXPERIMENTS, Row
from testbed.experiment import Experiment, parse, read_document
from testbed.experiment.seeds import stream
from testbed.protocols.daisy.tree import GroupTree, daisy

FILE = EXPERIMENTS / "baldoni.toml"
SIZES = (8, 16, 32, 64, 128, 256)
LEVELS = (2, 3, 4)
DAISIES = {levels: f"daisy, {levels} levels" for levels in LEVELS}
MATRIX = "rst"
OTHERS = ("timestamp", MATRIX, "ks")
MATRIX_FITS = 127  # processes: larger matrices, of 4n² bytes, do not fit into a datagram
CURVES = (*DAISIES.values(), *OTHERS)
WAIT, ALL, PIGGYBACK = "wait-stable", "broadcast-all", "piggyback"
ALTERNATIVES = {WAIT: "a. wait", ALL: "b. broadcast", PIGGYBACK: "c. piggyback"}
PLAIN, SAFE = "section 3.1", "section 3.1, safe"
EARLY, TO_ONE, TO_TWO = (
    "1. relayed early", "2. to recipients, k = 1", "2. to recipients, k = 2"
)  # fmt: skip
SERVER = "3. through the server"
VARIANTS: dict[str, dict[str, Any]] = {
    PLAIN: {"safe": False},
    SAFE: {},
    EARLY: {"safe": False, "early": True},
    TO_ONE: {"inside": "recipients", "resilience": 1},
    TO_TWO: {"inside": "recipients", "resilience": 2},
    SERVER: {"inside": "server"},
}
VARIED = 64  # processes on two levels, for the optimisations of section 3.4 and other group sizes
GROUP_SIZES = (2, 4, 6, 8, 11, 16, 32)
LOADED = 16  # processes under load, for the alternatives of section 2.3
LOADS = (100, 300, 1000)  # messages a second, of all processes together
BROADCAST_TO = (64, 128)  # processes, for the alternatives under little load
DESTINATIONS = 3
ENOUGH = 20  # messages of each process, so that the logs of KS fill
FIXED = 16 + 4 * DESTINATIONS  # bytes of control information besides the vector


class Point(NamedTuple):
    """A protocol or a variant of the daisy, in a system of some size, under a load."""

    name: str
    nodes: int
    per_s: int = LOADS[0]
    group_size: int = 0  # 0: groups on all levels have about the same size

    @override
    def __str__(self) -> str:
        sized = f", groups of {self.group_size}" if self.group_size else ""
        return f"{self.name} ({self.nodes} processes, {self.per_s}/s{sized})"


Seeds = tuple[float, ...]  # one number for each seed


class Measured(NamedTuple):
    """The figures of one point."""

    control: Seeds  # bytes a copy of a message
    copies: Seeds  # of a message
    broadcasts: Seeds  # a message
    datagrams: Seeds  # a message
    delay: Seeds  # ms
    within: Seeds  # ms
    across: Seeds
    formula: Seeds  # broadcasts a message, by section 3.3
    vector: Seeds  # bytes a copy, by section 3.3


Found = dict[Point, Measured]


def parts(sizes: list[int]) -> dict[str, list[Point]]:
    """The points of each part of the reproduction."""
    loaded = [(name, load) for name in (PLAIN, SAFE, *ALTERNATIVES) for load in LOADS]
    alone = [(name, nodes) for name in (SAFE, *ALTERNATIVES) for nodes in BROADCAST_TO]
    return {
        "curves": [Point(name, n) for name in CURVES for n in sizes if fits(name, n)],
        "optimisations": [Point(name, VARIED) for name in VARIANTS],
        "group-sizes": [Point(SAFE, VARIED, group_size=size) for size in GROUP_SIZES],
        "alternatives": [
            *(Point(name, LOADED, load) for name, load in loaded),
            *(Point(name, nodes) for name, nodes in alone),
        ],
    }


def fits(name: str, nodes: int) -> bool:
    """Whether a datagram holds a message of this protocol."""
    return name != MATRIX or nodes <= MATRIX_FITS


def experiment(point: Point, seed: int, options: Namespace) -> Experiment:
    """The run of a point with one seed."""
    name, nodes, per_s, size = point
    document = read_document(FILE)
    document["seed"] = seed
    document["topology"]["nodes"] = nodes
    messages = max(options.messages, per_s)  # a second at least
    document["workload"] |= {
        "messages": max(messages, ENOUGH * nodes) if name == "ks" else messages,
        "mean_interval_ms": 1000.0 * nodes / per_s,
        "destinations_fraction": DESTINATIONS / nodes,
    }
    if name in ALTERNATIVES:
        daisies = ("levels", "group_size")
        times = {key: v for key, v in document["protocol"].items() if key not in daisies}
        document["protocol"] = times | {"name": name}
    elif name in OTHERS:
        document["protocol"] = {"name": name}
    else:
        levels = int(name.split()[1]) if name in DAISIES.values() else 2
        size = size or group_size(nodes, levels)
        document["protocol"] |= {"levels": levels, "group_size": size} | VARIANTS.get(name, {})
    if name == "timestamp":
        document["workload"] = {
            "model": "poisson",
            "senders": 0,
            "rate_per_s": per_s / nodes,
            "duration_ms": 1000.0 * messages / per_s,
        }
    return parse(document, FILE)[0]


def group_size(nodes: int, levels: int) -> int:
    """The size of a group if groups on all levels have about the same size."""
    root: float = nodes ** (1 / levels)
    return max(2, ceil(root - 1e-9))


def work(point: Experiment) -> float:
    """Roughly how much a run has to do."""
    topology: Any = point.topology
    nodes: int = topology.nodes
    return float(nodes**2)


def measured(point: Point, runs: list[tuple[Experiment, Row]]) -> Measured:
    """The figures of a point's runs."""
    each = [_of_run(point, *run) for run in runs]
    return Measured(*zip(*each, strict=True))


def _of_run(point: Point, experiment: Experiment, row: Row) -> tuple[float, ...]:
    """The figures of a run; without groups every message is one broadcast."""
    delay = row["delay_ms_mean"]
    if point.name in OTHERS:
        copies = row["copies"] / row["multicasts"]
        return row["control_bytes"] / row["copies"], copies, 1.0, copies, delay, nan, nan, nan, nan
    broadcasts = (
        row["broadcast_control_bytes_per_copy"],
        row["broadcast_copies"] / row["multicasts"],
        row["broadcasts_per_message"],
        row["datagrams_per_message"],
        delay,
    )
    if point.name in ALTERNATIVES:
        return *broadcasts, nan, nan, nan, nan
    local = row["delay_within_groups_ms_mean"], row["delay_across_groups_ms_mean"]
    return *broadcasts, *local, *formula(experiment)


def formula(experiment: Experiment) -> tuple[float, float]:
    """Section 3.3: how many broadcasts a message takes, and the bytes that a copy carries."""
    s, topology = experiment.settings, experiment.topology
    nodes: int = topology.nodes  # type: ignore[attr-defined]
    tree = daisy(nodes, s.group_size, s.levels)
    rng = stream(experiment.seed, "workload")
    sends = list(experiment.workload.sends(nodes, rng, {}))
    sizes = [m for send in sends for m in broadcasts(tree, send.node, send.to or frozenset())]
    copies = sum(m - 1 for m in sizes)
    return len(sizes) / len(sends), sum((m - 1) * (FIXED + 4 * m) for m in sizes) / copies


def broadcasts(tree: GroupTree, sender: int, to: frozenset[int]) -> list[int]:
    """The sizes of the groups in which a message is broadcast.

    One in its sender's group, one in each group of servers on its way, up to the first whose
    processes include all destinations, and one in each group with destinations.
    """
    ways = tree.path(sender)
    top = next(n for n, number in enumerate(ways, 1) if to <= tree.rosters[number])
    below = tree.rosters[ways[top - 1]]
    reached = [
        number
        for number, roster in tree.rosters.items()
        if number in ways[:top] or (number not in ways and roster <= below and roster & to)
    ]
    return [len(tree.members[number]) for number in reached]
