"""Points of a sweep: what identifies them, what tells them apart, which have a run."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from testbed.errors import UserError
from testbed.experiment.expand import expand
from testbed.report.trends import short
from testbed.run import run_experiment
from testbed.sweep.directory import finished, locked, remove_unfinished
from testbed.sweep.points import Sweep, cost, describe, load_sweep, protocol_labels, swept_keys
from testbed.sweep.runner import run_point
from tests.sweep.small import FILE, PLAIN, SIZES, TIMESTAMPS, run_all, sweep_of, with_


def test_channels_are_told_apart_by_their_model() -> None:
    points = Sweep.of(expand(with_(channel=["raw", "reliable"]), FILE))
    assert "channel.model" in swept_keys(points)
    told = {describe(points, point) for point in points.points}
    assert {name for name in ("raw", "reliable") for t in told if f"= {name}" in t} == {
        "raw",
        "reliable",
    }
    assert [short(key) for key in ("channel.model", "fault.2.rate", "topology.nodes", "seed")] == [
        "channel",
        "fault 2 rate",
        "nodes",
        "seed",
    ]


def test_a_point_is_known_by_its_resolved_experiment() -> None:
    written_out = with_(seed=[2, 1], workload={"payload_bytes": 0}, protocol=[PLAIN["protocol"]])
    assert sweep_of(seed=[1, 2]).within == Sweep.of(expand(written_out, FILE)).within
    assert sweep_of(seed=[1, 2]).within != sweep_of(seed=[1, 3]).within
    assert len(sweep_of(seed=[1, 1]).points) == 1


def test_auto_is_settled_before_points_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "testbed.sweep.points.choose_engine", lambda engine: ("virtual", "for the test")
    )
    assert {p.engine for p in sweep_of(engine="auto").points.values()} == {"virtual"}


def test_swept_keys_are_those_that_differ_and_protocols_are_named_by_what_differs() -> None:
    sweep = sweep_of(seed=[1, 2], topology=SIZES, protocol=[{"name": "overlay"}, TIMESTAMPS])
    assert set(swept_keys(sweep)) == {
        "topology.nodes",
        "topology.edge_probability",
        "protocol.name",
        "protocol.multicast",
    }
    assert set(protocol_labels(sweep).values()) == {
        "overlay",
        "timestamp, network",
        "timestamp, unicast",
    }
    assert set(protocol_labels(sweep_of(protocol={"name": "timestamp"})).values()) == {"timestamp"}
    assert "overlay, topology.nodes = 8" in describe(sweep, next(iter(sweep.points)))


def test_protocols_that_differ_in_a_setting_that_only_one_has_are_told_apart() -> None:
    @dataclass(frozen=True)
    class Settings:
        window: int | None = None

    (plain,) = expand(PLAIN, FILE)
    points = [replace(plain, settings=Settings(window)) for window in (None, 4)]
    assert set(protocol_labels(Sweep.of(points)).values()) == {
        "overlay, window=None",
        "overlay, window=4",
    }


def test_larger_points_cost_more() -> None:
    small, large = expand(with_(topology=SIZES), FILE)
    assert cost(large) > cost(small) > 0
    (flood,) = expand(PLAIN, FILE)
    (vector,) = expand(with_(protocol={"name": "timestamp"}), FILE)
    assert cost(flood) > cost(vector)


def test_finished_runs_are_kept_and_others_removed(tmp_path: Path) -> None:
    sweep = sweep_of(seed=[1, 2, 3])
    done, stopped, _ = sweep.points
    run_all(sweep, tmp_path, [done, stopped])
    directory = tmp_path / sweep.within
    victim = finished(directory, sweep)[stopped]
    manifest = json.loads((victim / "manifest.json").read_text())
    (victim / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    (directory / "20260101-000000-overlay-8" / "events").mkdir(parents=True)
    (directory / "figures").mkdir()
    assert remove_unfinished(directory) == 2
    assert set(finished(directory, sweep)) == {done}
    assert not victim.exists()
    assert (directory / "figures").exists()


def test_runs_of_a_sweep_name_their_point_and_lie_in_its_directory(tmp_path: Path) -> None:
    sweep = sweep_of()
    run_all(sweep, tmp_path)
    ((point, path),) = finished(tmp_path / sweep.within, sweep).items()
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["point"] == point
    assert path == tmp_path / manifest["experiment"] / manifest["run"]
    assert load_sweep(path / "experiment.toml").points == {point: sweep.points[point]}


def test_a_point_that_fails_gives_its_reason(tmp_path: Path) -> None:
    (experiment,) = expand(with_(workload={"senders": 99}), FILE)
    (tmp_path / "s").mkdir()
    assert "only 8 nodes" in str(run_point("s", "p", experiment, tmp_path))
    broken = replace(experiment, topology=None)  # type: ignore[arg-type]
    assert "AttributeError" in str(run_point("s", "p", broken, tmp_path))


def test_a_second_sweep_is_kept_out(tmp_path: Path) -> None:
    def enter() -> None:
        with locked(tmp_path / "s"):
            pass

    with locked(tmp_path / "s"), pytest.raises(UserError, match="running already"):
        enter()
    enter()


def test_an_experiment_runs_where_it_always_did(tmp_path: Path) -> None:
    (experiment,) = expand(PLAIN, FILE)
    run = run_experiment(experiment, tmp_path, lambda stage, done, of: None)
    assert run.path.parent == tmp_path / "small"
