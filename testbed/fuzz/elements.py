"""Random parts of an experiment that all profiles draw from: a network and single faults."""

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, combinations, combinations_with_replacement
from typing import Any, NamedTuple

import networkx as nx

from testbed.experiment.network import Network
from testbed.faults import NodeFault

Document = dict[str, Any]
Table = dict[str, Any]
Members = dict[str, list[int]]


class Aims(NamedTuple):
    """The events of the protocol's own that faults are aimed at, and in what share of experiments."""

    events: Sequence[str] = ()
    share: float = 0.0


SMALL = 8  # processes, of most experiments
SIZES = (SMALL,) * 15 + (16,) * 4 + (32,)
MOST_FAULTS = 4
MOST_CRASHES = 3
SPAN_MS = 20.0  # in which messages are sent


def rounded(value: float) -> float:
    """A value with no more digits than a person cares to read."""
    return round(value, 3)


def nodes_of(document: Document) -> int:
    """How many nodes an experiment has."""
    topology = document["topology"]
    return int(topology.get("nodes") or topology["rows"] * topology["columns"])


def any_link(network: Network, rng: random.Random) -> list[int]:
    """The two nodes of a link."""
    return list(rng.choice(sorted((min(edge), max(edge)) for edge in network.graph.edges)))


def size(rng: random.Random, least: int, sizes: Sequence[int], large: bool) -> int:
    """How many processes there are: in most experiments few, in some many."""
    if large:
        return rng.randint(SMALL + 1, SIZES[-1])
    return rng.randint(least, rng.choice(sizes))


def topology(nodes: int, rng: random.Random) -> Table:
    """A connected graph of any model that has one with this number of nodes; a large one is dense."""
    tables: list[Table] = [{"model": "star", "nodes": nodes}]
    if nodes <= SMALL:
        tables.append({"model": "line", "nodes": nodes})
        if nodes >= 3:
            tables.append({"model": "ring", "nodes": nodes})
        if nodes % 2 == 0:
            tables.append({"model": "grid", "rows": 2, "columns": nodes // 2})
    for probability in (0.6, 1.0):
        table = {"model": "pure-random", "nodes": nodes, "edge_probability": probability}
        tables.append(table)
    return rng.choice(tables)


def some_faults(kinds: Sequence[str], network: Network, rng: random.Random) -> list[Table]:
    """A few faults of these kinds."""
    return [fault(rng.choice(kinds), network, rng) for _ in range(rng.randint(0, MOST_FAULTS))]


def fault(kind: str, network: Network, rng: random.Random) -> Table:
    """A fault of a kind: duplication and reordering all the time, the others for a while."""
    drawn: Table
    match kind:
        case "duplication":
            drawn = {"rate": rounded(rng.uniform(0, 0.3))}
        case "reordering":
            late = rounded(rng.uniform(0, 30))
            drawn = {"rate": rounded(rng.uniform(0, 0.5)), "late_ms": late}
        case "slow":
            drawn = {"factor": rounded(rng.uniform(1, 50)), "link": any_link(network, rng)}
        case "link-down" if rng.random() < 0.5:  # of any link, now and then
            return {"kind": kind, "per_s": 100.0, "for_ms": rounded(rng.uniform(1, 20))}
        case "link-down":
            drawn = {"link": any_link(network, rng)}
        case "partition":
            size = rng.randint(1, network.processes - 1)
            drawn = {"nodes": sorted(rng.sample(range(network.processes), size))}
        case _:
            drawn = {"node": rng.randrange(network.processes)}
    if kind not in ("duplication", "reordering"):
        at, length = rng.uniform(0, SPAN_MS), rng.uniform(0.1, 3 * SPAN_MS)
        drawn |= {"at_ms": rounded(at), "for_ms": rounded(length)}
    return {"kind": kind, **drawn}


def loss(network: Network, rng: random.Random) -> Table:
    """Loss, less of it where packets may cross many links."""
    if rng.random() < 0.3:
        rate = rounded(rng.uniform(0, 0.4))
        return {"kind": "loss", "rate": rate, "link": any_link(network, rng)}
    most = 0.15 if network.processes <= 4 else 0.08
    if network.processes > SMALL:
        most /= nx.diameter(network.graph)
    return {"kind": "loss", "rate": rounded(rng.uniform(0, most))}


def crashes(network: Network, aims: Aims, rng: random.Random) -> list[Table]:
    """Crashes at a time or by a trigger, after which the rest of the overlay is connected."""
    drawn: list[Table] = []
    crashed: list[int] = []
    for node in rng.sample(range(network.processes), rng.randint(1, network.processes - 1)):
        if len(drawn) == MOST_CRASHES or not survivable(network, [*crashed, node]):
            continue
        crashed.append(node)
        drawn.append({"kind": "crash", "node": node, **onset(network, 2 * SPAN_MS, aims, rng)})
    return drawn


def onset(network: Network, span_ms: float, aims: Aims, rng: random.Random) -> Table:
    """When a crash happens: by a trigger, or at a time within a span."""
    if rng.random() < 0.5:
        return {"when": trigger(network, aims, rng)}
    return {"at_ms": rounded(rng.uniform(0, span_ms))}


def aimed_pauses(network: Network, aims: Aims, rng: random.Random) -> list[Table]:
    """Pauses of processes at events of the protocol's own, in a share of experiments."""
    if not aims.events or rng.random() >= aims.share:
        return []
    lengths = [rounded(rng.uniform(0.1, 3 * SPAN_MS)) for _ in range(rng.randint(1, 2))]
    return [
        {"kind": "pause", "node": "same", "for_ms": t, "when": trigger(network, aims, rng)}
        for t in lengths
    ]


def trigger(network: Network, aims: Aims, rng: random.Random) -> Table:
    """An event of the protocol's own, if it has some to aim at, or a number of deliveries."""
    watched: Table = {"node": rng.randrange(network.processes)} if rng.random() < 0.5 else {}
    if aims.events and rng.random() < 0.8:
        return {
            **watched,
            "event": rng.choice(aims.events),
            "count": rng.choice([1, 1, 2, 3, 5, 8]),
        }
    many = 10 if watched else 10 * network.processes
    return {**watched, "delivered": rng.randint(1, many)}


def losses(faults: Iterable[NodeFault], processes: int) -> Iterator[frozenset[int]]:
    """Every set of processes that these faults may be of; "same" may be any of them."""
    named = {fault.node for fault in faults if isinstance(fault.node, int)}
    free = sum(not isinstance(fault.node, int) for fault in faults)
    for others in combinations_with_replacement(range(processes), free):
        yield frozenset(named.union(others))


def survivable(network: Network, crashed: Collection[int]) -> bool:
    """Whether the rest of the overlay, if there is one, is connected whichever of these crash."""
    overlay = network.overlay
    some = chain.from_iterable(combinations(crashed, size + 1) for size in range(len(crashed)))
    return len(crashed) < network.processes and (
        overlay is None or all(nx.is_connected(overlay.subgraph(set(overlay) - {*s})) for s in some)
    )
