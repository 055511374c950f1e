"""Chapters on the terminal."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from scripts.reproductions.chapter import Chapter, Table, texts, write_plots
from scripts.reproductions.claims import NO, VERDICTS, Judged, tally

WIDTH = 140  # of a table


def show(chapter: Chapter, directory: Path) -> None:
    """Print a chapter, and write its plots into a directory."""
    out = Console(highlight=False, width=WIDTH)
    out.print(escape(f"{chapter.scale}; seeds {chapter.seeds}"))
    for table in chapter.tables:
        show_table(out, table)
    for erratum in chapter.errata:
        out.print(f"[bold]{escape(erratum.where)}: {escape(erratum.title)}[/]")
        show_table(out, erratum.outcomes)
        out.print("\n".join(f"  {escape(command)}" for command in erratum.commands))
    show_claims(out, chapter.claims)
    write_plots(chapter, directory)
    if chapter.plots or chapter.errata:
        print(f"plots: {directory}")


def show_table(out: Console, table: Table) -> None:
    """Print a table: words to the left, numbers to the right."""
    _show(out, table.title, table.heads, [texts(row) for row in table.rows], table.words)
    if table.caption:
        out.print(f"[dim]{escape(table.caption)}[/]")


def show_claims(out: Console, claims: Iterable[Judged]) -> None:
    """Print what the paper says, what was measured, and whether the claim holds."""
    rows = [(its.where, its.says, its.measured, its.verdict) for its in claims]
    if rows:
        _show(out, "What the paper says", ("", "the paper", "measured", ""), rows, 4)
        out.print(counted(claims))


def counted(claims: Iterable[Judged]) -> str:
    """How many claims have which verdict, in words."""
    counts = tally(claims)
    listed = ", ".join(f"{word}: {counts[word]}" for word in VERDICTS if counts[word])
    return f"{sum(counts.values())} claims; {listed}"


def _show(
    out: Console, title: str, heads: Iterable[str], rows: Iterable[Iterable[str]], words: int
) -> None:
    table = Shown(box=None, pad_edge=False)
    for index, head in enumerate(heads):
        table.add_column(escape(head), justify="left" if index < words else "right")
    for row in rows:
        table.add_row(*(f"[bold]{c}[/]" if c == NO else escape(c) for c in row))
    if title:
        out.print(f"[bold]{escape(title)}[/]")
    out.print(table)
