"""What delays consist of, as stacked bars: the protocols of an experiment side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from testbed.report.style import PAGE, legend, new_figure, time_unit
from testbed.report.ways import PARTS
from testbed.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# As in page.css; hatches tell apart what grey print does not.
LOOKS = {
    "propagation": ("#0072B2", ""),
    "serialisation": ("#56B4E9", "/////"),
    "queueing": ("#E69F00", "\\\\\\\\\\"),
    "deviation": ("#8C8C8C", "...."),
    "retransmission": ("#D55E00", "xxxx"),
    "relaying": ("#009E73", "-----"),
    "reception": ("#B59B00", "++++"),
    "waiting": ("#7F5FB0", "\\\\//"),
    "held": ("#CC79A7", "ooo"),
    "unattributed": ("#E4E4E4", ""),
}
LEAST = 1e-3  # of the longest bar, which nobody can see
SLOWEST = 0.01


def draw_parts(runs: Sequence[Results], names: Sequence[str]) -> Figure | None:
    """Two bars for each run: all deliveries, and the slowest of them."""
    tables = [run.delays[run.delays["node"] != run.delays["source"]] for run in runs]
    bars: list[tuple[str, DataFrame]] = []
    for table, name in zip(tables, names, strict=True):
        if len(table):
            slow = table.nlargest(max(1, round(len(table) * SLOWEST)), "delay")
            prefix = f"{name}, " if len(runs) > 1 else ""
            bars += [(f"{prefix}all", table), (f"{prefix}slowest 1 %", slow)]
    if not bars:
        return None
    means = {part: [float(table[part].mean()) for _, table in bars] for part in PARTS}
    longest = max(float(table["delay"].mean()) for _, table in bars)
    if not longest > 0:
        return None
    unit, label = time_unit(longest)
    figure = new_figure(PAGE, 0.75 + 0.24 * len(bars))
    axes = figure.add_subplot()
    places, left = np.arange(len(bars)), np.zeros(len(bars))
    for part, title in PARTS.items():
        values = np.array(means[part]) / unit
        if np.abs(values).max() * unit < LEAST * longest:
            continue
        colour, hatch = LOOKS[part]
        axes.barh(
            places,
            values,
            0.72,
            left=left,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=title,
        )
        left += values
    axes.set_yticks(places, [title for title, _ in bars])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=f"mean delay ({label})", xlim=(0, None))
    legend(figure, axes)
    return figure
