"""Runs side by side: what differs, how much, and what cannot be compared."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine
from tests.experiments import SMALL, parsed, run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Overlay, Timestamp, and Overlay with more data."""
    overlay, timestamp = SMALL["protocol"]
    longer = {**SMALL["workload"], "payload_bytes": 100}
    experiments = [
        parsed(SMALL, protocol=overlay),
        parsed(SMALL, protocol=timestamp),
        parsed(SMALL, protocol=overlay, workload=longer),
    ]
    place = tmp_path_factory.mktemp("runs")
    return [run(experiment, place).path for experiment in experiments]


def summary(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "summary.json").read_text())
    return content


def edited(run: Path, name: str, place: Path, **changes: Any) -> Path:
    """A copy of a run with a few entries changed in one of its files."""
    shutil.copytree(run, place)
    content = json.loads((place / name).read_text())
    (place / name).write_text(json.dumps({**content, **changes}))
    return place


def test_figures_come_with_their_ratio_to_the_first(runs: list[Path], testbed: CommandLine) -> None:
    out = testbed("compare", *runs).out
    ratio = summary(runs[2])["bytes"] / summary(runs[0])["bytes"]
    (line,) = (line for line in out.splitlines() if line.startswith("bytes sent"))
    assert line.endswith(f"×{ratio:.2f}")
    assert "workload.payload_bytes" in out
    assert out.count("valid") == 3
    assert "topology.nodes" not in out


def test_small_differences_are_shown_as_such(
    runs: list[Path], tmp_path: Path, testbed: CommandLine
) -> None:
    figures = summary(runs[0])
    later = figures["delay_ms_mean"] + 42e-6
    near = edited(
        runs[0], "summary.json", tmp_path / "near", delay_ms_mean=later, bytes=figures["bytes"] + 1
    )
    out = testbed("compare", runs[0], near).out
    assert "+42 ns" in next(line for line in out.splitlines() if line.startswith("delay, mean"))
    assert next(line for line in out.splitlines() if line.startswith("bytes sent")).endswith(" +1")


def test_a_directory_of_runs_stands_for_all_of_them(runs: list[Path], testbed: CommandLine) -> None:
    assert testbed("compare", runs[0].parent).out == testbed("compare", *sorted(runs)).out
    assert testbed("check", runs[0].parent).out.count(": valid\n") == 3


def test_json_has_the_differences_all_figures_and_all_ratios(
    runs: list[Path], testbed: CommandLine
) -> None:
    found = testbed("compare", *runs[:2], "--json").json()
    assert found["differ"]["protocol.name"] == ["overlay", "timestamp"]
    assert set(found["differ"]) == {"protocol.name", "protocol.multicast"}
    first, second = found["runs"]
    assert second["figures"] == summary(runs[1])
    expected = summary(runs[1])["hops"] / summary(runs[0])["hops"]
    assert second["ratios"]["hops"] == pytest.approx(expected)
    assert set(first["ratios"].values()) == {1.0}


def test_nothing_is_divided_by_nothing(runs: list[Path], testbed: CommandLine) -> None:
    assert summary(runs[0])["control_bytes"] == 0
    found = testbed("compare", *runs[:2], "--json").json()
    assert "control_bytes" not in found["runs"][1]["ratios"]


def test_runs_that_are_missing_or_unfinished_are_named_and_the_rest_is_compared(
    runs: list[Path], tmp_path: Path, testbed: CommandLine
) -> None:
    stopped = edited(runs[0], "manifest.json", tmp_path / "stopped", status="interrupted")
    captured = testbed("compare", runs[0], tmp_path / "nowhere", stopped, runs[1], status=2)
    assert "nowhere: no such run directory" in captured.err
    assert "the run is interrupted" in captured.err
    assert "2 timestamp" in captured.out


def test_nothing_to_compare_is_no_crash(tmp_path: Path, testbed: CommandLine) -> None:
    said = testbed("compare", tmp_path / "nowhere", "--json", status=2)
    assert said.json() == {"runs": [], "differ": {}}


def test_a_violation_and_a_suspect_network_are_shown(
    runs: list[Path], tmp_path: Path, testbed: CommandLine
) -> None:
    invalid = edited(runs[0], "manifest.json", tmp_path / "invalid", verdict="invalid")
    suspect = edited(
        runs[1], "manifest.json", tmp_path / "suspect", fidelity={"verdict": "suspect"}
    )
    assert "suspect" in testbed("compare", runs[0], suspect).out.splitlines()[-1]
    assert "invalid" in testbed("compare", runs[0], invalid, status=1).out
