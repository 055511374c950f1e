"""The mininet engine, and what it shares with the virtual one: the limits of emulation."""

from typing import Any

from testbed.engines.needs import require_emulation
from testbed.experiment import Scenario
from testbed.progress import Progress
from testbed.runs.directory import RunDirectory
from testbed.topologies.channels import ExponentialChannels

PROTOCOL_FAILED = 3  # the exit status of ``python -m testbed.engines.mininet``


class Emulation:
    """What every engine refuses that emulates the network with real packets."""

    def __init__(self) -> None:
        require_emulation()

    def refuses(self, scenario: Scenario) -> str | None:
        """Packets without headers, and channels that are no links."""
        experiment = scenario.experiment
        if (framing := experiment.transport.framing) != "udp":
            return (
                f"transport.framing = {framing!r} is for the simulator; real packets have headers: "
                "use 'udp'"
            )
        if isinstance(experiment.topology, ExponentialChannels):
            return (
                f"topology.model = {experiment.topology.model!r} is for the simulator; a network of "
                "links, such as 'pure-random', can be emulated"
            )
        return None


class MininetEngine(Emulation):
    """Mininet, Open vSwitch and Ryu on this machine's own kernel, in real time, as root."""

    def run(
        self, scenario: Scenario, directory: RunDirectory, progress: Progress
    ) -> dict[str, Any]:
        """Emulate the scenario of a prepared run directory, and give its figures."""
        from testbed.engines.mininet.emulate import emulate  # imports Mininet and scapy
        from testbed.engines.mininet.summary import summarise_emulation

        emulate(directory, progress)
        protocol = scenario.experiment.protocol
        return summarise_emulation(protocol, scenario.network, directory)
