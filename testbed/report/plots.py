"""Plots of one run, or of several side by side: delays, queues, load, bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from testbed.figures import shown
from testbed.protocols.wire import HEADER
from testbed.report.links import draw_links
from testbed.report.parts import draw_parts
from testbed.report.snapshot import draw_snapshot
from testbed.report.style import (
    COLUMN,
    GREY,
    PAGE,
    legend,
    look,
    new_figure,
    render,
    styled,
    time_unit,
)
from testbed.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_POINTS = 2000
PAIRS_DRAWN = 2500
STEPS_JOINED = 4  # a column of a paper has room for a quarter of the digest's steps
# From this ratio of its 99th percentile to its 1st a distribution gets a logarithmic axis.
WIDE = 30

Values = NDArray[np.float64]
Runs = Sequence[Results]


@dataclass(frozen=True)
class Plot:
    """A plot as it goes to disk and into the page."""

    name: str
    caption: str
    wide: bool
    svg: bytes
    png: bytes


def draw_plot(name: str, runs: Runs, names: Sequence[str]) -> Plot | None:
    """One of ``PLOTS``, or None where these runs have nothing to show in it."""
    draw, caption = PLOTS[name]
    with styled():
        figure = draw(runs, names)
        if figure is None:
            return None
        svg = render(figure, "svg")
        figure.set_layout_engine("none")  # the layout is settled; working it out takes long
        png = render(figure, "png")
    return Plot(name, caption, figure.get_figwidth() > COLUMN, svg, png)


def draw_delays(runs: Runs, names: Sequence[str]) -> Figure | None:
    """How delays are distributed: the share of deliveries that took at most so long."""
    delays = [_delays(run) for run in runs]
    if not any(len(its) for its in delays):
        return None
    unit, label = time_unit(max(its.max() for its in delays if len(its)))
    figure = new_figure(COLUMN, 2.2)
    axes = figure.add_subplot()
    for index, (its, name) in enumerate(zip(delays, names, strict=True)):
        if len(its):
            _draw_distribution(axes, its / unit, index, name)
    if all(_wide(its) for its in delays if len(its)):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.set(ylim=(0, 1.02), xlabel=f"delay ({label})", ylabel="share of deliveries")
    legend(figure, axes)
    return figure


def draw_stretch(runs: Runs, names: Sequence[str]) -> Figure | None:
    """What a pair's messages took, against the fastest path between the two."""
    pairs = [_pairs(run) for run in runs]
    if not any(len(least) and least.max() > 0 for least, _ in pairs):
        return None
    unit, label = time_unit(max(mean.max() for _, mean in pairs if len(mean)))
    figure = new_figure(COLUMN, 2.5)
    axes = figure.add_subplot()
    for index, ((least, mean), name) in enumerate(zip(pairs, names, strict=True)):
        its = look(index)
        axes.scatter(
            least / unit,
            mean / unit,
            s=7,
            marker=its.mark,
            facecolors="none" if index else its.colour,
            edgecolors=its.colour,
            linewidths=0.5,
            alpha=0.75,
            label=name,
        )
    axes.set(xlim=(0, None), ylim=(0, None))
    top = max(float(least.max()) for least, _ in pairs if len(least)) / unit
    axes.plot([0, top], [0, top], color=GREY, linewidth=0.7)
    if top > 0.25 * axes.get_ylim()[1]:  # else the words would lie on the axis
        _note(axes, "fastest path", (0.8 * top, 0.8 * top), (6, -4), va="top")
    axes.set(xlabel=f"propagation along fastest path ({label})", ylabel=f"mean delay ({label})")
    legend(figure, axes)
    return figure


