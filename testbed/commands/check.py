"""``testbed check``: the ordering oracle over run directories."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from testbed.check import check_run
from testbed.commands.terminal import console, exit_status, print_json, progress_bar
from testbed.rundir import read_manifest


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="check that runs kept causal order and lost nothing",
        description="Check runs from their event logs alone, with no help from the protocols: causal "
        "order, messages delivered twice, lost, or never sent. A violation is shown with the chain "
        "of messages that makes one message the cause of the other. Exit status: 0 all valid, "
        "1 a violation, 2 a run that cannot be judged.",
    )
    parser.add_argument("run", type=Path, nargs="+", help="run directory")
    parser.add_argument(
        "--limit", type=int, default=10, help="how many findings to explain (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Check each run; the worst verdict is the exit status."""
    out = console()
    verdicts = {}
    for path in options.run:
        status = read_manifest(path)["status"]
        with progress_bar(str(path)) as progress:
            verdict = check_run(path, lambda done, of: progress("check", done, of))
        verdicts[str(path)] = verdict
        if options.json:
            continue
        note = "" if status == "complete" else f" (the run is {status})"
        out.print(f"{path}: [bold]{verdict.verdict}[/]{note}", soft_wrap=True)
        for sentence in verdict.explain(options.limit):
            out.print(f"  {sentence}", soft_wrap=True, markup=False)
    if options.json:
        print_json({path: verdict.to_json() for path, verdict in verdicts.items()})
    return exit_status(verdicts.values())
