"""Mininet, Open vSwitch and Ryu on this machine's own kernel, in real time, as root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed.progress import Progress

if TYPE_CHECKING:
    from testbed.experiment import Experiment
    from testbed.experiment.network import Network
    from testbed.runs.directory import RunDirectory


def run(
    experiment: Experiment, network: Network, directory: RunDirectory, progress: Progress
) -> dict[str, Any]:
    """Emulate the experiment of a prepared run directory, and give its figures."""
    from testbed.engines.mininet.emulate import emulate  # imports Mininet and scapy
    from testbed.engines.mininet.summary import figures

    emulate(directory.path, progress)
    return figures(network, directory)
