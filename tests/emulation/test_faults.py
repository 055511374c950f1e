"""Faults in emulated runs: what they do, what the reliable channel makes of it, and what is logged."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.check import APART, check_run
from testbed.experiment import Experiment, Scenario, parse, read_document
from testbed.packets.pcap import read_packets
from testbed.run import prepare
from tests.emulation.conftest import CHECKOUT, module_in_guest
from tests.emulation.hostile_datagrams import NUMBER
from tests.experiments import log_of, parsed, run

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

DEFAULT = CHECKOUT / "scripts" / "experiments" / "overlay-vs-timestamp.toml"
MS = 1_000_000
SEED_OF_1_AND_2 = 41  # with it, these are the senders of five
LOSSY = [
    {"kind": "loss", "rate": 0.2},
    {"kind": "duplication", "rate": 0.05},
    {"kind": "reordering", "rate": 0.1, "late_ms": 5.0},
]


def ring(*faults: dict[str, Any], **changes: Any) -> Experiment:
    """Five hosts in a ring, two of which send for 100 ms and are answered."""
    document = {
        "name": "faulty",
        "engine": "virtual",
        "protocol": {"name": "timestamp"},
        "channel": "reliable",
        "topology": {"model": "ring", "nodes": 5},
        "links": {"delay_ms": 2.0, "bandwidth_mbit": 10},
        "workload": {"model": "reply", "senders": 2, "duration_ms": 100, "interval_ms": 10},
        "fault": list(faults),
    }
    return parsed(document, **changes)


def log(directory: Path, node: int) -> list[dict[str, Any]]:
    text = (directory / "events" / f"h{node}.jsonl").read_text()
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_all_arrives_once_and_in_order_although_links_lose_duplicate_and_reorder(
    tmp_path: Path,
) -> None:
    document = read_document(DEFAULT) | {
        "engine": "virtual",
        "channel": "reliable",
        "fault": LOSSY,
    }
    document["workload"]["rate_per_s"] = 50
    overlay, timestamp = (run(experiment, tmp_path) for experiment in parse(document, DEFAULT))
    for done in (overlay, timestamp):
        figures = done.summary
        assert figures["deliveries"] == 16 * figures["multicasts"] > 0
        assert figures["channel_retransmissions"] > figures["multicasts"]
        assert figures["channel_duplicates"] > 0
        assert "channel_given_up" not in figures
        assert done.verdict.ok, done.verdict.explain(3)
        assert done.manifest["counters"]["cut_short"] == 0


def test_one_seed_means_the_same_losses(tmp_path: Path) -> None:
    first, second = (run(ring(*LOSSY), tmp_path) for _ in range(2))
    for node in range(5):
        assert log(first.path, node) == log(second.path, node)
    ours, theirs = (read_packets(r.path / "packets") for r in (first, second))
    assert (ours.time == theirs.time).all()
    assert first.summary["channel_retransmissions"] > 0


def test_a_cut_link_is_gone_round_and_nothing_is_lost(tmp_path: Path) -> None:
    cut = {"kind": "link-down", "link": [0, 1], "at_ms": 31.0, "for_ms": 40.0}
    done = run(ring(cut), tmp_path)
    assert done.verdict.ok, done.verdict.explain(3)
    assert done.summary["deliveries"] == 5 * done.summary["multicasts"]
    assert done.summary["channel_retransmissions"] > 0  # of what was under way when it was cut
    assert done.manifest["fidelity"]["verdict"] == "exact"
    raw = json.loads((done.path / "emulation.json").read_text())
    lines = (done.path / "reroutes.jsonl").read_text().splitlines()
    down, up = (json.loads(line) for line in lines)
    assert (down["down"], up["down"]) == ([[0, 1]], [])
    start = raw["start_unix_ns"]
    for reroute, due in ((down, 31 * MS), (up, 71 * MS)):
        assert 0 <= reroute["time_ns"] - start - due < MS
    packets = read_packets(done.path / "packets")
    ends = [int(index) for index, (a, b) in raw["interfaces"].items() if {a, b} == {0, 1}]
    times = [t - start for t, i in zip(packets.time, packets.interface, strict=True) if i in ends]
    assert any(t < 31 * MS for t in times)
    assert not any(31 * MS + 1000 < t < 71 * MS for t in times)
    assert any(t > 71 * MS for t in times)


def test_a_host_crashes_where_the_protocol_logs_an_event_of_its_own(tmp_path: Path) -> None:
    crash = {"kind": "crash", "node": "same", "when": {"event": "stamp", "count": 7}}
    workload = {"model": "steady", "senders": 5, "duration_ms": 30, "interval_ms": 5}
    cluster = {"name": "cluster", "management": "leases"}
    experiment = ring(crash, workload=workload, protocol=cluster, channel="raw")
    done = run(experiment, tmp_path)
    (crashed,) = done.verdict.crashed
    stamps = [(e["t"], n) for n in range(5) for e in log(done.path, n) if e["event"] == "stamp"]
    end = log(done.path, crashed)[-1]
    assert end["event"] == "crash"
    seventh, _ = sorted(stamps)[6]
    assert 0 <= end["t"] - seventh < MS // 10
    assert any(n == crashed and 0 <= end["t"] - t < MS // 10 for t, n in stamps)


def test_hosts_crash_start_again_and_stand_still(tmp_path: Path) -> None:
    faults = [
        {"kind": "crash", "node": 3, "when": {"node": 1, "delivered": 10}, "for_ms": 20.0},
        {"kind": "crash", "node": 4, "at_ms": 60.0},
        {"kind": "pause", "node": 2, "at_ms": 40.0, "for_ms": 15.0},
        {"kind": "pause", "node": 0, "at_ms": 90.0},
    ]
    workload = {"model": "steady", "senders": 2, "duration_ms": 100, "interval_ms": 2}
    done = run(ring(*faults, workload=workload, seed=SEED_OF_1_AND_2), tmp_path)
    logs = {node: log(done.path, node) for node in range(5)}
    sent = [line for lines in logs.values() for line in lines if line["event"] == "send"]
    assert {line["node"] for line in sent} == {1, 2}
    wrong = {kind: count for kind, count in done.verdict.counts.items() if count}
    assert wrong.keys() <= {"loss", *APART}, done.verdict.explain(3)
    assert {node for node, _ in done.verdict.where("loss")} == {0}  # which stands still for ever
    assert done.verdict.crashed == (3, 4)
    assert (done.summary["crashes"], done.summary["restarts"]) == (2, 1)

    deliveries = [line["t"] for line in logs[1] if line["event"] == "deliver"]
    names = [line["event"] for line in logs[3]]
    crash, restart = names.index("crash"), names.index("restart")
    assert restart == crash + 1
    assert 0 <= logs[3][crash]["t"] - deliveries[9] < MS // 10
    assert abs(logs[3][restart]["t"] - logs[3][crash]["t"] - 20 * MS) < MS // 10
    assert logs[3][restart]["incarnation"] == 1
    assert "deliver" in names[:crash]
    assert "hold" in names[restart:]  # it knows nothing of what was before

    assert logs[4][-1]["event"] == "crash"
    assert 0 <= logs[4][-1]["t"] - 60 * MS < MS // 10
    assert not any(40 * MS + 1000 < line["t"] < 55 * MS for line in logs[2])
    assert any(line["t"] > 55 * MS for line in logs[2])
    assert all(line["t"] < 90 * MS + 1000 for line in logs[0])

    delivered = [line for lines in logs.values() for line in lines if line["event"] == "deliver"]
    assert done.summary["multicasts"] == len(sent)
    assert done.summary["deliveries"] == len(delivered)


def test_a_host_survives_ten_thousand_datagrams_that_are_no_messages(tmp_path: Path) -> None:
    with prepare(Scenario.of(ring()), tmp_path) as directory:
        finished = module_in_guest("hostile_datagrams", directory.path, results=directory.path)
    assert finished.result.returncode == 0, finished.stderr
    hosts = json.loads((directory.path / "emulation.json").read_text())["hosts"]
    assert [host["malformed"] for host in hosts] == [0, 0, 0, NUMBER, 0]
    verdict = check_run(directory.path)
    assert verdict.ok, verdict.explain(3)
    assert verdict.deliveries == 5 * verdict.messages > 0


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    results = tmp_path_factory.mktemp("links")
    finished = module_in_guest("faulty_links", results=results, timeout_s=240)
    assert finished.stdout, finished.stderr
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


@pytest.mark.parametrize("queue", ["queue 0", "queue 10000"])
def test_a_link_does_to_packets_what_its_condition_says(links: dict[str, Any], queue: str) -> None:
    found = links[queue]

    def about(share: float, of: int = 2000) -> Any:
        return pytest.approx(share * of, abs=5 * (share * (1 - share) * of) ** 0.5)

    assert found["loss"]["copies"] == {"1": about(0.8)}
    assert found["duplication"]["copies"] == {"1": about(0.95), "2": about(0.05)}
    assert found["reordering"]["copies"] == {"1": 2000}
    assert found["reordering"]["late"] == about(0.1)
    assert sum(found["all"]["copies"].values()) == about(0.8 + 0.05 * 0.2)
    assert found["all"]["late"] > 0
    # a packet of 100 bytes takes 80 µs, on a slow link 800; the n-th is late by n times 720
    slow = found["slow"]["errors"]
    assert all(abs(late - 720_000 * n) < 100 for n, late in enumerate(slow, 1))
    assert found["down"]["copies"] == {}
    for name in ("loss", "duplication", "up"):
        errors = found[name]["errors"]
        assert 0 <= errors[0] <= errors[-1] < 100, name
    assert found["up"]["copies"] == {"1": 2000}


def test_what_a_host_cannot_take_is_counted(links: dict[str, Any]) -> None:
    counted = links["drops"]
    assert 0 < counted["udp_errors"] < 100
    assert counted["kernel_dropped"] == counted["upcalls_lost"] == 0


def test_one_message_is_dropped_late_or_twice_as_it_is_in_the_simulator(tmp_path: Path) -> None:
    changes = {
        "links": {"delay_ms": [1.0, 3.0], "bandwidth_mbit": 10},  # no two messages arrive at once
        "channel": "raw",
        "seed": SEED_OF_1_AND_2,
    }
    faults = [
        {"kind": "drop", "sender": 1, "receiver": 2, "count": 4},
        {"kind": "delay", "sender": 1, "receiver": 3, "count": 3, "late_ms": 25.0},
        {"kind": "duplicate", "sender": 2, "receiver": 0, "count": 1, "late_ms": 3.0},
    ]
    emulated, simulated = (
        run(ring(*faults, **changes, engine=engine), tmp_path) for engine in ("virtual", "simulate")
    )
    lines = [json.loads(line) for line in log_of(simulated).open()]
    for node in range(5):
        ours = [e for e in lines if e["node"] == node]
        theirs = log(emulated.path, node)
        assert [{**e, "t": 0} for e in ours] == [{**e, "t": 0} for e in theirs]
    assert {e["event"] for e in lines} >= {"drop", "delay", "duplicate", "hold"}
    assert emulated.verdict.counts == simulated.verdict.counts
    assert emulated.verdict.count("loss") > 0
