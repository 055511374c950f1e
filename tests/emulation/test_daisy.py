"""The daisy on sixteen emulated hosts: a server is killed, a group is cut off and comes back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from testbed.experiment import load, parse, read_document
from testbed.packets.pcap import read_packets
from testbed.run import Run
from testbed.runs.directory import RunDirectory
from tests.emulation.conftest import CHECKOUT, emulated
from tests.emulation.explained import assert_explained, digest

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

EXPERIMENTS = CHECKOUT / "scripts" / "experiments"
FILE, FAIL_OVER = EXPERIMENTS / "daisy.toml", EXPERIMENTS / "fail-over.toml"


@pytest.mark.parametrize("inside", ["all", "recipients", "server"])
def test_a_server_is_killed_and_nothing_is_lost(
    inside: str, tmp_path: Path, spark: SparkSession
) -> None:
    (what,) = load(FILE, engine="virtual")
    what = replace(what, settings=replace(what.settings, inside=inside))
    done = emulated(what, tmp_path, "multicasts", "deliveries")
    figures, simulated = (run.summary for run in done)
    assert figures["crashes"] == 1
    emulation = RunDirectory(done[0].path).emulation
    at = [int(at) for at, (tail, _) in emulation["interfaces"].items() if tail is None]  # hosts
    packets = read_packets(done[0].path / "packets")
    assert figures["messages"] == sum(interface in at for interface in packets.interface)
    crashed = emulation["hosts"][0]["meter"]
    assert len(crashed["delays"]) == crashed["deliveries"] > 0
    patience = what.settings.patience_ms
    assert patience / 2 < figures["recovery_ms_max"] < 4 * patience
    assert figures["recovery_ms_max"] == pytest.approx(simulated["recovery_ms_max"], rel=0.01)
    assert figures["delay_within_groups_ms_mean"] < figures["delay_across_groups_ms_mean"]
    digest(done[0].path, spark)
    assert_explained(done[0].path, figures["deliveries"], followed=0.3)


def test_a_level_is_added_a_group_cut_off_and_a_server_killed_as_in_the_simulator(
    tmp_path: Path,
) -> None:
    """The file has 64 hosts, of which this takes four groups, and lets them split and grow."""
    document = read_document(FAIL_OVER)
    document["topology"]["rows"] = 4
    document["workload"] |= {"messages": 60, "settle_ms": 4000}
    document["protocol"] |= {"levels": 2, "split_above": 3, "max_levels": 3}
    document["fault"][0]["at_ms"] = 310
    (what,) = parse(document | {"engine": "virtual"}, FAIL_OVER)
    done = emulated(what, tmp_path, "multicasts", "deliveries", "crashes")
    assert done[0].summary["crashes"] == 1
    assert not done[0].verdict.count("orphaned")  # only who crashed lacks anything
    hosts, simulated = map(logged, done)
    changes = {(e["node"], e["event"]) for events in hosts.values() for e in events}
    assert changes >= {(0, "level-added"), (4, "crash"), (5, "install"), (8, "expel")}
    assert hosts == simulated


def logged(run: Run) -> dict[int, list[dict[str, Any]]]:
    """What each process logged, in order, without the times."""
    events: dict[int, list[dict[str, Any]]] = {}
    for file in (run.path / "events").glob("*.jsonl"):
        for event in map(json.loads, file.open()):
            del event["t"]
            events.setdefault(event["node"], []).append(event)
    return events
