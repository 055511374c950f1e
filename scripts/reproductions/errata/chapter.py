"""Mistakes in the five papers, each as a small experiment.

The algorithm as printed and the right one are run on the same messages, in the simulator and on
emulated hosts in virtual time. As printed the run must be invalid for the reason that is given, and
with the repair valid. Exit status 1 says that one was not.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripts.reproductions.chapter import Chapter, Erratum, Reproduction, Table
from scripts.reproductions.command import text
from scripts.reproductions.errata.cases import CASES, Case
from scripts.reproductions.errata.diagram import diagram
from scripts.reproductions.running import compute
from testbed.check import Verdict
from testbed.errors import UserError
from testbed.progress import silent
from testbed.run import run_experiment

ENGINES = ("simulate", "virtual")
NOT_SHOWN = "not shown"
Outcome = dict[str, Any]


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    names = f"all, or some of {', '.join(CASES)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--engine", nargs="+", choices=ENGINES, default=[*ENGINES])


def chosen(options: Namespace) -> list[Case]:
    """The errata that the options name."""
    if unknown := set(options.names) - set(CASES):
        raise UserError(f"there is no erratum {min(unknown)!r}; there are {', '.join(CASES)}")
    return [case for name, case in CASES.items() if not options.names or name in options.names]


def outcome(piece: tuple[str, str]) -> Outcome:
    """Run an erratum on an engine, as printed and repaired."""
    name, engine = piece
    case = CASES[name]
    with TemporaryDirectory() as runs:
        printed, repaired = (
            run_experiment(replace(experiment, engine=engine), Path(runs), silent)
            for experiment in case.experiments()
        )
    return {
        "printed": _said(printed.verdict),
        "repaired": _said(repaired.verdict),
        "shown": case.is_shown(printed, repaired),
    }


def _said(verdict: Verdict) -> str:
    """The verdict, and what is wrong."""
    _, _, wrong = verdict.headline.partition("; ")
    return f"{verdict.verdict}: {wrong}" if wrong else verdict.verdict


def reproduce(options: Namespace) -> Chapter:
    """Run all errata on all engines."""
    cases = chosen(options)
    pieces = {
        f"{case.name} {engine} {_hash(case.file)}": (case.name, engine)
        for case in cases
        for engine in options.engine
    }
    results = compute("errata", outcome, pieces, options)
    found = dict(zip(pieces.values(), results.values(), strict=True))
    return Chapter(
        name="errata",
        title="Errata: what the papers print, and what is right",
        paper="All five papers; each erratum says where.",
        text=text(__file__),
        scale=f"{len(cases)} errata on {' and '.join(options.engine)}",
        seeds="those of the files",
        command=" ".join(("scripts/reproduce errata", *options.names, "--engine", *options.engine)),
        tables=[_summary(cases, options.engine, found)],
        errata=[_erratum(case, options.engine, found) for case in cases],
        values={"count": str(len(cases))},
    )


def _hash(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()[:12]


Found = dict[tuple[str, str], Outcome]


def _summary(cases: list[Case], engines: list[str], found: Found) -> Table:
    rows = [
        [
            case.name,
            case.where,
            *("yes" if found[case.name, engine]["shown"] else NOT_SHOWN for engine in engines),
        ]
        for case in cases
    ]
    return Table(
        "shown",
        "Invalid as printed, for the reason that is given, and valid with the repair",
        ("", "the paper", *engines),
        rows,
        words=2 + len(engines),
    )


def _erratum(case: Case, engines: list[str], found: Found) -> Erratum:
    file = f"scripts/experiments/errata/{case.name}.toml"
    rows = [
        [engine, found[case.name, engine]["printed"], found[case.name, engine]["repaired"]]
        for engine in engines
    ]
    return Erratum(
        case.name,
        case.where,
        case.title,
        case.printed.strip(),
        case.wrong.strip(),
        case.repair.strip(),
        [
            f"testbed run {file} --engine simulate",
            f"testbed run {file} --engine virtual",
            f"testbed live {file}",
        ],
        Table(
            f"outcome-{case.name}",
            "What came of it",
            ("engine", "as printed", "repaired"),
            rows,
            words=3,
            caption=f"The oracle: {case.shows}.",
        ),
        diagram(case),
    )


def work(options: Namespace) -> float:
    """Runs; one in virtual time counts as thirty."""
    return sum(2.0 if engine == "simulate" else 60.0 for engine in options.engine) * len(
        chosen(options)
    )


def all_shown(chapter: Chapter) -> bool:
    """Whether every erratum went wrong as printed, and right with the repair."""
    return not any(NOT_SHOWN in row for table in chapter.tables for row in table.rows)


ERRATA = Reproduction(
    "errata", __doc__ or "", add_options, reproduce, work, ("--engine", "simulate"), ()
)
