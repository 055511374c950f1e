"""The load of every link, drawn on the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.report.network_plot import KINDS, LABELLED, PLAIN, Places, frame
from testbed.report.style import COLUMN, GREY, PAGE, PALE, new_figure
from testbed.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

APART = 0.006  # distance of a link's two strands, of the picture's width


def draw_links(runs: Sequence[Results], names: Sequence[str]) -> Figure | None:
    """One panel for each run, all in one scale."""
    drawn = [
        (run, name) for run, name in zip(runs, names, strict=True) if run.links["load"].sum() > 0
    ]
    if not drawn:
        return None
    most = max(float(run.links["load"].max()) for run, _ in drawn)
    columns = min(len(drawn), 2)
    rows = -(-len(drawn) // columns)
    width = PAGE if columns > 1 else COLUMN
    shape = max(_shape(_places(run)) for run, _ in drawn)
    figure = new_figure(width, 0.6 + rows * (0.2 + 0.95 * width / columns * shape))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels:
        axes.set_axis_off()
    for axes, (run, name) in zip(panels, drawn, strict=False):
        strands = _draw_strands(axes, run, most)
        _draw_nodes(axes, run)
        if len(runs) > 1:
            axes.set_title(name)
    shown = list(panels[: len(drawn)])
    bar = figure.colorbar(strands, ax=shown, location="bottom", shrink=0.6, aspect=40, pad=0.02)
    bar.set_label("packets on the link, mean")
    bar.outline.set_visible(False)
    return figure


def _places(run: Results) -> Places:
    nodes = run.network.graph.nodes
    return np.array([(nodes[n]["x"], nodes[n]["y"]) for n in range(len(nodes))], np.float64)


def _shape(places: Places) -> float:
    width, height = np.maximum(np.ptp(places, axis=0), 1.0)
    return float(np.clip(height / width, 0.3, 1.1))


def _draw_strands(axes: Axes, run: Results, most: float) -> LineCollection:
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap, PowerNorm

    # Busy strands last: they come out on top.
    links = run.links.sort_values("load", kind="stable")
    places = _places(run)
    start, end = places[links["tail"].to_numpy(int)], places[links["head"].to_numpy(int)]
    step = end - start
    length = np.maximum(np.hypot(step[:, 0], step[:, 1]), 1e-9)[:, None]
    right = np.stack([step[:, 1], -step[:, 0]], axis=1) / length
    span = max(1.0, float(np.ptp(places, axis=0).max()))
    few = 1 / (1 + len(links) / 800)
    shift = APART * span * few * right
    load = links["load"].to_numpy(np.float64)
    strands = LineCollection(
        list(np.stack([start + shift, end + shift], axis=1)),
        linewidths=0.05 + few * (0.2 + 2.6 * np.sqrt(load / most)),
        cmap=ListedColormap(colormaps["viridis_r"](np.linspace(0.08, 1, 256))),
        norm=PowerNorm(0.5, 0, most),
        capstyle="butt",
        zorder=2,
    )
    strands.set_array(load)
    axes.add_collection(strands)
    frame(axes, places, 0.05)
    return strands


def _draw_nodes(axes: Axes, run: Results) -> None:
    places = _places(run)
    names = [run.network.graph.nodes[n].get("name", "") for n in range(len(places))]
    numbered = len(places) <= LABELLED
    size = 62 if numbered else 2 + 900 / len(places)
    for kind in sorted({KINDS.get(name[:2], PLAIN) for name in names}):
        members = [n for n, name in enumerate(names) if KINDS.get(name[:2], PLAIN) == kind]
        style: dict[str, Any] = {"linewidths": 0.5 if numbered else 0.2, "zorder": 3 + kind.size}
        axes.scatter(
            places[members, 0],
            places[members, 1],
            s=size * kind.size**0.5,
            marker=kind.marker,
            facecolors="white" if numbered else PALE,
            edgecolors=GREY,
            **style,
        )
    for n, (x, y) in enumerate(places if numbered else ()):
        style = {"ha": "center", "va": "center_baseline", "fontsize": 6, "zorder": 9}
        axes.annotate(str(n), (x, y), **style)
