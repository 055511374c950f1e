"""``testbed digest``: read captures and event logs with Spark; write tables and figures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.commands.terminal import complain, console, print_json, progress_bar
from testbed.runs.directory import expanded

if TYPE_CHECKING:
    from testbed.digest.digest import Digest


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "digest",
        description="Digest runs: captures and event logs are read with Spark, and each run gets "
        "tables/*.parquet and summary.json. A damaged or unfinished run is digested as far as "
        "possible, and what is missing is reported. Exit status: 0 all digested, 2 something is "
        "missing, damaged, or different from the engine's own count.",
    )
    parser.add_argument(
        "run", type=Path, nargs="+", help="run directory, or a directory of runs such as a sweep's"
    )
    add_master(parser)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(command=command)


def add_master(parser: argparse.ArgumentParser) -> None:
    """Where Spark runs."""
    parser.add_argument(
        "--master",
        default="local[*]",
        help="Spark master: local[*] is this machine with all its cores (default), "
        "spark://HOST:PORT a cluster that sees the same files",
    )


def command(options: argparse.Namespace) -> int:
    """Digest each run, then tell of each."""
    digests, refused = digest_runs(expanded(options.run), options.master)
    if options.json:
        print_json({str(digest.path): digest.summary for digest in digests})
    out = console()
    for digest in digests if not options.json else ():
        out.print(f"{digest.path}: digested into tables/ and summary.json", soft_wrap=True)
    for sentence in [*(f"{d.path}: {p}" for d in digests for p in d.problems), *refused]:
        complain(sentence)
    return 2 if refused or any(digest.problems for digest in digests) else 0


def digest_runs(paths: Sequence[Path], master: str) -> tuple[list[Digest], list[str]]:
    """The digests of these runs, and a sentence for each that could not be digested."""
    from testbed.digest import WORKERS
    from testbed.digest.digest import digest_runs as digest
    from testbed.digest.digest import open_runs
    from testbed.spark.session import context

    runs, refused = open_runs(paths)
    if not runs:
        return [], refused
    with (
        context(master, imports=WORKERS) as spark,
        progress_bar("digest") as progress,
    ):
        return digest(spark, runs, progress), refused
