"""Several clusters in one run: who is interested in what, when, and what it then delivers."""

import random
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UserError
from testbed.experiment import Scenario
from testbed.protocols.cluster.world import NS_PER_S, World
from tests.experiments import events_of, parsed, run
from tests.protocols.cluster.test_printed import EXPERIMENTS


def document(**changes: Any) -> dict[str, Any]:
    found = tomllib.loads((EXPERIMENTS / "clusters.toml").read_text())
    found["workload"] |= {"duration_ms": 4000.0, "settle_ms": 500.0}
    return {**found, "fault": [], "protocol": {**found["protocol"], **changes}}


def test_who_sees_what_in_a_world_of_four_regions() -> None:
    world = World(4, 4, near=0.3, speed=1.0)
    assert [world.position(p, 0) for p in range(4)] == [0.5, 1.5, 2.5, 3.5]
    assert world.seen_by(1, 0) == {1}
    assert world.seen_by(1, NS_PER_S // 3) == {0, 1}  # it comes near the border
    assert world.position(0, NS_PER_S) == pytest.approx(1.5)
    assert world.position(1, 2 * NS_PER_S) == pytest.approx(3.5)  # the other way round
    assert world.watchers(0)[0] == {0}
    assert world.watchers(NS_PER_S // 3)[0] == {0, 1}
    assert world.crossing(1, 0) == pytest.approx(0.2 * NS_PER_S, rel=1e-6)
    assert World(4, 4, near=0.5, speed=1.0).crossing(1, 0) == 1  # it stands on the edge
    assert world._replace(speed=0).crossing(1, 0) is None
    assert World(5, 1, 0, 3.0).watchers(77) == [set(range(5))]


def test_what_is_seen_changes_at_crossings_and_never_between() -> None:
    rng = random.Random(1)
    for _ in range(50):
        world = World(
            rng.randrange(2, 9), rng.randrange(1, 6), rng.choice((0, 0.2, 0.7)), rng.uniform(0.1, 5)
        )
        now, p = rng.randrange(NS_PER_S), rng.randrange(world.processes)
        for _ in range(20):
            seen, crossing = world.seen_by(p, now), world.crossing(p, now)
            assert crossing is not None
            for part in range(8):
                assert world.seen_by(p, now + (crossing - 2) * part // 8) == seen
            now += crossing


def test_processes_in_two_clusters_and_interest_that_moves(tmp_path: Path) -> None:
    done = run(parsed(document(speed=0.25)), tmp_path)
    assert done.verdict.ok
    assert set(done.verdict.parts) == {0, 1, 2, 3}
    assert done.verdict.count("loss") < 0.01 * done.verdict.due
    assert done.summary["regions_entered"] >= 20  # everybody moves by one region
    inside: defaultdict[int, set[int]] = defaultdict(set)
    cluster, seen, senders = {}, Counter[int](), defaultdict[int, set[int]](set)
    for e in events_of(done):
        if e["event"] == "interest":
            (inside[e["node"]].add if e["interested"] else inside[e["node"]].discard)(e["cluster"])
            seen[len(inside[e["node"]])] += 1
        elif e["event"] == "cluster":
            assert e["cluster"] in inside[e["node"]]  # it sends where it is
            cluster[e["source"], e["seq"]] = e["cluster"]
            senders[e["cluster"]].add(e["node"])
    assert seen[1] > 20 < seen[2]
    assert all(len(its) > 4 for its in senders.values())  # more than the coordinators that began
    sends = [e for e in events_of(done) if e["event"] == "send"]
    assert {(e["source"], e["seq"]) for e in sends} == set(cluster)


def test_nobody_moves_and_tickets_stay_where_they_are(tmp_path: Path) -> None:
    still = document(speed=0.0, management="none", coordinators=2, tickets=0)
    still["workload"]["duration_ms"] = 1000.0
    done = run(parsed(still), tmp_path)
    assert done.verdict.ok
    assert done.verdict.count("loss") == 0
    assert done.summary.get("regions_entered", 0) == 0


def test_who_crashes_or_leaves_comes_back_to_what_it_sees_then(tmp_path: Path) -> None:
    faults = [
        {"kind": "crash", "node": 2, "at_ms": 700.0, "for_ms": 1500.0},
        {"kind": "leave", "node": 7, "at_ms": 800.0, "for_ms": 1200.0},
    ]
    scene = {**document(speed=0.5), "fault": faults}
    scene["workload"]["duration_ms"] = 2600.0
    done = run(parsed(scene), tmp_path)
    assert done.verdict.ok
    for node, back in ((2, 2.2e9), (7, 2.0e9)):
        late = {e["event"] for e in events_of(done) if e["node"] == node and e["t"] >= back}
        assert {"interest", "deliver"} <= late


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"clusters": 0}, "clusters is from 1 to 100"),
        ({"near": 9.0}, "near from 0 to clusters"),
        ({"speed": 2000.0}, "speed is from 0 to 1000"),
        ({"membership": "full"}, "'partial'"),
        ({"members": 3}, "members is 0"),
        ({"clusters": 21}, "21 clusters of 20 processes"),
        ({"management": "none"}, "management is not none"),
        ({"coordinators": 9}, "9 coordinators among 7 processes"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Scenario.of(parsed(document(**wrong)))
