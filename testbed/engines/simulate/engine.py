"""The simulator: the protocols themselves over store-and-forward links, in exact virtual time."""

from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from testbed.engines.simulate.channels import Channels
from testbed.engines.simulate.faults import SimulatedFaults
from testbed.engines.simulate.links import COMPILED, EVENTS_PER_TICK
from testbed.engines.simulate.network import SimulatedNetwork
from testbed.engines.simulate.packet_table import PacketTable
from testbed.errors import UserError
from testbed.experiment import Scenario
from testbed.experiment.seeds import stream
from testbed.node import Node
from testbed.node.blame import fault
from testbed.node.encoding import EncodingCheck
from testbed.node.log import Log
from testbed.node.meter import Meter, summarise
from testbed.node.node import endless
from testbed.node.shared import SharedState
from testbed.plugins.blame import FAILURES
from testbed.plugins.limits import time_limit
from testbed.progress import LEVEL, Progress
from testbed.runs.directory import RunDirectory
from testbed.runs.events import EventLog
from testbed.topologies.channels import ExponentialChannels

LONGEST_NS = 600 * 10**9  # that a run may go on in vain after the last of what was planned
VAIN_EVENTS, VAIN_EVENTS_PER_PAIR = 200_000, 100  # without a multicast or a delivery


class Simulator:
    """The engine that runs anywhere: an event heap instead of a network."""

    def refuses(self, scenario: Scenario) -> str | None:
        """Nothing: whatever can be described can be simulated."""
        return None

    def run(
        self, scenario: Scenario, directory: RunDirectory, progress: Progress
    ) -> dict[str, Any]:
        """Simulate a scenario to its end, write its events, and give its figures."""
        directory.manifest["simulator"] = "compiled" if COMPILED else "Python"
        with ExitStack() as files:
            log = files.enter_context(EventLog(directory.event_log()))
            simulation = Simulation(scenario, log)
            if scenario.experiment.packets == "full":
                table = PacketTable(directory.packet_table)
                simulation.network.scheduler.record = files.enter_context(table).record
            try:
                with time_limit():
                    simulation.run(progress)
            except UserError:
                raise
            except FAILURES as error:  # whatever the protocol led to
                if (its := fault(error)) is None:
                    raise
                raise its.of(scenario.experiment.protocol) from error
        return simulation.summary()


class RunEnded(Exception):  # noqa: N818
    """The run ends here, though there is more to do.

    A protocol that never rests has had its time; or the processes deliver far more than there is to
    deliver, and the oracle will say what.
    """


class Simulation:
    """All nodes of a scenario, the network between them, and the workload that drives them."""

    def __init__(self, scenario: Scenario, log: Log) -> None:
        self.scenario = scenario
        self.log = log
        self.meter = Meter()
        self.network = _network(scenario)
        self.nodes = [self.node(me) for me in range(scenario.network.processes)]
        self.dead: set[int] = set()
        self.network.inspect = EncodingCheck(self.nodes[0].protocol).sample
        self.network.receivers = [node.receive for node in self.nodes]
        self.expected = 0  # deliveries
        self.faults = self.fault_injection()
        self._schedule()

    def node(self, me: int, incarnation: int = 0) -> Node:
        """A process at its beginning."""
        return Node(
            self.scenario.process(me, incarnation),
            self.scenario.experiment.workload,
            self.network,
            self.log,
            self.meter,
            self.scenario.network.groups,
            self.scenario.clock_rates,
        )

    def fault_injection(self) -> SimulatedFaults | None:
        """What does the faults of the scenario, if it has any."""
        return SimulatedFaults(self) if self.scenario.experiment.faults else None

    def run(self, progress: Progress) -> None:
        """Run until nothing is under way and nobody sends any more."""
        scheduler, most = self.network.scheduler, self.scenario.most_deliveries
        before, vain = (-1, -1), 0

        def tick() -> None:
            nonlocal before, vain
            progress("simulate", self.meter.deliveries, self.expected)
            for name, level in self.levels().items():
                progress(name, level, LEVEL)
            if self.meter.deliveries > most:
                raise RunEnded
            now = self.meter.deliveries, self.meter.multicasts
            vain = vain + EVENTS_PER_TICK if now == before else 0
            before = now
            if self._is_endless(vain):
                self.stop_at_next_step(vain)

        scheduler.tick = tick
        if not self.scenario.experiment.protocol.rests:
            scheduler.call_at(self.scenario.last_send, self._end_if_settled)
        shared = SharedState(self.scenario.experiment.protocol)
        with suppress(RunEnded):
            scheduler.run()
        shared.check()

    def levels(self) -> dict[str, int]:
        """The clock, and what moves and waits just now."""
        scheduler, links = self.network.scheduler, self.network.links.values()
        return {
            "clock": scheduler.now,
            "deliveries": self.meter.deliveries,
            "hops": sum(link.packets for link in links),
            "held": sum(len(node.held) for node in self.nodes),
            "queued": sum(link.queue(scheduler.now) for link in links),
        }

    def _is_endless(self, vain: int) -> bool:
        """Whether a protocol that should rest has had too many events, or too much time, in vain."""
        if not vain or not self.scenario.experiment.protocol.rests:
            return False
        late = self.network.scheduler.now > self.planned() + LONGEST_NS
        return late or vain > VAIN_EVENTS + VAIN_EVENTS_PER_PAIR * len(self.nodes) ** 2

    def stop_at_next_step(self, events: int) -> None:
        """Have the next process that would keep the run going fail, so that it can be named."""
        for node in self.nodes:
            node.inspect = endless(events)

    def _end_if_settled(self) -> None:
        """End the run when nothing that was planned has happened for a while."""
        scheduler = self.network.scheduler
        end = self.planned() + self.scenario.experiment.workload.settling
        if scheduler.now >= end:
            raise RunEnded
        scheduler.call_at(end, self._end_if_settled)

    def planned(self) -> int:
        """When the last of all that was planned happens, as far as that is known."""
        changed = self.faults.latest if self.faults else 0
        coming = self.faults.schedule.next() if self.faults else None
        return max(self.scenario.last_send, changed, coming or 0)

    def summary(self) -> dict[str, Any]:
        """The run's figures."""
        network = self.network
        return summarise(
            self.scenario.experiment.protocol,
            len(self.nodes),
            network.scheduler.now,
            self.meter,
            network.sent,
            network.carried(),
        )

    def _schedule(self) -> None:
        scheduler, sends = self.network.scheduler, self.scenario.sends
        for process in self.nodes:
            scheduler.call_at(0, partial(self._start, process))
        deliveries = sum(len(self.nodes) if to is None else len(to) for _, _, _, to in sends)
        answers = self.scenario.experiment.workload.answers_per_message()
        self.expected = deliveries * (1 + answers)
        if self.scenario.counted_from:
            scheduler.call_at(self.scenario.counted_from, self.meter.forget)
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


def _network(scenario: Scenario) -> SimulatedNetwork:
    experiment = scenario.experiment
    transport, rng = experiment.transport, stream(experiment.seed, "loss")
    if isinstance(topology := experiment.topology, ExponentialChannels):
        return Channels(topology, framing=transport.framing, rng=rng)
    return SimulatedNetwork(
        scenario.network.graph,
        metric=transport.routing,
        framing=transport.framing,
        mtu=transport.mtu,
        rng=rng,
    )
