"""The page of a sweep: what was run, plots, means, protocols in pairs, and the runs."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from testbed import __version__
from testbed.figures import table
from testbed.report.contents import contents, numbered
from testbed.report.tables import verdict_mark, write_table
from testbed.report.trends import SIZE, Drawn, brief, short, spread, text, trends_in, x_key
from testbed.runs.directory import PAGE, RunDirectory
from testbed.sweep.pairs import paired
from testbed.sweep.tables import dimensions

if TYPE_CHECKING:
    import pandas as pd

_ASSETS = ("page.html", "page.css")
PAIRED = ("delay_ms_mean", "delay_ms_max", "bytes", "control_bytes", "hops")
_AGAIN = """<p><code>testbed sweep sweep.toml</code> with the file beside this page runs all,
<code>testbed run experiment.toml</code> with the file of a run that run alone. All figures of all runs
are in <code>points.parquet</code>, all means in <code>trends.parquet</code>.</p>"""

Settings = Sequence[Mapping[str, Any]]


def write_page(
    directory: Path,
    points: pd.DataFrame,
    trends: pd.DataFrame,
    settings: Settings,
    plots: Sequence[Drawn],
    problems: Sequence[str],
) -> str:
    """The page of the sweep in a directory, whose points have these settings."""
    first = RunDirectory(directory / points["run"].iloc[0]).manifest
    wrong = points[points["verdict"] != "valid"]
    faults = [f"causal order {v}: {r}" for v, r in zip(wrong["verdict"], wrong["run"], strict=True)]
    sections = {
        "What went wrong": "".join(f"<p>{escape(fault)}</p>" for fault in (*faults, *problems)),
        "What was run": _what_was_run(settings),
        "Plots": _plots(plots, trends, points["seed"].nunique()),
        "Means": _means(trends),
        "Protocols in pairs": _pairs(points, trends),
        "Runs": _runs(directory, points, trends),
        "How to run it again": _again(first.get("command", ())),
        "Versions": f"<p>{escape(', '.join(f'{k} {v}' for k, v in first['versions'].items()))}</p>",
    }
    sections = {name: content for name, content in sections.items() if content}
    texts = {part: files(__package__).joinpath(part).read_text("utf-8") for part in _ASSETS}
    seeds = ", ".join(map(str, sorted(points["seed"].unique())))
    name = str(settings[0].get("name", directory.name))
    return Template(texts["page.html"]).substitute(
        title=escape(f"{name}: sweep"),
        heading=escape(name),
        lead=f"{len(points)} runs, {points['protocol'].nunique()} protocols, seeds {seeds}. Values "
        "are means over seeds with the half-width of the 95&nbsp;% confidence interval.",
        nav=contents(sections),
        sections=numbered(sections),
        footer=f"Written by testbed {escape(__version__)}. This page loads nothing from anywhere.",
        css=texts["page.css"],
        js="",
    )


def _what_was_run(settings: Settings) -> str:
    """The network, its losses, the channel and the workload in a sentence, and every setting."""

    def says(key: str, none: str = "–") -> str:
        return _values((each.get(key) for each in settings), none)

    loss = says("links.loss", "0")
    losses = "nothing" if loss == "0" else f"a share of {loss} of the packets"
    channel = says("channel.model", "none")
    sentence = (
        f"Networks of the model {says('topology.model')} with {says('topology.nodes')} nodes; links "
        f"of {says('links.bandwidth_mbit')} Mbit/s and {says('links.delay_ms')} ms, which lose "
        f"{losses}; channel: {channel}; workload {says('workload.model')} with "
        f"{says('workload.senders')} senders; engine {says('engine')}."
    )
    keys = dict.fromkeys(key for each in settings for key in each)
    rows = [
        [f"<code>{escape(key)}</code>", escape(says(key, "–"))] for key in keys if key != "name"
    ]
    return f"<p>{escape(sentence)}</p>" + write_table(["setting", "values"], rows, kinds=" w")


def _values(values: Iterable[Any], none: str) -> str:
    """The different values of a setting, in the order of the file."""
    words = [
        "–".join(map(str, v)) if isinstance(v, list) else text(v) for v in values if v is not None
    ]
    return ", ".join(dict.fromkeys(words)) or none


def _plots(drawn: Sequence[Drawn], trends: pd.DataFrame, seeds: int) -> str:
    x = x_key(trends)
    over = "system size" if x == SIZE else short(x or "")
    bars = (
        "Bars are 95 % confidence intervals" if seeds > 1 else "There is one seed, so no interval"
    )
    parts = []
    for number, plot in enumerate(drawn, 1):
        data = base64.b64encode(plot.file.read_bytes()).decode()
        width = "wide" if plot.wide else "narrow"
        caption = f"{plot.title.capitalize()}, over {over}: means of {seeds} seeds. {bars}."
        parts.append(
            f'<figure class="{width}">'
            f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(caption)}">'
            f"<figcaption><b>Figure {number}.</b> {escape(caption)}</figcaption></figure>\n"
        )
    return f'<div class="figures">{"".join(parts)}</div>' if parts else ""


def _means(trends: pd.DataFrame) -> str:
    keys = [*dimensions(trends, first=x_key(trends)), "protocol"]
    figures = [table()[key] for trend in trends_in(trends) for key in trend.keys]
    heads = [*map(short, keys), "runs", "valid", *(figure.title for figure in figures)]
    rows = []
    for values, group in trends.groupby(keys, dropna=False, sort=False):
        its = group.set_index("figure")
        cells = [*map(text, values), str(its["runs"].max()), f"{its['mean']['valid']:.0%}"]
        cells += [spread(its, figure.key) for figure in figures]
        rows.append([escape(cell) for cell in cells])
    caption = "Means over seeds ± half-width of the 95 % confidence interval."
    return write_table([*map(escape, heads)], rows, caption, kinds=_kinds(len(keys), len(heads)))


def _pairs(points: pd.DataFrame, trends: pd.DataFrame) -> str:
    """Each protocol against the first, on the same networks."""
    found = paired(points, trends, PAIRED)
    if found.empty:
        return ""
    keys = dimensions(trends)
    rows = []
    for row in found.to_dict("records"):
        half = "" if row["half_width"] != row["half_width"] else f" ±{brief(row['half_width'])}"
        ratio = "–" if row["ratio"] != row["ratio"] else f"{row['ratio']:.3g}×"
        cells = [
            *(text(row[key]) for key in keys),
            f"{row['protocol']} – {row['base']}",
            table()[row["figure"]].title,
            f"{brief(row['difference'])}{half}",
            ratio,
            f"{row['more']} of {row['seeds']}",
        ]
        rows.append([escape(cell) for cell in cells])
    heads = [*map(short, keys), "protocols", "figure", "difference", "ratio", "greater in"]
    caption = (
        "The difference of two protocols on the same network and workload, seed by seed: its mean ± "
        "half-width of the 95 % confidence interval, the geometric mean of the ratios, and in how "
        "many seeds the first is greater."
    )
    kinds = _kinds(len(keys) + 2, len(heads))
    return write_table([*map(escape, heads)], rows, caption, kinds=kinds)


def _runs(directory: Path, points: pd.DataFrame, trends: pd.DataFrame) -> str:
    """A row for each run, with a link to its page, or to its experiment if it has none."""
    keys = dimensions(trends)
    rows = []
    for row in points.to_dict("records"):
        page = PAGE if (directory / row["run"] / PAGE).exists() else "experiment.toml"
        link = f'<a href="{escape(row["run"])}/{page}">{escape(row["run"])}</a>'
        delay = row.get("delay_ms_mean")
        cells = [escape(text(row[key])) for key in keys]
        cells += [escape(str(row["protocol"])), str(row["seed"]), verdict_mark(row["verdict"])]
        rows.append([link, *cells, "–" if delay is None else f"{delay:,.3f}"])
    heads = ["run", *map(escape, map(short, keys)), "protocol", "seed", "order", "delay, mean (ms)"]
    caption = (
        "The commands testbed digest and testbed report, with a run, make its tables and page."
    )
    return write_table(heads, rows, caption, kinds=" " * (len(heads) - 1) + "n")


def _again(command: Sequence[Any]) -> str:
    if not command:
        return _AGAIN
    return (
        f"<p>The exact command was:</p><pre>{escape(shlex.join(map(str, command)))}</pre>{_AGAIN}"
    )


def _kinds(words: int, all_: int) -> str:
    return " " * words + "n" * (all_ - words)
