"""The simulator: the protocols themselves over store-and-forward links, in exact virtual time."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from testbed.engines.simulate.channels import Channels
from testbed.engines.simulate.faults import Faulty
from testbed.engines.simulate.network import SimulatedNetwork
from testbed.engines.simulate.packet_table import PacketTable
from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.experiment.network import Network, planned_sends
from testbed.experiment.seeds import stream
from testbed.node import Node
from testbed.node.log import Log
from testbed.node.meter import Meter, summarise
from testbed.progress import Progress
from testbed.protocols import Place
from testbed.runs.directory import RunDirectory
from testbed.runs.events import EventLog
from testbed.topologies.channels import ExponentialChannels
from testbed.workloads import Sending


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


class OverError(Exception):
    """The run ends here, though there is more to do.

    A protocol that never rests has had its time; or the processes deliver far more than there is to
    deliver, and the oracle will say what.
    """


class Simulation:
    """All nodes of an experiment, the network between them, and the workload that drives them."""

    def __init__(self, experiment: Experiment, network: Network, log: Log) -> None:
        processes = network.processes
        self.experiment = experiment
        self.groups = network.groups
        self.log = log
        self.meter = Meter()
        self.network = _network(experiment, network)
        self.neighbours = [network.neighbours(me) for me in range(processes)]
        self.nodes = [self.node(me) for me in range(processes)]
        self.dead: set[int] = set()
        self.network.receivers = [node.receive for node in self.nodes]
        self.expected = self.most = self.last_send = 0
        self.faulty = Faulty(self, experiment, network) if experiment.faults else None
        self._schedule(planned_sends(experiment, network))

    def node(self, me: int, incarnation: int = 0) -> Node:
        """A process at its beginning."""
        experiment, processes = self.experiment, len(self.neighbours)
        name = ("node", me, incarnation) if incarnation else ("node", me)
        rng = stream(experiment.seed, *name)
        groups = tuple(self.groups.values())
        place = Place(me, processes, self.neighbours[me], rng, incarnation, groups)
        protocol = experiment.process(place)
        return Node(protocol, experiment.workload, self.network, self.log, self.meter, self.groups)

    def run(self, progress: Progress) -> None:
        """Until nothing is under way and nobody sends any more."""
        scheduler = self.network.scheduler

        def tick() -> None:
            progress("simulate", self.meter.deliveries, self.expected)
            if self.meter.deliveries > self.most:
                raise OverError

        scheduler.tick = tick
        if not self.experiment.protocol.rests:
            scheduler.call_at(self.last_send, self._end_if_settled)
        with suppress(OverError):
            scheduler.run()

    def _end_if_settled(self) -> None:
        """End the run when nothing that was planned has happened for a while."""
        scheduler = self.network.scheduler
        changed = self.faulty.latest if self.faulty else 0
        coming = self.faulty.faults.next() if self.faulty else None
        end = max(self.last_send, changed, coming or 0) + self.experiment.workload.settling
        if scheduler.now >= end:
            raise OverError
        scheduler.call_at(end, self._end_if_settled)

    def summary(self) -> dict[str, Any]:
        """The run's figures."""
        network = self.network
        return summarise(
            len(self.nodes), network.scheduler.now, self.meter, network.sent, network.carried()
        )

    def _schedule(self, sends: list[Sending]) -> None:
        experiment, processes = self.experiment, len(self.nodes)
        workload = experiment.workload
        scheduler = self.network.scheduler
        for process in self.nodes:
            scheduler.call_at(0, partial(self._start, process))
        deliveries = sum(processes if to is None else len(to) for _, _, _, to in sends)
        self.expected = deliveries * (1 + workload.answers_per_message())
        self.most = workload.most_deliveries(sends, processes)
        self.last_send = sends[-1].at if sends else 0
        try:
            warm_at = workload.warm_at(sends)
        except ValueError as error:
            raise UserError(f"{experiment.file or experiment.name}: workload: {error}") from None
        if warm_at:
            scheduler.call_at(warm_at, self.meter.counted.clear)
        for at, node, payload, to in sends:
            scheduler.call_at(at, partial(self._send, node, payload, to))

    def _start(self, process: Node) -> None:
        """A process begins, unless a fault at the very beginning was quicker."""
        if process.id not in self.dead:
            process.start(0)

    def _send(self, node: int, payload: bytes, to: frozenset[int] | None) -> None:
        """The application sends, unless it is dead; one that stands still does so later."""
        if node in self.dead:
            return
        process = self.nodes[node]
        self.network.when_awake(
            node, lambda: process.multicast(payload, self.network.scheduler.now, to)
        )


def _network(experiment: Experiment, network: Network) -> SimulatedNetwork:
    transport, rng = experiment.transport, stream(experiment.seed, "loss")
    if isinstance(topology := experiment.topology, ExponentialChannels):
        return Channels(topology.nodes, topology.mean_ms, framing=transport.framing, rng=rng)
    return SimulatedNetwork(
        network.graph,
        metric=transport.routing,
        framing=transport.framing,
        mtu=transport.mtu,
        rng=rng,
    )
