"""Random parts of an experiment that all profiles draw from: a network, a script, single faults."""

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, combinations, combinations_with_replacement
from typing import Any

import networkx as nx

from testbed.experiment.network import Network
from testbed.faults import NodeFault
from testbed.protocols import Protocol
from testbed.workloads.script import NUMBER_BYTES, ScriptedMessage

Document = dict[str, Any]
Table = dict[str, Any]
Members = dict[str, list[int]]

MOST_MESSAGES = 24
MOST_FAULTS = 4
MOST_CRASHES = 3
SPAN_MS = 20.0  # in which messages are sent


def rounded(value: float) -> float:
    """A value with no more digits than a person cares to read."""
    return round(value, 3)


def any_link(network: Network, rng: random.Random) -> list[int]:
    """The two nodes of a link."""
    return list(rng.choice(sorted((min(edge), max(edge)) for edge in network.graph.edges)))


def topology(nodes: int, rng: random.Random) -> Table:
    """A connected graph of any model that has one with this number of nodes."""
    tables: list[Table] = [{"model": model, "nodes": nodes} for model in ("line", "star")]
    if nodes >= 3:
        tables.append({"model": "ring", "nodes": nodes})
    if nodes % 2 == 0:
        tables.append({"model": "grid", "rows": 2, "columns": nodes // 2})
    for probability in (0.6, 1.0):
        table = {"model": "pure-random", "nodes": nodes, "edge_probability": probability}
        tables.append(table)
    return rng.choice(tables)


def script(
    protocol: type[Protocol], nodes: int, groups: Members, rng: random.Random
) -> list[ScriptedMessage]:
    """Bursts or single messages, with answers to them and answers to these."""
    span = rng.choice([0.0, 1.0, SPAN_MS])
    answering, subsets = rng.choice([0.0, 0.3, 0.7]), protocol.takes_subsets and rng.random() < 0.5
    messages: list[ScriptedMessage] = []
    while len(messages) < rng.randint(1, MOST_MESSAGES):
        message: ScriptedMessage = {
            "node": rng.randrange(nodes),
            "at_ms": rounded(rng.uniform(0, span)),
        }
        if groups:
            message["group"] = rng.choice([*groups])
            message["node"] = rng.choice(groups[message["group"]])
        elif subsets:
            message["to"] = sorted(rng.sample(range(nodes), rng.randint(1, nodes)))
        first = len(messages)
        messages.append(message)
        for number in range(first, MOST_MESSAGES):
            if number < len(messages) and rng.random() < answering:
                messages += _answers(number, subsets and not groups, nodes, rng)
    for message in messages:
        if rng.random() < 0.1:
            message["payload_bytes"] = rng.randint(NUMBER_BYTES, 1000)
    return messages


def _answers(number: int, subsets: bool, nodes: int, rng: random.Random) -> list[ScriptedMessage]:
    """Answers to a message by one or two nodes; one that is not a destination never sends its own."""
    answers: list[ScriptedMessage] = []
    for node in rng.sample(range(nodes), rng.randint(1, min(2, nodes))):
        answers.append({"node": node, "answers": number})
        if subsets and rng.random() < 0.7:
            answers[-1]["to"] = sorted(rng.sample(range(nodes), rng.randint(1, nodes)))
    return answers


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
    return {"kind": "loss", "rate": rounded(rng.uniform(0, most))}


def crashes(network: Network, rng: random.Random) -> list[Table]:
    """Crashes at a time or by a trigger, after which the rest of the overlay is connected."""
    drawn: list[Table] = []
    crashed: list[int] = []
    for node in rng.sample(range(network.processes), rng.randint(1, network.processes - 1)):
        if len(drawn) == MOST_CRASHES or not survivable(network, [*crashed, node]):
            continue
        crashed.append(node)
        drawn.append({"kind": "crash", "node": node, **onset(network, 2 * SPAN_MS, rng)})
    return drawn


def onset(network: Network, span_ms: float, rng: random.Random) -> Table:
    """When a crash happens: by a trigger, or at a time within a span."""
    if rng.random() < 0.5:
        watched = rng.randrange(network.processes)
        return {"when": {"node": watched, "delivered": rng.randint(1, 10)}}
    return {"at_ms": rounded(rng.uniform(0, span_ms))}


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
