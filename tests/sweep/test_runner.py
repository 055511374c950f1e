"""Sweeps on Spark: killed half-way and resumed, with points that fail and workers that die."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
import tomli_w

from scripts.hostility.own import FIFO, written
from testbed.cli import main
from testbed.experiment import parse
from testbed.runs import results
from testbed.spark.session import session
from testbed.sweep.directory import finished
from testbed.sweep.points import Sweep, load_sweep
from testbed.sweep.runner import run_tasks
from testbed.topologies import Model

COMMAND = [sys.executable, "-m", "testbed"]
ROOT = Path(__file__).parents[2]
DOCUMENT: dict[str, Any] = {
    "name": "small",
    "seed": [1, 2, 3],
    "protocol": [{"name": "overlay"}, {"name": "timestamp"}],
    "topology": [
        {"model": "pure-random", "nodes": 12, "edge_probability": 0.4},
        {"model": "pure-random", "nodes": 24, "edge_probability": 0.3},
    ],
    "workload": {"model": "bursts", "duration_ms": 2, "payload_bytes": [0, 100]},
}
PATIENCE_S = 300


def start(file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "sweep", str(file), "--runs", str(file.parent / "runs"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def manifests(directory: Path) -> dict[str, dict[str, Any]]:
    return {
        file.parent.name: json.loads(file.read_text())
        for file in directory.glob("2*/manifest.json")
    }


def complete(directory: Path) -> dict[str, str]:
    """The runs that are complete, and when they ended."""
    return {
        name: manifest["ended"]
        for name, manifest in manifests(directory).items()
        if manifest["status"] == "complete"
    }


def wait_for_runs(directory: Path, number: int, sweep: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(complete(directory)) < number:
        assert sweep.poll() is None, sweep.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_stopped_goes_on_where_it_was(tmp_path: Path, how: signal.Signals) -> None:
    file = tmp_path / "small.toml"
    file.write_text(tomli_w.dumps(DOCUMENT))
    sweep = load_sweep(file)
    directory = tmp_path / "runs" / sweep.within
    first = start(file)
    wait_for_runs(directory, 3, first)
    os.kill(first.pid, how)
    assert first.wait(PATIENCE_S) == (-how if how is signal.SIGKILL else 130)
    kept = complete(directory)
    assert 3 <= len(kept) < len(sweep.points) == 24

    out, err = start(file).communicate(timeout=PATIENCE_S)
    assert "resuming: " in err
    ended = complete(directory)
    assert kept.items() <= ended.items()
    assert sorted(manifest["point"] for manifest in manifests(directory).values()) == sorted(
        sweep.points
    )
    assert len(json.loads(out)["points"]) == 24
    assert_tables_and_report_are_there(directory)


def assert_tables_and_report_are_there(directory: Path) -> None:
    points = pd.read_parquet(directory / "points.parquet")
    assert set(points["verdict"]) == {"valid"}
    assert len(points) == 24
    swept = results.load(directory)
    assert set(swept.trends["runs"]) == {3}
    assert swept.points.equals(points)
    assert len(swept.runs) == 24
    assert "<table" in swept._repr_html_()
    assert main(["check", str(directory)]) == 0  # all its runs
    assert len(list((directory / "figures").glob("*.svg"))) == 6 * 2
    page = (directory / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 12
    assert "testbed sweep sweep.toml" in page
    assert (
        load_sweep(directory / "sweep.toml").points
        == load_sweep(directory.parents[2] / "small.toml").points
    )


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    with session("local[2]") as spark:
        yield spark.sparkContext


def test_points_that_fail_and_workers_that_die_do_not_stop_the_others(
    tmp_path: Path, context: Any
) -> None:
    @dataclass(frozen=True)
    class Deadly(Model, model="deadly"):
        """A topology that ends the process that generates it."""

        nodes: int = 12

        def generate(self, rng: random.Random) -> "nx.Graph[int]":
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

    plain = {**DOCUMENT, "protocol": {"name": "overlay"}, "topology": DOCUMENT["topology"][0]}
    good = [
        parse({**plain, "seed": seed, "workload": {"model": "bursts"}}, tmp_path)[0]
        for seed in range(1, 5)
    ]
    crowded = replace(good[0], workload=replace(good[0].workload, senders=99))
    deadly = replace(good[0], topology=Deadly())
    sweep = Sweep.of([crowded, deadly, *good])
    (tmp_path / sweep.within).mkdir(parents=True)
    outcomes = dict(run_tasks(context, sweep, list(sweep.points), tmp_path))
    wrong, dead, *right = (outcomes[point] for point in sweep.points)
    assert "only 12 nodes" in str(wrong)
    assert "its worker died" in str(dead)
    assert right == [None] * 4
    assert set(finished(tmp_path / sweep.within, sweep)) == set(list(sweep.points)[2:])


def test_a_protocol_in_a_file_of_its_own_travels_to_the_workers(
    tmp_path: Path, context: Any
) -> None:
    file = written(tmp_path)
    text = (tmp_path / "own.toml").read_text()
    (tmp_path / "own.toml").write_text(f"seed = [1, 2]\n{text}")
    sweep = load_sweep(tmp_path / "own.toml")
    file.unlink()
    (tmp_path / sweep.within).mkdir(parents=True)
    outcomes = dict(run_tasks(context, sweep, list(sweep.points), tmp_path))
    assert outcomes == dict.fromkeys(sweep.points)
    kept = (tmp_path / sweep.within).glob("*fifo*/protocol/fifo.py")
    assert [path.read_text() for path in kept] == [FIFO, FIFO]


def test_a_failed_point_is_told_and_the_exit_status_is_two(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    workload = {"model": "bursts", "senders": [3, 99], "duration_ms": 1}
    file.write_text(
        tomli_w.dumps(
            {**DOCUMENT, "seed": 1, "workload": workload, "protocol": {"name": "overlay"}}
        )
    )
    sweep = start(file)
    out, err = sweep.communicate(timeout=PATIENCE_S)
    assert sweep.returncode == 2
    assert len(json.loads(out)["points"]) == 2
    assert "failed: overlay, topology.nodes = 12" in err
    assert "only 12 nodes" in err
