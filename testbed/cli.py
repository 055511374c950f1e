"""The command line: ``testbed COMMAND``; each command is a module of ``testbed.commands``."""

import argparse
import errno
from contextlib import nullcontext

from testbed import __version__
from testbed.commands import (
    check,
    compare,
    digest,
    doctor,
    explore,
    fuzz,
    protocols,
    report,
    run,
    shell,
    sweep,
    topology,
)
from testbed.commands.ownership import handed_over
from testbed.commands.terminal import complain
from testbed.errors import UserError

COMMANDS = (
    run,
    check,
    digest,
    report,
    compare,
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
    try:
        with handed_over(options.runs) if "runs" in options else nullcontext():
            return int(options.command(options))
    except UserError as error:
        complain(str(error))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{(error.strerror or 'cannot write').lower()}; {_REMEDY}")
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    return 2


_REMEDY = "make room or choose another directory with --runs"