def draw_timeline(runs: Runs, names: Sequence[str]) -> Figure | None:
    """How many packets were under way, and how many messages waited, as time went by."""
    columns = {"packets": "packets in\nthe network", "held": "messages\nheld back"}
    shown = [c for c in columns if any(run.timeline[f"{c}_max"].sum() > 0 for run in runs)]
    if not shown:
        return None
    unit, label = time_unit(max(float(run.timeline["at"].max()) for run in runs))
    figure = new_figure(COLUMN, 0.55 + 1.15 * len(shown))
    rows = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, column in zip(rows, shown, strict=True):
        for index, (run, name) in enumerate(zip(runs, names, strict=True)):
            _draw_course(axes, run, column, unit, index, name)
        axes.set(ylabel=columns[column], ylim=(0, None))
        axes.yaxis.set_major_formatter("{x:,g}")
    figure.align_ylabels(rows)
    rows[-1].set(xlabel=f"time ({label})", xlim=(0, None))
    legend(figure, rows[0])
    return figure


def draw_bytes(runs: Runs, names: Sequence[str]) -> Figure | None:
    """What the bytes that processes sent consist of."""
    totals, controls, copies = (
        np.array([run.summary[key] for run in runs], np.float64)
        for key in ("bytes", "control_bytes", "copies")
    )
    if not totals.any():
        return None
    unit, label = next((u, n) for u, n in SIZES if totals.max() >= u)
    data = np.maximum(0, totals - controls - HEADER.size * copies)
    parts = (
        ("data", data, "#0072B2", ""),
        ("control information", controls, "#E69F00", "////"),
        ("message headers", totals - controls - data, "#D0D0D0", ""),
    )
    figure = new_figure(COLUMN, 0.75 + 0.28 * len(runs))
    axes = figure.add_subplot()
    left = np.zeros(len(runs))
    for part, values, colour, hatch in parts:
        if values.any():
            style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white"}
            axes.barh(names, values / unit, 0.62, left, label=part, linewidth=0, **style)
        left += values / unit
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=f"sent by all processes ({label})")
    legend(figure, axes)
    return figure


def draw_ratios(runs: Runs, names: Sequence[str]) -> Figure | None:
    """The figures of every run as multiples of the first one's."""
    rows = [
        (figure.title, [float(run.summary[figure.key]) for run in runs])
        for figure in shown(run.summary for run in runs)
        if figure.form and all(run.summary.get(figure.key, 0) for run in runs)
    ]
    rows = [(label, values) for label, values in rows if len(set(values)) > 1]
    if len(runs) < 2 or not rows:
        return None
    figure = new_figure(PAGE, 0.75 + 0.22 * len(rows))
    axes = figure.add_subplot()
    ratios = np.array([np.array(values) / values[0] for _, values in rows])
    places = np.arange(len(rows))
    axes.hlines(places, ratios.min(axis=1), ratios.max(axis=1), color="#BBBBBB", linewidth=0.8)
    for index, name in enumerate(names):
        its = look(index)
        style: dict[str, Any] = {
            "color": its.colour,
            "marker": its.mark,
            "linestyle": "none",
            "markersize": 5,
        }
        axes.plot(ratios[:, index], places, label=name, **style)
        for place in places if index else ():
            _note_ratio(axes, float(ratios[place, index]), int(place))
    axes.set_yticks(places, [label for label, _ in rows])
    axes.invert_yaxis()
    _ratio_axis(axes, ratios, names[0])
    legend(figure, axes)
    return figure


SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))


def _delays(run: Results) -> Values:
    others = run.deliveries[run.deliveries["node"] != run.deliveries["source"]]
    return np.sort(others["delay"].dropna().to_numpy(np.float64))


def _wide(values: Values) -> bool:
    low, high = np.percentile(values, (1, 99))
    return bool(low > 0 and high / low > WIDE)


def _draw_distribution(axes: Axes, values: Values, index: int, name: str) -> None:
    its = look(index)
    ranks = np.unique(np.linspace(0, len(values) - 1, CURVE_POINTS).astype(int))
    axes.plot(
        values[ranks],
        (ranks + 1) / len(values),
        color=its.colour,
        linestyle=its.dash,
        drawstyle="steps-post",
        label=name,
    )
    mean = float(values.mean())
    share = float(np.searchsorted(values, mean, side="right")) / len(values)
    axes.plot([mean], [share], marker=its.mark, color=its.colour, markeredgecolor="white")


