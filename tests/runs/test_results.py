"""A run's results in Python, and what is said when they are not there."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from testbed.errors import UserError
from testbed.runs import results
from testbed.runs.parts import COLUMNS
from tests.report.digested import write_run

ROOT = Path(__file__).parents[2]


def test_tables_are_data_frames_with_the_documented_columns(tmp_path: Path) -> None:
    run = results.load(write_run(tmp_path / "run"))
    for name, columns in COLUMNS.items():
        assert list(getattr(run, name).columns) == columns.split()
    assert len(run.messages) == 2
    assert run.deliveries.held.max() == 5_000_000


def test_the_columns_are_those_of_the_document() -> None:
    text = (ROOT / "docs/results.md").read_text()
    documented = {
        name: set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.M))))
        for name, table in re.findall(r"^\*\*(\w+)\*\*:.*?\n\n(.*?)\n\n", text, re.M | re.S)
    }
    assert documented == {name: set(its.split()) for name, its in COLUMNS.items()}


def test_a_run_says_what_was_run_and_on_which_network(tmp_path: Path) -> None:
    run = results.load(str(write_run(tmp_path / "run")))
    assert run.experiment.protocol.name == "timestamp"
    assert run.network.processes == 3
    assert run.summary["multicasts"] == 2
    assert run.manifest["engine"] == "simulate"
    assert run.path == tmp_path / "run"


def test_a_table_that_spark_wrote_as_a_directory_is_read_whole(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    table = path / "tables/messages.parquet"
    whole = pd.read_parquet(table)
    table.unlink()
    table.mkdir()
    (table / "_SUCCESS").touch()
    for part in (0, 1):
        whole.iloc[part : part + 1].to_parquet(table / f"part-{part:05}.snappy.parquet")
    pd.testing.assert_frame_equal(results.load(path).messages, whole)


def test_events_come_in_each_nodes_own_order(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    table = path / "tables/events.parquet"
    pd.read_parquet(table).iloc[::-1].to_parquet(table)
    events = results.load(path).events
    assert list(events["node"]) == sorted(events["node"])
    assert (events.groupby("node")["number"].diff().dropna() == 1).all()


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such run directory"):
        results.load(tmp_path / "nothing")


def test_a_directory_that_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run directory"):
        results.load(tmp_path)


def test_a_run_without_tables_names_the_command_that_makes_them(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 1}))
    with pytest.raises(UserError, match=re.escape(f"`testbed digest {tmp_path}`")):
        results.load(tmp_path)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "another"])
def test_a_damaged_table_names_the_command_that_mends_it(tmp_path: Path, damage: str) -> None:
    path = write_run(tmp_path / "run")
    table = path / "tables/hops.parquet"
    if damage == "missing":
        table.unlink()
    elif damage == "another":
        pd.DataFrame({"x": [1]}).to_parquet(table)
    else:
        table.write_bytes(table.read_bytes()[:100] if damage == "cut" else b"")
    with pytest.raises(UserError, match="testbed digest") as error:
        results.load(path).hops  # noqa: B018
    assert str(table) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_notebook_shows_figures_and_the_diagram(tmp_path: Path) -> None:
    run = results.load(write_run(tmp_path / "<run>"))
    assert "&lt;run&gt;" in run._repr_html_()
    assert "<tr><th>messages multicast</th><td>2</td></tr>" in run._repr_html_()
    with pytest.raises(UserError, match="testbed report"):
        run.spacetime()
    run.page.write_text('<head></head><section id="space-time-diagram">"quoted"</section>')
    frame = run.spacetime()._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "&quot;quoted&quot;" in frame
