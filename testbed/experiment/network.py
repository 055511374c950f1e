"""The network of an experiment: the physical graph with its links, and overlay and groups upon it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.experiment.seeds import stream
from testbed.faults import FaultSchedule, Join, Leave
from testbed.protocols import PROTOCOLS, Protocol
from testbed.topologies import GROUPINGS, Groups
from testbed.topologies.channels import ExponentialChannels
from testbed.workloads import Sending


@dataclass(frozen=True)
class Network:
    """What ``network.json`` holds."""

    graph: nx.Graph[int]
    overlay: nx.Graph[int] | None
    groups: Groups = field(default_factory=dict)

    @property
    def processes(self) -> int:
        """One process on every node."""
        return self.graph.number_of_nodes()

    def neighbours(self, node: int) -> tuple[int, ...]:
        """A node's neighbours in the overlay."""
        return tuple(sorted(self.overlay[node])) if self.overlay is not None else ()

    def to_json(self) -> dict[str, Any]:
        """Plain data, complete: the graph can be built from it again."""
        return {
            "nodes": [{"id": node, **self.graph.nodes[node]} for node in sorted(self.graph.nodes)],
            "links": [
                {"a": a, "b": b, **self.graph.edges[a, b]}
                for a, b in sorted(map(sorted, self.graph.edges))
            ],
            "overlay": None if self.overlay is None else sorted(map(sorted, self.overlay.edges)),
            "groups": {name: sorted(members) for name, members in self.groups.items()},
            "generated": dict(self.graph.graph),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Network:
        """The network that ``to_json`` wrote."""
        graph: nx.Graph[int] = nx.Graph(**content["generated"])
        for node in content["nodes"]:
            graph.add_node(node["id"], **{k: v for k, v in node.items() if k != "id"})
        for link in content["links"]:
            attributes = {k: v for k, v in link.items() if k not in ("a", "b")}
            graph.add_edge(link["a"], link["b"], **attributes)
        overlay = content["overlay"]
        return cls(
            graph,
            None if overlay is None else nx.Graph(map(tuple, overlay)),
            {name: frozenset(members) for name, members in content.get("groups", {}).items()},
        )


def build_network(experiment: Experiment) -> Network:
    """Generate the experiment's network from its seed, and see that the experiment fits it."""
    where = experiment.file or experiment.name
    try:
        graph = experiment.topology.generate(stream(experiment.seed, "topology"))
        if not isinstance(experiment.topology, ExponentialChannels):  # they are no links
            experiment.links.apply(graph, stream(experiment.seed, "links"))
    except (ValueError, OSError) as error:
        raise UserError(f"{where}: topology: {error}") from None
    processes = graph.number_of_nodes()
    if processes < 2:
        raise UserError(f"{where}: topology has {processes} node; a multicast needs at least 2")
    if not nx.is_connected(graph):
        parts = nx.number_connected_components(graph)
        raise UserError(
            f"{where}: topology: the graph falls into {parts} parts that no link joins; "
            "every node must be able to reach every other"
        )
    if experiment.workload.senders > processes:
        raise UserError(
            f"{where}: workload.senders = {experiment.workload.senders}, "
            f"but the topology has only {processes} nodes"
        )
    fault_schedule(experiment, graph)
    network = Network(graph, _overlay(experiment, processes), _groups(experiment, processes))
    _check_destinations(experiment, network)
    return network


def planned_sends(experiment: Experiment, network: Network) -> list[Sending]:
    """All that the applications send unasked, drawn from the seed, the same on every engine."""
    rng = stream(experiment.seed, "workload")
    try:
        return list(experiment.workload.sends(network.processes, rng, network.groups))
    except ValueError as error:
        raise UserError(f"{experiment.file or experiment.name}: workload: {error}") from None


def fault_schedule(experiment: Experiment, graph: nx.Graph[int]) -> FaultSchedule:
    """What will go wrong in a run, drawn from its seed, the same on every engine."""
    rng = stream(experiment.seed, "faults")
    if experiment.protocol.join is Protocol.join:
        for fault in experiment.faults:
            if isinstance(fault, Join | Leave):
                raise UserError(
                    f"{experiment.file or experiment.name}: fault: {experiment.protocol.name} has "
                    f"no members, so nobody can {fault.kind}"
                )
    try:
        return FaultSchedule(experiment.faults, graph, rng, experiment.workload.duration)
    except ValueError as error:
        raise UserError(f"{experiment.file or experiment.name}: fault: {error}") from None


def _check_destinations(experiment: Experiment, network: Network) -> None:
    """See that the protocol can send to whom the workload sends."""
    where, protocol = experiment.file or experiment.name, experiment.protocol
    if protocol.takes_subsets and network.groups:
        planned_sends(experiment, network)  # which says what does not fit the groups
    if protocol.needs_groups:
        if not network.groups:
            raise UserError(
                f"{where}: {protocol.name} sends every message to a group, so the experiment needs "
                f"a table [groups] with the key 'model': one of {', '.join(GROUPINGS)}"
            )
        groups = set(network.groups.values())
        for _, node, _, to in planned_sends(experiment, network):
            if to not in groups or node not in to:
                raise UserError(
                    f"{where}: {protocol.name} sends to groups that the sender is a member of, and "
                    f"this workload has node {node} send to {'all' if to is None else sorted(to)}"
                )
    elif not protocol.takes_subsets and (network.groups or not experiment.workload.broadcasts()):
        takers = [name for name, taker in PROTOCOLS.items() if taker.takes_subsets]
        raise UserError(
            f"{where}: {protocol.name} sends every message to everybody, and this "
            f"workload sends to some; {', '.join(takers)} can do that"
        )


def _groups(experiment: Experiment, processes: int) -> Groups:
    if experiment.groups is None:
        return {}
    try:
        groups: Groups = experiment.groups.generate(processes, stream(experiment.seed, "groups"))
    except ValueError as error:
        raise UserError(f"{experiment.file or experiment.name}: groups: {error}") from None
    return groups


def _overlay(experiment: Experiment, processes: int) -> nx.Graph[int] | None:
    if not experiment.protocol.needs_overlay:
        return None
    try:
        overlay: nx.Graph[int] = experiment.overlay.generate(
            processes, stream(experiment.seed, "overlay")
        )
    except ValueError as error:
        raise UserError(f"{experiment.file or experiment.name}: overlay: {error}") from None
    return overlay
