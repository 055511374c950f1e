"""The command line: ``testbed COMMAND``; each command is a module of ``testbed.commands``."""

import argparse
from contextlib import nullcontext
from functools import partial

from testbed import __version__
from testbed.commands import (
    check,
    compare,
    digest,
    dissector,
    doctor,
    explore,
    export,
    fuzz,
    protocols,
    report,
    run,
    shell,
    sweep,
    topology,
)
from testbed.commands.ending import status_of
from testbed.commands.ownership import handed_over

COMMANDS = (
    run,
    check,
    digest,
    report,
    compare,
    export,
    dissector,
    sweep,
    explore,
    fuzz,
    topology,
    protocols,
    doctor,
    shell,
)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 all well, 1 a violation was found, 2 it could not be done."""
    parser = argparse.ArgumentParser(
        prog="testbed",
        description="Run causal-ordering multicast protocols, measure them, and check their order.",
        epilog="`testbed COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"testbed {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    options = parser.parse_args(arguments)
    return status_of(partial(_run, options))


def _run(options: argparse.Namespace) -> int:
    with handed_over(options.runs) if "runs" in options else nullcontext():
        return int(options.command(options))
