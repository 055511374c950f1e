"""The reproduction book, with a made-up paper: the page, the docs, the tables, and the command."""

import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scripts.reproductions import origin
from scripts.reproductions.baldoni import chapter as baldoni
from scripts.reproductions.book import command, store
from scripts.reproductions.book.blocks import NAME, blocks, unnamed
from scripts.reproductions.book.markdown import write_docs
from scripts.reproductions.book.page import write_book
from scripts.reproductions.book.store import from_json, stored, to_json, write_parquet
from scripts.reproductions.chapter import Chapter, Erratum, Plot, Reproduction, Table, write_plots
from scripts.reproductions.claims import Judged
from scripts.reproductions.command import text
from scripts.reproductions.drawing import drawn
from scripts.reproductions.gidenstam import chapter as gidenstam
from scripts.reproductions.intervals import cell, draw
from scripts.reproductions.mostefaoui import chapter as mostefaoui
from scripts.reproductions.origin import code_of
from scripts.reproductions.running import compute
from testbed.errors import UserError

ROOT = Path(__file__).parents[2]
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
TEXT = """It says that *less* is < more: {least} of them.

{delays}

{claims}

{curve}

{not-run}

Groups a = {0, 1} are no name.

{errata}
"""
OUTCOMES = Table(
    "outcomes", "Outcomes", ("engine", "as printed"), [["simulate", "invalid"]], words=2
)
CHAPTER = Chapter(
    name="baldoni",
    title="Doe & Roe 1999: a | b",
    paper="J. Doe, R. Roe: *On order*, 1999",
    text=TEXT,
    scale="two points",
    seeds="1 to 3",
    command="scripts/reproduce doe --seeds 3",
    tables=[
        Table("delays", "Delays", ("", "of", "ms"), [["a", "x", cell([1.0, 2.0, 3.0])],
              ["", "y", cell([7.0])]], words=2, caption="In all."),
        Table("other", "Other", ("n", "4"), [["b", "-"]]),
    ],
    plots=[Plot("curve", "A curve of n < 3.", SVG, b"png"), Plot("extra", "More.", SVG, b"png")],
    claims=[Judged("§ 1", "a < b", "a and b", "by any margin", "1 against 2", "yes"),
            Judged("§ 2", "b < a", "a and b", "by any margin", "1 against 2", "no")],
    errata=[Erratum("slip", "Doe, § 3", "A slip", "It *says*", "But", "So", ["testbed run FILE"],
                    OUTCOMES, SVG)],
    values={"least": "3"},
    runs=6,
    work=2.0,
    seconds=60.0,
)  # fmt: skip


def test_a_text_names_tables_plots_claims_and_numbers() -> None:
    found = [block if isinstance(block, str) else block.name for block in blocks(CHAPTER)]
    assert found == [
        "It says that *less* is < more: 3 of them.",
        "delays",
        "claims",
        "curve",
        "Groups a = {0, 1} are no name.",
        "errata",
    ]
    tables, plots = unnamed(CHAPTER)
    assert [table.name for table in tables] == ["other"]
    assert [plot.name for plot in plots] == ["extra"]


def test_a_number_that_is_not_there_is_named() -> None:
    nothing = Chapter(**{**vars(CHAPTER), "values": {}})
    with pytest.raises(UserError, match=r"text.md of baldoni: \{least\} is no value"):
        [*blocks(nothing)]


def test_the_page_has_everything_and_loads_nothing() -> None:
    page = write_book([CHAPTER], "6 runs", "scripts/reproduce all", {"python": "3"})
    assert "less</em> is &lt; more: 3 of them" in page
    assert page.count('<img src="data:image/svg+xml;base64,') == 3
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    for words in ("Table 2.1. Delays. In all.", "Table 2.2.", "Figure 2.3.", "testbed run FILE"):
        assert words in page
    assert '<span class="verdict bad">no</span>' in page
    assert "a and b. <i>Rule:</i> by any margin." in page
    assert 'role="img" aria-label="yes: 1, no: 1, unclear: 0, cannot be judged: 0"' in page


