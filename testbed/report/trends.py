"""The plots of a sweep: what changes as one key grows, a curve for each protocol.

The plots are those of Friedman & Manor (2004), Figs. 3-17: message delay, messages and bytes, hops,
delivery queues and network load over the system size, one plot for each data size. Any sweep has
them: x is ``topology.nodes`` if that is swept, else the numeric key with most values, and there is
one plot for each combination of the other keys. A figure that a protocol declares for sweeps has a
plot of its own. Bars are 95 % confidence intervals over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed.figures import swept_figures, table
from testbed.report.style import PAGE, look, new_figure, save, styled
from testbed.runs.directory import safe_name
from testbed.sweep.tables import dimensions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = "topology.nodes"
HEIGHT = 2.4
WIDE = 20  # where values differ by more than this factor, their axis is logarithmic


class Trend(NamedTuple):
    """What one plot shows: a panel for each figure, by key."""

    name: str
    title: str
    keys: tuple[str, ...]


TRENDS = (
    Trend("delay", "message delay", ("delay_ms_mean", "delay_ms_max")),
    Trend("messages", "messages sent", ("messages", "bytes")),
    Trend("hops", "hop count", ("hops",)),
    Trend("delivery-queue", "delivery queue", ("delivery_queue_mean", "delivery_queue_max")),
    Trend("network-load", "network load", ("network_load_mean", "link_queue_max")),
)
CONTROL = Trend("control_bytes", "control information", ("control_bytes",))


def trends_in(trends: pd.DataFrame) -> list[Trend]:
    """What is drawn of a sweep: the above, and what else its protocols declare for sweeps."""
    drawn = {key for trend in (*TRENDS, CONTROL) for key in trend.keys}
    own = (figure for figure in swept_figures(trends["figure"]) if figure.key not in drawn)
    attached = trends[trends["figure"] == CONTROL.name]["mean"].gt(0).any()
    all_ = [*TRENDS, CONTROL] if attached else [*TRENDS]
    return [*all_, *(Trend(figure.key, figure.label, (figure.key,)) for figure in own)]


class Drawn(NamedTuple):
    """A plot of a sweep on disk."""

    file: Path  # SVG
    title: str
    wide: bool


def draw_trends(trends: pd.DataFrame, directory: Path) -> list[Drawn]:
    """Draw every trend for every combination as SVG and PNG.

    A sweep over seeds and protocols alone has nothing to put on the x axis, and no plots.
    """
    x = x_key(trends)
    if x is None:
        return []
    directory.mkdir(exist_ok=True)
    others = [key for key in dimensions(trends, first=x) if key != x]
    groups = trends.groupby(others, dropna=False, sort=False) if others else [((), trends)]
    files = []
    with styled():
        for trend in trends_in(trends):
            for values, group in groups:
                words = [f"{short(k)} {text(v)}" for k, v in zip(others, values, strict=True)]
                name = safe_name("-".join([trend.name, *words]))
                title = ", ".join([trend.title, *words])
                save(_draw(trend, group, x, title), directory, name)
                files.append(Drawn(directory / f"{name}.svg", title, len(trend.keys) > 1))
    return files


def x_key(trends: pd.DataFrame) -> str | None:
    """What goes on the x axis: system size, else the number with most values, else the first key."""
    from pandas.api.types import is_numeric_dtype

    keys = dimensions(trends)
    if SIZE in keys:
        return SIZE
    numeric = [key for key in keys if is_numeric_dtype(trends[key])]
    return max(numeric or keys[:1], key=lambda key: trends[key].nunique(), default=None)


def short(key: str) -> str:
    """A key as people say it: its last word, unless others may have the same."""
    first, *rest = key.split(".")
    words = [first] if rest == ["model"] else [first, *rest] if first == "fault" else rest[-1:]
    return " ".join(words or [first]).replace("_", " ")


def _draw(trend: Trend, group: pd.DataFrame, x: str, title: str) -> Any:
    figure = new_figure(PAGE * len(trend.keys) / 2, HEIGHT)
    panels = figure.subplots(1, len(trend.keys), squeeze=False)[0]
    panels[0].set_title(title, loc="left")
    for axes, key in zip(panels, trend.keys, strict=True):
        _panel(axes, group[group["figure"] == key], x)
        axes.set_xlabel("system size (nodes)" if x == SIZE else short(x))
        axes.set_ylabel(table()[key].title)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, x: str) -> None:
    for number, protocol in enumerate(dict.fromkeys(rows["protocol"])):
        curve = rows[rows["protocol"] == protocol].sort_values(x)
        style = look(number)
        axes.errorbar(
            curve[x],
            curve["mean"],
            yerr=curve["half_width"].fillna(0),
            label=protocol,
            color=style.colour,
            linestyle=style.dash,
            marker=style.mark,
            capsize=2,
            elinewidth=0.6,
        )
    if logarithmic(rows["mean"]):
        axes.set_yscale("log", nonpositive="clip")
    else:
        axes.set_ylim(bottom=0)


def logarithmic(values: Iterable[float]) -> bool:
    """Whether a linear axis would show the small values as nothing."""
    found = list(values)
    return bool(found) and min(found) > 0 and max(found) / min(found) > WIDE


def spread(rows: pd.DataFrame, figure: str) -> str:
    """A mean and its half-width, in few characters; rows are by figure."""
    if figure not in rows.index:
        return "-"
    row = rows.loc[[figure]]
    mean, half = float(row["mean"].iloc[0]), float(row["half_width"].iloc[0])
    return brief(mean) if math.isnan(half) else f"{brief(mean)} ±{brief(half)}"


def brief(value: float) -> str:
    """Three digits and a unit: 314 k, 0.0023."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if limit == 1e4 else limit):.3g}{unit}"
    return f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3g}"


def text(value: Any) -> str:
    """A value of a swept key."""
    return f"{value:g}" if isinstance(value, float) else str(value)
