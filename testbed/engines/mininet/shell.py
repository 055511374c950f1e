"""Mininet's own command line on a network: for a person, or for commands from a file or pipe."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from mininet.cli import CLI

from testbed.engines.mininet.net import EmulatedNetwork, routed_network
from testbed.engines.mininet.plan import build
from testbed.experiment import Experiment, Network


def open_shell(experiment: Experiment, network: Network, commands: TextIO) -> None:
    """Bring a network up, and interact with it; nothing of it is left afterwards."""
    plan = build(network.to_json(), experiment.transport.mtu)
    with TemporaryDirectory(prefix="causal-testbed-") as name:
        directory = Path(name)
        file = directory / "network.json"
        file.write_text(json.dumps(network.to_json()))
        metric, library = experiment.transport.routing, experiment.transport.controller
        with routed_network(plan, file, directory, metric, library) as emulated:
            print(f"hosts and switches: {plan.nodes}, links: {len(plan.links)}", flush=True)
            interact(emulated, commands)


def interact(network: EmulatedNetwork, commands: TextIO) -> None:
    """Do what a person types, or what is written in a file, until its end or ``exit``."""
    if commands.isatty():
        CLI(network, stdin=commands)
    else:
        _Batch(network, commands.read().splitlines())


class _Batch(CLI):
    """Commands that are known beforehand.

    While a command runs, Mininet passes its own input on to it; here there is none, and waiting for
    it must not return: at the end of a file Mininet would ask again and again.
    """

    def __init__(self, network: EmulatedNetwork, lines: list[str]) -> None:
        self._lines = [*lines, "exit"]
        silence, end = os.pipe()
        try:
            with open(silence) as nothing:
                super().__init__(network, stdin=nothing)
        finally:
            os.close(end)

    def preloop(self) -> None:
        """Queue the commands, which so need no prompt."""
        self.cmdqueue += self._lines
        self._lines = []

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802
        """A person's history is not for this."""

    def emptyline(self) -> Any:
        """Nothing to do."""
