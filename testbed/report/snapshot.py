"""A space-time diagram for paper: the message held back the longest, and what it waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.protocols import MessageId
from testbed.report.style import COLOURS, DASHES, MARKS, PAGE, new_figure
from testbed.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

PROCESSES = 40  # more lines than these nobody tells apart on paper
TOLD = 3  # a story of more messages than these becomes a tangle


def draw_snapshot(runs: Sequence[Results], names: Sequence[str]) -> Figure | None:
    """One panel for each run, below one another, with the same messages in the same time."""
    drawn = [
        (run, name)
        for run, name in zip(runs, names, strict=True)
        if run.network.processes <= PROCESSES and len(run.deliveries)
    ]
    if not drawn:
        return None
    story = _story(max((run for run, _ in drawn), key=lambda run: run.nodes["held"].sum()))
    tables = [_arrivals(run) for run, _ in drawn]
    told = [_about(table, story) for table in tables]
    first = min(float(table["sent"].min()) for table in told if len(table))
    last = max(float(table["at"].max()) for table in told if len(table))
    heights = [0.45 + 0.15 * run.network.processes for run, _ in drawn]
    figure = new_figure(PAGE, 0.3 + sum(heights))
    rows = figure.subplots(len(drawn), 1, squeeze=False, height_ratios=heights, sharex=True)[:, 0]
    for axes, table, (run, name) in zip(rows, tables, drawn, strict=True):
        _draw_processes(axes, run.network.processes)
        _draw_others(axes, table, first, last)
        for index, message in enumerate(story):
            _draw_message(axes, _about(table, [message]), message, index)
        if len(runs) > 1:
            axes.set_title(name, loc="left")
    margin = 0.02 * (last - first) + 1
    rows[-1].set(xlabel="time (ms)", xlim=((first - margin) / 1e6, (last + margin) / 1e6))
    return figure


def _story(run: Results) -> list[MessageId]:
    """The message held back the longest and what it waited for, or the run's first messages."""
    held = run.deliveries.dropna(subset=["held"])
    if held.empty:
        first = run.messages.sort_values("sent_at", kind="stable").head(TOLD)
        return [
            MessageId(int(s), int(q)) for s, q in zip(first["source"], first["seq"], strict=True)
        ]
    worst = held.nlargest(1, "held").to_dict("records")[0]
    story = [MessageId(int(worst["source"]), int(worst["seq"]))]
    log = run.events[(run.events["event"] == "hold") & (run.events["node"] == worst["node"])]
    first = log[(log["source"] == worst["source"]) & (log["seq"] == worst["seq"])]
    last = held[held.index == held["held"].idxmax()]
    for table, source, seq in (
        (last, "cause_source", "cause_seq"),
        (first, "for_source", "for_seq"),
    ):
        named = table[[source, seq]].dropna().astype(int).itertuples(index=False)
        story += [MessageId(*name) for name in named]
    return list(dict.fromkeys(story))[:TOLD]


def _arrivals(run: Results) -> DataFrame:
    """Deliveries at others, with when the message was sent and when it came."""
    all_ = run.deliveries
    arrivals = all_[(all_["node"] != all_["source"]) & all_["delay"].notna()].copy()
    arrivals["sent"] = arrivals["at"] - arrivals["delay"]
    arrivals["received"] = arrivals["held_at"].fillna(arrivals["at"])
    return arrivals


def _about(arrivals: DataFrame, messages: Sequence[MessageId]) -> DataFrame:
    names = list(zip(arrivals["source"], arrivals["seq"], strict=True))
    return arrivals[np.array([name in messages for name in names], bool)]


def _draw_processes(axes: Axes, processes: int) -> None:
    for process in range(processes):
        axes.axhline(process, color="#AAAAAA", linewidth=0.4, zorder=1)
    axes.set_yticks(range(processes), [str(n) for n in range(processes)], fontsize=6.5)
    axes.set(ylabel="process", ylim=(processes - 0.4, -0.6))
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_others(axes: Axes, arrivals: DataFrame, first: float, last: float) -> None:
    """All other messages, faintly, as far as they were sent and received meanwhile."""
    meanwhile = arrivals[(arrivals["sent"] >= first) & (arrivals["received"] <= last)]
    _draw_lines(axes, meanwhile, colors="#C8C8C8", linewidths=0.25, alpha=0.6, zorder=1)
    sent = meanwhile.drop_duplicates(["source", "seq"])
    at = sent["sent"].to_numpy(np.float64) / 1e6
    axes.scatter(at, sent["source"], s=4, c="#B0B0B0", linewidths=0, zorder=2)


def _draw_message(axes: Axes, arrivals: DataFrame, name: MessageId, index: int) -> None:
    if arrivals.empty:
        return
    colour, mark = COLOURS[index], MARKS[index]
    style = {"linewidths": 0.6, "linestyles": [DASHES[index]], "zorder": 3 + index}
    _draw_lines(axes, arrivals, colors=colour, **style)
    received = arrivals["received"].to_numpy(np.float64) / 1e6
    below = arrivals["node"].to_numpy(int) > name.source
    for shape, chosen in (("v", below), ("^", ~below)):
        # The tip of the head touches the line.
        at = arrivals["node"].to_numpy(int)[chosen] + (-0.16 if shape == "v" else 0.16)
        axes.scatter(received[chosen], at, s=8, marker=shape, c=colour, linewidths=0, zorder=6)
    held = arrivals.dropna(subset=["held_at"])
    span = (held["held_at"].to_numpy(np.float64) / 1e6, held["at"].to_numpy(np.float64) / 1e6)
    axes.hlines(held["node"], *span, colors=colour, linewidth=3, alpha=0.55, zorder=2)
    sent = float(arrivals["sent"].iloc[0]) / 1e6
    axes.plot([sent], [name.source], marker=mark, color=colour, markersize=4.5, zorder=7)
    label: dict[str, Any] = {"fontsize": 7.5, "color": colour, "zorder": 8, "fontweight": "bold"}
    label["bbox"] = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 0.6}
    axes.annotate(str(name), (sent, name.source), (4, 5), textcoords="offset points", **label)


def _draw_lines(axes: Axes, arrivals: DataFrame, **style: Any) -> None:
    from matplotlib.collections import LineCollection

    tails = arrivals[["sent", "source"]].to_numpy(np.float64)
    heads = arrivals[["received", "node"]].to_numpy(np.float64)
    axes.add_collection(LineCollection(list(np.stack([tails, heads], axis=1) / (1e6, 1)), **style))
