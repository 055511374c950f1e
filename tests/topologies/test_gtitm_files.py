"""GT-ITM's files: specifications and graphs, good and bad."""

import random
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.topologies import (
    Level,
    Model,
    Specification,
    TopologyError,
    decode_alt,
    decode_itm,
    encode_alt,
    read_alt,
    read_itm,
    write_alt,
)
from testbed.topologies.flat import DoarLeslie, Exponential, Locality, PureRandom, Waxman1, Waxman2
from testbed.topologies.hierarchical import Hierarchical
from testbed.topologies.itm import DEFAULT_SEED
from testbed.topologies.transit_stub import TransitStub
from tests.topologies.registries import MODELS


def test_a_flat_specification() -> None:
    specifications = decode_itm("# a comment\n\ngeo 3 47\n# another\n100 50 3 .04\n")
    assert [s.model for s in specifications] == [PureRandom(100, 0.04, 50)] * 3
    assert [s.seed for s in specifications] == [47] * 3
    assert [s.number for s in specifications] == [0, 1, 2]


@pytest.mark.parametrize(
    ("parms", "model"),
    [
        ("20 30 1 .5 .2", Waxman1(20, 0.5, 0.2, 30)),
        ("20 30 2 .5 .2", Waxman2(20, 0.5, 0.2, 30)),
        ("20 30 3 .5", PureRandom(20, 0.5, 30)),
        ("20 30 3 .5 0 0", PureRandom(20, 0.5, 30)),
        ("20 30 4 .5", Exponential(20, 0.5, 30)),
        ("20 30 5 .5 .2 9", DoarLeslie(20, 0.5, 0.2, 9.0, 30)),
        ("20 30 6 .5 .1 .3", Locality(20, 0.5, 0.1, 0.3, 30)),
        ("20 30 6 .5", Locality(20, 0.5, 0.0, 0.0, 30)),
        ("20\t30  waxman1 .5 .2", Waxman1(20, 0.5, 0.2, 30)),
        ("20 30 Waxman-2 .5 .2", Waxman2(20, 0.5, 0.2, 30)),
        ("20 30 pure-random .5", PureRandom(20, 0.5, 30)),
        ("20 30 exponential .5  # as in the source", Exponential(20, 0.5, 30)),
        ("20 30 doar_leslie .5 .2 9", DoarLeslie(20, 0.5, 0.2, 9.0, 30)),
        ("20 30 locality .5 .1 .3", Locality(20, 0.5, 0.1, 0.3, 30)),
    ],
)
def test_methods_by_number_and_name(parms: str, model: Model) -> None:
    assert decode_itm(f"geo 1\n{parms}\n")[0].model == model


def test_a_hierarchical_specification() -> None:
    text = "hier 1 7\n3 2 4\n4 10 3 1.0\n5 10 2 .9 .8\n6 10 3 .7\n"
    (specification,) = decode_itm(text)
    levels = (
        Level(4, "pure-random", 1.0, scale=10),
        Level(5, "waxman-2", 0.9, 0.8, scale=10),
        Level(6, "pure-random", 0.7, scale=10),
    )
    assert specification.model == Hierarchical(levels, "least-degree", 4)
    assert len(specification.generate()) == 120


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "random"), (1, "least-degree-non-leaf"), (2, "least-degree"), (3, "threshold")],
)
def test_connections_by_number(number: int, name: str) -> None:
    (specification,) = decode_itm(f"hier 1\n2 {number}\n3 10 3 1\n4 10 3 1\n")
    assert isinstance(specification.model, Hierarchical)
    assert specification.model.connection == name
    assert nx.is_connected(specification.generate())


def test_the_transit_stub_example_of_the_ns_manual() -> None:
    specifications = decode_itm("ts 10 47\n4 0 0\n1 20 3 1.0\n8 20 3 0.8\n6 10 3 0.5\n")
    assert len(specifications) == 10
    model = specifications[0].model
    assert isinstance(model, TransitStub)
    assert (model.top.nodes, model.transit.nodes, model.stub.nodes) == (1, 8, 6)
    assert (model.transit.alpha, model.stub.alpha) == (0.8, 0.5)
    assert model.nodes == 200
    assert len(specifications[3].generate()) == 200