def _pairs(run: Results) -> tuple[Values, Values]:
    """For pairs of processes: propagation along the fastest path, and messages' mean delay."""
    others = run.deliveries[run.deliveries["node"] != run.deliveries["source"]]
    means = others.groupby(["source", "node"])["delay"].mean().dropna()
    means = means.iloc[:: 1 + len(means) // PAIRS_DRAWN]
    graph = run.network.graph
    lengths = {
        source: nx.single_source_dijkstra_path_length(graph, source, weight="delay_ns")
        for source in means.index.unique("source")
    }
    least = np.array([lengths[source][node] for source, node in means.index], np.float64)
    return least, means.to_numpy(np.float64)


def _draw_course(axes: Axes, run: Results, column: str, unit: float, index: int, name: str) -> None:
    its = look(index)
    steps = run.timeline.groupby(run.timeline.index // STEPS_JOINED)
    at = steps["at"].mean().to_numpy(np.float64) / unit
    mean = steps[f"{column}_mean"].mean().to_numpy(np.float64)
    most = steps[f"{column}_max"].max().to_numpy(np.float64, na_value=np.nan)
    axes.fill_between(at, mean, most, color=its.colour, alpha=0.2, linewidth=0)
    axes.plot(at, mean, color=its.colour, linestyle=its.dash, linewidth=0.9, label=name)


def _note_ratio(axes: Axes, ratio: float, place: int) -> None:
    text = f"{ratio:#.2g}×" if ratio < 10 else f"{ratio:,.0f}×"
    side = 1 if ratio >= 1 else -1
    align = {"ha": "left" if side > 0 else "right", "va": "center_baseline"}
    _note(axes, text, (ratio, place), (6 * side, 0), **align)


def _note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **align: str
) -> None:
    style: dict[str, Any] = {"fontsize": 7, "color": GREY, **align}
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **style)


def _ratio_axis(axes: Axes, ratios: Values, base: str) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("log")
    axes.set_xlim(float(ratios.min()) / 1.6, float(ratios.max()) * 1.6)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=False, axis="y")
    axes.axvline(1, color=GREY, linewidth=0.7, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"relative to {base}")


Draw = Callable[[Runs, Sequence[str]], "Figure | None"]
PLOTS: dict[str, tuple[Draw, str]] = {
    "ratios": (
        draw_ratios,
        "The runs’ figures as multiples of the first run’s. Figures that are zero in a run, or "
        "equal in all, are left out.",
    ),
    "delays": (
        draw_delays,
        "Delay from multicast to delivery at the other processes: share of the deliveries that "
        "took at most so long. The mark is the mean.",
    ),
    "parts": (
        draw_parts,
        "What delays consist of: the mean over all deliveries at other processes, and over the "
        "slowest hundredth of them. Deviation is what links took beyond their configuration, "
        "relaying is time in processes on the way, and reception time between the arrival of a "
        "message and the moment at which the protocol has it; there it waits, or is held back until "
        "its causal past is delivered. Parts that are nothing beside the others are left out.",
    ),
    "stretch": (
        draw_stretch,
        "Each dot is a sender and a receiver: mean delay of the messages between the two, against "
        "the propagation delay of the fastest path that joins them. No protocol can come below "
        "the line.",
    ),
    "timeline": (
        draw_timeline,
        "Packets waiting or travelling on all links, and messages in the delivery queues of all "
        "processes, over time: mean of each step (line) and its maximum (shade).",
    ),
    "bytes": (
        draw_bytes,
        "What the bytes sent consist of, each copy of a message counted once for each receiver it "
        "is sent to; headers of packets are not included.",
    ),
    "links": (
        draw_links,
        "Load of the links: packets waiting or travelling, mean over the run. A link is drawn as "
        "two strands, one for each direction; packets keep to the right of their way.",
    ),
    "spacetime": (
        draw_snapshot,
        "Space-time diagram of the message that was held back the longest and what it waited for, "
        "or of the first messages if none was held back. A line is a process, an arrow leads "
        "from a multicast to a receipt, and a bar shows how long the receiver held the message "
        "back. All else that happened meanwhile is grey.",
    ),
}
