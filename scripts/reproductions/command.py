"""``scripts/reproduce NAME``: one paper, shown on the terminal."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scripts import parser
from scripts.reproductions.chapter import Chapter, Reproduction
from scripts.reproductions.origin import code_of
from scripts.reproductions.running import Effort
from scripts.reproductions.show import show
from testbed.errors import UserError


def text(file: str) -> str:
    """The text of the chapter whose module this is: ``text.md`` beside it."""
    return (Path(file).parent / "text.md").read_text(encoding="utf-8")


def shared_options(options: ArgumentParser) -> None:
    """What all reproductions have in common."""
    options.add_argument("--master", default="local[*]", help="where Spark runs")
    options.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories go")


def options_of(paper: Reproduction, arguments: Sequence[str] | None = None) -> Namespace:
    """The options of a reproduction for these arguments, or for those of the command line."""
    options = parser(f"reproduce {paper.name}", paper.doc)
    paper.add_options(options)
    shared_options(options)
    return options.parse_args(arguments)


def asked(options: Namespace) -> str:
    """What was asked for, as a text; where it is run and kept changes nothing."""
    given = {k: v for k, v in vars(options).items() if k not in ("master", "runs", "effort")}
    return ", ".join(f"{key} = {value}" for key, value in sorted(given.items()))


def reproduced(paper: Reproduction, options: Namespace) -> Chapter:
    """The chapter, with what it took."""
    options.effort = Effort()
    chapter = paper.reproduce(options)
    effort = options.effort
    protocols = " ".join(sorted(effort.protocols))
    return replace(
        chapter,
        runs=effort.runs,
        seconds=effort.seconds,
        work=paper.work(options),
        asked=asked(options),
        protocols=protocols,
        code=code_of(paper.name, protocols),
    )


def main(paper: Reproduction) -> Chapter:
    """Reproduce a paper, and show it."""
    options = options_of(paper)
    try:
        chapter = reproduced(paper, options)
    except UserError as error:
        sys.exit(f"reproduce: {error}")
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
    show(chapter, options.runs / paper.name)
    return chapter
