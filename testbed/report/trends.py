"""The plots and the page of a sweep: what changes as one key grows, a curve for each protocol.

The plots are those of Friedman & Manor (2004), Figs. 3-17: message delay, messages and bytes, hops,
delivery queues and network load over the system size, one plot for each data size. Any sweep has
them: x is ``topology.nodes`` if that is swept, else the numeric key with most values, and there is
one plot for each combination of the other keys. A figure that a protocol declares for sweeps has a
plot of its own. Bars are 95 % confidence intervals over seeds.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed import __version__
from testbed.figures import swept_figures, table
from testbed.report.style import PAGE, look, new_figure, save, styled
from testbed.runs.directory import safe_name
from testbed.sweep.tables import dimensions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = "topology.nodes"
HEIGHT = 2.4
_ASSETS = ("page.html", "page.css")
_AGAIN = """<p><code>testbed sweep sweep.toml</code> with the file beside this page runs all,
<code>testbed run experiment.toml</code> with the file of a run that run alone. All figures of all runs
are in <code>points.parquet</code>, all means in <code>trends.parquet</code>.</p>"""
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


def trends_in(trends: pd.DataFrame) -> list[Trend]:
    """What is drawn of a sweep: the above, and what else its protocols declare for sweeps."""
    drawn = {key for trend in TRENDS for key in trend.keys}
    own = (figure for figure in swept_figures(trends["figure"]) if figure.key not in drawn)
    return [*TRENDS, *(Trend(figure.key, figure.label, (figure.key,)) for figure in own)]


def draw_trends(trends: pd.DataFrame, directory: Path) -> list[Path]:
    """Draw every trend for every combination as SVG and PNG; the SVG files.

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
                words = [f"{short(k)} {_text(v)}" for k, v in zip(others, values, strict=True)]
                name = safe_name("-".join([trend.name, *words]))
                save(_draw(trend, group, x, ", ".join([trend.title, *words])), directory, name)
                files.append(directory / f"{name}.svg")
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


def write_page(
    name: str,
    points: pd.DataFrame,
    trends: pd.DataFrame,
    plots: Sequence[Path],
    problems: Sequence[str],
    versions: Mapping[str, str],
) -> str:
    """The page of a sweep: plots, all means, how to run it again, with which versions."""
    wrong = points[points["verdict"] != "valid"]
    faults = [f"causal order {v}: {r}" for v, r in zip(wrong["verdict"], wrong["run"], strict=True)]
    sections = {
        "What went wrong": "".join(f"<p>{escape(fault)}</p>" for fault in (*faults, *problems)),
        "Plots": _plots(plots, trends),
        "Means": _table(trends),
        "How to run it again": _AGAIN,
        "Versions": f"<p>{escape(', '.join(f'{k} {v}' for k, v in versions.items()))}</p>",
    }
    texts = {part: files(__package__).joinpath(part).read_text("utf-8") for part in _ASSETS}
    seeds = ", ".join(map(str, sorted(points["seed"].unique())))
    return Template(texts["page.html"]).substitute(
        title=escape(f"{name}: sweep"),
        heading=escape(name),
        lead=f"{len(points)} runs, {points['protocol'].nunique()} protocols, seeds {seeds}. Values "
        "are means over seeds with the half-width of the 95&nbsp;% confidence interval.",
        nav="",
        sections="".join(f"<h2>{head}</h2>\n{text}\n" for head, text in sections.items() if text),
        footer=f"Written by testbed {escape(__version__)}. This page loads nothing from anywhere.",
        css=texts["page.css"],
        js="",
    )


def _plots(drawn: Sequence[Path], trends: pd.DataFrame) -> str:
    narrow = tuple(trend.name for trend in trends_in(trends) if len(trend.keys) == 1)
    parts = []
    for file in drawn:
        data = base64.b64encode(file.read_bytes()).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(file.stem)}">'
        wide = "" if file.name.startswith(narrow) else ' class="wide"'
        parts.append(f"<figure{wide}>{image}</figure>\n")
    return f'<div class="figures">{"".join(parts)}</div>' if parts else ""


def _table(trends: pd.DataFrame) -> str:
    keys = [*dimensions(trends, first=x_key(trends)), "protocol"]
    figures = [table()[key] for trend in trends_in(trends) for key in trend.keys]
    titles = [*map(short, keys), "runs", "valid", *(figure.title for figure in figures)]
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    lines = []
    for values, group in trends.groupby(keys, dropna=False, sort=False):
        rows = group.set_index("figure")
        cells = [*map(_text, values), str(rows["runs"].max()), f"{rows['mean']['valid']:.0%}"]
        cells += [spread(rows, figure.key) for figure in figures]
        lines.append(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in cells)}</tr>")
    body = f"<thead><tr>{head}</tr></thead>\n<tbody>{''.join(lines)}</tbody>"
    return f'<div class="scroll"><table>{body}</table></div>'


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


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
