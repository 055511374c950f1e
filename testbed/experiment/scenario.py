"""A scenario: everything that follows from an experiment and its seed, worked out once.

An engine is given a scenario and nothing else, so that all engines run the same network, the same
sends, the same faults, and processes that draw the same random numbers.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Self

from testbed.errors import UserError
from testbed.experiment.document import Experiment
from testbed.experiment.network import Network, build_network, told_as
from testbed.experiment.seeds import stream
from testbed.faults import Drift, Fault, FaultSchedule, Join, Leave, MessageFault
from testbed.plugins.blame import make
from testbed.protocols import PROTOCOLS, Place, Protocol
from testbed.protocols.channel import Reliable
from testbed.topologies import GROUPINGS
from testbed.topologies.channels import ExponentialChannels
from testbed.workloads import Sending

MOST_MESSAGES = 2_000_000


@dataclass(frozen=True)
class Scenario:
    """An experiment, the network it runs on, and all that its applications send unasked."""

    experiment: Experiment
    network: Network
    sends: tuple[Sending, ...]  # in order of time
    counted_from: int  # when the protocols' own counters begin to count

    @classmethod
    def of(cls, experiment: Experiment) -> Self:
        """Generate the network of an experiment, draw the rest, and see that all of it fits."""
        network = build_network(experiment)
        _check_fit(experiment, network)
        scenario = cls.on(experiment, network)
        if experiment.protocol.needs_groups:
            _check_groups(scenario)
        scenario.fault_schedule()
        scenario.process(0)
        return scenario

    @classmethod
    def on(cls, experiment: Experiment, network: Network) -> Self:
        """The scenario of an experiment on a network that was generated before."""
        rng = stream(experiment.seed, "workload")
        with told_as(experiment, "workload"):
            drawn = experiment.workload.sends(network.processes, rng, network.groups)
            if len(sends := tuple(islice(drawn, MOST_MESSAGES + 1))) > MOST_MESSAGES:
                raise ValueError(
                    f"more than {MOST_MESSAGES:,} messages would be sent; fewer senders, a shorter "
                    "duration or a longer interval would do"
                )
            sends = _in_turns(experiment, sends)
            return cls(experiment, network, sends, experiment.workload.warm_at(sends))

    def fault_schedule(self) -> FaultSchedule:
        """What goes wrong and when, drawn from the seed: a fresh schedule for each run."""
        experiment = self.experiment
        with told_as(experiment, "fault"):
            return FaultSchedule(
                experiment.faults,
                self.network.graph,
                stream(experiment.seed, "faults"),
                experiment.workload.duration,
            )

    @property
    def clock_rates(self) -> dict[int, float]:
        """By process, how fast its own clock runs if that is not the run's clock."""
        return {f.node: f.rate for f in self.experiment.faults if isinstance(f, Drift)}

    def place(self, me: int, incarnation: int = 0) -> Place:
        """All that a process knows of the system at its beginning."""
        network = self.network
        name = ("node", me, incarnation) if incarnation else ("node", me)
        return Place(
            me,
            network.processes,
            network.neighbours(me),
            stream(self.experiment.seed, *name),
            incarnation,
            tuple(network.groups.values()),
            network.domains,
        )

    def process(self, me: int, incarnation: int = 0) -> Protocol:
        """A process at its beginning, on a reliable channel if the experiment has one."""
        experiment, place = self.experiment, self.place(me, incarnation)
        with told_as(experiment, "protocol"):
            protocol = make(experiment.protocol, place, experiment.settings)
        return protocol if experiment.channel is None else Reliable(protocol, experiment.channel)

    @property
    def last_send(self) -> int:
        """When the last message is sent unasked."""
        return self.sends[-1].at if self.sends else 0

    @property
    def most_deliveries(self) -> int:
        """More deliveries than a run can have that comes to an end."""
        return self.experiment.workload.most_deliveries(self.sends, self.network.processes)


def _in_turns(experiment: Experiment, sends: tuple[Sending, ...]) -> tuple[Sending, ...]:
    """Where processes take turns, their applications go by clocks that run only in these."""
    topology = experiment.topology
    if not isinstance(topology, ExponentialChannels) or (turns := topology.turns) is None:
        return sends
    moved = (send._replace(at=turns.at(send.node, send.at)) for send in sends)
    return tuple(sorted(moved, key=lambda send: send.at))


def _check_fit(experiment: Experiment, network: Network) -> None:
    """See that workload, faults and protocol suit the network and each other."""
    protocol, workload = experiment.protocol, experiment.workload
    if workload.senders > network.processes:
        raise UserError(
            f"{experiment.origin}: workload.senders = {workload.senders}, "
            f"but the topology has only {network.processes} nodes"
        )
    if protocol.join is Protocol.join:
        for fault in experiment.faults:
            if isinstance(fault, Join | Leave):
                raise UserError(
                    f"{experiment.origin}: fault: {protocol.name} has no members, so nobody can "
                    f"{fault.kind}"
                )
    for fault in experiment.faults:
        for node in _processes(fault):
            if node not in range(network.processes):
                raise UserError(f"{experiment.origin}: fault: there is no node {node}")
    _check_triggers(experiment)
    if protocol.needs_groups and not network.groups:
        raise UserError(
            f"{experiment.origin}: {protocol.name} sends every message to a group, so the "
            "experiment needs a table [groups] with the key 'model': one of "
            f"{', '.join(GROUPINGS)}"
        )
    subsets = bool(network.groups) or not workload.broadcasts()
    if subsets and not (protocol.takes_subsets or protocol.needs_groups):
        takers = [name for name, taker in PROTOCOLS.items() if taker.takes_subsets]
        raise UserError(
            f"{experiment.origin}: {protocol.name} sends every message to everybody, and this "
            f"workload sends to some; {', '.join(takers)} can do that"
        )


def _processes(fault: Fault) -> tuple[int, ...]:
    """The processes that a fault names which is no matter of the schedule."""
    match fault:
        case Drift(node=node):
            return (node,)
        case MessageFault(sender=sender, receiver=receiver):
            return sender, receiver
    return ()


def _check_triggers(experiment: Experiment) -> None:
    """See that a protocol that tells its events beforehand has those that faults wait for."""
    events = list(dict.fromkeys(row.event for row in experiment.protocol.transitions))
    for fault in experiment.faults:
        event = fault.when and fault.when.event
        if events and event is not None and event not in events:
            raise UserError(
                f"{experiment.origin}: fault: {experiment.protocol.name} logs no event {event!r}; "
                f"it logs {', '.join(events)}"
            )


def _check_groups(scenario: Scenario) -> None:
    """See that every message goes to a group of its sender."""
    groups = set(scenario.network.groups.values())
    for _, node, _, to in scenario.sends:
        if to not in groups or node not in to:
            raise UserError(
                f"{scenario.experiment.origin}: {scenario.experiment.protocol.name} sends to groups "
                f"that the sender is a member of, and this workload has node {node} send to "
                f"{'all' if to is None else sorted(to)}"
            )
