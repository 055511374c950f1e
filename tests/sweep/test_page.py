"""The page of a sweep: what was run, in pairs, with links; and what pairs of runs amount to."""

import math
from pathlib import Path

import pandas as pd
import pytest

from testbed.report.sweep_page import write_page
from testbed.sweep.directory import finished
from testbed.sweep.pairs import paired
from testbed.sweep.points import settings_of
from testbed.sweep.tables import averages, results
from tests.sweep.small import run_all, sweep_of


def test_protocols_are_compared_seed_by_seed() -> None:
    """Seeds differ by far more than protocols do, which only pairs can see."""
    rows = [
        {"size": size, "protocol": name, "seed": seed, "delay": 100 * seed + size + more, "zero": 0}
        for size in (1, 2)
        for seed, later in ((1, 3.0), (2, 4.0), (3, 5.0))
        for name, more in (("a", 0.0), ("b", later))
    ]
    points = pd.DataFrame(rows)
    trends = averages(points)
    found = paired(points, trends, ["delay", "zero", "nothing"])
    one = found[(found["size"] == 1) & (found["figure"] == "delay")].iloc[0]
    assert (one["protocol"], one["base"], one["difference"]) == ("b", "a", 4.0)
    assert one["half_width"] == pytest.approx(4.302652729911275 / math.sqrt(3))  # t with 2 degrees
    ratios = [(100 * s + 1 + m) / (100 * s + 1) for s, m in ((1, 3), (2, 4), (3, 5))]
    assert one["ratio"] == pytest.approx(math.prod(ratios) ** (1 / 3))
    assert (one["seeds"], one["more"]) == (3, 3)
    zero = found[found["figure"] == "zero"]
    assert zero["ratio"].isna().all()
    assert len(found) == 4


def test_a_seed_that_only_one_protocol_has_is_no_pair() -> None:
    points = pd.DataFrame(
        {"protocol": ["a", "a", "b"], "seed": [1, 2, 2], "delay": [1.0, 2.0, 4.0]}
    )
    found = paired(points, averages(points), ["delay"])
    assert found["seeds"].tolist() == [1]
    assert found["difference"].tolist() == [2.0]
    assert math.isnan(found["half_width"].iloc[0])


def test_the_page_of_a_sweep_says_what_was_run_and_leads_to_its_runs(tmp_path: Path) -> None:
    protocols = [{"name": "overlay"}, {"name": "timestamp"}]
    links = {"delay_ms": [[0.0, 5.0]], "bandwidth_mbit": 10, "loss": 0.0}
    sweep = sweep_of(protocol=protocols, seed=[1, 2], links=[links], channel=["reliable"])
    run_all(sweep, tmp_path)
    directory = tmp_path / sweep.within
    points = results(sweep, finished(directory, sweep))
    settings = [settings_of(experiment) for experiment in sweep.points.values()]
    page = write_page(directory, points, averages(points), settings, [], ["<i>odd</i>"])
    assert "Networks of the model pure-random with 8 nodes; links of 10 Mbit/s" in page
    assert "channel: reliable; workload bursts with 2 senders" in page
    assert "timestamp – overlay" in page
    assert "of these control information" in page
    for run in points["run"]:
        assert f'<a href="{run}/experiment.toml">' in page
        assert (directory / run / "experiment.toml").exists()
    assert "&lt;i&gt;odd" in page
    assert page.index('href="#protocols-in-pairs"') < page.index('id="protocols-in-pairs"')
