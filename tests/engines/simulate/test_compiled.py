"""The compiled simulator: the same logs to the byte, and never one of other sources."""

import ast
import os
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from testbed import compiled
from testbed.engines.simulate.heap import Heap
from testbed.engines.simulate.links import Destination, Flight, Hop, Link, Packet, Scheduler
from testbed.engines.simulate.packed_heap import Heap as PackedHeap
from testbed.protocols import Message
from testbed.runs.directory import RunDirectory

HARSH: dict[str, Any] = {  # what a link can do to packets
    "name": "harsh",
    "protocol": [{"name": "overlay"}, {"name": "timestamp"}],
    "topology": {"model": "pure-random", "nodes": 12, "edge_probability": 0.3},
    "links": {"delay_ms": [0.0, 1.0], "bandwidth_mbit": 2, "queue_packets": 8, "loss": 0.01},
    "transport": {"mtu": 100},
    "channel": "reliable",
    "workload": {"model": "poisson", "rate_per_s": 50, "duration_ms": 150, "payload_bytes": 150},
    "fault": [
        {"kind": "duplication", "rate": 0.05},
        {"kind": "reordering", "rate": 0.05},
        {"kind": "link-down", "at_ms": 40, "for_ms": 50},
        {"kind": "slow", "factor": 2, "at_ms": 70, "for_ms": 50},
        {"kind": "pause", "node": 3, "at_ms": 50, "for_ms": 30},
    ],
}
CHANNELS: dict[str, Any] = {
    "name": "channels",
    "protocol": [{"name": "ks"}],
    "topology": {"model": "exponential-channels", "nodes": 12, "mean_ms": 10},
    "workload": {"model": "poisson", "rate_per_s": 50, "duration_ms": 300},
}


@pytest.mark.skipif(compiled.compiled() is None, reason="the simulator's core is not compiled here")
@pytest.mark.parametrize("document", [HARSH, CHANNELS], ids=lambda document: document["name"])
def test_compiled_or_not_runs_are_identical_to_the_byte(
    document: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(document))
    found = []
    for core, environment in (("compiled", {}), ("Python", {"TESTBED_PURE": "1"})):
        words = ["run", str(file), "--engine=simulate", "--packets=full", "--no-digest", "--runs"]
        command = [sys.executable, "-m", "testbed", *words, str(tmp_path / core)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
        runs = sorted(
            (tmp_path / core / document["name"]).glob("2*"), key=lambda run: run.name[15:]
        )
        assert len(runs) == len(document["protocol"])
        directories = [RunDirectory(run) for run in runs]
        assert {directory.manifest["simulator"] for directory in directories} == {core}
        found.append(
            [
                (each.event_log().read_bytes(), each.packet_table.read_bytes(), each.summary)
                for each in directories
            ]
        )
    assert found[0] == found[1]
    assert all(len(log) > 1000 for log, *_ in found[0])


def test_all_sources_that_compiled_code_rests_on_are_part_of_its_name() -> None:
    imported = set()
    for module in compiled.MODULES:
        for node in ast.walk(ast.parse(compiled.source(module).read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("testbed"):
                names = vars(import_module(str(node.module)))
                imported |= {
                    getattr(names[name.name], "__module__", node.module) for name in node.names
                }
    known = {*compiled.MODULES, *compiled.USED, "typing", "builtins"}
    assert {name for name in imported if str(name).startswith("testbed")} <= known


def test_a_changed_source_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled.directory()
    changed = tmp_path / "changed.py"
    last = compiled.source(compiled.MODULES[-1])
    changed.write_bytes(last.read_bytes() + b"\n")
    source = compiled.source
    monkeypatch.setattr(
        compiled, "source", lambda module: changed if source(module) == last else source(module)
    )
    assert compiled.directory() != before


def test_a_link_that_goes_down_loses_a_long_queue() -> None:
    """Packets are chained, and what is chained is not to be freed by recursion."""
    link = Link(1, 0, 1, 1000, 10_000_000, 0, 0.0)
    hop, packet = Hop(link, (), True, 1), Packet(Message(0, 1), 0, 100, 0, 1, 1)
    scheduler = Scheduler([link], Destination(), random.Random(1))
    for _ in range(100_000):
        scheduler.transmit(Flight(hop, packet), 0)
    assert link.longest == 99_999
    scheduler.cut(link)
    assert (link.lost, link.queue(0), scheduler.run()) == (100_000, 0, 0)


def test_both_heaps_keep_the_same_order() -> None:
    rng = random.Random(1)
    one, other = Heap(), PackedHeap()
    due: list[tuple[int, int]] = []
    for _ in range(3000):
        time, number = rng.randrange(50), rng.randrange(50)
        what = rng.choice(["push", "push", "replace", "pop", "remove"])
        due.sort()
        if what == "push" or not due:
            due.append((time, number))
            one.push(time, number)
            other.push(time, number)
        elif what == "replace":
            due[0] = time, number
            one.replace(time, number)
            other.replace(time, number)
        elif what == "pop":
            due.pop(0)
            one.pop()
            other.pop()
        else:
            gone = due.pop(rng.randrange(len(due)))
            one.remove(*gone)
            other.remove(*gone)
        first = min(due)[1] if due else -1
        assert one.first() == other.first() == first