def test_transit_stub_counts_and_useless_scales() -> None:
    (specification,) = decode_itm("ts 1\n2 5 6\n2 1 3 1\n3 1 3 1\n9 2 3 1\n")
    model = specification.model
    assert isinstance(model, TransitStub)
    assert model.stubs_per_transit_node == 2
    assert (model.extra_transit_stub_edges, model.extra_stub_stub_edges) == (5, 6)
    assert len(specification.generate()) == model.nodes == 2 * 3 * 19


def test_several_sets_and_seeds_in_one_file() -> None:
    specifications = decode_itm("geo 2 5\n10 10 3 .5\nts 1\n1 0 0\n1 9 3 1\n2 9 3 1\n2 9 3 1\n")
    assert [s.model.model for s in specifications] == ["pure-random", "pure-random", "transit-stub"]
    assert [s.seed for s in specifications] == [5, 5, DEFAULT_SEED]
    assert decode_itm("geo 1 0\n10 10 3 .5\n")[0].seed == DEFAULT_SEED


def edges_of(specification: Specification) -> list[tuple[int, int]]:
    return sorted(specification.generate().edges)


def test_a_specification_means_the_same_graphs_each_time_and_different_ones() -> None:
    text = "geo 3 5\n30 30 3 .2\n"
    first, again = decode_itm(text), decode_itm(text)
    assert [edges_of(s) for s in first] == [edges_of(s) for s in again]
    assert len({tuple(edges_of(s)) for s in first}) == 3
    assert edges_of(first[0]) != edges_of(decode_itm(text.replace("5", "6", 1))[0])


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "'geo 1' must come first"),
        ("# nothing\n", 2, "'geo 1' must come first"),
        ("mesh 1\n", 1, "must be geo, hier or ts, not 'mesh'"),
        ("geo\n", 1, "the number of graphs is missing"),
        ("geo many\n", 1, "the number of graphs must be a whole number, not 'many'"),
        ("geo 0\n1 1 1 1\n", 1, "from 1 to 10000, not 0"),
        ("geo 1 x\n", 1, "the seed must be a whole number, not 'x'"),
        ("geo 1\n", 2, "the file ends here, but the parameters begun in line 1 must go on"),
        ("geo 1\n\n10 10\n", 3, "the edge method is missing: it must be word 3 of the line"),
        ("geo 1\n10 10 3\n", 2, "alpha is missing"),
        ("geo 1\n10 10 7 .5\n", 2, "edge method '7' is unknown.*4 exponential, 5 doar-leslie"),
        ("geo 1\n10 10 nearest .5\n", 2, "'nearest' is unknown"),
        ("geo 1\nten 10 3 .5\n", 2, "the number of nodes must be a whole number, not 'ten'"),
        ("geo 1\n10 10 3 half\n", 2, "alpha must be a number, not 'half'"),
        ("geo 1\n10 10 3 1.5\n", 2, "edge_probability = 1.5 .*at most 1"),
        ("geo 1\n10 10 2 .5\n", 2, "beta = 0.0 .*above 0"),
        ("geo 1\n10 3 3 .5\n", 2, "nodes = 10 .*at most 9"),
        ("geo 1\n1 3 3 .5\n", 2, "nodes = 1 .*at least 2"),
        ("geo 1\n10 10 3 .5 0 0 0\n", 2, "'0' is one word too many"),
        ("hier 1\n6 0\n", 2, "the number of levels must be from 1 to 5, not 6"),
        ("hier 1\n2 4\n", 2, "the connection method must be one of .*3 threshold, not 4"),
        ("hier 1\n2 0\n5 10 3 1\n", 4, "the file ends here.*line 2"),
        ("hier 1\n2 0\n5 10 3 1\n0 10 3 1\n", 4, "nodes = 0 .*at least 1"),
        ("ts 1\n1 0\n", 2, "the number of extra stub-stub edges is missing"),
        ("ts 1\n-1 0 0\n1 9 3 1\n2 9 3 1\n2 9 3 1\n", 2, "stubs_per_transit_node = -1"),
        ("geo 1\n10 10 3 .5\n\nfoo 1\n", 4, "not 'foo'"),
    ],
)
def test_a_malformed_specification_is_one_sentence_with_file_and_line(
    text: str, line: int, words: str
) -> None:
    with pytest.raises(TopologyError, match=words) as caught:
        decode_itm(text, "net.itm")
    assert str(caught.value).startswith(f"net.itm, line {line}: ")
    assert "\n" not in str(caught.value)


