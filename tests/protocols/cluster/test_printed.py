"""The tickets as the paper prints them, in experiments that anybody can run: what is wrong."""

import tomllib
from pathlib import Path
from typing import Any

from testbed.protocols.broken import BROKEN_CLUSTERS
from testbed.run import Run
from tests.experiments import events_of, parsed, run

EXPERIMENTS = Path(__file__).parents[3] / "scripts" / "experiments"


def ten(runs: Path, name: str, **chosen: Any) -> Run:
    """The counter-example with ten coordinators."""
    document = tomllib.loads((EXPERIMENTS / "errata" / "tickets.toml").read_text())
    document["protocol"] = {**document["protocol"][0], "name": name, **chosen}
    return run(parsed(document), runs)


def test_ten_live_coordinators_give_one_ticket_to_two_owners(tmp_path: Path) -> None:
    wrong = ten(tmp_path, "broken-printed-tickets")
    assert wrong.verdict.faults == ("co_owned", "co_assigned", "restamped")
    told = wrong.verdict.explain()
    assert any("nodes 6 and 10 both owned ticket 6 from 5881" in line for line in told)
    assert any("node 7 could assign ticket 6, which node 6 owned" in line for line in told)
    claims = [e for e in events_of(wrong) if e["event"] == "tickets" and e["t"] < 6e9]
    assert {e["node"] for e in claims if e["owns"] is not None} == set(range(11))
    assert not [e for e in claims if e["owns"] is None]  # nobody has lost its ticket


def test_the_lease_version_does_not(tmp_path: Path) -> None:
    right = ten(tmp_path, "cluster")
    assert right.verdict.ok
    assert right.summary["ticket_conflicts"] == 0


def test_algorithm_1_as_printed_gives_a_ticket_to_two_who_join_and_leave(tmp_path: Path) -> None:
    def churn(name: str, seed: int) -> Run:
        faults = [
            {"kind": kind, "node": node, "at_ms": 20.0 * turn + 7.0 * node}
            for turn, kind in enumerate(("join", "leave") * 6)
            for node in range(1, 6)
        ]
        document = {
            "name": "printed-ring",
            "seed": seed,
            "engine": "simulate",
            "channel": "reliable",
            "protocol": {
                "name": name,
                "management": "ring",
                "coordinators": 1,
                "tickets": 6,
                "lease_round_ms": 10.0,
            },
            "topology": {"model": "pure-random", "nodes": 6, "edge_probability": 1.0},
            "links": {"delay_ms": [1.0, 9.0]},
            "workload": {"model": "script", "send": [{"node": 0, "at_ms": 1.0}]},
            "fault": faults,
        }
        return run(parsed(document), tmp_path)

    assert "broken-printed-ring" in BROKEN_CLUSTERS
    wrong = [churn("broken-printed-ring", seed).verdict.faults for seed in range(1, 4)]
    assert any({"co_owned", "co_assigned"} & set(faults) for faults in wrong)
    assert all(churn("cluster", seed).summary["ticket_conflicts"] == 0 for seed in range(1, 4))
