"""Runs a command in a guest: `python -m testbed.engines.virtual [OPTIONS] -- COMMAND…`."""

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.engines.virtual.errors import GuestError
from testbed.engines.virtual.guest import EPOCH_NS, GuestSettings, run_guest

_FAILED = 125  # as of docker and env: the command was not run, or its guest failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the command's exit status, or 125 if its guest failed."""
    options = _parser().parse_args(arguments)
    settings = GuestSettings(
        results=options.results,
        virtual=not options.real_time,
        start_ns=None if options.now else EPOCH_NS,
        seed=options.seed,
        memory_mb=options.memory_mb,
        stall_s=options.stall,
        quiet_s=options.quiet,
        timeout_s=options.timeout,
    )
    # A terminated owner lets go of the guest as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        result = run_guest(options.command, settings)
    except GuestError as error:
        print(f"guest: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    if options.verbose:
        print(
            f"guest: {shlex.join(options.command)} took {result.guest_s:.6f} s by the guest's "
            f"clock; booted in {result.boot_s:.2f} s, all took {result.wall_s:.2f} s",
            file=sys.stderr,
        )
    # What a shell makes of a signal: an exit status cannot be negative.
    return result.returncode if result.returncode >= 0 else 128 - result.returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed.engines.virtual",
        description="Run a command as root in a user-mode kernel, by default in virtual time. "
        "It sees this machine's files and can change none, except in the results directory.",
    )
    parser.add_argument("--results", type=Path, default=Path("runs/guest"), metavar="DIR",
                        help="the directory that the command may write to (%(default)s)")  # fmt: skip
    parser.add_argument("--real-time", action="store_true", help="no virtual time")
    parser.add_argument("--now", action="store_true",
                        help="start the virtual clock at the present, not at 2020-01-01")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the kernel's random numbers")
    parser.add_argument("--memory-mb", type=int, default=2048, metavar="MIB")
    parser.add_argument("--stall", type=float, default=60.0, metavar="S",
                        help="end a guest that computes so many seconds without a pause")  # fmt: skip
    parser.add_argument("--quiet", type=float, default=86_400.0, metavar="S",
                        help="end a guest that is silent for so many virtual seconds")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=None, metavar="S",
                        help="real seconds that the command may take (unlimited)")  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", help="tell how long it took")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    return parser


if __name__ == "__main__":
    sys.exit(main())