PLAIN = """\
GRAPH (#nodes #edges id uu vv ww xx yy zz):
4 8 geo(0,{4,10,3,0.500,0.000,0.000}) 10

VERTICES (index name u v w x y z):
0 0 3 4
1 1 0 0
2 2 9 1
3 3 5 5

EDGES (from-node to-node length a b):
0 2 7 0
0 1 5 0
1 3 7 0
2 3 6 0
"""
# GT-ITM ends each line of numbers with a blank.
ALT = "".join(f"{line} \n" if line[:1].isdigit() else f"{line}\n" for line in PLAIN.splitlines())


def test_a_file_as_gtitm_writes_it() -> None:
    graph = decode_alt(ALT)
    assert graph.nodes[0] == {"name": "0", "x": 3.0, "y": 4.0}
    assert {e: graph.edges[e]["length"] for e in graph.edges} == {
        (0, 2): 7.0,
        (0, 1): 5.0,
        (1, 3): 7.0,
        (2, 3): 6.0,
    }
    assert graph.graph["model"] == "file"
    assert graph.graph["scale"] == 10
    assert encode_alt(graph) == ALT


DRAWN = [
    MODELS["pure-random"](40, 0.15),
    MODELS["waxman-1"](40),
    MODELS["hierarchical"](),
    MODELS["transit-stub"](Level(3), Level(3), Level(4), 2, 5, 5),
    MODELS["ring"](7),
    MODELS["grid"](3, 4),
]


@pytest.mark.parametrize("model", DRAWN, ids=lambda model: model.model)
def test_what_was_written_is_read_back_as_it_was(model: Model, tmp_path: Path) -> None:
    graph = model.generate(random.Random(3))
    write_alt(graph, tmp_path / "net.alt")
    back = read_alt(tmp_path / "net.alt")
    assert list(back.nodes(data=True)) == list(graph.nodes(data=True))
    assert sorted(back.edges(data=True), key=lambda e: e[:2]) == sorted(
        graph.edges(data=True), key=lambda e: e[:2]
    )
    assert encode_alt(back) == encode_alt(graph)
    for key in ("scale", "diameters", "id"):
        assert key not in graph.graph or back.graph[key] == graph.graph[key]


def test_what_gtitm_writes_in_the_head() -> None:
    lines = encode_alt(DRAWN[3].generate(random.Random(3))).splitlines()
    nodes, arcs, name, *numbers = lines[1].split()
    assert (int(nodes), int(arcs)) == (81, 2 * (len(lines) - lines.index("") - 81 - 4))
    assert name.startswith("transtub(0,2,5,5,{3,80,3,")
    assert len(numbers) == 4
    assert all(line.endswith(" ") for line in lines[4:10])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 1e9)),
        min_size=2,
        max_size=8,
    )
)
def test_numbers_survive_exactly(rows: list[tuple[float, float, float]]) -> None:
    graph = nx.path_graph(len(rows))
    for node, (x, y, length) in enumerate(rows):
        graph.nodes[node].update(name=f"n{node}", x=x, y=y)
        if node:
            graph.edges[node - 1, node]["length"] = length
    back = decode_alt(encode_alt(graph))
    assert list(back.nodes(data=True)) == list(graph.nodes(data=True))
    assert list(back.edges(data=True)) == list(graph.edges(data=True))


