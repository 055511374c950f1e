"""Gossip with optimistic causal order on 25 emulated hosts."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from testbed.experiment import Experiment, parse, read_document
from testbed.protocols import NS_PER_MS
from tests.emulation.conftest import CHECKOUT, SAME, emulated
from tests.emulation.explained import assert_explained, digest
from tests.experiments import run

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

FILE = CHECKOUT / "scripts" / "experiments" / "cluster.toml"
GOSSIP = ("gossip_messages", "gossip_events", "duplicates")
ROUND_MS = 100.0
KILLED, AWAY, HEIR = 3, 5, 8
FAULTS = [
    {"kind": "crash", "node": KILLED, "at_ms": 3 * ROUND_MS},
    {"kind": "partition", "nodes": [AWAY], "at_ms": 3 * ROUND_MS, "for_ms": 6 * ROUND_MS},
    {"kind": "join", "node": AWAY, "at_ms": 10 * ROUND_MS},
    {"kind": "join", "node": HEIR, "at_ms": 5 * ROUND_MS},
    {"kind": "drift", "node": HEIR, "rate": 0.9},
]
LEASES = {"management": "leases", "lease_round_ms": ROUND_MS}


def experiment(
    loss: float, workload: dict[str, Any], faults: list[dict[str, Any]], **settings: Any
) -> Experiment:
    document = read_document(FILE)
    document["engine"] = "virtual"
    document["protocol"] = {"name": "cluster", "coordinators": 6, **settings}
    document["links"]["loss"] = loss
    document["workload"] |= workload
    return parse({**document, "fault": faults}, FILE)[0]


def lines(run: Path, node: int, event: str) -> list[dict[str, Any]]:
    """What a node has logged of a kind."""
    logged = [json.loads(line) for file in run.glob("events/*.jsonl") for line in file.open()]
    return [line for line in logged if (line["node"], line["event"]) == (node, event)]


def deliveries(run: Path, node: int) -> list[tuple[int, int]]:
    """When a node delivered messages of which source."""
    return [(line["t"], line["source"]) for line in lines(run, node, "deliver")]


def test_gossip_as_in_the_simulator_and_a_killed_and_a_lonely_coordinator(
    tmp_path: Path, spark: SparkSession
) -> None:
    calm = experiment(0, {"senders": 6, "duration_ms": 4 * ROUND_MS}, [])
    long = {"senders": HEIR + 1, "duration_ms": 40 * ROUND_MS}  # to get a ticket may take thirty
    stormy = experiment(0.05, long, FAULTS, **LEASES)
    done, _ = emulated(calm, tmp_path, *SAME, *GOSSIP)
    digest(done.path, spark)
    assert_explained(done.path, done.summary["deliveries"])

    harmed = run(stormy, tmp_path)
    verdict = harmed.verdict
    assert verdict.ok
    assert verdict.crashed == (KILLED,)
    assert verdict.tickets == 6  # none of which had two owners, or the verdict would say so
    here, there = deliveries(harmed.path, 20), deliveries(harmed.path, AWAY)
    sources = Counter(source for _, source in here)
    assert 0 < sources[KILLED] < 4
    assert {s for t, s in there if 310 * NS_PER_MS < t < 900 * NS_PER_MS} <= {AWAY}
    assert len(there) > 0.9 * len(here)  # it was told what it had missed
    late = {s for t, s in here if t > 900 * NS_PER_MS}
    assert KILLED not in late
    assert {AWAY, HEIR} <= late  # both got tickets, the killed one's among them
    assert harmed.summary["tickets_granted"] >= 5 + 2  # nothing is known of the killed one's
    assert harmed.summary["tickets_revoked"] >= 1
    claims = {node: lines(harmed.path, node, "tickets")[0] for node in (0, HEIR)}
    lasts = {node: (claim["until"] - claim["t"]) / NS_PER_MS for node, claim in claims.items()}
    assert 200 < lasts[0] <= 220 < 230 < lasts[HEIR] <= 220 / 0.9 + 1e-3  # its clock is slow


def test_interest_moves_from_cluster_to_cluster_as_in_the_simulator(tmp_path: Path) -> None:
    document = read_document(FILE.with_name("clusters.toml"))
    document |= {"engine": "virtual", "fault": []}
    document["protocol"] |= {"clusters": 2, "coordinators": 2, "tickets": 6, "speed": 1.0}
    document["topology"]["nodes"] = 8
    document["workload"] |= {"duration_ms": 800.0, "settle_ms": 200.0}
    done, simulated = emulated(parse(document, FILE)[0], tmp_path, "nodes")
    assert set(done.verdict.parts) == {0, 1}
    assert done.verdict.count("loss") < 0.05 * done.verdict.due
    for node in range(8):
        here, there = (lines(each.path, node, "interest") for each in (done, simulated))
        assert len(there) > 2
        for one, other in zip(here, there, strict=False):  # which settles for longer
            assert abs(one.pop("t") - other.pop("t")) < NS_PER_MS
            assert one == other
