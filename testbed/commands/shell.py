"""``testbed shell``: bring an experiment's network up and open Mininet's command line on it."""

import argparse
import sys
from pathlib import Path
from typing import Any

from testbed.commands.terminal import console
from testbed.engines import choose_engine
from testbed.engines.needs import require_emulation
from testbed.errors import UserError
from testbed.experiment import Experiment, load
from testbed.experiment.network import build_network


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "shell",
        description="Bring up the network of an experiment file, with its links, switches and "
        "controller, in real time, and open Mininet's command line on it: `h0 ping h3`, `net`, "
        "`links`, `link s0 s1 down`, `help`. Commands may also come from a file or pipe. All of it is "
        "removed when the command line ends.",
    )
    parser.add_argument(
        "--engine",
        choices=("auto", "mininet", "virtual"),
        default="auto",
        help="mininet: on this kernel, as root; virtual: in a user-mode kernel, no root, in "
        "real time here; auto: mininet where it runs, else virtual",
    )
    parser.add_argument("file", type=Path, help="experiment file (TOML); see scripts/experiments")
    parser.add_argument("--seed", type=int, help="use this seed instead of the file's")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Bring the network up, interact, take it down."""
    experiment = load(options.file, seed=options.seed)[0]
    engine, why = choose_engine(options.engine)
    require_emulation()
    if engine == "virtual":
        if options.engine == "auto":
            console().print(f"engine {engine}: {why}", soft_wrap=True)
        return _in_a_guest(options, experiment)
    from testbed.engines.mininet.kernel import machine

    machine.check()  # before Mininet is imported, which may not be there
    from testbed.engines.mininet.shell import open_shell

    open_shell(experiment, build_network(experiment), sys.stdin)
    return 0


def _in_a_guest(options: argparse.Namespace, experiment: Experiment) -> int:
    """The same command, in a guest."""
    from testbed.engines.virtual.engine import memory_mb
    from testbed.engines.virtual.errors import GuestError
    from testbed.engines.virtual.terminal import run_in_terminal

    path = getattr(experiment.topology, "path", None)
    words = ["shell", str(options.file), "--engine", "mininet"]
    words += ["--seed", str(options.seed)] if options.seed is not None else []
    try:
        return run_in_terminal(
            [sys.executable, "-m", "testbed", *words],
            memory_mb(build_network(experiment).processes),
            [options.file.resolve(), *([Path(path)] if path else [])],
        )
    except GuestError as error:
        raise UserError(str(error)) from None
