"""The table of figures: documented, complete, and open to what a protocol counts."""

import json
import re
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest
import tomli_w
from typing_extensions import override

from testbed import figures
from testbed.commands.sweep import table_of
from testbed.protocols import PROTOCOLS, Count, Effects, Figure, Ratio
from testbed.protocols.timestamp import Timestamp, VectorMessage
from testbed.report.tables import figures_table
from testbed.report.trends import trends_in
from testbed.runs import results
from tests.command_line import CommandLine
from tests.experiments import SMALL, parsed, run
from tests.report.digested import write_run


class MadeUp(Timestamp):
    """Timestamp, which also counts what comes in."""

    name: ClassVar[str] = "made-up"
    figures: ClassVar[tuple[Figure, ...]] = (
        Ratio("receipts_per_message", "receipts", "a message", of="receipts", per="multicasts"),
        Ratio("squared", "receipts", "%", of="receipts", per="multicasts", percent_of_n2=True),
        Figure("receipts", "receipts in all", short="receipts"),
        Ratio("nothing", "of nothing", of="receipts", per="none"),
    )

    @override
    def receive(self, message: VectorMessage, sender: int, now: int) -> Effects:
        yield Count("receipts")
        yield from super().receive(message, sender, now)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, MadeUp.name, MadeUp)


def test_every_figure_is_documented_as_tables_call_it() -> None:
    text = (Path(__file__).parents[1] / "docs" / "results.md").read_text()
    section = text.split("**summary.json**")[1]
    documented = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.M))
    assert documented == {key: figure.title for key, figure in figures.table().items()}


def test_a_key_stands_in_the_table_once_and_numbers_can_be_written() -> None:
    own = {figure for protocol in PROTOCOLS.values() for figure in protocol.figures}
    all_figures = (*figures.GIVEN, *figures.MEASURED, *own, *figures.CHECKED)
    assert len(all_figures) == len(figures.table())
    for figure in all_figures:
        assert figure.text(None) == "-"
        assert figure.text(1234 if figure.form else "valid").startswith(("1,234", "valid"))


@pytest.mark.parametrize("name", ["overlay", "timestamp"])  # which count nothing themselves
def test_the_table_has_all_that_a_run_is_measured_by(name: str, tmp_path: Path) -> None:
    summary = run(parsed(SMALL, protocol={"name": name}), tmp_path).summary
    assert {key for key in summary if not key.startswith("discarded_")} <= figures.table().keys()


@pytest.mark.usefixtures("made_up")
def test_a_protocols_own_counters_are_measured_and_shown(
    tmp_path: Path, testbed: CommandLine
) -> None:
    file, runs = tmp_path / "x.toml", tmp_path / "runs"
    file.write_text(tomli_w.dumps(SMALL | {"protocol": {"name": MadeUp.name}}))
    said = testbed("run", file, "--engine", "simulate", "--no-digest", "--runs", runs)
    rows = dict(re.findall(r"^(\S.*?) {2,}(\S+)$", said.out, re.M))
    assert rows["receipts (a message)"] == "7.00"
    assert rows["receipts in all"] == "84"
    assert "of nothing" not in rows
    (done,) = (path for path in (runs / "small").iterdir() if not path.is_symlink())
    summary = json.loads((done / "summary.json").read_text())
    assert summary["receipts_per_message"] == 7
    assert summary["squared"] == 100 * 7 / 8**2
    assert "nothing" not in summary
    assert re.search(r"^receipts in all +84 +84 ×1.00$", testbed("compare", done, done).out, re.M)


@pytest.mark.usefixtures("made_up")
def test_pages_and_sweeps_show_a_protocols_own_figures(tmp_path: Path) -> None:
    loaded = results.load(write_run(tmp_path / "run"))
    loaded.summary["receipts"] = 1234
    row = '<th scope="row">receipts in all</th><td class="n">1,234</td>'
    assert row in figures_table([loaded], ["x"])
    rows = [("valid", 1), ("hops", 5), ("receipts", 7), ("receipts_per_message", 1)]
    trends = pd.DataFrame(rows, columns=["figure", "mean"]).assign(half_width=0.5, runs=2)
    trends.insert(0, "protocol", "x")
    headers = [column.header for column in table_of(trends).columns]
    assert headers == ["protocol", "runs", "valid", "hops", "receipts"]
    assert trends_in(trends)[-1] == ("receipts", "receipts in all", ("receipts",))
