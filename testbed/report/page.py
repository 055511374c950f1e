"""The page of a report: one file that holds all that it shows."""

import base64
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from testbed import __version__
from testbed.report.contents import contents, numbered
from testbed.report.plots import Plot
from testbed.report.slowest import slowest_messages
from testbed.report.spacetime import EVENTS, pack
from testbed.report.tables import (
    busiest_links,
    figures_table,
    groups_table,
    nodes_table,
    settings_table,
    topology_table,
    verdicts_table,
    versions_table,
)
from testbed.runs.results import Results

SCRIPTS = (
    *("history.js", "ways.js", "canvas.js", "highlights.js", "spacetime.js"),
    *("about.js", "controls.js"),
)
UNRECORDED = (
    "<p>What crossed the links was not recorded in {}; <code>testbed run --packets full</code> "
    "records it.</p>"
)


def write_page(
    runs: Sequence[Results],
    names: Sequence[str],
    plots: Sequence[Plot],
    pages: Mapping[str, str],
) -> str:
    """The page of these runs; ``pages`` are links to the page of each, by name."""
    sections = {
        "Results": _side_by_side(figures_table(runs, names), verdicts_table(runs, names)),
        "What was run": _what_was_run(runs, names, pages),
        "Plots": _plots(runs, names, plots),
        "Space-time diagram": _diagrams(runs, names),
        "Tables": _tables(runs, names),
        "Versions": versions_table(runs, names),
    }
    texts = {name: files(__package__).joinpath(name).read_text("utf-8") for name in ASSETS}
    experiment = runs[0].experiment
    protocols = ", ".join(names)
    return Template(texts["page.html"]).substitute(
        title=escape(f"{experiment.name}: {protocols}"),
        heading=escape(experiment.name),
        lead=escape(_lead(runs, protocols)),
        nav=contents(sections, {"Plots": [(plot.name, plot.name) for plot in plots]}),
        sections=numbered(sections),
        footer=f"Written by testbed {escape(__version__)}. This page loads nothing from anywhere.",
        css=texts["page.css"],
        js="\n".join(texts[name] for name in SCRIPTS),
    )


ASSETS = ("page.html", "page.css", *SCRIPTS)


def _lead(runs: Sequence[Results], protocols: str) -> str:
    first = runs[0]
    its = first.experiment
    started = str(first.manifest.get("started", ""))[:16].replace("T", " ")
    return (
        f"{protocols} on a {its.topology.model} network of {first.network.processes} nodes under a "
        f"{its.workload.model} workload; engine {first.manifest.get('engine')}, seed {its.seed}; "
        f"run on {started} UTC"
    )


def _side_by_side(*parts: str) -> str:
    return f'<div class="tables">{"".join(parts)}</div>'


def _what_was_run(runs: Sequence[Results], names: Sequence[str], pages: Mapping[str, str]) -> str:
    commands = "\n".join(f"testbed run {_relative(run.path)}/experiment.toml" for run in runs)
    given = dict.fromkeys(shlex.join(map(str, run.manifest.get("command", ()))) for run in runs)
    exactly = "\n".join(filter(None, given))
    links = ", ".join(f'<a href="{escape(to)}">{escape(name)}</a>' for name, to in pages.items())
    # Some protocols have no overlay; the network below it is the same.
    widest = next((run for run in runs if run.network.overlay is not None), runs[0])
    return (
        (f"<p>Each run has its own page: {links}.</p>" if links else "")
        + (f"<p>The exact command was:</p><pre>{escape(exactly)}</pre>" if exactly else "")
        + f"<p>To run it again, where the runs are kept:</p><pre>{escape(commands)}</pre>"
        + _side_by_side(settings_table(runs, names), topology_table(widest) + groups_table(widest))
    )


def _relative(path: Path) -> str:
    """A run's directory as one that has its parents beside it calls it."""
    return Path(*path.resolve().parts[-3:]).as_posix().lstrip("/")


def _plots(runs: Sequence[Results], names: Sequence[str], plots: Sequence[Plot]) -> str:
    parts = []
    for number, plot in enumerate(plots, 1):
        image = base64.b64encode(plot.svg).decode()
        wide = ' class="wide"' if plot.wide else ""
        caption = escape(plot.caption)
        parts.append(
            f'<figure id="{plot.name}"{wide}>'
            f'<img src="data:image/svg+xml;base64,{image}" alt="{caption}">'
            f"<figcaption><b>Figure {number}.</b> {caption}</figcaption></figure>"
        )
    bare = [name for run, name in zip(runs, names, strict=True) if run.hops.empty]
    note = UNRECORDED.format(escape(", ".join(bare))) if bare else ""
    return f'{note}<div class="figures">{"".join(parts)}</div>'


def _diagrams(runs: Sequence[Results], names: Sequence[str]) -> str:
    most = EVENTS // len(runs)
    template = Template(files(__package__).joinpath("spacetime.html").read_text("utf-8"))
    return "\n".join(
        template.substitute(
            title=f"<h3>{escape(name)}</h3>" if len(runs) > 1 else "",
            label=escape(f"Space-time diagram of {name}"),
            data=pack(run, most),
        )
        for run, name in zip(runs, names, strict=True)
    )


def _tables(runs: Sequence[Results], names: Sequence[str]) -> str:
    parts = []
    for run, name in zip(runs, names, strict=True):
        title = f"<h3>{escape(name)}</h3>" if len(runs) > 1 else ""
        parts.append(title)
        parts.append(_side_by_side(busiest_links(run), slowest_messages(run), nodes_table(run)))
    return "".join(parts)
