"""The figures of a graph, for tables and for the captions of plots."""

from dataclasses import dataclass

from .connectivity import edge_connectivity, node_connectivity
from .distances import neighbour_lists, pairs_by_distance
from .graph import Graph


@dataclass(frozen=True)
class Figures:
    """Size, degrees, distances in hops, connectivity and the mean delay of a link.

    Distances leave out pairs that are not connected (node connectivity is 0 then).
    """

    nodes: int
    links: int
    degree_min: int
    degree_mean: float
    degree_max: int
    diameter: int
    mean_distance: float
    node_connectivity: int
    edge_connectivity: int
    mean_delay_ms: float | None  # none before ``topologies.links`` has set the delays


def describe(graph: Graph) -> Figures:
    """Work out the figures of a graph."""
    neighbours = neighbour_lists(len(graph), graph.edges)
    degrees = [len(others) for others in neighbours] or [0]
    pairs = pairs_by_distance(neighbours)
    hops = sum(distance * count for distance, count in enumerate(pairs))
    delays = [its["delay_ns"] for _, _, its in graph.edges(data=True) if "delay_ns" in its]
    kappa = node_connectivity(graph)
    return Figures(
        nodes=len(graph),
        links=graph.number_of_edges(),
        degree_min=min(degrees),
        degree_mean=sum(degrees) / len(degrees),
        degree_max=max(degrees),
        diameter=len(pairs) - 1,
        mean_distance=hops / max(1, sum(pairs[1:])),
        node_connectivity=kappa,
        edge_connectivity=edge_connectivity(graph, lower=kappa),
        mean_delay_ms=sum(delays) / len(delays) / 1e6 if delays else None,
    )
