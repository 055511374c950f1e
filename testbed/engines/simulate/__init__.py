"""The simulator: the protocols themselves over store-and-forward links, in exact virtual time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from protocols import Place
from testbed.engines.simulate.network import SimulatedNetwork
from testbed.engines.simulate.packets import PacketTable
from testbed.events import EventLog
from testbed.experiment import Experiment
from testbed.measures import Meter, summarise
from testbed.network import Network
from testbed.node import Node
from testbed.rundir import RunDirectory
from testbed.seeds import stream

Progress = Callable[[str, int, int], None]


def run(
    experiment: Experiment, network: Network, directory: RunDirectory, progress: Progress
) -> dict[str, Any]:
    """Run an experiment to its end, write its events, and give its figures."""
    with ExitStack() as files:
        log = files.enter_context(EventLog(directory.path / "events" / "nodes.jsonl"))
        simulation = Simulation(experiment, network, log)
        if experiment.packets == "full":
            table = PacketTable(directory.path / "packets" / "links.parquet")
            simulation.network.scheduler.record = files.enter_context(table).record
        simulation.run(progress)
    return simulation.summary()


class Simulation:
    """All nodes of an experiment, the network between them, and the workload that drives them."""

    def __init__(self, experiment: Experiment, network: Network, log: EventLog) -> None:
        processes = network.processes
        self.meter = Meter()
        self.network = SimulatedNetwork(
            network.graph,
            metric=experiment.transport.routing,
            framing=experiment.transport.framing,
            mtu=experiment.transport.mtu,
            rng=stream(experiment.seed, "loss"),
        )
        self.nodes = [
            Node(
                experiment.process(
                    Place(
                        me, processes, network.neighbours(me), stream(experiment.seed, "node", me)
                    )
                ),
                experiment.workload,
                self.network,
                log,
                self.meter,
            )
            for me in range(processes)
        ]
        self.network.receivers = [node.receive for node in self.nodes]
        self.expected = 0
        self._schedule(experiment, processes)

    def run(self, progress: Progress) -> None:
        """Until nothing is under way and nobody sends any more."""
        scheduler = self.network.scheduler
        scheduler.tick = lambda: progress("simulate", self.meter.deliveries, self.expected)
        scheduler.run()

    def summary(self) -> dict[str, Any]:
        """The run's figures."""
        network = self.network
        return summarise(
            len(self.nodes), network.scheduler.now, self.meter, network.sent, network.carried()
        )

    def _schedule(self, experiment: Experiment, processes: int) -> None:
        workload = experiment.workload
        scheduler = self.network.scheduler
        sends = list(workload.sends(processes, stream(experiment.seed, "workload")))
        self.expected = len(sends) * (1 + workload.answers_per_message()) * processes
        for at, node, payload, to in sends:
            scheduler.call_at(at, partial(self.nodes[node].multicast, payload, at, to))
