"""Who shares a communication domain."""

import random

from testbed.topologies import Level, domains
from testbed.topologies.textbook import RingGraph
from testbed.topologies.transit_stub import TransitStub


def test_a_stub_is_a_domain_within_a_transit_domain() -> None:
    graph = TransitStub(Level(2), Level(2), Level(3), stubs_per_transit_node=2).generate(
        random.Random(1)
    )
    found = domains(graph)
    assert len(found) == len(graph)
    for node, (inner, outer) in enumerate(found):
        kind, place = graph.nodes[node]["name"].split(":")
        assert outer == f"T:{place.split('.')[0]}"
        assert inner == (outer if kind == "T" else f"S:{place.rsplit('.', 1)[0]}")
    for a, b in graph.edges:
        assert found[a][0] == found[b][0] or "T" in {found[a][0][0], found[b][0][0]}


def test_other_graphs_have_none() -> None:
    assert domains(RingGraph(nodes=5).generate(random.Random(1))) == ()
