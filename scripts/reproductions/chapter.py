"""A chapter of the book: what a paper says, what was measured, and what is to be thought of it.

A reproduction makes a chapter and shows nothing itself: terminal, book, docs and Parquet files are all
written from chapters. The text is Markdown, written by hand, in ``text.md`` of the reproduction's
package. A line in braces stands for a table or a plot of that name, ``{claims}`` for the verdicts,
``{errata}`` for the counter-examples; a name in braces within a line stands for one of ``values``.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scripts.reproductions.claims import Judged


@dataclass(frozen=True)
class Cell:
    """What a table shows of a point, and the values of its seeds, for Parquet."""

    text: str
    values: tuple[float, ...] = ()


Cells = Sequence[str | Cell]


@dataclass(frozen=True)
class Table:
    """A table whose first columns are words and whose other columns are numbers."""

    name: str  # in the text and of its file: lower case, digits, hyphens
    title: str
    heads: Sequence[str]
    rows: Sequence[Cells]
    words: int = 1
    caption: str = ""  # what one must know to read it


@dataclass(frozen=True)
class Plot:
    """A plot, in the axes of the paper's own where there is one."""

    name: str
    caption: str
    svg: bytes
    png: bytes = b""  # which is not kept in the repository


@dataclass(frozen=True)
class Erratum:
    """A mistake in a paper: an execution that goes wrong as printed, and the repair.

    Texts are Markdown.
    """

    name: str
    where: str  # paper and section
    title: str
    printed: str  # what the paper has
    wrong: str  # why that is wrong, event by event
    repair: str
    commands: Sequence[str]  # to run it, to step through it, to run the repair
    outcomes: Table  # engine by engine: as printed and as repaired
    diagram: bytes = b""  # SVG

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """Its texts, each with its head."""
        heads = ("As printed.", "What goes wrong.", "The repair.")
        return tuple(zip(heads, (self.printed, self.wrong, self.repair), strict=True))


@dataclass(frozen=True)
class Chapter:
    """All of a reproduction."""

    name: str
    title: str  # authors, year, and what it is about
    paper: str  # the reference
    text: str  # Markdown
    scale: str  # how much was run, in a sentence
    seeds: str
    command: str  # that makes the same chapter
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()
    claims: Sequence[Judged] = ()
    errata: Sequence[Erratum] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    runs: int = 0
    work: float = 0  # of all runs, in the reproduction's own unit
    seconds: float = 0  # of one processor, for all runs, whenever they were made
    asked: str = ""  # all options, by which results of the same scale are known again
    protocols: str = ""  # the names of those that were run
    code: str = ""  # a hash of all code that decides what is measured and how it is judged


def write_plots(chapter: Chapter, directory: Path) -> list[Path]:
    """Write the plots of a chapter and the diagrams of its errata; which files these are."""
    files = {f"{plot.name}.svg": plot.svg for plot in chapter.plots}
    files |= {f"{plot.name}.png": plot.png for plot in chapter.plots}
    files |= {f"{erratum.name}.svg": erratum.diagram for erratum in chapter.errata}
    files = {name: content for name, content in files.items() if content}
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return [directory / name for name in files]


class Reproduction(NamedTuple):
    """What ``scripts/reproduce NAME`` does, and how much ``scripts/reproduce all`` makes it do."""

    name: str
    doc: str
    add_options: Callable[[ArgumentParser], None]
    reproduce: Callable[[Namespace], Chapter]
    work: Callable[[Namespace], float]  # how much there is to do, in a unit of its own
    quick: Sequence[str]  # arguments: a few minutes, three seeds at least
    paper: Sequence[str]  # arguments: the paper's own scale


def texts(cells: Cells) -> list[str]:
    """What a table shows."""
    return [cell if isinstance(cell, str) else cell.text for cell in cells]
