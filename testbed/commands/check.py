"""``testbed check``: the ordering oracle over run directories."""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from testbed.check import Finding, check_run, finding
from testbed.commands.terminal import console, exit_status, print_json, progress_bar
from testbed.runs.directory import RunDirectory, expanded


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        description="Check runs from their event logs alone, with no help from the protocols: causal "
        "order, messages delivered twice, lost, or never sent, and tickets with two owners (cluster "
        "protocol only). A violation of order is shown with the chain of messages that makes one "
        "the cause of the other. Exit status: 0 all valid, 1 a violation, 2 a run that cannot be "
        "judged.",
    )
    parser.add_argument(
        "run", type=Path, nargs="+", help="run directory, or a directory of runs such as a sweep's"
    )
    parser.add_argument(
        "--limit", type=int, default=10, help="how many findings to explain (default: 10)"
    )
    parser.add_argument(
        "--master", help="check all runs at once as tasks of this Spark master, such as local[*]"
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Check each run; the worst verdict is the exit status."""
    out = console()
    options.run = expanded(options.run)
    statuses = {path: RunDirectory(path).status for path in options.run}
    check = check_all if options.master is None else check_with_spark
    findings = {}
    for path, found in check(options):
        findings[str(path)] = found
        if options.json:
            continue
        note = "" if statuses[path] == "complete" else f" (the run is {statuses[path]})"
        out.print(f"{path}: [bold]{found.verdict}[/]{note}", soft_wrap=True)
        for sentence in found.sentences:
            out.print(f"  {sentence}", soft_wrap=True, markup=False)
    if options.json:
        print_json({path: found.json for path, found in findings.items()})
    return exit_status(found.verdict for found in findings.values())


def check_all(options: argparse.Namespace) -> Iterator[tuple[Path, Finding]]:
    """One run after the other."""
    for path in options.run:
        with progress_bar(str(path)) as progress:
            verdict = check_run(path, partial(progress, "check"))
        yield path, finding(verdict, options.limit)


def check_with_spark(options: argparse.Namespace) -> Iterator[tuple[Path, Finding]]:
    """All runs at once."""
    from testbed.spark.tasks import spread

    paths = [path.resolve() for path in options.run]
    with progress_bar("check") as progress:
        found = spread(partial(_check, options.limit), paths, options.master)
        for done, (path, finding) in enumerate(zip(options.run, found, strict=True), 1):
            progress("runs", done, len(paths))
            yield path, finding


def _check(limit: int, path: Path) -> Finding:
    return finding(check_run(path), limit)
