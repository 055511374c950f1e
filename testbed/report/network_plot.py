"""Pictures of networks: where the nodes are, who is joined to whom, and how far apart they are.

A link's colour is its delay, dark for short; its width is its bandwidth where links differ in it.
Transit nodes are orange squares, stub nodes blue dots. An overlay is drawn as light arcs behind
the network. Up to forty nodes carry their numbers. The colours are Okabe and Ito's and viridis,
which colour-blind readers tell apart and which survive a grey print.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.topologies import Graph, TopologyError, describe

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

Places = NDArray[np.float64]


class Kind(NamedTuple):
    """How nodes of one kind are drawn."""

    label: str
    colour: str
    marker: str
    size: float


LABELLED = 40  # the most nodes of a plot whose numbers are written in
PLANE_POINTS = 430  # width of the drawn plane in points
BLUE, ORANGE, PURPLE, GREY = "#0072B2", "#E69F00", "#CC79A7", "#6E6E6E"
PLAIN = Kind("node", BLUE, "o", 1.0)
# By the beginning of GT-ITM's names.
KINDS = {"T:": Kind("transit node", ORANGE, "s", 2.0), "S:": Kind("stub node", BLUE, "o", 1.0)}
# By suffix, what is left out of the file so that one graph gives one picture.
UNCHANGING: dict[str, dict[str, Any]] = {".png": {"Software": None}, ".svg": {"Date": None}}
LABEL: dict[str, Any] = {
    "ha": "center",
    "va": "center_baseline",
    "fontsize": 6.5,
    "color": "white",
    "fontweight": "bold",
    "zorder": 9,
}
LEGEND: dict[str, Any] = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, 0.0),
    "ncols": 4,
    "frameon": False,
    "fontsize": 8,
}


def draw_topology(graph: Graph, overlay: Graph | None, path: str | Path) -> None:
    """Draw a network, and an overlay over its nodes if there is one, to a PNG or SVG file."""
    suffix = Path(path).suffix.lower()
    if suffix not in UNCHANGING:
        raise TopologyError(f"{path} is neither kind of picture: it must end in .png or .svg")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "topology", "font.family": "DejaVu Sans"}):
        nodes = [graph.nodes[node] for node in range(len(graph))]
        places = np.array([(its["x"], its["y"]) for its in nodes])
        figure = Figure(figsize=_size(places), dpi=200)
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)
        axes = figure.add_subplot()
        handles = _draw_nodes(axes, [its["name"] for its in nodes], places)
        links = _draw_links(axes, graph, places)
        if links.get_array() is None:
            handles.append(links)
        else:
            _draw_scale(figure, axes, links)
        if overlay is not None:
            handles.append(_draw_overlay(axes, overlay, places))
        frame(axes, places)
        _title(figure, axes, graph)
        axes.legend(handles=handles, **LEGEND)
        figure.savefig(path, format=suffix[1:], metadata=UNCHANGING[suffix])


def _draw_nodes(axes: "Axes", names: Sequence[str], places: Places) -> "list[Artist]":
    area = _area(places)
    kinds = [KINDS.get(name[:2], PLAIN) for name in names]
    drawn: list[Artist] = []
    for kind in sorted(set(kinds), key=lambda kind: kind.size):
        members = [node for node, its in enumerate(kinds) if its == kind]
        drawn.append(
            axes.scatter(
                places[members, 0],
                places[members, 1],
                s=area * kind.size,
                c=kind.colour,
                marker=kind.marker,
                label=kind.label,
                edgecolors="white",
                linewidths=0.3 + area / 200,
                zorder=3 + kind.size,
            )
        )
    if len(names) <= LABELLED:
        for node, (x, y) in enumerate(places):
            axes.annotate(str(node), (x, y), **LABEL)
    return drawn


def _area(places: Places) -> float:
    """Choose the area of a node's mark, in square points, so that most do not overlap."""
    gaps = np.sqrt(((places[:, None] - places[None, :]) ** 2).sum(axis=2))
    np.fill_diagonal(gaps, np.inf)
    gap = float(np.median(gaps.min(axis=1))) / max(1.0, float(np.ptp(places, axis=0).max()))
    least, most = (95.0, 150.0) if len(places) <= LABELLED else (7.0, 7 + 3600 / len(places))
    return float(np.clip((0.8 * gap * PLANE_POINTS) ** 2, least, most))


