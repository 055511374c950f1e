"""The runs of ``scripts/reproduce gidenstam``, and what is measured in them."""

import math
import random
from collections.abc import Iterable
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from scripts.reproductions import EXPERIMENTS, Row
from testbed.engines.simulate.engine import Simulation
from testbed.experiment import Experiment, Scenario, parse, read_document
from testbed.node.log import Log
from testbed.protocols.cluster.events import EventId

FILE = EXPERIMENTS / "gidenstam.toml"
SIZES = (10, 25, 50, 75, 100, 125)
EVENTS_PER_ROUND = 6  # Fig. 4: coordinators × p
FAILING = 0.002
HEAVY_LOSS = 0.2
REACHED, HOPS, MORE_HOPS = 250, 5, 7  # 5 hops reach 250 processes
ROUND_MS = 100.0  # where it is not tuned
LOADS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
FEW, SOME, ALL = "5 coordinators", "25 coordinators", "all coordinators"
COORDINATORS = {FEW: 5, SOME: 25, ALL: 0}
PLAIN, NONE, R1, R4 = "no causality layer", "no recovery", "R1", "R4"
SCHEMES: dict[str, dict[str, Any]] = {
    PLAIN: {"causal": False, "recovery": "none"},
    NONE: {"recovery": "none"},
    R1: {"recovery": "source"},
    R4: {"recovery": "any", "recovery_targets": 4},
}
FIG4, FIG5, HEAVY, FAILED = "Fig. 4", "Fig. 5", "20 % loss", "Theorem 5.2"
PARTS = {"fig4": FIG4, "fig5": FIG5, "loss": HEAVY, "bounds": FAILED}
TARGETS = (1, 2, 4, 8)  # the k of Theorem 5.2


class Point(NamedTuple):
    """Where something is measured: a part of the paper, a curve in it, and a place on the curve."""

    part: str
    curve: str
    x: float


class Measured(NamedTuple):
    """The means of one point over its seeds."""

    throughput: float  # deliveries of a process in a second
    latency_ms: float
    latency: float  # rounds
    message: float  # bytes of a gossip message
    failed: float  # per cent of what gossip messages carried
    lost: float  # per cent of the deliveries that were due
    attempts: float
    success: float  # per cent of the attempts; not a number without any


Found = dict[Point, Measured]
Tuned = dict[tuple[str, int], float]


def all_points(sizes: Iterable[tuple[str, int]]) -> Iterable[Point]:
    """The points of Fig. 4 for these coordinators and sizes, and those of all other parts."""
    yield from (Point(FIG4, label, nodes) for label, nodes in sizes)
    yield from (Point(FIG5, scheme, p) for scheme in SCHEMES for p in LOADS)
    yield from (Point(HEAVY, scheme, p) for scheme in (NONE, R1, R4) for p in LOADS)
    yield from (Point(FAILED, R4, k) for k in TARGETS)


def experiment(point: Point, seed: int, rounds: int, tuned: Tuned) -> Experiment:
    """One run of a point."""
    part, curve, x = point
    if part == FIG4:
        hops = hops_for(max(nodes for _, nodes in tuned))
        return gossip(int(x), curve, tuned[curve, int(x)], rounds, seed, hops)
    per_round = LOADS[-1] if part == FAILED else x
    document = read_document(FILE)
    nodes = document["topology"]["nodes"]
    scheme = {**SCHEMES[curve], "recovery_targets": int(x)} if part == FAILED else SCHEMES[curve]
    document |= {"seed": seed, "protocol": {"name": "cluster", **scheme}}
    document["protocol"]["events_per_round"] = nodes * per_round
    if part != FIG5:
        document["links"]["loss"] = 1 - math.sqrt(1 - HEAVY_LOSS)
    document["workload"] |= {"per_round": per_round, "duration_ms": rounds * ROUND_MS}
    if part == FAILED:
        rng, p_f = random.Random(seed), x / (2 * nodes)
        failed = [node for node in range(1, nodes) if rng.random() < p_f]  # not the star's centre
        document["fault"] = [{"kind": "crash", "node": node} for node in failed]
    return parse(document, FILE)[0]


def hops_for(largest: int) -> int:
    """The paper's hops, or more if they do not reach this number of processes."""
    return HOPS if largest <= REACHED else MORE_HOPS


def gossip(
    nodes: int, label: str, round_ms: float, rounds: int, seed: int, hops: int
) -> Experiment:
    """A run of Fig. 4."""
    document = read_document(FILE)
    senders = COORDINATORS[label]
    document |= {"seed": seed, "topology": {"model": "star", "nodes": nodes}}
    document["protocol"] = {
        "name": "cluster",
        "coordinators": senders,
        "recovery": "source",
        "round_ms": round_ms,
        "hops": hops,
        "time_to_terminate": hops,
        "time_to_recover": hops,
        "events_per_round": EVENTS_PER_ROUND,
    }
    document["workload"] |= {
        "senders": senders,
        "per_round": EVENTS_PER_ROUND / (senders or nodes),
        "round_ms": round_ms,
        "duration_ms": rounds * round_ms,
        "settle_ms": 4 * hops * round_ms,
    }
    return parse(document, FILE)[0]


