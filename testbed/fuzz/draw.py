"""A random experiment from a seed: a small network, a script of messages, and what goes wrong.

All that is drawn is within what a correct protocol promises, so that every violation is a mistake:

- Over raw channels nothing is lost. Packets may come twice, links may be slow, processes may pause;
  packets may be reordered unless the protocol, as it is set, needs FIFO channels.
- Over the reliable channel packets are lost and reordered too, and links go down, but not for ever.
- Processes crash and are not started again. A protocol that floods survives that in any weather if,
  whichever of them do, the rest of its overlay is connected. One in which every sender sends to all
  receivers itself does so only over raw channels: with the reliable one a message may have reached
  some processes when its sender dies, and then nobody sends it to the others, which wait for it.
  Where processes wait to hear from each other, nobody crashes.
- A protocol that repairs what faults do meets all of this over raw channels, crashes too, and its
  processes start again, leave and join: see ``members``, which has the limits of this.
- A protocol that may lose messages meets all of this over raw channels too, and packets are lost there
  for ever; its processes also start again, leave and join.

The weather is such that the reliable channel gives nobody up: the more links a packet crosses and the
more packets a message is cut into, the less is lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import fields
from itertools import chain, combinations
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import networkx as nx

from testbed.experiment import Experiment, parse
from testbed.experiment.network import Network, build_network
from testbed.experiment.seeds import stream
from testbed.faults import Crash, LinkDown, Loss, Pause, Reordering
from testbed.fuzz import members
from testbed.fuzz.values import Document, Table, ms, some_link
from testbed.protocols import Protocol
from testbed.topologies import has_cycle
from testbed.workloads.script import NUMBER_BYTES, ScriptedMessage

Members = dict[str, list[int]]

MOST_NODES = 8
MOST_MESSAGES = 24
MOST_GROUPS = 5
MOST_FAULTS = 4
MOST_CRASHES = 3
SPAN_MS = 20.0  # in which messages are sent
SETTLE_MS = 300.0  # for which a protocol that may lose messages goes on
RETRIES = 40  # enough for the worst weather that is drawn
# of settings that are numbers, some by which much happens in so short a time
NUMBERS: dict[str, tuple[float, ...]] = {
    "round_ms": (5.0, 20.0),
    "fanout": (1, 2, 4),
    "hops": (1, 3, 5),
    "events_per_message": (1, 3, 20),
    "history": (2, 40),
    "time_to_terminate": (0.0, 1.0, 5.0),
    "time_to_recover": (0.0, 1.0, 5.0),
    "recovery_buffer": (0, 2),
    "lease_round_ms": (50.0, 400.0),
}


def draw(protocol: type[Protocol], seed: int) -> Document:
    """The experiment of a seed."""
    rng = stream(seed, "fuzz", protocol.name)
    nodes = rng.randint(2, MOST_NODES)
    reliable = rng.random() < 0.5 and not protocol.repairs
    groups = _groups(nodes, rng) if protocol.needs_groups else {}
    document: Document = {
        "name": f"fuzz-{protocol.name}-{seed}",
        "seed": seed,
        "channel": {"model": "reliable", "retries": RETRIES} if reliable else "raw",
        "protocol": {
            "name": protocol.name,
            **({} if protocol.repairs else _settings(protocol, rng)),
        },
        "topology": _topology(nodes, rng),
        "links": members.links(rng) if protocol.repairs else _links(reliable, rng),
        "transport": {
            "routing": rng.choice(["hops", "delay"]),
            "mtu": 1500 if reliable else rng.choice([200, 1500]),
        },
        "workload": {"model": "script", "send": _script(protocol, nodes, groups, rng)},
    }
    if protocol.optimistic:
        document["workload"]["send"] += _flow(nodes, rng)
    if not protocol.rests:
        document["workload"]["settle_ms"] = SETTLE_MS
    if groups:
        document["groups"] = {"model": "named", "members": groups}
    if protocol.needs_overlay:
        document["overlay"] = {"model": rng.choice(["hypercube", "ring", "tree", "complete"])}
    experiment = parse(document, Path(document["name"]))[0]
    network = build_network(experiment)
    if protocol.repairs:
        return _with_members(document, network, rng)
    if "entries" in document["protocol"] and not promised(experiment, network):
        document["protocol"]["entries"] = "auto"
    document["fault"] = _faults(experiment, network, rng)
    experiment = parse(document, Path(document["name"]))[0]
    if "management" in document["protocol"] and not promised(experiment, network):
        document["protocol"]["management"] = "leases"
    return document


def _with_members(document: Document, network: Network, rng: random.Random) -> Document:
    """Let groups be formed in the network, and things happen to their members."""
    workload, path = document["workload"], Path(document["name"])
    document["protocol"] = {
        "name": document["protocol"]["name"],
        **members.settings(network, rng),
    }
    workload["send"] = members.stretched(workload["send"], rng)
    experiment = parse(document, path)[0]
    workload["settle_ms"] = members.repair_ms(experiment.settings)
    document["channel"] = members.channel(experiment.settings, rng)
    document["fault"] = members.faults(experiment, network, rng)
    while not members.within_limits(experiment := parse(document, path)[0], network):
        document["fault"].remove(rng.choice(document["fault"]))
    workload["send"] += members.last_words(experiment, network.processes, rng)
    return document


def promised(experiment: Experiment, network: Network) -> bool:
    """Whether a correct protocol comes through this, as far as it follows from the kinds of faults."""
    floods, faults = experiment.protocol.needs_overlay, experiment.faults
    if getattr(experiment.settings, "entries", None) == "own" and has_cycle(network.groups):
        return False  # messages that tell of some groups only are right without cycles
    if experiment.protocol.optimistic:
        steady = experiment.channel is not None and not any(isinstance(f, Crash) for f in faults)
        return steady or not experiment.protocol.needs_fifo(experiment.settings)
    if experiment.protocol.repairs:
        return members.within_limits(experiment, network)
    if any(isinstance(fault, LinkDown | Pause) and fault.for_ms is None for fault in faults):
        return False
    crashed = {fault.node for fault in faults if isinstance(fault, Crash)}
    if crashed and experiment.protocol.needs_everybody:
        return False
    if experiment.channel is not None:
        return not crashed or (floods and _survivable(network, crashed))
    fifo = experiment.protocol.needs_fifo(experiment.settings)
    losing = (Loss, LinkDown, Reordering) if fifo else (Loss, LinkDown)
    links = experiment.links
    return not (
        any(isinstance(fault, losing) for fault in faults) or links.loss or links.queue_packets
    ) and _survivable(network, crashed)


def _survivable(network: Network, crashed: Collection[int | None]) -> bool:
    """Whether the rest of the overlay, if there is one, is connected whichever of these crash."""
    overlay = network.overlay
    some = chain.from_iterable(combinations(crashed, size + 1) for size in range(len(crashed)))
    return len(crashed) < network.processes and (
        overlay is None or all(nx.is_connected(overlay.subgraph(set(overlay) - {*s})) for s in some)
    )


def _settings(protocol: type[Protocol], rng: random.Random) -> Table:
    """One of the values of every setting that has a list of them, here or there, or is yes or no."""
    hints = get_type_hints(protocol.Settings)
    choices = {
        field.name: (True, False) if kind is bool else NUMBERS.get(field.name) or get_args(kind)
        for field in fields(protocol.Settings)
        if (kind := hints[field.name]) is bool
        or get_origin(kind) is Literal
        or field.name in NUMBERS
    }
    return {name: rng.choice(values) for name, values in choices.items()}


def _topology(nodes: int, rng: random.Random) -> Table:
    tables: list[Table] = [{"model": model, "nodes": nodes} for model in ("line", "star")]
    if nodes >= 3:
        tables.append({"model": "ring", "nodes": nodes})
    if nodes % 2 == 0:
        tables.append({"model": "grid", "rows": 2, "columns": nodes // 2})
    for probability in (0.6, 1.0):
        table = {"model": "pure-random", "nodes": nodes, "edge_probability": probability}
        tables.append(table)
    return rng.choice(tables)


def _links(reliable: bool, rng: random.Random) -> Table:
    links: Table = {
        "delay_ms": rng.choice([0.0, 1.0, [0.0, 1.0], [0.0, 10.0], [0.1, 50.0]]),
        "bandwidth_mbit": rng.choice([1.0, 10.0, 1000.0, [0.5, 100.0]]),
    }
    if reliable and rng.random() < 0.2:
        links["queue_packets"] = rng.randint(20, 60)  # two messages in fragments fit
    return links


def _groups(nodes: int, rng: random.Random) -> Members:
    """Some groups of any size, all different."""
    drawn = {
        frozenset(rng.sample(range(nodes), rng.randint(2, nodes)))
        for _ in range(rng.randint(1, MOST_GROUPS))
    }
    return {f"g{number}": members for number, members in enumerate(sorted(map(sorted, drawn)), 1)}


def _script(
    protocol: type[Protocol], nodes: int, groups: Members, rng: random.Random
) -> list[ScriptedMessage]:
    """Bursts or single messages, and answers to them, and answers to these."""
    span = rng.choice([0.0, 1.0, SPAN_MS])
    answering, subsets = rng.choice([0.0, 0.3, 0.7]), protocol.takes_subsets and rng.random() < 0.5
    lines: list[ScriptedMessage] = []
    while len(lines) < rng.randint(1, MOST_MESSAGES):
        line: ScriptedMessage = {"node": rng.randrange(nodes), "at_ms": ms(rng.uniform(0, span))}
        if groups:
            line["group"] = rng.choice([*groups])
            line["node"] = rng.choice(groups[line["group"]])
        elif subsets:
            line["to"] = sorted(rng.sample(range(nodes), rng.randint(1, nodes)))
        first = len(lines)
        lines.append(line)
        for number in range(first, MOST_MESSAGES):
            if number < len(lines) and rng.random() < answering:
                _answer(lines, number, subsets and not groups, nodes, rng)
    for line in lines:
        if rng.random() < 0.1:
            line["payload_bytes"] = rng.randint(NUMBER_BYTES, 1000)
    return lines


def _flow(nodes: int, rng: random.Random) -> list[ScriptedMessage]:
    """In some trials many more, so that several are missing at one process when it gives up one."""
    many = rng.choice([0, MOST_MESSAGES])
    times = (ms(rng.uniform(0, 2 * SPAN_MS)) for _ in range(many))
    return [{"node": rng.randrange(nodes), "at_ms": at} for at in times]


def _answer(
    lines: list[ScriptedMessage], number: int, subsets: bool, nodes: int, rng: random.Random
) -> None:
    """Some nodes answer a message; who is not among its destinations never will."""
    for node in rng.sample(range(nodes), rng.randint(1, min(2, nodes))):
        answer: ScriptedMessage = {"node": node, "answers": number}
        if subsets and rng.random() < 0.7:
            answer["to"] = sorted(rng.sample(range(nodes), rng.randint(1, nodes)))
        lines.append(answer)


def _faults(experiment: Experiment, network: Network, rng: random.Random) -> list[Table]:
    protocol, reliable = experiment.protocol, experiment.channel is not None
    floods, anything = protocol.needs_overlay, protocol.optimistic
    kinds: list[Callable[[Network, random.Random], Table]] = [_duplication, _slow, _pause]
    if reliable or anything:
        kinds += [_reordering, _down, _partition]
    elif not protocol.needs_fifo(experiment.settings):
        kinds.append(_reordering)
    if protocol.optimistic and protocol.join is not Protocol.join:
        kinds.append(_leave)
    drawn = [rng.choice(kinds)(network, rng) for _ in range(rng.randint(0, MOST_FAULTS))]
    if (reliable or anything) and rng.random() < 0.7:
        drawn.append(_loss(network, rng))
    outlived = (floods or not reliable) and not protocol.needs_everybody
    if (outlived or anything) and rng.random() < 0.3:
        crashes = _crashes(network, rng)
        if protocol.optimistic and rng.random() < 0.5:
            crashes = [{**crash, "for_ms": ms(rng.uniform(1, SPAN_MS))} for crash in crashes]
        drawn += crashes
    return drawn


def _loss(network: Network, rng: random.Random) -> Table:
    """Less of it where packets may cross many links."""
    if rng.random() < 0.3:
        return {"kind": "loss", "rate": ms(rng.uniform(0, 0.4)), "link": some_link(network, rng)}
    most = 0.15 if network.processes <= 4 else 0.08
    return {"kind": "loss", "rate": ms(rng.uniform(0, most))}


def _duplication(network: Network, rng: random.Random) -> Table:
    return {"kind": "duplication", "rate": ms(rng.uniform(0, 0.3))}


def _reordering(network: Network, rng: random.Random) -> Table:
    late = {"late_ms": ms(rng.uniform(0, 30))}
    return {"kind": "reordering", "rate": ms(rng.uniform(0, 0.5)), **late}


def _slow(network: Network, rng: random.Random) -> Table:
    return {
        "kind": "slow",
        "factor": ms(rng.uniform(1, 50)),
        "link": some_link(network, rng),
        **_while(rng),
    }


def _pause(network: Network, rng: random.Random) -> Table:
    return {"kind": "pause", "node": rng.randrange(network.processes), **_while(rng)}


def _leave(network: Network, rng: random.Random) -> Table:
    return {"kind": "leave", "node": rng.randrange(network.processes), **_while(rng)}


def _down(network: Network, rng: random.Random) -> Table:
    if rng.random() < 0.5:
        return {"kind": "link-down", "per_s": 100.0, "for_ms": ms(rng.uniform(1, 20))}
    return {"kind": "link-down", "link": some_link(network, rng), **_while(rng)}


def _partition(network: Network, rng: random.Random) -> Table:
    inside = sorted(rng.sample(range(network.processes), rng.randint(1, network.processes - 1)))
    return {"kind": "partition", "nodes": inside, **_while(rng)}


def _crashes(network: Network, rng: random.Random) -> list[Table]:
    drawn: list[Table] = []
    crashed: list[int] = []
    for node in rng.sample(range(network.processes), rng.randint(1, network.processes - 1)):
        if len(drawn) == MOST_CRASHES or not _survivable(network, [*crashed, node]):
            continue
        crashed.append(node)
        crash: Table = {"kind": "crash", "node": node}
        if rng.random() < 0.5:
            watched = rng.randrange(network.processes)
            crash["when"] = {"node": watched, "delivered": rng.randint(1, 10)}
        else:
            crash["at_ms"] = ms(rng.uniform(0, 2 * SPAN_MS))
        drawn.append(crash)
    return drawn


def _while(rng: random.Random) -> Table:
    return {"at_ms": ms(rng.uniform(0, SPAN_MS)), "for_ms": ms(rng.uniform(0.1, 3 * SPAN_MS))}