def test_a_sloppy_file_is_read_all_the_same() -> None:
    graph = decode_alt("graph\n3 6 net\nVertices:\n0\n1 b\n2 c 3 4\nEDGES\n1 0\n 2 1 7 5\n1 2 9")
    assert [graph.nodes[node]["name"] for node in graph] == ["0", "b", "c"]
    assert graph.edges[0, 1]["length"] == 0.0
    assert graph.edges[1, 2] == {"length": 7.0, "policy": 5}
    assert decode_alt("GRAPH\n2 1 x\nVERTICES\n0 a 0 0\n1 b 3 4\nEDGES\n0 1\n").edges[0, 1] == {
        "length": 5.0
    }


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("GRAPH (", "WEB ("), 1, "a section title must come first"),
        (("EDGES (", "ARCS ("), 15, "the section EDGES must follow"),
        (("4 8 geo", "5 8 geo"), 2, "5 nodes are announced, but 4 lines of VERTICES"),
        (("4 8 geo", "4 9 geo"), 2, "9 arcs are announced.* but 4 lines of EDGES"),
        (("4 8 geo", "four 8 geo"), 2, "the number of nodes must be a whole number, not 'four'"),
        (("2 2 9 1", "5 2 9 1"), 7, "the vertex index must be 2, not 5"),
        (("2 2 9 1", "2 2 x 1"), 7, "x must be a number, not 'x'"),
        (("1 3 7 0", "1 4 7 0"), 13, "node 4 is unknown: nodes are 0 to 3"),
        (("1 3 7 0", "1 1 7 0"), 13, "not 1 to itself"),
        (("1 3 7 0", "1 3 -7 0"), 13, "the length must be at least 0, not -7"),
        (("1 3 7 0", "1 3 nan 0"), 13, "the length must be at least 0, not nan"),
        (("1 3 7 0", "1 3 long 0"), 13, "the length must be a number, not 'long'"),
        (("1 3 7 0", "1 3 7 w"), 13, "the policy weight must be a whole number, not 'w'"),
        (("1 3 7 0", "1"), 13, "the second node of the edge is missing"),
        ((ALT, ""), 1, "the section GRAPH must follow"),
    ],
)
def test_a_malformed_graph_is_one_sentence_with_file_and_line(
    change: tuple[str, str], line: int, words: str
) -> None:
    with pytest.raises(TopologyError, match=words) as caught:
        decode_alt(ALT.replace(*change), "net.alt")
    assert str(caught.value).startswith(f"net.alt, line {line}: ")
    assert "\n" not in str(caught.value)


def test_the_file_model_takes_a_graph(tmp_path: Path) -> None:
    (tmp_path / "net.alt").write_text(ALT)
    graph = MODELS["file"](str(tmp_path / "net.alt")).generate(random.Random(1))
    assert nx.utils.edges_equal(graph.edges, decode_alt(ALT).edges)


def test_the_file_model_draws_from_a_specification(tmp_path: Path) -> None:
    file = tmp_path / "net.itm"
    file.write_text("geo 2 5\n30 30 3 .2\n")
    for number in range(2):
        drawn = [
            sorted(MODELS["file"](str(file), number).generate(random.Random(seed)).edges)
            for seed in range(2)
        ]
        assert drawn[0] == drawn[1] == edges_of(read_itm(file)[number])
    with pytest.raises(TopologyError, match=r"graph = 2 is out of range.*from 0 to 1"):
        MODELS["file"](str(file), 2).generate(random.Random(1))


def test_the_file_model_complains_kindly(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="path is empty"):
        MODELS["file"]("")
    with pytest.raises(TopologyError, match="graph = -1 "):
        MODELS["file"]("net.alt", -1)
    with pytest.raises(TopologyError, match=r"none.alt cannot be read: No such file"):
        MODELS["file"](str(tmp_path / "none.alt")).generate(random.Random(1))
    (tmp_path / "cut.alt").write_text(
        ALT.replace("1 3 7 0 \n", "").replace("0 1 5 0 \n", "").replace("4 8", "4 4")
    )
    with pytest.raises(TopologyError, match=r"in 2 parts .node 1 cannot be reached from node 0"):
        MODELS["file"](str(tmp_path / "cut.alt")).generate(random.Random(1))


def test_bytes_that_are_no_text_are_an_error_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "noise.alt").write_bytes(bytes(range(256)))
    with pytest.raises(TopologyError, match=r"noise.alt, line 1: "):
        read_alt(tmp_path / "noise.alt")


def read_or_refused(decode: Callable[[str], object], text: str) -> None:
    refusal = None
    try:
        decode(text)
    except TopologyError as error:
        refusal = str(error)
    assert refusal is None or ", line " in refusal


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="geohirts0123456789.-# \n", max_size=60))
def test_any_text_is_a_specification_or_a_topology_error(text: str) -> None:
    read_or_refused(decode_itm, text)


@given(st.data())
def test_any_damage_to_a_graph_file_is_read_or_a_topology_error(data: st.DataObject) -> None:
    lines = ALT.splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = data.draw(st.text(alphabet="GRAPHVEDS0123456789.-() ", max_size=12))
    read_or_refused(decode_alt, "\n".join(lines))