def _draw_links(axes: "Axes", graph: Graph, places: Places) -> "LineCollection":
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    # Long delays first: the dark lines of short ones come out on top.
    links = sorted(graph.edges(data=True), key=lambda link: -link[2].get("delay_ns", 0))
    delays = np.array([its.get("delay_ns", 0) / 1e6 for _, _, its in links])
    differ = len(np.unique(delays)) > 1
    room = _room(len(links))
    collection = LineCollection(
        [places[[i, j]] for i, j, _ in links],
        linewidths=(0.4 + 1.6 * room) * _widths([its.get("bandwidth_bps", 1) for *_, its in links]),
        alpha=0.6 + 0.4 * room,
        colors=None if differ else GREY,
        zorder=2,
        label="link",
        capstyle="round",
    )
    if differ:
        # White paper swallows the yellow end of the scale.
        collection.set_cmap(ListedColormap(colormaps["viridis"](np.linspace(0, 0.93, 256))))
        collection.set_array(delays)
    axes.add_collection(collection)
    return collection


def _draw_overlay(axes: "Axes", overlay: Graph, places: Places) -> "Artist":
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    ends = np.array(list(overlay.edges), dtype=int).reshape(-1, 2)
    room = _room(overlay.number_of_edges())
    collection = LineCollection(
        list(_arcs(places[ends[:, 0]], places[ends[:, 1]])),
        linewidths=0.3 + 0.9 * room,
        alpha=0.25 + 0.45 * room,
        color=PURPLE,
        zorder=1,
        clip_on=False,
        capstyle="round",
    )
    axes.add_collection(collection)
    return Line2D([], [], color=PURPLE, alpha=0.7, linewidth=1.2, label="overlay")


def _arcs(start: Places, end: Places) -> Places:
    """Bend each line a little to its left, so that it is not taken for a link."""
    t = np.linspace(0, 1, 24)[None, :, None]
    step = end - start
    middle = (start + end) / 2 + 0.14 * np.stack([-step[:, 1], step[:, 0]], axis=1)
    bent: Places = (
        (1 - t) ** 2 * start[:, None] + 2 * t * (1 - t) * middle[:, None] + t**2 * end[:, None]
    )
    return bent


def _room(lines: int) -> float:
    """How much room a number of lines leave one another: 1 for few, towards 0 for thousands."""
    return 1 / (1 + math.pow(lines / 150, 1.2))


def _widths(bandwidths: Sequence[int]) -> Places:
    """Scale widths between a half and twice the usual, by the logarithm of the bandwidth."""
    logs = np.log(np.array(bandwidths, dtype=np.float64))
    spread = np.ptp(logs)
    return 0.5 + 1.5 * (logs - logs.min()) / spread if spread else np.ones_like(logs)


def _draw_scale(figure: "Figure", axes: "Axes", links: "LineCollection") -> None:
    bar = figure.colorbar(links, ax=axes, shrink=0.5, aspect=30, pad=0.01)
    if bar.solids is not None:
        bar.solids.set_alpha(1)
    bar.set_label("link delay (ms)", fontsize=8)
    bar.ax.tick_params(labelsize=7, width=0.5, length=2.5)
    bar.outline.set_visible(False)


def _size(places: Places) -> tuple[float, float]:
    """Fit the height of the picture to the shape of the network."""
    width, height = np.maximum(np.ptp(places, axis=0), 1.0)
    return 7.2, 1.1 + 6.2 * float(np.clip(height / width, 0.05, 1.1))


def frame(axes: "Axes", places: Places, room: float = 0.04) -> None:
    """Show all of the nodes in true proportion, and some room around them."""
    axes.set_axis_off()
    axes.set_aspect("equal")
    low, high = places.min(axis=0), places.max(axis=0)
    margin = room * max(1.0, float((high - low).max()))
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)


def _title(figure: "Figure", axes: "Axes", graph: Graph) -> None:
    its = describe(graph)
    delay = "" if its.mean_delay_ms is None else f"  ·  mean link delay {its.mean_delay_ms:.2f} ms"
    figures = (
        f"degree {its.degree_min} to {its.degree_max}, mean {its.degree_mean:.1f}  ·  "
        f"diameter {its.diameter}  ·  mean distance {its.mean_distance:.1f} hops  ·  "
        f"connectivity {its.node_connectivity}{delay}"
    )
    head = f"{graph.graph.get('model', 'graph')}: {its.nodes} nodes, {its.links} links"
    figure.suptitle(head, fontsize=11, fontweight="bold")
    axes.set_title(figures, fontsize=7.5, color="#404040")