def test_docs_have_what_the_text_names() -> None:
    docs = write_docs([CHAPTER])
    assert "| Doe & Roe 1999 | 1 | 1 | 0 | 0 | 6 |" in docs
    assert "`scripts/reproduce doe --seeds 3`: two points; seeds 1 to 3." in docs
    assert "**Delays.** In all.\n\n|  | of | ms |\n|---|---|---:|\n| a | x | 2 ± 2.5 |" in docs
    assert "| § 2 | b < a | 1 against 2 | **no** |" in docs
    assert "### Doe, § 3: A slip" in docs
    assert "![A curve of n < 3.](reproductions/baldoni/curve.svg)" in docs
    assert "![Space-time diagram: A slip](reproductions/baldoni/slip.svg)" in docs
    assert "More plots: [More](reproductions/baldoni/extra.svg)." in docs
    assert "Other" not in docs


def test_results_that_are_kept_give_the_same_docs_and_plots(tmp_path: Path) -> None:
    write_plots(CHAPTER, tmp_path)
    kept = from_json(to_json(CHAPTER), TEXT, tmp_path)
    assert write_docs([kept]) == write_docs([CHAPTER])
    assert (kept.runs, kept.work, kept.seconds) == (6, 2.0, 60.0)
    assert [(plot.name, plot.svg) for plot in kept.plots] == [("curve", SVG), ("extra", SVG)]
    assert kept.errata[0].diagram == SVG


def test_tables_are_parquet_files_with_the_values_of_seeds(tmp_path: Path) -> None:
    write_parquet([CHAPTER], tmp_path)
    delays = pd.read_parquet(tmp_path / "baldoni-delays.parquet")
    assert [*delays["row"]] == ["a, x", "a, y"]
    assert [*delays["mean"]] == [2.0, 7.0]
    assert [[*values] for values in delays["seeds"]] == [[1.0, 2.0, 3.0], [7.0]]
    assert pd.isna(delays["half_width"][1])
    verdicts = pd.read_parquet(tmp_path / "claims.parquet")
    assert [*verdicts["verdict"]] == ["yes", "no"]
    assert (tmp_path / "baldoni-slip.parquet").exists()


def test_docs_keep_what_was_written_by_hand_until_there_are_results() -> None:
    before = "# Old\n\nHead.\n\n## Roe 1990: x\n\nBy hand.\n\n## Doe & Roe 1999: a | b\n\nOld.\n"
    docs = write_docs([CHAPTER], before)
    assert "about Roe 1990 is from before results were kept" in docs
    assert "\n\n## Roe 1990: x\n\nBy hand.\n\n## Doe & Roe 1999: a | b\n\n`scripts" in docs
    assert "Old." not in docs
    assert write_docs([CHAPTER], docs) == docs


def test_docs_are_as_the_results_and_texts_say() -> None:
    written = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    kept = command.in_order(stored())
    assert kept
    assert written == write_docs(kept, written), "scripts/reproduce all --docs writes it"


def squared(number: int) -> float:
    return float(number**2)


def made_up(options: Namespace) -> Chapter:
    found = compute("doe", squared, {str(n): n for n in range(options.most)}, options)
    values = [*found.values()]
    plot = drawn("curve", "Squares.", 0.4, 1, 1, lambda axes: draw(axes[0], 0, "n²", [1], [values]))
    table = Table("delays", "Squares", ("n", "n²"), [["all", cell(values)]])
    return Chapter(**{**vars(CHAPTER), "tables": [table], "plots": [plot]})


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--most", type=int, default=9)


DOE = Reproduction(
    "baldoni", "Doe.", add_options, made_up, lambda its: its.most, ("--most", "3"), ("--most", "5")
)


