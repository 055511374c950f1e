"""The tables of a report's page, as HTML."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from testbed.check.fidelity import Fidelity
from testbed.experiment.expand import flatten
from testbed.figures import shown
from testbed.protocols import Figure
from testbed.runs.results import Results
from testbed.topologies import describe, has_cycle

if TYPE_CHECKING:
    from pandas import DataFrame

ROWS = 10
WIDE = 8  # columns; tables with more are set smaller on paper
GOOD = {"valid", "exact", "good", "complete"}

Runs = Sequence[Results]
Cells = Sequence[str]
Columns = dict[str, Callable[[dict[Any, Any]], str]]


def verdicts_table(runs: Runs, names: Sequence[str]) -> str:
    """Whether order was kept and the network was true, and what was counted on the side."""
    rows = [
        ["causal order", *(verdict_mark(run.verdict) for run in runs)],
        ["run", *(verdict_mark(run.status) for run in runs)],
        ["network", *(_fidelity(run) for run in runs)],
        ["counted by digest and engine", *(_disagreements(run) for run in runs)],
    ]
    counters = dict.fromkeys(key for run in runs for key in run.manifest.get("counters", {}))
    for key in counters:
        values = [run.manifest.get("counters", {}).get(key) for run in runs]
        rows.append([escape(key.replace("_", " ")), *(_number(value) for value in values)])
    bad = [run for run in runs if run.verdict != "valid"]
    why = "".join(
        f"<p>{'<br>'.join(map(escape, (*run.changes, *run.manifest.get('why', ()))))}</p>"
        f"<p><code>testbed check {escape(run.path.name)}</code> shows each violation with its "
        "chain of messages.</p>"
        for run in bad
    )
    return write_table(["", *map(escape, names)], rows, kinds=" " + "w" * len(runs)) + why


def figures_table(runs: Runs, names: Sequence[str]) -> str:
    """The figures side by side, as ``testbed run`` prints them."""
    rows = [
        [escape(figure.title), *(_figure(figure, run.summary.get(figure.key)) for run in runs)]
        for figure in shown(run.summary for run in runs)
        if figure.key != "verdict"  # it stands among the verdicts, with its reasons
    ]
    return write_table(["", *map(escape, names)], rows, kinds=" " + "n" * len(runs))


def settings_table(runs: Runs, names: Sequence[str]) -> str:
    """Every setting of the experiments; one that all share stands once."""
    flat = [_settings(run) for run in runs]
    rows = []
    for key in dict.fromkeys(key for settings in flat for key in settings):
        values = [settings.get(key, "–") for settings in flat]
        shared = len(set(values)) == 1
        cell = f'<td colspan="{len(runs)}">{escape(values[0])}</td>' if shared else None
        rows.append([f"<code>{escape(key)}</code>", *([cell] if cell else map(escape, values))])
    return write_table(["setting", *map(escape, names)], rows)


def topology_table(run: Results) -> str:
    """The figures of the network, and of the overlay upon it."""
    graphs = {"network": run.network.graph, "overlay": run.network.overlay}
    columns = {name: asdict(describe(graph)) for name, graph in graphs.items() if graph is not None}
    keys = next(iter(columns.values()))
    rows = [
        [escape(key.replace("_", " ")), *(_number(column[key]) for column in columns.values())]
        for key in keys
    ]
    return write_table(["topology", *columns], rows, kinds=" " + "n" * len(columns))


def groups_table(run: Results) -> str:
    """The groups and their members, if there are any."""
    if not (groups := run.network.groups):
        return ""
    rows = [[escape(name), " ".join(map(str, sorted(groups[name])))] for name in groups]
    cycle = "a cycle" if has_cycle(groups) else "no cycle"
    return write_table(["group", f"members (their graph has {cycle})"], rows, kinds="  ")


def busiest_links(run: Results) -> str:
    """The links with the most load."""
    busy = run.links.dropna(subset=["load"]).sort_values("load", ascending=False, kind="stable")
    columns: Columns = {
        "link": lambda row: f"{int(row['tail'])} → {int(row['head'])}",
        "delay (ms)": lambda row: f"{row['delay_ns'] / 1e6:,.3f}",
        "load": lambda row: f"{row['load']:,.2f}",
        "packets": lambda row: _count(row["packets"]),
        "bytes": lambda row: _count(row["bytes"]),
        "wait, mean (ms)": lambda row: f"{row['waited'] / max(1, row['packets']) / 1e6:,.3f}",
        "queue, max": lambda row: _count(row["queue_max"]),
    }
    return "" if busy.empty else _top(busy, columns, "Links with the most load", len(run.links))


def nodes_table(run: Results) -> str:
    """The processes whose delivery queues were the longest."""
    order = ["queue_mean", "delay_mean", "node"]
    nodes = run.nodes.sort_values(order, ascending=[False, False, True])
    columns: Columns = {
        "process": lambda row: str(int(row["node"])),
        "multicasts": lambda row: _count(row["multicasts"]),
        "deliveries": lambda row: _count(row["deliveries"]),
        "delay, mean (ms)": lambda row: _ms(row["delay_mean"]),
        "delay, max (ms)": lambda row: _ms(row["delay_max"]),
        "held back": lambda row: _count(row["held"]),
        "queue, mean": lambda row: f"{row['queue_mean']:,.3f}",
        "queue, max": lambda row: _count(row["queue_max"]),
    }
    return _top(nodes, columns, "Processes with the longest delivery queues", len(nodes))


def versions_table(runs: Runs, names: Sequence[str]) -> str:
    """What the runs were made with."""
    flat = [_versions(run) for run in runs]
    keys = dict.fromkeys(key for versions in flat for key in versions)
    rows = [[escape(key), *(escape(str(its.get(key, "–"))) for its in flat)] for key in keys]
    return write_table(["", *map(escape, names)], rows)


def _versions(run: Results) -> dict[str, Any]:
    guest = run.manifest.get("guest", {})
    kernel = (
        {"guest's kernel": f"{guest['kernel']}, {guest.get('mode', '')}"}
        if "kernel" in guest
        else {}
    )
    its = run.manifest.get("versions", {})
    return {"testbed": run.manifest.get("testbed"), **its, **kernel, **run.digest_versions}


def _top(table: DataFrame, columns: Columns, title: str, of: int) -> str:
    """The first rows of a table, with the columns of a page: their heads, and how to write a row."""
    records = table.head(ROWS).to_dict("records")
    rows = [[write(row) for write in columns.values()] for row in records]
    caption = f"{title}, {len(rows)} of {of}."
    return write_table([*columns], rows, caption, " ".ljust(len(columns), "n"))


def write_table(head: Cells, rows: Iterable[Cells], caption: str = "", kinds: str = "") -> str:
    """A table of cells that are HTML; ``kinds`` has "n" for a column of numbers, "w" to wrap."""
    classes = {"n": ' class="n"', "w": ' class="wrap"'}
    marks = [classes.get(kind, "") for kind in kinds.ljust(len(head))]
    top = "".join(
        f'<th scope="col"{mark}>{cell}</th>' for cell, mark in zip(head, marks, strict=True)
    )
    body = "".join(f"<tr>{_row(row, marks)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    wide = ' class="wide"' if len(head) > WIDE else ""
    return (
        f'<div class="scroll" tabindex="0"><table{wide}>{title}<thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(cells: Cells, marks: Sequence[str]) -> str:
    first, *others = cells
    return f'<th scope="row">{first}</th>' + "".join(
        cell if cell.startswith("<td") else f"<td{mark}>{cell}</td>"
        for cell, mark in zip(others, marks[1:], strict=False)
    )


def verdict_mark(verdict: str) -> str:
    """A verdict in its colour."""
    return f'<span class="verdict {"good" if verdict in GOOD else "bad"}">{escape(verdict)}</span>'


def _fidelity(run: Results) -> str:
    if "fidelity" not in run.manifest:
        return "simulated" if run.manifest.get("engine") == "simulate" else "not judged"
    fidelity = Fidelity(**run.manifest["fidelity"])
    rest = str(fidelity).removeprefix(f"{fidelity.verdict}: ")
    return f"{verdict_mark(fidelity.verdict)}: {escape(rest)}"


def _disagreements(run: Results) -> str:
    count = run.summary.get("disagreements")
    if count is None:
        return "–"
    return "agree" if not count else f'<span class="verdict bad">{count} figures differ</span>'


def _settings(run: Results) -> dict[str, str]:
    """All of the experiment's settings, by names such as ``topology.nodes``."""
    found = flatten(tomllib.loads(run.experiment.to_toml()))
    return {
        key: "–".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in found.items()
    }


def _figure(figure: Figure, value: object) -> str:
    return "–" if value is None else escape(figure.text(value))


def _number(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


def _count(value: float) -> str:
    """A whole number; a dash for none, which pandas has several words for."""
    from pandas import isna

    return "–" if isna(value) else f"{int(value):,}"


def _ms(nanoseconds: float) -> str:
    """Milliseconds, or a dash."""
    from pandas import isna

    return "–" if isna(nanoseconds) else f"{nanoseconds / 1e6:,.3f}"
