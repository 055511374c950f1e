"""Pictures are written, by suffix, the same each time, and say what they show."""

import random
from pathlib import Path

import networkx as nx
import pytest

from testbed.report.network_plot import draw_topology
from testbed.topologies import Graph, Level, Links, Model, TopologyError, describe
from tests.topologies.registries import MODELS, OVERLAYS


def network(model: Model, links: Links | None = None) -> Graph:
    graph = model.generate(random.Random(2))
    if links is not None:
        links.apply(graph, random.Random(2))
    return graph


@pytest.fixture(scope="module")
def transit_stub() -> Graph:
    model = MODELS["transit-stub"](Level(1), Level(3), Level(3), 1)
    return network(model, Links(bandwidth_mbit=(1.0, 10.0)))


def test_svg_says_what_it_shows(
    transit_stub: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # keep text as text
    overlay = OVERLAYS["hypercube"]().generate(len(transit_stub), random.Random(1))
    draw_topology(transit_stub, overlay, tmp_path / "net.svg")
    picture = (tmp_path / "net.svg").read_text()
    its = describe(transit_stub)
    for words in (
        f"transit-stub: {its.nodes} nodes, {its.links} links",
        f"diameter {its.diameter}",
        f"connectivity {its.node_connectivity}",
        "transit node",
        "stub node",
        "overlay",
        "link delay (ms)",
    ):
        assert words in picture
    numbers = {f">{node}<" for node in transit_stub}
    assert all(number in picture for number in numbers)


def test_png_is_a_picture_and_the_same_each_time(transit_stub: Graph, tmp_path: Path) -> None:
    for name in ("a.png", "b.PNG"):
        draw_topology(transit_stub, None, tmp_path / name)
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert content == (tmp_path / "b.PNG").read_bytes()


def test_svg_is_the_same_each_time(transit_stub: Graph, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw_topology(transit_stub, None, str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_many_nodes_have_no_numbers_and_equal_delays_no_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    draw_topology(network(MODELS["ring"](60), Links(delay_ms=1.0)), None, tmp_path / "net.svg")
    picture = (tmp_path / "net.svg").read_text()
    assert ">59<" not in picture
    assert "link delay (ms)" not in picture
    assert "mean link delay 1.00 ms" in picture


@pytest.mark.parametrize("model", [MODELS["line"](2), MODELS["star"](3), MODELS["ring"](3)])
def test_the_smallest_networks_can_be_drawn(model: Model, tmp_path: Path) -> None:
    graph = network(model)
    draw_topology(graph, nx.empty_graph(len(graph)), tmp_path / "net.png")
    assert (tmp_path / "net.png").stat().st_size > 1000


def test_another_suffix_is_refused(transit_stub: Graph, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"net.pdf .*\.png or \.svg"):
        draw_topology(transit_stub, None, tmp_path / "net.pdf")
    assert not list(tmp_path.iterdir())
