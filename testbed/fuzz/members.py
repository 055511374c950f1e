"""What is drawn for a protocol that keeps members and repairs what faults do to them: the daisy.

Its times are drawn to fit the network, and messages and faults to fit these, so that processes are
suspected, expelled and admitted again, and groups split and merge, while messages flow. When all is
over, and there was time to repair it, some processes send once more: that must arrive everywhere.

Limits that the daisy has, and that all trials respect (``within_limits``):

- Relaying is ``safe``, or nobody crashes, leaves or is cut off. Where not all of a group get a message
  fewer may be gone: one, or as many as ``resilience`` says; and nobody is cut off besides, or for as
  long as ``grace_ms``. Packets are late or lost so seldom, but for a while, that views last; and
  patience is longer than a message takes there and back.
- Who was cut off for longer than ``grace_ms`` and is gone before it is back leaves a hole. So where
  anybody crashes or leaves, all that cuts processes off lasts for less than that, taken together.
- Nobody is cut off for as long as ``forget_ms``. Links are slow once at most: two at a time would
  hold a packet for long after both.
- A view of servers that crashes as a whole, with a local group, leaves a hole. So if all of a local
  group are gone at some time, crashed or left, then nobody was cut off, and of each group of servers
  one of the first members stays. Where groups are split and merged, fewer are gone than the smallest
  one can have, or one at most.
- Who is the last of its local group does not leave where groups are merged.
- Over the reliable channel nobody crashes or leaves: who waits for an answer of one that is gone
  waits for long before it can send more. It tries again within half of ``patience_ms``: all that
  comes after a lost packet, heartbeats too, waits for it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import networkx as nx

from testbed.experiment import Experiment
from testbed.experiment.network import Network
from testbed.faults import (
    Crash,
    Duplication,
    Fault,
    Leave,
    LinkDown,
    Loss,
    Pause,
    RatedFault,
    Reordering,
    Slow,
)
from testbed.fuzz.values import Table, ms, some_link
from testbed.protocols.daisy.tree import LEVEL, daisy
from testbed.workloads.script import ScriptedMessage

HEARTBEATS_MS = (10.0, 20.0)
DELAYS_MS: tuple[Any, ...] = (0.0, 1.0, [0.0, 1.0], [0.0, 5.0])
RATES_MBIT: tuple[Any, ...] = (10.0, 1000.0, [10.0, 100.0])
STRETCHES = (1, 5, 25)
LIGHT = 0.05  # of all packets from one process to another
DOUBLED = 0.3
RETRIES = 100  # of the reliable channel: longer than anything lasts
PLAIN: Table = {"safe": True, "early": False, "inside": "all"}
VARIANTS: tuple[Table, ...] = (
    PLAIN,
    PLAIN,
    PLAIN,
    PLAIN | {"safe": False, "early": True},
    PLAIN | {"inside": "server"},
    PLAIN | {"inside": "recipients", "resilience": 1},
    PLAIN | {"inside": "recipients", "resilience": 2},
)
MOST_FAULTS = 5
MOST_CRASHES = 3


def repair_ms(settings: Any) -> float:
    """In which all that faults have done is repaired."""
    return float(3 * settings.grace_ms + 40 * settings.heartbeat_ms)


def links(rng: random.Random) -> Table:
    """Fast enough for many heartbeats."""
    return {"delay_ms": rng.choice(DELAYS_MS), "bandwidth_mbit": rng.choice(RATES_MBIT)}


def settings(network: Network, rng: random.Random) -> Table:
    """Small groups on any number of levels; in some trials they are split and merged."""
    heartbeat = rng.choice(HEARTBEATS_MS)
    patience = max(rng.choice([3.5, 5, 10]) * heartbeat, _least_patience_ms(network, heartbeat))
    drawn: Table = {
        "group_size": rng.randint(1, 5),
        "levels": rng.randint(1, 4),
        "heartbeat_ms": heartbeat,
        "patience_ms": ms(patience),
        "grace_ms": ms(rng.choice([2, 3]) * patience),
        "ack_ms": rng.choice([0.0, 1.0, 5.0]),
    }
    drawn |= dict(rng.choice(VARIANTS))
    if drawn["early"]:
        drawn["levels"] = 2
    if drawn["levels"] > 1 and drawn["safe"] and drawn["inside"] == "all" and rng.random() < 0.5:
        how = rng.choice(["split", "merge", "both"])
        if how != "merge":
            drawn["split_above"] = rng.randint(2, 5)
        if how != "split":
            drawn["merge_below"] = rng.randint(2, 4)
    return drawn


def channel(settings: Any, rng: random.Random) -> Table | str:
    """Mostly none. A reliable one tries again soon enough for what is built upon it."""
    if rng.random() < 0.85:
        return "raw"
    soon = ms(settings.patience_ms / 2)
    times = dict.fromkeys(("min_rto_ms", "initial_rto_ms", "max_rto_ms"), soon)
    return {"model": "reliable", "retries": RETRIES, **times}


def stretched(send: Sequence[ScriptedMessage], rng: random.Random) -> list[ScriptedMessage]:
    """The same messages, over a time that is long enough for groups to change."""
    factor = rng.choice(STRETCHES)
    return [
        {**line, "at_ms": ms(factor * line["at_ms"])} if "at_ms" in line else line for line in send
    ]


def last_words(experiment: Experiment, nodes: int, rng: random.Random) -> list[ScriptedMessage]:
    """Of some, or of everybody, when all is over and repaired; and answers to these."""
    if rng.random() < 0.3:
        return []
    first = len(experiment.workload.send)  # type: ignore[attr-defined]
    at = ms(_over_ms(experiment) + 1.2 * repair_ms(experiment.settings))
    senders = sorted(rng.sample(range(nodes), rng.randint(1, nodes)))
    lines: list[ScriptedMessage] = [{"node": node, "at_ms": at} for node in senders]
    lines.append({"node": rng.randrange(nodes), "answers": first + rng.randrange(len(senders))})
    return lines


def faults(experiment: Experiment, network: Network, rng: random.Random) -> list[Table]:
    """Any that fit the times; which of them stay is up to ``within_limits``."""
    s = experiment.settings
    span = _over_ms(experiment) + rng.choice([0, s.patience_ms, s.grace_ms])
    nodes = range(network.processes)
    steps = nx.diameter(network.graph)

    def while_(longest: float) -> Table:
        return {"at_ms": ms(rng.uniform(0, span)), "for_ms": ms(rng.uniform(0.1, longest))}

    def cut() -> Table:
        return while_(
            rng.choice([s.patience_ms / 2, 2 * s.patience_ms, s.grace_ms, 2 * s.grace_ms])
        )

    def one() -> Table:
        node, inside = rng.choice(nodes), rng.sample(nodes, rng.randint(1, len(nodes) - 1))
        return rng.choice(
            [
                {"kind": "duplication", "rate": ms(rng.uniform(0, DOUBLED / steps))},
                {"kind": "reordering", "rate": ms(rng.uniform(0, 0.5)),
                 "late_ms": ms(rng.uniform(0, s.heartbeat_ms))},
                {"kind": "slow", "factor": ms(rng.uniform(1, 50)),
                 "link": some_link(network, rng), **cut()},
                {"kind": "loss", "rate": ms(rng.uniform(0, 0.5)), **cut()},
                {"kind": "pause", "node": node, **cut()},
                {"kind": "link-down", "link": some_link(network, rng), **cut()},
                {"kind": "partition", "nodes": sorted(inside), **cut()},
                {"kind": "leave", "node": node, "at_ms": ms(rng.uniform(0, span))},
                {"kind": "leave", "node": node, **cut()},
            ]
        )  # fmt: skip

    drawn = [one() for _ in range(rng.randint(0, MOST_FAULTS))]
    if rng.random() < 0.3:
        drawn.append({"kind": "loss", "rate": ms(rng.uniform(0, LIGHT / steps))})
    for _ in range(rng.choice([0, *range(MOST_CRASHES + 1)])):
        crash: Table = {"kind": "crash", "node": rng.choice(nodes)}
        if rng.random() < 0.5:
            crash["when"] = {"node": rng.choice(nodes), "delivered": rng.randint(1, 10)}
        else:
            crash["at_ms"] = ms(rng.uniform(0, span))
        if rng.random() < 0.5:
            crash["for_ms"] = ms(rng.uniform(1, rng.choice([s.patience_ms, 2 * s.grace_ms])))
        drawn.append(crash)
    return drawn


def within_limits(experiment: Experiment, network: Network) -> bool:
    """Whether the protocol promises to come through this: see above."""
    s, drawn = experiment.settings, experiment.faults
    steps = nx.diameter(network.graph)
    if s.patience_ms < _least_patience_ms(network, s.heartbeat_ms):
        return False
    if experiment.workload.settle_ms < repair_ms(s):
        return False
    if any(
        fault.per_s is not None or not _bearable(fault, s.heartbeat_ms, steps) for fault in drawn
    ):
        return False
    if sum(isinstance(fault, Slow) for fault in drawn) > 1:
        return False
    cut = sum(fault.for_ms or 0 for fault in drawn if _cuts_off(fault))
    gone = {fault.node for fault in drawn if isinstance(fault, Crash | Leave)}
    if cut >= (s.grace_ms if gone else s.forget_ms):
        return False
    if experiment.channel and (gone or experiment.channel.max_rto_ms > 0.6 * s.patience_ms):
        return False
    if len(gone) > _most_gone(s, network.processes):
        return False
    if s.inside != "all" and cut and (gone or cut >= s.grace_ms):
        return False
    if not s.safe and cut:
        return False
    left = any(isinstance(fault, Leave) for fault in drawn)
    return _groups_survive(network.processes, s, gone, left, cut > 0)


def _groups_survive(processes: int, s: Any, gone: set[int | None], left: bool, cut: bool) -> bool:
    tree = daisy(processes, s.group_size, s.levels, s.split_above is not None)
    local = [roster for number, roster in tree.rosters.items() if number < LEVEL]
    if s.split_above is not None or s.merge_below:
        sizes = [len(roster) for roster in local]
        if s.split_above is not None:
            sizes.append((s.split_above + 1) // 2)
        alone = len(gone) <= 1 and not (left and s.merge_below)
        return alone or len(gone) < min(sizes)
    if len(local) == 1 or not any(roster <= gone for roster in local):
        return True
    servers = [set(members) for number, members in tree.members.items() if number >= LEVEL]
    return not cut and not any(members <= gone for members in servers)


def _most_gone(s: Any, processes: int) -> int:
    """How many may crash or leave, on account of the copies that there are of a message."""
    if s.early or not s.safe:
        return 0
    most = {"all": processes, "server": 1, "recipients": int(s.resilience)}
    return most[s.inside]


def _cuts_off(fault: Fault) -> bool:
    return isinstance(fault, LinkDown | Pause | Slow) or (
        isinstance(fault, Loss) and fault.for_ms is not None
    )


def _bearable(fault: Fault, heartbeat_ms: float, steps: int) -> bool:
    """Whether it leaves processes able to hear of each other, or ends."""
    if isinstance(fault, Reordering):
        return fault.late_ms <= heartbeat_ms
    if isinstance(fault, Duplication):
        return fault.rate * steps <= DOUBLED
    if isinstance(fault, LinkDown | Pause | Slow):
        return fault.for_ms is not None
    return not (isinstance(fault, RatedFault) and fault.for_ms is None) or (
        fault.rate * steps <= LIGHT
    )


def _least_patience_ms(network: Network, heartbeat_ms: float) -> float:
    """There and back with some to spare, and some heartbeats."""
    longest = max(link["delay_ns"] for _, _, link in network.graph.edges(data=True)) / 1e6
    return ms(3 * heartbeat_ms + 3 * longest * nx.diameter(network.graph))


def _over_ms(experiment: Experiment) -> float:
    """When the last message is sent unasked, and the last fault has ended, triggers left out."""
    ends = (fault.at_ms + (fault.for_ms or 0) for fault in experiment.faults)
    return max(experiment.workload.duration / 1e6, *ends, 0)
