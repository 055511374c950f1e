"""Hierarchical and transit–stub graphs."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, cast

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.topologies import Graph, Level, TopologyError
from testbed.topologies.hierarchical import CONNECTIONS, ConnectionMethod, Hierarchical
from testbed.topologies.transit_stub import TransitStub, _Drawing


def names(graph: Graph) -> list[str]:
    return [graph.nodes[v]["name"] for v in range(len(graph))]


def places(graph: Graph) -> set[tuple[float, float]]:
    return {(its["x"], its["y"]) for _, its in graph.nodes(data=True)}


@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("sizes", [(12,), (4, 5), (3, 2, 4), (2, 2, 2, 2, 2), (1, 6), (6, 1)])
def test_hierarchical_contract(connection: ConnectionMethod, sizes: tuple[int, ...]) -> None:
    model = Hierarchical(tuple(Level(n) for n in sizes), connection)
    graph = model.generate(random.Random(3))
    assert list(graph) == list(range(model.nodes))
    assert nx.is_connected(graph)
    assert len(set(names(graph))) == len(places(graph)) == model.nodes
    assert all(name.count(".") == len(sizes) - 1 for name in names(graph))
    assert graph.graph["model"] == "hierarchical"
    assert graph.graph["scale"] == 20 ** len(sizes)
    assert all(0 <= c < graph.graph["scale"] for place in places(graph) for c in place)


def test_hierarchical_sizes_vary_but_their_total_does_not() -> None:
    model = Hierarchical((Level(6), Level(8)))
    sizes = [
        tuple(sorted(Counter(name.split(".")[0] for name in names(model.generate(r))).values()))
        for r in map(random.Random, range(6))
    ]
    assert all(sum(s) == 48 and len(s) == 6 for s in sizes)
    assert len(set(sizes)) > 1


def test_hierarchical_domains_are_connected_and_joined_as_their_parents_were() -> None:
    model = Hierarchical((Level(5, alpha=0.6), Level(6)))
    graph = model.generate(random.Random(4))
    domain = {v: graph.nodes[v]["name"].split(".")[0] for v in graph}
    for one in set(domain.values()):
        assert nx.is_connected(graph.subgraph(v for v in graph if domain[v] == one))
    between = [(i, j) for i, j in graph.edges if domain[i] != domain[j]]
    # one edge for each edge of the top graph, never two between the same domains
    assert len({frozenset((domain[i], domain[j])) for i, j in between}) == len(between) >= 4
    assert {graph.edges[e]["policy"] for e in graph.edges if e not in between} == {1}
    assert min(graph.edges[e]["policy"] for e in between) > 1


def inner_degrees(graph: Graph) -> tuple[dict[int, str], dict[int, int], set[int]]:
    """Degrees inside the lowest domains, and for each node whether an upper edge ends there."""
    top = {v: graph.nodes[v]["name"].rsplit(".", 1)[0] for v in graph}
    inner = {v: sum(top[w] == top[v] for w in graph[v]) for v in graph}
    chosen = {v for v in graph if any(top[w] != top[v] for w in graph[v])}
    return top, inner, chosen


@pytest.mark.parametrize("seed", range(5))
def test_hierarchical_connections_choose_by_degree(seed: int) -> None:
    levels = (Level(4, alpha=1.0), Level(8, alpha=0.5))

    def drawn(
        connection: ConnectionMethod, threshold: int = 3
    ) -> Iterator[tuple[int, dict[int, int], int]]:
        graph = Hierarchical(levels, connection, threshold).generate(random.Random(seed))
        top, inner, chosen = inner_degrees(graph)
        for v in chosen:
            yield inner[v], {w: inner[w] for w in graph if top[w] == top[v]}, v

    for degree, domain, v in drawn("least-degree"):
        assert degree == min(domain.values())
        assert v == min(w for w in domain if domain[w] == degree)
    for degree, domain, v in drawn("least-degree-non-leaf"):
        others = {w: d for w, d in domain.items() if d > 1} if len(domain) > 2 else domain
        assert degree == min(others.values())
        assert v == min(w for w in others if others[w] == degree)
    for degree, domain, v in drawn("threshold"):
        below = [w for w in domain if domain[w] < 3]
        assert v == (below[0] if below else min(domain))
        assert degree < 3 or not below


def test_hierarchical_random_connection_uses_many_nodes() -> None:
    levels = (Level(6, alpha=1.0), Level(8))
    graph = Hierarchical(levels, "random").generate(random.Random(1))
    top, _, chosen = inner_degrees(graph)
    assert len(chosen) > len(set(top.values()))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hierarchical(()), "from 1 to 5"),
        (lambda: Hierarchical((Level(2),) * 6), "from 1 to 5"),
        (lambda: Hierarchical((Level(3),), cast(Any, "nearest")), "'nearest'.*least-degree"),
        (lambda: Hierarchical((Level(3),), "threshold", 0), "threshold = 0 .*at least 1"),
        (lambda: Hierarchical((Level(1), Level(1))), "= 1 .*at least 2"),
        (lambda: Hierarchical((Level(10, scale=3), Level(2))), "nodes = 10 .*at most 9"),
        (lambda: Level(0), "nodes = 0 .*at least 1"),
        (lambda: Level(5, cast(Any, "nearest")), "'nearest'.*waxman-1.*locality"),
        (lambda: Level(5, alpha=2.0), "alpha = 2.0 |edge_probability = 2.0 "),
        (lambda: Level(5, "waxman-2", beta=0.0), "beta = 0.0 .*above 0"),
        (lambda: TransitStub(stubs_per_transit_node=-1), "stubs_per_transit_node = -1 "),
        (lambda: TransitStub(extra_stub_stub_edges=-1), "extra_stub_stub_edges = -1 "),
        (
            lambda: TransitStub(transit=Level(1), stubs_per_transit_node=0),
            "= 1 .*at least 2",
        ),
    ],
)
def test_wrong_parameters(make: Callable[[], object], words: str) -> None:
    with pytest.raises(TopologyError, match=words):
        make()


def test_a_level_that_never_connects_is_named() -> None:
    with pytest.raises(TopologyError, match=r"^level 2 of 2: pure-random: none of"):
        Hierarchical((Level(3), Level(40, alpha=0.001))).generate(random.Random(1))
    with pytest.raises(TopologyError, match=r"^stub: pure-random: none of"):
        TransitStub(stub=Level(40, alpha=0.001)).generate(random.Random(1))


TRANSIT = re.compile(r"T:(\d+)\.(\d+)")
STUB = re.compile(r"S:(\d+)\.(\d+)/(\d+)\.(\d+)")


def domain_of(name: str) -> str:
    """The domain that a name puts its node in."""
    return name.split(".")[0] if name.startswith("T") else name.rsplit(".", 1)[0]


@settings(max_examples=40, deadline=None)
@given(
    top=st.integers(1, 4),
    transit=st.integers(1, 4),
    stub=st.integers(1, 5),
    stubs=st.integers(0, 3),
    seed=st.integers(0, 10**6),
)
def test_transit_stub_contract(top: int, transit: int, stub: int, stubs: int, seed: int) -> None:
    if top * transit * (1 + stubs * stub) < 2:
        return
    model = TransitStub(Level(top), Level(transit), Level(stub), stubs)
    graph = model.generate(random.Random(seed))
    assert len(graph) == model.nodes == top * transit * (1 + stubs * stub)
    assert nx.is_connected(graph)
    assert len(set(names(graph))) == len(places(graph)) == len(graph)
    assert all(TRANSIT.fullmatch(name) or STUB.fullmatch(name) for name in names(graph))
    assert all(0 <= c < graph.graph["scale"] for place in places(graph) for c in place)
    assert sum(name.startswith("T") for name in names(graph)) == top * transit
    domains = [domain_of(name) for name in names(graph)]
    for one in set(domains):
        assert nx.is_connected(graph.subgraph(v for v in graph if domains[v] == one))
    for i, j in graph.edges:
        a, b = sorted((names(graph)[i], names(graph)[j]))
        if domains[i] == domains[j] or a[0] == b[0] == "T":
            continue
        # without extra edges a stub touches nothing but the transit node that it hangs on
        assert a.startswith("S")
        assert a.split("/")[0][1:] == b[1:]


def test_transit_stub_joins_domains_by_up_to_two_links() -> None:
    model = TransitStub(Level(3, alpha=1.0), Level(5), Level(2), 1)
    seen = set()
    for seed in range(8):
        graph = model.generate(random.Random(seed))
        domains = [domain_of(name) for name in names(graph)]
        between = Counter(
            frozenset((domains[i], domains[j]))
            for i, j in graph.edges
            if domains[i] != domains[j] and domains[i][0] == domains[j][0] == "T"
        )
        assert len(between) == 3
        seen |= set(between.values())
    assert seen <= {1, 2}
    assert 2 in seen


def test_transit_stub_extra_edges() -> None:
    plain = TransitStub(Level(2), Level(4), Level(4), 2)
    extra = TransitStub(Level(2), Level(4), Level(4), 2, 12, 9)
    graph = extra.generate(random.Random(5))
    before = plain.generate(random.Random(5))
    assert names(graph) == names(before)
    added = set(graph.edges) - set(before.edges)
    assert len(added) == 12 + 9
    assert set(before.edges) <= set(graph.edges)
    kinds = Counter("".join(sorted(names(graph)[v][0] for v in edge)) for edge in added)
    assert kinds == {"ST": 12, "SS": 9}
    for i, j in added:
        a, b = sorted((names(graph)[i], names(graph)[j]))
        assert domain_of(a) != domain_of(b)
        assert b.startswith("S") or a.split("/")[0][1:] != b[1:]


def test_transit_stub_full_of_extra_edges_and_one_too_many() -> None:
    sizes = (Level(1), Level(2), Level(2), 1)  # 2 stubs, 4 stub nodes, one transit node away each
    assert TransitStub(*sizes, 4, 0).generate(random.Random(1)).number_of_edges() >= 4
    with pytest.raises(TopologyError, match=r"extra_transit_stub_edges = 5 .*at most 4"):
        TransitStub(*sizes, 5, 0).generate(random.Random(1))
    with pytest.raises(TopologyError, match=r"extra_stub_stub_edges = 9 .*at most [34]"):
        TransitStub(*sizes, 0, 9).generate(random.Random(1))
    with pytest.raises(TopologyError, match="at most 0"):
        TransitStub(Level(1), Level(1), Level(4), 1, 0, 1).generate(random.Random(1))


@pytest.mark.parametrize("seed", range(5))
def test_extra_stub_edges_leave_their_stub(seed: int) -> None:
    sizes = (Level(1), Level(2), Level(5, alpha=0.4), 1)
    before = TransitStub(*sizes).generate(random.Random(seed))
    graph = TransitStub(*sizes, 0, 6).generate(random.Random(seed))
    added = set(graph.edges) - set(before.edges)
    assert len(added) == 6
    assert all({graph.nodes[v]["name"][:5] for v in edge} == {"S:0.0", "S:0.1"} for edge in added)


def test_transit_stub_policy_weights_outweigh_detours() -> None:
    model = TransitStub(Level(4, alpha=0.5), Level(7, alpha=0.3), Level(5), 1, 3, 3)
    graph = model.generate(random.Random(1))
    transit, stub, top = graph.graph["diameters"]
    assert min(transit, stub, top) > 1
    weights: dict[str, set[int]] = {"SS": set(), "ST": set(), "TT": set()}
    for i, j, its in graph.edges(data=True):
        a, b = names(graph)[i], names(graph)[j]
        if domain_of(a) == domain_of(b):
            assert its["policy"] == 1
        else:
            weights["".join(sorted(a[0] + b[0]))].add(its["policy"])
    (between,), (down,), (across,) = weights["TT"], weights["ST"], weights["SS"]
    assert 2 * between > transit
    assert 2 * down > top * between + (top + 1) * transit
    assert across >= stub + 2 * down


def test_transit_stub_policy_weights_keep_paths_in_their_domains() -> None:
    model = TransitStub(Level(3), Level(4), Level(5), 2, 8, 8)
    graph = model.generate(random.Random(11))
    domains = [domain_of(name) for name in names(graph)]
    for source in range(0, len(graph), 7):
        ways = nx.single_source_dijkstra_path(graph, source, weight="policy")
        for target, way in ways.items():
            passed = [domains[v] for v in way]
            if domains[target] == domains[source]:
                assert set(passed) == {domains[source]}
            crossed = set(passed) - {domains[source], domains[target]}
            assert all(domain.startswith("T") for domain in crossed)


def test_transit_stub_stubs_are_small_beside_the_backbone() -> None:
    graph = TransitStub(Level(3), Level(6), Level(8), 3).generate(random.Random(2))
    domains = [domain_of(name) for name in names(graph)]
    lengths: dict[str, list[float]] = {"S": [], "T": []}
    for i, j, its in graph.edges(data=True):
        if domains[i] == domains[j]:
            lengths[domains[i][0]].append(its["length"])
    assert sum(lengths["S"]) / len(lengths["S"]) < sum(lengths["T"]) / len(lengths["T"]) / 2


def test_transit_domains_are_drawn_with_the_parameters_of_transit_domains() -> None:
    model = TransitStub(Level(4), Level(6, alpha=1.0), Level(6, alpha=0.4), 1)
    graph = model.generate(random.Random(8))
    domains = [domain_of(name) for name in names(graph)]
    for one in {domain for domain in domains if domain.startswith("T")}:
        members = graph.subgraph(v for v in graph if domains[v] == one)
        assert members.number_of_edges() == len(members) * (len(members) - 1) // 2


@pytest.mark.parametrize("sizes", [(1, 1, 150, 4), (1, 2, 1, 60), (6, 6, 6, 2), (1, 40, 0, 0)])
def test_transit_stub_finds_room_for_any_proportions(sizes: tuple[int, ...]) -> None:
    top, transit, stub, stubs = sizes
    model = TransitStub(Level(top), Level(transit), Level(stub or 1), stubs)
    graph = model.generate(random.Random(1))
    assert len(places(graph)) == len(graph) == model.nodes


def test_transit_stub_gives_up_where_there_is_no_room() -> None:
    drawing = _Drawing(TransitStub(), random.Random(1))
    side = drawing.model.scales[0]
    drawing.points = [(x, y) for x in range(side) for y in range(side)]
    with pytest.raises(TopologyError, match="too crowded"):
        drawing._near((0, 0), 3, 7)
