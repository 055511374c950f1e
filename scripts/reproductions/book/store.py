"""Chapters as files: JSON and SVG for the docs, and Parquet for those who count on."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from scripts.reproductions.chapter import Cell, Chapter, Erratum, Plot, Table, texts, write_plots
from scripts.reproductions.claims import Judged
from scripts.reproductions.intervals import half_width
from scripts.reproductions.origin import code_of
from testbed.runs.parts import whole

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "reproductions"
PLAIN = ("name", "title", "paper", "scale", "seeds", "command", "runs", "work", "seconds")
ORIGIN = ("asked", "protocols", "code")  # which results of an earlier version do not have


def to_json(chapter: Chapter) -> str:
    """All of a chapter but its text, its plots and the values of single seeds; a row a line."""
    content: dict[str, Any] = {key: getattr(chapter, key) for key in (*PLAIN, *ORIGIN)}
    content["seconds"] = round(chapter.seconds)
    content["values"] = dict(chapter.values)
    content["tables"] = {table.name: _plain(table) for table in chapter.tables}
    content["plots"] = {plot.name: plot.caption for plot in chapter.plots}
    content["claims"] = [its._asdict() for its in chapter.claims]
    content["errata"] = [
        {**vars(its), "commands": [*its.commands], "outcomes": _plain(its.outcomes), "diagram": ""}
        for its in chapter.errata
    ]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _plain(table: Table) -> dict[str, Any]:
    rows = [" | ".join(texts(row)) for row in table.rows]
    return {**vars(table), "heads": " | ".join(table.heads), "rows": rows}


def _table(content: dict[str, Any]) -> Table:
    rows = [row.split(" | ") for row in content["rows"]]
    return Table(**{**content, "heads": content["heads"].split(" | "), "rows": rows})


def from_json(text: str, prose: str, plots: Path) -> Chapter:
    """The chapter that was written like this, with its text, and its plots from a directory."""
    content = json.loads(text)

    def svg(name: str) -> bytes:
        file = plots / f"{name}.svg"
        return file.read_bytes() if file.exists() else b""

    return Chapter(
        **{key: content[key] for key in PLAIN},
        **{key: content.get(key, "") for key in ORIGIN},
        text=prose,
        values=content["values"],
        tables=[_table(table) for table in content["tables"].values()],
        plots=[Plot(name, told, svg(name)) for name, told in content.get("plots", {}).items()],
        claims=[Judged(**its) for its in content["claims"]],
        errata=[
            Erratum(**{**its, "outcomes": _table(its["outcomes"]), "diagram": svg(its["name"])})
            for its in content["errata"]
        ],
    )


def stored() -> list[Chapter]:
    """The chapters whose results are kept in the repository, by name."""
    return [
        from_json(file.read_text(encoding="utf-8"), text_of(file.stem), file.with_suffix(""))
        for file in sorted(RESULTS.glob("*.json"))
    ]


def file_of(name: str) -> Path:
    """Where the results of a chapter are kept."""
    return RESULTS / f"{name}.json"


def keep(chapter: Chapter) -> None:
    """Keep the results of a chapter in the repository, and its plots as SVG.

    What there was before goes last, so that an interruption leaves no docs without plots.
    """
    plots = RESULTS / chapter.name
    old = {*plots.glob("*")}
    written = write_plots(
        replace(chapter, plots=[replace(plot, png=b"") for plot in chapter.plots]), plots
    )
    with whole(file_of(chapter.name)) as part:
        part.write_text(to_json(chapter), encoding="utf-8")
    for file in old.difference(written):
        file.unlink()


def kept(name: str, asked: str) -> Chapter | None:
    """The results of a chapter, if they are kept, of what is asked for, and of the present code."""
    found = next((chapter for chapter in stored() if chapter.name == name), None)
    if found is None or (found.asked, found.code) != (asked, code_of(name, found.protocols)):
        return None
    return replace(found, scale=f"{found.scale} (results that were kept)")


def text_of(name: str) -> str:
    """The text of a chapter, as written by hand."""
    return (Path(__file__).parents[1] / name / "text.md").read_text(encoding="utf-8")


def write_parquet(chapters: Sequence[Chapter], directory: Path) -> None:
    """A file for each table, a row for each of its cells; and one with all verdicts."""
    import pandas as pd

    directory.mkdir(parents=True, exist_ok=True)
    for chapter in chapters:
        outcomes = [replace(its.outcomes, name=its.name) for its in chapter.errata]
        for table in (*chapter.tables, *outcomes):
            cells = pd.DataFrame(_cells(table), columns=[*COLUMNS])
            cells.to_parquet(directory / f"{chapter.name}-{table.name}.parquet", index=False)
    verdicts = [{"paper": c.name, **its._asdict()} for c in chapters for its in c.claims]
    frame = pd.DataFrame(verdicts, columns=["paper", *Judged._fields])
    frame.to_parquet(directory / "claims.parquet", index=False)


COLUMNS = ("row", "column", "text", "mean", "half_width", "seeds")


def _cells(table: Table) -> list[tuple[Any, ...]]:
    """Each cell with its row in words; an empty word is that of the row above."""
    found, above = [], [""] * table.words
    for number, row in enumerate(table.rows, 1):
        words = texts(row[: table.words])
        above = [word or before for word, before in zip(words, above, strict=True)]
        name = ", ".join(filter(None, above)) or str(number)
        for head, cell in zip(table.heads[table.words :], row[table.words :], strict=True):
            found.append((name, head, *_figures(cell)))
    return found


def _figures(cell: str | Cell) -> tuple[str, float | None, float | None, list[float]]:
    if isinstance(cell, str):
        return cell, None, None, []
    values = [*cell.values]
    half = half_width(values) if len(values) > 1 else None
    return cell.text, fmean(values) if values else None, half, values
