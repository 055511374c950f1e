"""The command line: ``testbed COMMAND``; each command is a module of ``testbed.commands``."""

import argparse
import sys
from contextlib import nullcontext
from functools import partial
from importlib import import_module

from testbed import __version__
from testbed.commands.ending import status_of
from testbed.commands.ownership import caution, executed, handed_over
from testbed.commands.terminal import complain

# What `testbed --help` says of each; a command's own module is imported when it is called.
COMMANDS = {
    "run": "run an experiment, check it, show its figures",
    "check": "check that runs kept causal order and lost nothing",
    "digest": "read captures and logs with Spark; write tables and figures",
    "report": "draw the plots of runs and write a page about them",
    "compare": "show runs side by side",
    "export": "write a run for Wireshark, ShiViz, TSViz or Perfetto",
    "dissector": "make Wireshark understand the messages",
    "sweep": "run every combination of the values that a file lists",
    "explore": "try everything that can happen in a small system",
    "fuzz": "try protocols on random networks with random faults",
    "grade": "grade what students handed in for a lab",
    "live": "step through a run in the browser, and interfere with it",
    "topology": "draw an experiment's network and print its figures",
    "protocols": "list the protocols and their settings",
    "new": "write the start of a protocol of your own",
    "doctor": "say what this machine can run, and what is missing",
    "shell": "bring an experiment's network up and open Mininet's command line on it",
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 all well, 1 a violation was found, 2 it could not be done."""
    parser = argparse.ArgumentParser(
        prog="testbed",
        description="Run causal-ordering multicast protocols, measure them, and check their order.",
        epilog="`testbed COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"testbed {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    arguments = sys.argv[1:] if arguments is None else arguments
    for name, summary in COMMANDS.items():
        if arguments[:1] == [name]:
            import_module(f"testbed.commands.{name}").add_parser(commands)
        else:
            commands.add_parser(name, help=summary)
    options = parser.parse_args(arguments)
    return status_of(partial(_run, options))


def _run(options: argparse.Namespace) -> int:
    if told := caution(executed()):
        complain(told)
    with handed_over(options.runs) if "runs" in options else nullcontext():
        return int(options.command(options))
