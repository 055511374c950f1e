"""``testbed shell``: bring an experiment's network up and open Mininet's command line on it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from testbed.experiment import Experiment, load
from testbed.network import build_network


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "shell",
        help="bring an experiment's network up and open Mininet's command line on it",
        description="Bring up the network of an experiment file, with its links, switches and "
        "controller, on this machine and in real time, and open Mininet's command line on it: "
        "`h0 ping h3`, `net`, `links`, `link s0 s1 down`, `help`. Needs root. Commands may also "
        "come from a file or pipe. Nothing of it is left when the command line ends.",
    )
    parser.add_argument("file", type=Path, help="experiment file (TOML); see scripts/experiments")
    parser.add_argument("--seed", type=int, help="use this seed instead of the file's")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Bring the network up, interact, take it down."""
    experiment = load(options.file, seed=options.seed)[0]
    with tempfile.TemporaryDirectory(prefix="causal-testbed-") as directory:
        open_shell(experiment, Path(directory))
    return 0


def open_shell(experiment: Experiment, directory: Path) -> None:
    """Interact with the network of an experiment; the controller's files go to a directory."""
    from testbed.engines.mininet import machine

    machine.check()  # before Mininet is imported, which may not be there
    from testbed.engines.mininet.controller import Controller
    from testbed.engines.mininet.net import emulated_network
    from testbed.engines.mininet.plan import build
    from testbed.engines.mininet.shell import interact

    content = build_network(experiment).to_json()
    plan = build(content, experiment.transport.mtu)
    file = directory / "network.json"
    file.write_text(json.dumps(content))
    with (
        emulated_network(plan) as network,
        Controller(file, directory, metric=experiment.transport.routing) as controller,
    ):
        controller.wait_until_ready()
        print(f"hosts and switches: {plan.nodes}, links: {len(plan.links)}", flush=True)
        interact(network, sys.stdin)
