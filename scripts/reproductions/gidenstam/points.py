"""The runs of ``scripts/reproduce gidenstam``, and what is measured in them."""

import math
import random
from collections.abc import Iterable, Mapping
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from scripts.reproductions.gidenstam.told import ToldSimulation
from scripts.reproductions.running import EXPERIMENTS, Row
from testbed.engines.simulate.engine import Simulation
from testbed.experiment import Experiment, Scenario, parse, read_document
from testbed.node.log import Log
from testbed.progress import silent
from testbed.protocols import Message
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
FIG5C, COVERAGE = "Fig. 5 c", "coverage"
PARTS = {
    "fig4": FIG4, "fig5": FIG5, "fig5c": FIG5C, "loss": HEAVY, "bounds": FAILED, "coverage": COVERAGE,
}  # fmt: skip
TARGETS = (1, 2, 4, 8)  # the k of Theorem 5.2
KEEP, BALLS, ONCE = "keep", "balls", "once"
HOPWISE, TIMED = "hops", "rounds"  # what the age of an event is
AGES = {HOPWISE: "ages are hops", TIMED: "ages are times"}
PACKETS, HOSTS = "single messages fail", "hosts fail for a round"
FEW_LOADS = (0.05, 0.1, 0.2, 0.5)  # of Fig. 5 c
TRIED = 360  # events of a run of Fig. 5 c: 1,000 recoveries and more in ten, if events are lost
COVERED = {125: 16, 250: 8, 1000: 2}  # processes, and rounds in which one event each is multicast


class Point(NamedTuple):
    """Where something is measured: a part of the paper, a curve in it, and a place on the curve."""

    part: str
    curve: str
    x: float

    @override
    def __str__(self) -> str:
        return f"{self.part}, {self.curve}, at {self.x:g}"


Seeds = tuple[float, ...]  # one number for each seed


class Measured(NamedTuple):
    """The figures of one point."""

    throughput: Seeds  # deliveries of a process in a second, if as many are sent as expected
    latency_ms: Seeds
    latency: Seeds  # rounds
    message: Seeds  # bytes of a gossip message
    failed: Seeds  # per cent of what gossip messages carried
    lost: Seeds  # per cent of the deliveries that were due
    tried: Seeds  # recoveries
    attempts: Seeds  # … a round
    success: Seeds  # per cent of the recoveries; not a number without any
    load: Seeds  # of the busiest process, times the mean
    copies: Seeds  # of an event that are sent
    missed: Seeds  # per cent of the processes that gossip does not bring an event to


Found = dict[Point, Measured]
Tuned = dict[tuple[str, int], float]


def all_points(sizes: Iterable[tuple[str, int]]) -> Iterable[Point]:
    """The points of Fig. 4 for these coordinators and sizes, and those of all other parts."""
    yield from (Point(FIG4, label, nodes) for label, nodes in sizes)
    yield from (Point(FIG5, scheme, p) for scheme in SCHEMES for p in LOADS)
    yield from (Point(HEAVY, scheme, p) for scheme in (NONE, R1, R4) for p in LOADS)
    yield from (Point(FAILED, R4, k) for k in TARGETS)
    yield from (Point(FIG5C, curve, p) for curve in RECOVERIES for p in FEW_LOADS)
    for n in COVERED:
        few = SPREADINGS if n <= REACHED else [c for c in SPREADINGS if c.startswith(KEEP)]
        yield from (Point(COVERAGE, curve, n) for curve in few)


RECOVERIES: dict[str, tuple[str, str, str]] = {
    f"{scheme}, {rule}, {fails}": (scheme, rule, fails)
    for rule in (KEEP, ONCE)
    for fails in (PACKETS, HOSTS)
    for scheme in (R1, R4)
}
SPREADINGS: dict[str, dict[str, str]] = {
    f"{rule}, {AGES[aging]}": {"forwarding": rule, "aging": aging}
    for rule in (KEEP, BALLS, ONCE)
    for aging in AGES
}


def experiment(point: Point, seed: int, rounds: int, tuned: Tuned) -> Experiment:
    """One run of a point."""
    part, curve, x = point
    if part == FIG4:
        hops = hops_for(max(nodes for _, nodes in tuned))
        return gossip(int(x), curve, tuned[curve, int(x)], rounds, seed, hops)
    if part == COVERAGE:
        return spreading(int(x), curve, seed)
    if part == FIG5C:
        return recovering(curve, x, seed)
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


def spreading(nodes: int, curve: str, seed: int) -> Experiment:
    """A run of gossip alone, one event a round, where nothing fails."""
    document = read_document(FILE)
    document |= {"seed": seed, "topology": {"model": "star", "nodes": nodes}}
    document["links"] |= {"bandwidth_mbit": 1000, "loss": 0.0}
    document["protocol"] = {
        "name": "cluster", "coordinators": 1, **SCHEMES[PLAIN], **SPREADINGS[curve],
    }  # fmt: skip
    rounds = COVERED[nodes]
    document["workload"] |= {"senders": 1, "per_round": 1.0, "duration_ms": rounds * ROUND_MS}
    document["workload"]["settle_ms"] = 3 * HOPS * ROUND_MS
    return parse(document, FILE)[0]


