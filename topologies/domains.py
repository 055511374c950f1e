"""Communication domains: of a transit–stub graph, by the names that GT-ITM gives its nodes.

A node of a stub is in the stub's domain, and that in a transit domain; a transit node is in the latter.
"""

import re

from .graph import Graph

_STUB = re.compile(r"S:((\d+)\.\d+/\d+)\.\d+")
_TRANSIT = re.compile(r"T:(\d+)\.\d+")


def domains(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """The domains of each node, from the innermost outwards; none if the graph is not transit–stub."""
    found = [_domains_of(graph.nodes[node].get("name", "")) for node in range(len(graph))]
    return tuple(found) if all(found) else ()


def _domains_of(name: str) -> tuple[str, ...]:
    if stub := _STUB.fullmatch(name):
        return f"S:{stub[1]}", f"T:{stub[2]}"
    transit = _TRANSIT.fullmatch(name)
    return (f"T:{transit[1]}",) * 2 if transit else ()
