"""All papers and their errata: one book with plots, verdicts and their rules, and all tables.

It says how long it will take, goes on where it was stopped, and runs nothing twice.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from scripts import parser
from scripts.reproductions.book.markdown import write_docs
from scripts.reproductions.book.page import write_book
from scripts.reproductions.book.store import ROOT, file_of, keep, kept, stored, write_parquet
from scripts.reproductions.chapter import Chapter, Reproduction, write_plots
from scripts.reproductions.command import asked, options_of, reproduced, shared_options
from scripts.reproductions.show import counted
from testbed import __version__
from testbed.errors import UserError
from testbed.runs.parts import whole
from testbed.runs.versions import versions
from testbed.spark.session import context

NAMES = ("friedman", "chandra", "mostefaoui", "baldoni", "gidenstam", "errata")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PRINTING_S = 300
PACKAGES = ("pyspark", "pandas", "scipy", "matplotlib")


def papers(names: Iterable[str]) -> list[Reproduction]:
    """The reproductions of these names."""
    modules = [(name, import_module(f"scripts.reproductions.{name}.chapter")) for name in names]
    return [getattr(module, name.upper()) for name, module in modules]


def main() -> None:
    """Reproduce everything."""
    command = parser("reproduce all", __doc__)
    scale = command.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_true", help="minutes, with a few seeds")
    scale.add_argument("--paper", action="store_true", help="the papers' own scale: hours")
    command.add_argument("--only", nargs="+", choices=NAMES, default=[*NAMES], metavar="NAME")
    command.add_argument("--docs", action="store_true", help="write docs/reproductions.md as well")
    shared_options(command)
    options = command.parse_args()
    try:
        reproduce_all(options)
    except UserError as error:
        sys.exit(f"reproduce: {error}")
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)


def reproduce_all(options: Namespace) -> None:
    """Run what is to be run, and write the book and its tables."""
    every = [(paper, arguments(paper, options)) for paper in papers(options.only)]
    known = {paper.name: kept(paper.name, asked(its)) for paper, its in every if options.docs}
    todo = [(paper, its) for paper, its in every if not known.get(paper.name)]
    say(estimate(todo, options.master))
    chapters = []
    with context(options.master):  # one Spark for all
        for number, (paper, its) in enumerate(every, 1):
            say(f"{number} of {len(every)}: {paper.name}")
            if (chapter := known.get(paper.name)) is not None:
                say(
                    f"{paper.name} was run at this scale, with this code; taken from {_kept(chapter)}"
                )
            else:
                chapter = reproduced(paper, its)
                if options.docs:
                    keep(chapter)
            chapters.append(chapter)
            say(f"{paper.name}: {outcome(chapter)}")
    book = options.runs / "book" / scale_of(options)
    write_all(chapters, book, scale_of(options))
    print(f"book: {book / 'book.html'}")
    if (printed := print_to_pdf(book)) is not None:
        print(f"as PDF: {printed}")
    if options.docs:
        write_from_kept()


def outcome(chapter: Chapter) -> str:
    """What came of a chapter, in a line."""
    return counted(chapter.claims) if chapter.claims else f"{len(chapter.errata)} errata"


def say(sentence: str) -> None:
    """Tell who waits, on standard error."""
    print(f"reproduce: {sentence}", file=sys.stderr, flush=True)


def scale_of(options: Namespace) -> str:
    """The scale, in a word."""
    return "quick" if options.quick else "paper" if options.paper else "usual"


def arguments(paper: Reproduction, options: Namespace) -> Namespace:
    """The options of a paper at this scale."""
    scales: dict[str, Sequence[str]] = {"quick": paper.quick, "paper": paper.paper, "usual": ()}
    shared = ("--runs", str(options.runs), "--master", options.master)
    return options_of(paper, [*scales[scale_of(options)], *shared])


def estimate(todo: Sequence[tuple[Reproduction, Namespace]], master: str) -> str:
    """How long it takes, by what was measured when the docs were written."""
    paces = {c.name: c.seconds / c.work for c in stored() if c.work and c.seconds}
    known = {p.name: p.work(its) * paces[p.name] for p, its in todo if p.name in paces}
    others = [p.name for p, _ in todo if p.name not in known]
    each = ", ".join(f"{name} {seconds / 60:.0f}" for name, seconds in known.items())
    cores = _cores(master)
    more = f"; not known of {', '.join(others)}" if others else ""
    if not todo:
        return "nothing is left to run"
    if not known:
        return f"how long it takes is{more.removeprefix(';')}"
    minutes = sum(known.values()) / 60 / cores
    words = f"about {minutes:.0f} minutes on {cores} cores if nothing is done yet"
    return f"{words} (minutes of one processor: {each}){more}"


def _cores(master: str) -> int:
    given = re.fullmatch(r"local(?:\[(\d+|\*).*\])?", master)
    if given is None or given[1] == "*":
        return os.cpu_count() or 1
    return int(given[1] or 1)


def write_all(chapters: Sequence[Chapter], book: Path, scale: str) -> None:
    """The page, the plots and the tables of a book."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed else datetime.now(UTC)
    minutes = sum(chapter.seconds for chapter in chapters) / 60
    took = "" if fixed else f", {minutes:,.0f} minutes of processor time"
    made = (
        f"{len(chapters)} chapters, {sum(c.runs for c in chapters):,} runs{took}; {scale} scale, "
        f"testbed {__version__}, {now:%d %B %Y}"
    )
    command = shlex.join(["scripts/reproduce", "all", *_given()])
    write_parquet(chapters, book / "tables")
    with whole(book / "book.html") as part:
        part.write_text(write_book(chapters, made, command, all_versions()), encoding="utf-8")
    for chapter in chapters:
        write_plots(chapter, book / "plots" / chapter.name)


def all_versions() -> dict[str, str]:
    """Of everything that took part, and of the code itself where git knows it."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    code = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    found = {"testbed": __version__, "commit": code, **versions("simulate")}
    return found | {name: version(name) for name in PACKAGES}


def _given() -> list[str]:
    """What was asked for, without where it is kept and run, which changes nothing."""
    kept: list[str] = []
    skip = False
    for argument in sys.argv[1:]:
        if not skip and argument not in ("--runs", "--master", "--docs"):
            kept.append(argument)
        skip = argument in ("--runs", "--master")
    return kept


def print_to_pdf(book: Path) -> Path | None:
    """Have a browser print the page, if there is one."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        say(f"no PDF: it takes one of {', '.join(BROWSERS)}")
        return None
    page, out = (book / "book.html").resolve(), (book / "book.pdf").resolve()
    options = ["--headless", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={out}"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    try:
        subprocess.run(
            [browser, *options, page.as_uri()], check=True, capture_output=True, timeout=PRINTING_S
        )
    except (subprocess.SubprocessError, OSError) as error:
        say(f"no PDF: {browser} failed: {error}")
        return None
    return out


def write_from_kept() -> None:
    """Write the docs from all results that are kept."""
    file = ROOT / "docs" / "reproductions.md"
    before = file.read_text(encoding="utf-8")
    file.write_text(write_docs(in_order(stored()), before), encoding="utf-8")
    print(f"docs: {file}")


def _kept(chapter: Chapter) -> str:
    return f"{file_of(chapter.name).relative_to(ROOT)}: remove that to run it again"


def in_order(chapters: Iterable[Chapter]) -> list[Chapter]:
    """Chapters in the order of the book."""
    return sorted(chapters, key=lambda chapter: NAMES.index(chapter.name))