def weight(point: Experiment) -> float:
    """How long a run takes, up to a factor."""
    topology: Any = point.topology
    nodes: int = topology.nodes
    return float(nodes * (point.settings.coordinators or nodes))


class NoLog(Log):
    """A log that keeps nothing."""


def tuned_round(where: tuple[str, int], hops: int) -> float:
    """The length of rounds, in ms, with which 99.8 % of the messages arrive within a round."""
    label, nodes = where
    length = 40.0
    for _ in range(5):  # a shorter round makes more load, which makes messages slower
        length = math.sqrt(length * slowest(gossip(nodes, label, length, 10, 1, hops)))
    return round(length, 3)


def slowest(point: Experiment) -> float:
    """How long the 99.8 % of messages that are fastest take at most, in ms."""
    simulation = Simulation(Scenario.of(point), NoLog())
    network, sent, took = simulation.network, {}, []
    unicast = network.unicast

    def send(sender: int, peers: tuple[int, ...], message: Any) -> None:
        sent[message] = network.scheduler.now
        unicast(sender, peers, message)

    def receive(receiver: Any, message: Any, sender: int, now: int) -> None:
        took.append(now - sent[message])
        receiver(message, sender, now)

    network.unicast = send  # type: ignore[method-assign]
    network.receivers = [partial(receive, receiver) for receiver in network.receivers]
    simulation.run(lambda stage, done, of: None)
    return float(np.percentile(took, 100 * (1 - FAILING))) / 1e6


def absent(nodes: int, per_round: float, hops: int, share: float) -> tuple[float, float]:
    """Theorem 5.1: the paper's npT, and how often an event was not in a buffer.

    All buffers are searched when an event is T rounds old; their size is a share of 2npT.
    """
    timeout = max(1, hops - 1)
    rounds = 2 * hops + 2 * timeout
    expected = per_round * rounds
    document = read_document(FILE)
    document["topology"]["nodes"] = nodes
    document["links"]["loss"] = 0.0
    document["protocol"] = {
        "name": "cluster",
        "hops": hops,
        "time_to_terminate": timeout,
        "time_to_recover": timeout,
        "recovery_buffer": max(1, round(2 * expected * share)),
    }
    document["workload"] |= {"per_round": per_round / nodes, "duration_ms": 500 * ROUND_MS}
    point = parse({**document, "seed": 1}, FILE)[0]
    scenario = Scenario.of(point)
    simulation = Simulation(scenario, NoLog())
    missing: list[int] = []
    sent = [0] * nodes

    def look(eid: EventId) -> None:
        missing.extend(eid not in node.protocol.B for node in simulation.nodes)  # type: ignore[attr-defined]

    for sending in scenario.sends:
        sent[sending.node] += 1
        eid = EventId(sending.node, sent[sending.node])
        later = sending.at + round(rounds * ROUND_MS * 1e6)
        simulation.network.scheduler.call_at(later, partial(look, eid))
    simulation.run(lambda stage, done, of: None)
    return expected, fmean(missing)


def measured(row: Row, point: Experiment) -> Measured:
    """The figures of one run."""
    nodes, seconds = row["nodes"], point.workload.duration_ms / 1e3
    due = row["multicasts"] * nodes
    attempts = row.get("recovery_attempts", 0)
    return Measured(
        throughput=row["deliveries"] / nodes / seconds,
        latency_ms=row["delay_ms_mean"],
        latency=row["delay_ms_mean"] / point.settings.round_ms,
        message=row["gossip_bytes"] / row["gossip_messages"],
        failed=100 * (1 - row["events_received"] / row["gossip_events"]),
        lost=100 * (1 - row["deliveries"] / due),
        attempts=attempts,
        success=100 * row.get("recovered", 0) / attempts if attempts else math.nan,
    )


def averaged(runs: list[Measured]) -> Measured:
    """The means over seeds; that of success over the runs with attempts."""
    columns = (np.array(column) for column in zip(*runs, strict=True))
    known = (column[~np.isnan(column)] for column in columns)
    return Measured(*(float(column.mean()) if len(column) else math.nan for column in known))


def curve(found: Found, part: str, label: str, key: str) -> tuple[list[float], list[float]]:
    """The places at which a curve was measured, and the values there."""
    places = sorted(point.x for point in found if (point.part, point.curve) == (part, label))
    if not places:
        raise KeyError(f"{part}, {label}")
    return places, [getattr(found[Point(part, label, x)], key) for x in places]
