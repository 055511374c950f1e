"""The oracle on tickets, in whole runs: of protocols that manage them well, and with mistakes."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import pytest

from testbed.explore.recorder import Recorder
from testbed.fuzz import attempt
from testbed.protocols import PROTOCOLS, Place
from testbed.protocols.broken.cluster import Reset
from testbed.protocols.broken.leases import (
    FickleVoter,
    LateVotes,
    NoQuarantine,
    Presumptuous,
    SleepWalker,
    Timeless,
)
from testbed.protocols.broken.tickets import PrintedRing
from testbed.protocols.cluster import Cluster
from testbed.protocols.cluster.tickets import Leases, Ring
from testbed.run import Run
from tests.experiments import events_of, log_of, parsed, run

NODES = 8
SENDS = [{"node": node, "at_ms": at} for node in range(NODES) for at in (100.0, 900.0)]


def lost(a: int, b: int, at_ms: float, **more: float) -> dict[str, Any]:
    """Two processes cannot reach each other; the routes do not know it."""
    return {"kind": "loss", "rate": 1.0, "link": [a, b], "at_ms": at_ms, **more}


def late(a: int, b: int) -> list[dict[str, Any]]:
    """Two processes are farther and farther away, so slowly that votes never stop coming."""
    moves = [{"late_ms": 40.0 * i, "at_ms": 150.0 * i} for i in range(1, 6)]
    return [{"kind": "reordering", "rate": 1.0, "link": [a, b], **move} for move in moves]


CUT = {"fault": [lost(4, 5, 150.0)]}  # 5 excludes 4, which others still hear
# 4 sleeps through its lease, and its application wanted to send when it fell asleep
ASLEEP = {
    "fault": [{"kind": "pause", "node": 4, "at_ms": 163.0, "for_ms": 400.0}],
    "send": [{"node": 4, "at_ms": 163.1}, *SENDS],
}
# as the ticket of 1 is given up, 0 does not hear it; then 3 gets the ticket
HANDED_ON = {
    "coordinators": 3,
    "fault": [
        {"kind": "leave", "node": 1, "at_ms": 150.0},
        lost(0, 2, 149.0, for_ms=20.0),
        {"kind": "join", "node": 3, "at_ms": 200.0},
    ],
    "send": [{"node": 1, "at_ms": 100.0}, {"node": 3, "at_ms": 110.0}],
}
# three voters of 2 are far away, and 3 excludes it
FAR = {
    "coordinators": 5,
    "fault": [*late(2, 4), *late(0, 2), *late(2, 5), lost(2, 3, 1000.0)],
    "settle_ms": 1000.0,
}


def document(protocol: str, **scene: Any) -> dict[str, Any]:
    chosen = {"management": "leases", "lease_round_ms": 50.0, "round_ms": 20.0}
    if "coordinators" in scene:
        chosen["coordinators"] = scene["coordinators"]
    return {
        "name": "tickets",
        "seed": 1,
        "engine": "simulate",
        "protocol": {"name": protocol, **chosen},
        "topology": {"model": "pure-random", "nodes": NODES, "edge_probability": 1.0},
        "links": {"delay_ms": [0.1, 1.0]},
        "workload": {
            "model": "script",
            "send": scene.get("send", SENDS),
            "settle_ms": scene.get("settle_ms", 600.0),
        },
        "fault": scene["fault"],
    }


def play(runs: Path, protocol: str, **scene: Any) -> Run:
    return run(parsed(document(protocol, **scene)), runs)


def broken(management: type[Leases], monkeypatch: pytest.MonkeyPatch) -> str:
    """The cluster with a mistake in the management of its tickets."""

    class Broken(Cluster):
        name: ClassVar[str] = "broken-leases"

    Broken.leases = management
    monkeypatch.setitem(PROTOCOLS, Broken.name, Broken)
    return Broken.name


@pytest.mark.parametrize(
    ("mistake", "scene", "kind"),
    [
        (NoQuarantine, CUT, "co_assigned"),
        (FickleVoter, CUT, "co_assigned"),
        (Presumptuous, CUT, "co_assigned"),
        (LateVotes, FAR, "co_assigned"),
        (SleepWalker, ASLEEP, "unowned"),
        (Timeless, HANDED_ON, "restamped"),
    ],
)
def test_a_mistake_with_leases_is_seen_in_the_log_of_a_run(
    mistake: type[Leases],
    scene: dict[str, Any],
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = play(tmp_path, broken(mistake, monkeypatch), **scene)
    assert wrong.verdict.faults == (kind,)
    assert wrong.summary["verdict"] == "invalid"
    assert wrong.summary["ticket_conflicts"] == wrong.verdict.count(kind) > 0


def test_a_free_ticket_that_is_given_away_too_early_has_two_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = {"coordinators": 6, "fault": [*CUT["fault"], {"kind": "join", "node": 7}]}
    wrong = play(tmp_path, broken(FickleVoter, monkeypatch), **scene)
    assert "co_owned" in wrong.verdict.faults
    assert any("both owned ticket 4" in sentence for sentence in wrong.verdict.explain())


def test_a_clock_entry_that_begins_anew_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, Reset.name, Reset)
    assert play(tmp_path, Reset.name, **HANDED_ON).verdict.faults == ("restamped",)


@pytest.mark.parametrize(
    "scene", [CUT, ASLEEP, HANDED_ON, FAR], ids=["cut", "asleep", "handed-on", "far"]
)
def test_the_right_version_has_no_conflict(scene: dict[str, Any], tmp_path: Path) -> None:
    right = play(tmp_path, "cluster", **scene)
    assert right.verdict.ok
    assert right.summary["ticket_conflicts"] == 0
    assert right.verdict.tickets == scene.get("coordinators", NODES)


def test_nor_has_it_one_with_crashes_partitions_joins_and_leaves(tmp_path: Path) -> None:
    faults = [
        {"kind": "crash", "node": 3, "when": {"node": 3, "delivered": 5}, "for_ms": 300.0},
        {"kind": "crash", "node": 6, "at_ms": 400.0},
        {"kind": "partition", "nodes": [0, 1], "at_ms": 700.0, "for_ms": 400.0},
        {"kind": "leave", "node": 5, "at_ms": 300.0, "for_ms": 500.0},
        {"kind": "join", "node": 7, "at_ms": 200.0},
        *({"kind": "join", "node": node, "at_ms": 1300.0} for node in (0, 1)),
        {"kind": "loss", "rate": 0.1},
    ]
    sends = [*SENDS, *({"node": node, "at_ms": 1800.0} for node in range(NODES))]
    right = play(tmp_path, "cluster", coordinators=7, fault=faults, send=sends, settle_ms=3000.0)
    assert right.verdict.ok
    assert right.verdict.crashed == (3, 6)
    assert right.summary["ticket_conflicts"] == 0
    assert right.summary["tickets_granted"] > 10
    lines = events_of(right)
    owned = {line["node"] for line in lines if line["event"] == "tickets" and line["t"] > 1.5e9}
    assert {0, 1, 2, 3, 4, 5, 7} == owned


def churning(protocol: str) -> dict[str, Any]:
    """Processes leave and join again all the time, while one packet in twenty is lost."""
    rng = random.Random(1)
    churn = [
        {
            "kind": "leave",
            "node": rng.randrange(1, NODES),
            "at_ms": rng.uniform(100, 1500),
            "for_ms": rng.uniform(1, 300),
        }
        for _ in range(30)
    ]
    sends = [
        {"node": node, "at_ms": at} for node in range(NODES) for at in range(50 + node, 2000, 150)
    ]
    scene = document(protocol, coordinators=4, fault=[*churn, {"kind": "loss", "rate": 0.05}])
    scene["protocol"] |= {"management": "ring", "tickets": NODES}
    scene |= {"channel": "reliable"}
    scene["workload"] |= {"send": sends, "settle_ms": 1500.0}
    return scene


def test_a_ring_hands_tickets_on_with_their_numbers(tmp_path: Path) -> None:
    done = run(parsed(churning("cluster")), tmp_path)
    assert done.verdict.ok
    assert done.summary["ticket_conflicts"] == 0
    assert done.summary["tickets_granted"] > 12
    stamps = [line for line in events_of(done) if line["event"] == "stamp"]
    owners: dict[int, set[int]] = defaultdict(set)
    numbers: dict[int, list[int]] = defaultdict(list)
    for stamp in stamps:
        assert stamp["epoch"] == 0
        owners[stamp["ticket"]].add(stamp["source"])
        numbers[stamp["ticket"]].append(stamp["number"])
    assert max(map(len, owners.values())) > 1
    assert all(used == list(range(1, len(used) + 1)) for used in numbers.values())


def test_algorithm_1_as_printed_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Cluster):
        name: ClassVar[str] = "broken-ring"
        ring: ClassVar[type[Ring]] = PrintedRing

    monkeypatch.setitem(PROTOCOLS, Broken.name, Broken)
    done = run(parsed(churning(Broken.name)), tmp_path)
    assert not done.verdict.ok
    assert done.summary["ticket_conflicts"] > 0


def test_without_leases_nothing_is_said_of_tickets(tmp_path: Path) -> None:
    plain = document("cluster", fault=[])
    del plain["protocol"]["management"]
    done = run(parsed(plain), tmp_path)
    assert "ticket_conflicts" not in done.summary
    assert '"tickets"' not in log_of(done).read_text()


def test_random_experiments_are_judged_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = attempt(document(broken(SleepWalker, monkeypatch), **ASLEEP))
    assert wrong is not None
    assert wrong.wrong == "unowned"
    assert wrong.sentence.startswith("m(4,2) of node 4 at 563.000 ms was made with ticket 4")
    right = attempt(document("cluster", **ASLEEP))
    assert right is not None
    assert right.wrong is None


def test_the_explorer_does_not_look_at_these() -> None:
    did = Recorder(Cluster(Place(0, 1), Cluster.Settings(management="leases"))).start()
    assert did.failure is None
