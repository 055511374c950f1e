"""The tables of a sweep: what is averaged how, and what is drawn of it."""

import math
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.report.trends import brief, draw_trends, logarithmic, x_key
from testbed.sweep.directory import finished
from testbed.sweep.tables import averages, dimensions, results
from tests.sweep.small import SIZES, run_all, sweep_of


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
    assert list(table["topology.nodes"]) == [
        vars(p.topology)["nodes"] for p in sweep.points.values()
    ]
    assert set(table["verdict"]) == {"valid"}
    assert set(table["protocol"]) == {"overlay"}
    trends = averages(table)
    assert set(trends["runs"]) == {2}
    assert {"hops", "delay_ms_mean"} <= set(trends["figure"])
    assert not {"seed", "nodes", "topology.nodes"} & set(trends["figure"])


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
    files = [plot.file for plot in draw_trends(trends, tmp_path / "figures")]
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
