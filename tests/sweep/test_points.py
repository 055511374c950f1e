"""Sweeps: what a file with lists expands to, what identifies a point, what is averaged how."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.cli import main
from testbed.errors import UserError
from testbed.experiment import Experiment, parse
from testbed.report.trends import brief, draw_trends, logarithmic, short, x_key
from testbed.run import run_experiment
from testbed.sweep.points import (
    Sweep,
    averages,
    cost,
    describe,
    dimensions,
    expand,
    finished,
    load_sweep,
    locked,
    protocol_labels,
    remove_unfinished,
    results,
    run_point,
    swept_keys,
)

FILE = Path("x.toml")
PLAIN: dict[str, Any] = {
    "name": "small",
    "protocol": {"name": "overlay"},
    "topology": {"model": "pure-random", "nodes": 8, "edge_probability": 0.5},
    "workload": {"model": "bursts", "senders": 2, "burst": 1, "duration_ms": 1},
}
SIZES = [
    {"model": "pure-random", "nodes": 8, "edge_probability": 0.5},
    {"model": "pure-random", "nodes": 12, "edge_probability": 0.4},
]
TIMESTAMPS = {"name": "timestamp", "multicast": ["network", "unicast"]}


def with_(**tables: Any) -> dict[str, Any]:
    return {
        **PLAIN,
        **{k: {**PLAIN[k], **v} if isinstance(v, dict) else v for k, v in tables.items()},
    }


def sweep_of(**tables: Any) -> Sweep:
    return Sweep.of(expand(with_(**tables), FILE))


def run_all(sweep: Sweep, runs: Path, points: Iterable[str] | None = None) -> None:
    (runs / sweep.within).mkdir(parents=True, exist_ok=True)
    for point in sweep.points if points is None else points:
        assert run_point(sweep.within, point, sweep.points[point], runs) is None


def test_a_file_without_lists_is_one_point() -> None:
    assert expand(PLAIN, FILE) == parse(PLAIN, FILE)


@given(
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3),
    nodes=st.lists(st.integers(8, 99), min_size=1, max_size=3),
    sizes=st.lists(st.integers(0, 999), min_size=1, max_size=3),
)
def test_lists_expand_to_every_combination(
    seeds: list[int], nodes: list[int], sizes: list[int]
) -> None:
    document = with_(seed=seeds, topology={"nodes": nodes}, workload={"payload_bytes": sizes})
    points = [(p.seed, p.topology.nodes, p.workload.payload_bytes) for p in expand(document, FILE)]
    assert sorted(points) == sorted(product(seeds, nodes, sizes))


def test_where_a_key_takes_a_list_it_is_one_value_and_a_list_of_lists_is_a_dimension() -> None:
    (one,) = expand({**PLAIN, "links": {"delay_ms": [0.0, 5.0]}}, FILE)
    assert one.links.delay_ms == (0.0, 5.0)
    both = expand({**PLAIN, "links": {"delay_ms": [[0.0, 1.0], [0.0, 5.0], 3.0]}}, FILE)
    assert [p.links.delay_ms for p in both] == [(0.0, 1.0), (0.0, 5.0), 3.0]
    three = expand({**PLAIN, "links": {"delay_ms": [1.0, 2.0, 3.0]}}, FILE)
    assert [p.links.delay_ms for p in three] == [1.0, 2.0, 3.0]


def test_an_array_of_tables_gives_alternatives_whose_values_go_together() -> None:
    points = expand(with_(topology=SIZES, seed=[1, 2]), FILE)
    found = {(p.topology.nodes, p.topology.edge_probability) for p in points}
    assert found == {(8, 0.5), (12, 0.4)}
    assert len(points) == 4


def test_lists_in_alternatives_and_in_tables_within_tables_are_dimensions() -> None:
    protocols = [{"name": "overlay"}, TIMESTAMPS]
    assert len(expand(with_(protocol=protocols, topology=SIZES), FILE)) == 6
    levels = {"model": "transit-stub", "stub": {"nodes": [2, 3, 4]}}
    points = expand({**PLAIN, "topology": levels}, FILE)
    assert [p.topology.stub.nodes for p in points] == [2, 3, 4]


def test_lists_in_faults_are_dimensions_and_all_faults_are_there() -> None:
    faults = [
        {"kind": "loss", "rate": [0.0, 0.1]},
        {"kind": "partition", "nodes": [1, 2], "at_ms": [1, 2, 3]},
        {"kind": ["crash", "pause"], "node": 3},
    ]
    points = expand(with_(fault=faults), FILE)
    assert {tuple(fault.kind for fault in e.faults) for e in points} == {
        ("loss", "partition", "crash"),
        ("loss", "partition", "pause"),
    }
    found = {(e.faults[0].rate, e.faults[1].at_ms, e.faults[1].nodes) for e in points}
    assert found == {(r, t, (1, 2)) for r in (0.0, 0.1) for t in (1, 2, 3)}
    assert len(points) == 12
    keys = swept_keys(Sweep.of(points))
    assert {"fault.1.rate", "fault.2.at_ms", "fault.3.kind"} <= set(keys)


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


def test_models_may_be_listed_and_each_brings_its_own_keys() -> None:
    points = expand({**PLAIN, "topology": {"model": ["ring", "line"], "nodes": [8, 9]}}, FILE)
    assert [(p.topology.model, p.topology.nodes) for p in points] == [
        ("ring", 8),
        ("ring", 9),
        ("line", 8),
        ("line", 9),
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (with_(seed=[1, "two"]), "seed = 'two': should be a valid integer"),
        (with_(seed=[]), "seed = []: give at least one value"),
        (with_(topology={"nodes": []}), "topology.nodes = []: give at least one value"),
        (with_(topology={"nodes": [8, -1]}), "topology"),
        (with_(topology={"nodez": [8, 9]}), "did you mean 'nodes'?"),
        (with_(topology={"model": ["pure-random", "pure"]}), "topology.model = 'pure' is unknown"),
        (with_(protocol=[]), "protocol is empty"),
        (with_(name=["a", "b"]), "give one"),
    ],
)
def test_what_is_wrong_in_a_list_is_said_in_one_sentence(
    document: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError) as error:
        Sweep.of(expand(document, FILE))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "document",
    [
        with_(seed=[1, 2]),
        with_(topology={"nodes": [8, 9]}),
        with_(topology={"model": ["ring", "line"]}),
        with_(topology=SIZES),
        with_(protocol=TIMESTAMPS),
        with_(engine=["simulate", "virtual"]),
        {**PLAIN, "links": {"delay_ms": [[0.0, 1.0], [0.0, 5.0]]}},
    ],
)
def test_run_says_that_lists_are_for_sweep(document: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="`testbed sweep`"):
        parse(document, FILE)


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


def frame(rows: list[tuple[int, str, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"topology.nodes": n, "protocol": p, "seed": i, "verdict": "valid", "hops": v}
            for i, (n, p, v) in enumerate(rows)
        ]
    )


def test_averages_have_the_half_width_of_students_t() -> None:
    # t(0.975) with 3 degrees of freedom is 3.18245 in every table
    values = [10.0, 12.0, 9.0, 13.0]
    (row,) = averages(frame([(8, "a", v) for v in values])).to_dict("records")
    assert row["mean"] == pytest.approx(mean(values))
    assert row["half_width"] == pytest.approx(3.18245 * stdev(values) / math.sqrt(4), rel=1e-5)
    assert (row["runs"], row["figure"]) == (4, "hops")


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_averages_agree_with_scipys_interval(values: list[float]) -> None:
    from scipy import stats

    (row,) = averages(frame([(8, "a", v) for v in values])).to_dict("records")
    scale = stats.sem(values)
    assert row["mean"] == pytest.approx(mean(values), abs=1e-6)
    if scale > 0:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=mean(values), scale=scale)
        assert row["half_width"] == pytest.approx((high - low) / 2, abs=1e-6)


def test_one_run_has_no_spread_and_groups_are_kept_apart() -> None:
    found = averages(frame([(8, "a", 1.0), (8, "b", 2.0), (9, "a", 3.0), (9, "a", 5.0)]))
    rows = {(r["topology.nodes"], r["protocol"]): r for r in found.to_dict("records")}
    assert math.isnan(rows[8, "a"]["half_width"])
    assert rows[8, "b"]["mean"] == 2.0
    assert (rows[9, "a"]["mean"], rows[9, "a"]["runs"]) == (4.0, 2)


def test_a_key_that_follows_from_others_is_no_dimension() -> None:
    trends = averages(
        pd.DataFrame(
            {"nodes": n, "probability": 1 / n, "data": d, "protocol": "a", "hops": 1.0}
            for n in (8, 16)
            for d in (0, 100)
        )
    )
    assert dimensions(trends) == ["nodes", "data"]
    assert dimensions(trends, first="data") == ["data", "nodes"]


def test_results_have_swept_keys_protocol_verdict_and_figures(tmp_path: Path) -> None:
    sweep = sweep_of(seed=[1, 2], topology=SIZES)
    run_all(sweep, tmp_path)
    table = results(sweep, finished(tmp_path / sweep.within, sweep))
    assert list(table["topology.nodes"]) == [p.topology.nodes for p in sweep.points.values()]
    assert set(table["verdict"]) == {"valid"}
    assert set(table["protocol"]) == {"overlay"}
    trends = averages(table)
    assert set(trends["runs"]) == {2}
    assert {"hops", "delay_ms_mean"} <= set(trends["figure"])
    assert not {"seed", "nodes", "topology.nodes"} & set(trends["figure"])


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
    assert remove_unfinished(directory, sweep) == 2
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
    broken = replace(experiment, topology=None)
    assert "AttributeError" in str(run_point("s", "p", broken, tmp_path))


def test_a_second_sweep_is_kept_out(tmp_path: Path) -> None:
    def enter() -> None:
        with locked(tmp_path / "s"):
            pass

    with locked(tmp_path / "s"), pytest.raises(UserError, match="running already"):
        enter()
    enter()


def test_x_is_system_size_else_the_number_with_most_values_else_the_first_key() -> None:
    columns = {"protocol": "a", "figure": "hops", "mean": 1.0, "half_width": 0.1, "runs": 2}

    def trends(**keys: Any) -> pd.DataFrame:
        names = [name.replace("_", ".") for name in keys]
        return pd.DataFrame(
            [dict(zip(names, c, strict=True)) | columns for c in product(*keys.values())]
        )

    assert x_key(trends(workload_rate=[1, 2, 3], topology_nodes=[8, 9])) == "topology.nodes"
    assert x_key(trends(a=[1, 2], b=[1, 2, 3], c=["x", "y", "z", "w"])) == "b"
    assert x_key(trends(c=["x", "y"])) == "c"
    assert x_key(pd.DataFrame([columns])) is None


def test_a_plot_for_each_trend_and_combination(tmp_path: Path) -> None:
    sweep = sweep_of(topology=SIZES, workload={"payload_bytes": [0, 100]}, seed=[1, 2])
    run_all(sweep, tmp_path)
    trends = averages(results(sweep, finished(tmp_path / sweep.within, sweep)))
    files = draw_trends(trends, tmp_path / "figures")
    assert len(files) == 5 * 2
    assert "delay-payload-bytes-100.svg" in {file.name for file in files}
    for file in files:
        assert file.read_bytes().startswith(b"<?xml")
        assert file.with_suffix(".png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.00234, "0.00234"), (9999, "9999"), (12345, "12.3 k"), (3.14e6, "3.14 M")],
)
def test_numbers_are_brief(value: float, text: str) -> None:
    assert brief(value) == text


def test_an_axis_is_logarithmic_only_for_positive_values_far_apart() -> None:
    assert logarithmic([1, 100])
    assert not logarithmic([1, 10])
    assert not logarithmic([0, 100])
    assert not logarithmic([])


def test_run_refuses_a_sweep_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        'name = "x"\nseed = [1, 2]\nprotocol.name = "overlay"\ntopology.model = "ring"\n'
    )
    assert main(["run", str(file)]) == 2
    assert "`testbed sweep`" in capsys.readouterr().err


def test_an_experiment_runs_where_it_always_did(tmp_path: Path) -> None:
    experiment: Experiment
    (experiment,) = expand(PLAIN, FILE)
    run = run_experiment(experiment, tmp_path, lambda stage, done, of: None)
    assert run.path.parent == tmp_path / "small"