def test_the_same_command_makes_the_same_book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "papers", lambda names: [DOE])
    monkeypatch.setattr(command, "BROWSERS", ["no-such-browser"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    books = []
    for runs in ("one", "two"):
        where = ["--runs", str(tmp_path / runs), "--master", "local[1]"]
        monkeypatch.setattr(sys, "argv", ["all", "--quick", *where])
        command.main()
        book = tmp_path / runs / "book" / "quick"
        files = sorted(file for file in book.rglob("*") if file.is_file())
        books.append({str(file.relative_to(book)): file.read_bytes() for file in files})
    assert books[0] == books[1]
    assert [*books[0]][:3] == ["book.html", "plots/baldoni/curve.png", "plots/baldoni/curve.svg"]
    assert b"02 January 1970" in books[0]["book.html"]
    assert b"<pre>scripts/reproduce all --quick</pre>" in books[0]["book.html"]
    told = capsys.readouterr()
    assert "1 of 1: baldoni" in told.err
    assert "no PDF: it takes one of no-such-browser" in told.err
    assert len((tmp_path / "one" / "doe.jsonl").read_text().splitlines()) == 1 + 3


def test_results_that_are_kept_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "reproductions.md").write_text("")
    monkeypatch.setattr(command, "papers", lambda names: [DOE])
    monkeypatch.setattr(command, "BROWSERS", ["no-such-browser"])
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(store, "RESULTS", tmp_path / "docs" / "reproductions")
    monkeypatch.setattr(store, "text_of", lambda name: TEXT)

    def told(*scale: str) -> str:
        where = ["--runs", str(tmp_path / "runs"), "--master", "local[1]"]
        monkeypatch.setattr(sys, "argv", ["all", *scale, *where])
        command.main()
        return capsys.readouterr().err

    again = "was run at this scale, with this code; taken from docs/reproductions/baldoni.json"
    assert again not in told("--quick", "--docs")
    kept = (tmp_path / "docs" / "reproductions" / "baldoni.json").read_text()
    assert '"asked": "most = 3"' in kept
    assert '"protocols": "all"' in kept
    plot = tmp_path / "docs" / "reproductions" / "baldoni" / "curve.svg"
    assert plot.read_bytes().startswith(b"<?xml")
    stale = plot.with_name("stale.svg")
    stale.write_text("of an earlier version")
    store.keep(store.stored()[0])
    assert plot.exists()
    assert not stale.exists()
    (tmp_path / "runs" / "doe.jsonl").unlink()  # another machine
    assert again in told("--quick", "--docs")
    assert not (tmp_path / "runs" / "doe.jsonl").exists()
    assert (tmp_path / "docs" / "reproductions" / "baldoni.json").read_text() == kept
    assert again not in told("--quick")
    assert again not in told("--paper", "--docs")
    monkeypatch.setattr(store, "code_of", lambda name, protocols: "other code")
    assert again not in told("--paper", "--docs")


def test_what_a_chapter_is_judged_and_measured_by_is_part_of_its_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = {code_of(*of) for of in (("chandra", "ks"), ("chandra", "ks rst"), ("baldoni", "ks"))}
    assert len(code) == 3
    monkeypatch.setattr(origin, "code_hash", lambda protocol: "changed")
    assert code_of("chandra", "ks") not in code


def test_how_long_it_takes_is_said_by_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "stored", lambda: [CHAPTER])
    told = command.estimate([(DOE, Namespace(most=8))], "local[2]")
    assert told.startswith("about 2 minutes on 2 cores")
    assert "baldoni 4" in told
    other = DOE._replace(name="other")
    told = command.estimate([(other, Namespace(most=8))], "local")
    assert told == "how long it takes is not known of other"


@pytest.mark.parametrize("module", [baldoni, gidenstam, mostefaoui])
def test_texts_name_only_numbers_that_there_are(module: Any) -> None:
    prose = text(str(module.__file__))
    lines = [line for line in prose.splitlines() if not NAME.fullmatch(line.strip())]
    named = {name for line in lines for name in NAME.findall(line)}
    assert named == set(module.values({}))
