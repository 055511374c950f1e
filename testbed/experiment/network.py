"""The network of an experiment: the physical graph with its links, and overlay and groups upon it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import networkx as nx

from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.experiment.seeds import stream
from testbed.topologies import Groups, Links, Model, domains
from testbed.topologies.channels import ExponentialChannels
from testbed.topologies.files import File


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

    @cached_property
    def domains(self) -> tuple[tuple[str, ...], ...]:
        """The communication domains of each node, if the graph has domains."""
        return domains(self.graph)

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
    """Generate the network of an experiment from its seed."""
    with told_as(experiment, "topology"):
        topology = experiment.topology
        generate = _generate if isinstance(topology, File) else _generated
        graph = generate(topology, experiment.links, experiment.seed)
    processes = graph.number_of_nodes()
    if processes < 2:
        raise UserError(
            f"{experiment.origin}: topology has {processes} node; a multicast needs at least 2"
        )
    if not nx.is_connected(graph):
        parts = nx.number_connected_components(graph)
        raise UserError(
            f"{experiment.origin}: topology: the graph falls into {parts} parts that no link joins; "
            "every node must be able to reach every other"
        )
    overlay: nx.Graph[int] | None = None
    groups: Groups = {}
    if experiment.protocol.needs_overlay:
        with told_as(experiment, "overlay"):
            overlay = experiment.overlay.generate(processes, stream(experiment.seed, "overlay"))
    if experiment.groups is not None:
        with told_as(experiment, "groups"):
            groups = experiment.groups.generate(processes, stream(experiment.seed, "groups"))
    return Network(graph, overlay, groups)


def _generate(topology: Model, links: Links, seed: int) -> nx.Graph[int]:
    graph = topology.generate(stream(seed, "topology"))
    if not isinstance(topology, ExponentialChannels):  # they are no links
        links.apply(graph, stream(seed, "links"))
    return graph


# Experiments that differ in something else share a graph, which nobody changes: to draw a fault that
# suits a network, fuzzing looks at it many times. A file may be another one the next time.
_generated = lru_cache(maxsize=1)(_generate)


@contextmanager
def told_as(experiment: Experiment, table: str) -> Iterator[None]:
    """Turn what does not fit into a sentence that names the experiment and the table."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise UserError(f"{experiment.origin}: {table}: {error}") from None
