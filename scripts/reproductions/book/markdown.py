"""The docs: chapters as Markdown, with the tables that their texts name and all verdicts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.reproductions.book.blocks import blocks
from scripts.reproductions.chapter import Chapter, Erratum, Plot, Table, texts
from scripts.reproductions.claims import NO, VERDICTS, Judged, tally

HERE = Path(__file__).parent


def write_docs(chapters: Sequence[Chapter]) -> str:
    """The whole file."""
    parts = [(HERE / name).read_text("utf-8").strip() for name in ("docs.md", "reading.md")]
    parts.append(summary(chapters))
    for chapter in chapters:
        parts.append(f"## {chapter.title}")
        parts.append(f"`{chapter.command}`: {chapter.scale}; seeds {chapter.seeds}.")
        parts += [_block(block, chapter) for block in blocks(chapter)]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(chapters: Sequence[Chapter]) -> str:
    """How many claims of each paper have which verdict."""
    rows = [
        [
            c.title.partition(":")[0],
            *(str(tally(c.claims)[word]) for word in VERDICTS),
            f"{c.runs:,}",
        ]
        for c in chapters
        if c.claims
    ]
    return _table(("claims", *VERDICTS, "runs"), rows, 1)


def _block(block: str | Table | Plot, chapter: Chapter) -> str:
    match block:
        case Plot():
            return ""
        case Table():
            title = f"**{block.title}.**" + (f" {block.caption}" if block.caption else "")
            rows = [texts(row) for row in block.rows]
            return f"{title}\n\n{_table(block.heads, rows, block.words)}"
        case "claims":
            return _claims(chapter.claims)
        case "errata":
            return "\n\n".join(map(_erratum, chapter.errata))
    return block


def _claims(claims: Iterable[Judged]) -> str:
    rows = [
        (its.where, its.says, its.measured, f"**{NO}**" if its.verdict == NO else its.verdict)
        for its in claims
    ]
    return _table(("", "the paper", "measured", "holds"), rows, 4)


def _erratum(its: Erratum) -> str:
    commands = "\n".join(its.commands)
    return "\n\n".join(
        (
            f"### {its.where}: {its.title}",
            its.printed,
            its.wrong,
            its.repair,
            f"```sh\n{commands}\n```",
            _table(its.outcomes.heads, [texts(row) for row in its.outcomes.rows], 9),
        )
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]], words: int) -> str:
    names = [*heads]
    rule = ["---" if index < words else "---:" for index in range(len(names))]
    lines = (f"| {' | '.join(_cell(cell) for cell in row)} |" for row in (names, *rows))
    first, *others = lines
    return "\n".join((first, f"|{'|'.join(rule)}|", *others))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
