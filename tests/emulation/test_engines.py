"""Whole experiments on the emulating engines: what is delivered, how true, and how alike."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from testbed.engines.virtual import engine
from testbed.engines.virtual.kernel import Kernel, built_kernels
from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario, load
from testbed.packets.pcap import read_packets
from testbed.progress import silent
from testbed.run import prepare
from testbed.runs.directory import RunDirectory
from tests.emulation.conftest import CHECKOUT, SAME, emulated, in_guest, module_in_guest
from tests.emulation.explained import assert_explained, digest
from tests.experiments import parsed, run

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

DEFAULT = CHECKOUT / "scripts" / "experiments" / "overlay-vs-timestamp.toml"


def small(protocol: dict[str, Any], **changes: Any) -> Experiment:
    document = {
        "name": "small",
        "engine": "virtual",
        "protocol": protocol,
        "topology": {"model": "ring", "nodes": 5},
        "links": {"delay_ms": [1.0, 3.0], "bandwidth_mbit": 10},
        "workload": {"model": "reply", "senders": 2, "duration_ms": 20, "interval_ms": 10},
    }
    return parsed(document, **changes)


def events(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (directory / "events").iterdir()}


def confined(kernel: Kernel, directory: Path) -> Kernel:
    """The same kernel, started where a container's rules apply."""
    guard = directory / "guard"
    words = (sys.executable, CHECKOUT / "tests" / "emulation" / "confined.py", kernel.guard)
    guard.write_text(f'#!/bin/sh\nexec {" ".join(map(str, words))} "$@"\n')
    guard.chmod(0o755)
    return replace(kernel, guard=guard)


def traced(experiment: Experiment, runs: Path) -> RunDirectory:
    """Run it as if in a container, the protocol somebody else's, on the oldest kernel there is."""
    scenario = Scenario.of(experiment)
    with prepare(scenario, runs) as directory:
        kernel = confined(built_kernels()[-1], runs)
        older = engine.VirtualEngine(trusted=False, kernel=kernel)
        older.run(scenario, directory, silent)
    return directory


@pytest.mark.parametrize("index", [0, 1], ids=["overlay", "timestamp"])
def test_sixteen_nodes_are_exact_repeat_and_agree_with_the_simulator(
    index: int, kernel: Kernel, tmp_path: Path, spark: SparkSession
) -> None:
    experiment = load(DEFAULT, engine="virtual")[index]
    first, simulated = emulated(experiment, tmp_path, *SAME, "messages")
    second = traced(experiment, tmp_path)
    untraced = kernel.release.can_leave_untraced
    assert first.manifest["guest"]["mode"] == ("seccomp" if untraced else "ptrace")
    assert second.manifest["guest"]["mode"] == "ptrace"
    assert second.manifest["guest"]["addresses"] == "random"
    fidelity = first.manifest["fidelity"]
    assert fidelity["error_us_p999"] <= 5
    assert fidelity["dropped"] == first.summary["malformed"] == 0
    # the same seed, the same run, however programs run in the guest and wherever in memory
    assert events(first.path) == events(second.path)
    ours, theirs = (read_packets(r.path / "packets") for r in (first, second))
    assert len(ours) == len(theirs) > first.summary["hops"]
    # the start depends on how often the clock was read before, which costs a nanosecond each
    assert (ours.time - ours.time[0] == theirs.time - theirs.time[0]).all()
    for column in ("interface", "length", "source", "destination", "fragment"):
        assert (getattr(ours, column) == getattr(theirs, column)).all()
    # another engine, the same experiment
    mean = simulated.summary["delay_ms_mean"]
    assert abs(first.summary["delay_ms_mean"] - mean) <= 0.02 * mean
    digest(first.path, spark)
    assert_explained(first.path, 3200)


def test_messages_above_the_mtu_travel_as_fragments(tmp_path: Path) -> None:
    workload = {"model": "steady", "senders": 2, "duration_ms": 20, "interval_ms": 10}
    changes = {"workload": {**workload, "payload_bytes": 4000}}
    protocols = ({"name": "timestamp", "multicast": m} for m in ("network", "unicast"))
    for protocol in protocols:
        done, _ = emulated(small(protocol, **changes), tmp_path, *SAME, "messages")
        assert done.summary["messages"] == 3 * done.summary["copies"]


def test_the_mininet_engine_in_real_time(tmp_path: Path) -> None:
    """The same kernel without time travel: order holds, and the verdict on timing is an honest one."""
    experiment = small({"name": "timestamp"})
    scenario = Scenario.of(experiment)
    with prepare(scenario, tmp_path) as directory:
        figures = engine.VirtualEngine(virtual=False).run(scenario, directory, silent)
    assert figures["deliveries"] == 5 * figures["multicasts"] > 0
    assert figures["fidelity"] in ("good", "suspect")
    assert directory.manifest["fidelity"]["hops"] == figures["hops"] == 4 * figures["multicasts"]


def test_answers_at_once_are_exact_and_agree_with_the_simulator(tmp_path: Path) -> None:
    emulated(small({"name": "overlay"}), tmp_path, "deliveries", "bytes", "hops")
    timestamp = run(small({"name": "timestamp"}), tmp_path)
    assert timestamp.summary["fidelity"] == "exact"
    assert timestamp.verdict.ok


@pytest.mark.parametrize(("harm", "word"), [("kill", "died"), ("stop", "hangs")])
def test_a_host_that_dies_or_hangs_is_told(harm: str, word: str, tmp_path: Path) -> None:
    workload = {"model": "steady", "senders": 2, "duration_ms": 3000, "interval_ms": 100}
    experiment = small({"name": "timestamp"}, workload=workload)
    with prepare(Scenario.of(experiment), tmp_path) as directory:
        pass
    said = module_in_guest("faulty_hosts", directory.path, harm, results=directory.path)
    lines = said.stdout.splitlines()
    assert any(line.startswith("told: the process of host h3 ") and word in line for line in lines)
    assert "none left" in lines


def test_testbed_run_takes_the_mininet_engine_by_itself(tmp_path: Path) -> None:
    """In the guest there are root, netem and Open vSwitch: there, auto is mininet."""
    file = tmp_path / "small.toml"
    file.write_text(small({"name": "overlay"}, engine="auto").to_toml())
    command = Path(sys.executable).with_name("testbed")
    words = ("run", file, "--no-digest", "--runs", tmp_path)
    said = in_guest(command, *words, results=tmp_path)
    assert said.result.returncode == 0, said.stdout
    assert "engine mininet: root, netem and Open vSwitch are here" in said.stdout
    assert "network: exact" in said.stdout
    assert json.loads((tmp_path / "small" / "latest" / "manifest.json").read_text())["status"] == (
        "complete"
    )


def test_a_failed_emulation_leaves_a_manifest_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MEMORY_MB", 8)  # too little to boot with
    monkeypatch.setattr(engine, "MEMORY_MB_PER_NODE", 0)
    with pytest.raises(UserError, match=r"console\.log"):
        run(small({"name": "timestamp"}), tmp_path)
    manifest = json.loads((tmp_path / "small" / "latest" / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "console.log" in manifest["error"]
    assert not (tmp_path / "small" / "latest" / "summary.json").exists()