def recovering(curve: str, per_round: float, seed: int) -> Experiment:
    """A run of Fig. 5 c: some hundred events, however long that takes.

    The host of a star whose link is down for a round sends and receives nothing in that round.
    """
    scheme, rule, fails = RECOVERIES[curve]
    document = read_document(FILE)
    nodes = document["topology"]["nodes"]
    document |= {"seed": seed, "protocol": {"name": "cluster", **SCHEMES[scheme]}}
    document["protocol"] |= {"forwarding": rule, "events_per_round": nodes * per_round}
    if fails == HOSTS:
        document["links"]["loss"] = 0.0
        often = FAILING / 2 * (nodes - 1) / (ROUND_MS / 1e3)  # a message has two ends
        document["fault"] = [{"kind": "link-down", "per_s": often, "for_ms": ROUND_MS}]
    duration = TRIED / nodes / per_round * ROUND_MS
    document["workload"] |= {"per_round": per_round, "duration_ms": duration}
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


def tuned_round(where: tuple[str, int, int]) -> float:
    """The length of rounds, in ms, with which 99.8 % of the messages arrive within a round."""
    label, nodes, hops = where
    length = 40.0
    for seed in range(1, 6):  # a shorter round makes more load, which makes messages slower
        length = math.sqrt(length * slowest(gossip(nodes, label, length, 10, seed, hops)))
    return round(length, 3)


def slowest(point: Experiment) -> float:
    """How long the 99.8 % of messages that are fastest take at most, in ms."""
    sent: dict[Message, int] = {}
    took: list[int] = []

    def send(message: Message, copies: int, now: int) -> None:
        sent[message] = now

    def receive(receiver: Any, message: Message, sender: int, now: int) -> None:
        took.append(now - sent[message])
        receiver(message, sender, now)

    simulation = ToldSimulation(Scenario.of(point), NoLog(), send)
    network = simulation.network
    network.receivers = [partial(receive, receiver) for receiver in network.receivers]
    simulation.run(silent)
    return float(np.percentile(took, 100 * (1 - FAILING))) / 1e6


class Buffers(NamedTuple):
    """Theorem 5.1: a cluster, and its recovery buffers as a share of 2npT events."""

    nodes: int
    per_round: float
    hops: int
    share: float = 1.0

    @property
    def expected(self) -> float:
        """The paper's npT, with timeouts of a round less than an event spreads."""
        return self.per_round * (2 * self.hops + 2 * max(1, self.hops - 1))

    @override
    def __str__(self) -> str:
        return f"n = {self.nodes}, npT = {self.expected:g}, buffers of {2 * self.share:g}npT"


CLUSTERS = (Buffers(5, 0.5, 2), Buffers(5, 1.0, 2), Buffers(5, 2.0, 2), Buffers(10, 1.0, 4))
BUFFER_SHARES = (1.0, 0.75, 0.5)


def absent(piece: tuple[int, Buffers]) -> float:
    """Theorem 5.1: how often an event was not in a buffer.

    All buffers are searched when an event is T rounds old.
    """
    seed, buffers = piece
    nodes, per_round, hops, share = buffers
    timeout = max(1, hops - 1)
    rounds = 2 * hops + 2 * timeout
    expected = buffers.expected
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
    document["workload"] |= {"per_round": per_round / nodes, "duration_ms": 50 * ROUND_MS}
    point = parse({**document, "seed": seed}, FILE)[0]
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
    return fmean(missing)


def measured(runs: list[tuple[Experiment, Row]]) -> Measured:
    """The figures of a point's runs."""
    return Measured(*zip(*(_of_run(*run) for run in runs), strict=True))


def _of_run(point: Experiment, row: Row) -> tuple[float, ...]:
    workload: Any = point.workload
    nodes, rounds = row["nodes"], workload.duration_ms / workload.round_ms
    expected = workload.per_round * (workload.senders or nodes) * rounds
    new = row["events_received"] - row["duplicates"]
    share, tried = row["deliveries"] / (row["multicasts"] * nodes), row.get("recovery_attempts", 0)
    return (
        share * expected / (workload.duration_ms / 1e3),
        row["delay_ms_mean"],
        row["delay_ms_mean"] / point.settings.round_ms,
        row["gossip_bytes"] / row["gossip_messages"],
        100 * (1 - row["events_received"] / row["gossip_events"]),
        100 * (1 - share),
        tried,
        tried / rounds,
        100 * row.get("recovered", 0) / tried if tried else math.nan,
        row["busiest_load"],
        row["gossip_events"] / row["multicasts"],
        100 * (1 - (1 + new / row["multicasts"]) / nodes),
    )


def curve(
    found: Mapping[Any, Any], part: str, label: str, key: str
) -> tuple[list[float], list[Seeds]]:
    """The places at which a curve was measured, and the values of all seeds there."""
    points = [p for p in found if isinstance(p, Point)]
    places = sorted(point.x for point in points if (point.part, point.curve) == (part, label))
    if not places:
        raise KeyError(f"{part}, {label}")
    return places, [getattr(found[Point(part, label, x)], key) for x in places]
