"""Baldoni, Friedman & van Renesse 1996: the daisy's control information, messages and delays.

The paper has no measurements, but says what they must be: in a group of m a message carries a vector of
m entries, whatever the number of processes; it takes one broadcast in its sender's group, one in every
group of servers on its way, and one in every group with recipients; messages that cross groups take
longer. All of this is measured, beside protocols without groups: Timestamp, which broadcasts, and RST
and KS, which send to any set of processes.

What is taken: channels with exponential delays of 5 ms on average; all processes send, 100 messages a
second together, each to three others; Timestamp sends as many to everybody. With L levels groups have
about n^(1/L) members. RST and KS send 20 messages a process at least, so that
the logs of KS fill. "Control" includes the list of destinations. "Datagrams" are all that is sent
for a message: copies, and reports and heartbeats shared out among the messages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from testbed.commands.terminal import progress_bar
from testbed.errors import UserError
from testbed.experiment import Experiment, parse, read_document
from testbed.report.style import PAGE, draw_curve, new_figure, save, styled
from testbed.sweep.points import Sweep
from testbed.sweep.runner import run_points

FILE = Path(__file__).parents[1] / "experiments" / "baldoni.toml"
SIZES = (8, 16, 32, 64, 128, 256)
LEVELS = (2, 3, 4)
PER_SECOND = 100
DESTINATIONS = 3
ENOUGH = 20  # messages of each process, so that the logs of KS fill
OTHERS = ("timestamp", "rst", "ks")
VARIED = 64  # processes on two levels, for the optimisations of section 3.4
VARIANTS: dict[str, dict[str, Any]] = {
    "section 3.1": {"safe": False},
    "section 3.1, safe": {},
    "1. relayed early": {"safe": False, "early": True},
    "2. to recipients, k = 1": {"inside": "recipients", "resilience": 1},
    "2. to recipients, k = 2": {"inside": "recipients", "resilience": 2},
    "3. through the server": {"inside": "server"},
}
Key = tuple[str, int]  # protocol, nodes
Found = dict[Key, "Measured"]


class Measured(NamedTuple):
    """One run."""

    control: float  # bytes a copy of a message
    copies: float  # of a message
    broadcasts: float  # a message
    datagrams: float  # a message
    delay: float  # ms
    within: float | None  # ms
    across: float | None


def main() -> int:
    """Sweep, show, judge, draw."""
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce baldoni", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=[*SIZES], metavar="N")
    add("--messages", type=int, default=200, help="of a run")
    add("--master", default="local[*]", help="where Spark runs")
    add("--runs", type=Path, default=Path("runs"))
    options = parser.parse_args()
    sizes = sorted(set(options.sizes))
    points = {
        (name, nodes): experiment(name, nodes, options) for name in names() for nodes in sizes
    } | {(name, VARIED): experiment(name, VARIED, options) for name in VARIANTS}
    try:
        found = measure(points, options)
    except UserError as error:
        sys.exit(f"reproduce: {error}")
    print(f"{options.messages} messages a run")
    show(found, sizes)
    show_claims(found, sizes)
    show_variants(found)
    print(f"figures: {draw(found, sizes, options.runs / 'baldoni')}")
    return 0


def names() -> list[str]:
    """The curves: the daisy with its levels, then the others."""
    return [*(f"daisy, {levels} levels" for levels in LEVELS), *OTHERS]


def experiment(name: str, nodes: int, options: argparse.Namespace) -> Experiment:
    """One run."""
    document = read_document(FILE)
    document["seed"] = 1
    document["topology"]["nodes"] = nodes
    document["workload"] |= {
        "messages": options.messages,
        "mean_interval_ms": 1000.0 * nodes / PER_SECOND,
        "destinations_fraction": DESTINATIONS / nodes,
    }
    if name in OTHERS:
        document["protocol"] = {"name": name}
        document["workload"]["messages"] = max(options.messages, ENOUGH * nodes)
    else:
        levels = 2 if name in VARIANTS else int(name.split()[1])
        document["protocol"] |= {"levels": levels, "group_size": group_size(nodes, levels)}
        document["protocol"] |= VARIANTS.get(name, {})
    if name == "timestamp":
        document["workload"] = {
            "model": "poisson",
            "senders": 0,
            "rate_per_s": PER_SECOND / nodes,
            "duration_ms": 1000.0 * options.messages / PER_SECOND,
        }
    return parse(document, FILE)[0]


def group_size(nodes: int, levels: int) -> int:
    """Groups on all levels of about the same size."""
    root: float = nodes ** (1 / levels)
    return max(2, ceil(root - 1e-9))


def measure(points: dict[Key, Experiment], options: argparse.Namespace) -> Found:
    """Run what has not been run."""
    sweep = Sweep.of([*points.values()])
    with progress_bar(sweep.name) as progress:
        frame = run_points(sweep, options.runs, options.master, progress, work)
    rows = {row["point"]: row for row in frame.to_dict("records")}
    return {
        key: measured(rows[next(iter(Sweep.of([point]).points))], daisy=key[0] not in OTHERS)
        for key, point in points.items()
    }


def work(point: Experiment) -> float:
    """Roughly how much a run has to do."""
    nodes: int = point.topology.nodes
    return float(nodes**3 if point.protocol.name == "rst" else nodes**2)


def measured(row: dict[Any, Any], daisy: bool) -> Measured:
    """What one run tells; of all that has no groups a message is one broadcast."""
    return Measured(
        control=row["broadcast_control_bytes_per_copy"]
        if daisy
        else row["control_bytes"] / row["copies"],
        copies=row["broadcast_copies"] / row["multicasts"] if daisy else row["copies"],
        broadcasts=row["broadcasts_per_message"] if daisy else 1.0,
        datagrams=row["copies"] / row["multicasts"],
        delay=row["delay_ms_mean"],
        within=row["delay_within_groups_ms_mean"] if daisy else None,
        across=row["delay_across_groups_ms_mean"] if daisy else None,
    )


SHOWN = (
    ("control, bytes a copy", "control", "{:,.0f}"),
    ("broadcasts a message", "broadcasts", "{:.1f}"),
    ("datagrams a message", "datagrams", "{:,.0f}"),
    ("delay, ms", "delay", "{:.1f}"),
    ("delay within groups, ms", "within", "{:.1f}"),
    ("delay across groups, ms", "across", "{:.1f}"),
)


COMPARED = (
    ("copies a message", "copies", "{:.1f}"),
    ("control, bytes a copy", "control", "{:,.0f}"),
    ("datagrams a message", "datagrams", "{:,.0f}"),
    ("within groups, ms", "within", "{:.1f}"),
    ("across, ms", "across", "{:.1f}"),
)


def show(found: Found, sizes: list[int]) -> None:
    """All measures of all curves."""
    out = Console(highlight=False, width=110)
    table = Table(box=None, pad_edge=False)
    for head in ("", "processes"):
        table.add_column(head)
    for nodes in sizes:
        table.add_column(str(nodes), justify="right")
    for label, key, form in SHOWN:
        first = True
        for name in names():
            values = [getattr(found[name, nodes], key) for nodes in sizes]
            if values[0] is not None:
                table.add_row(label if first else "", name, *map(form.format, values))
                first = False
    out.print(table)


Judge = Callable[[Found, list[int]], tuple[str, bool]]


def control_is_the_groups(levels: int) -> Judge:
    """As the size of a group, not as that of the system: 4 bytes a member, and a fixed part."""

    def judge(found: Found, sizes: list[int]) -> tuple[str, bool]:
        values = [found[f"daisy, {levels} levels", n].control for n in sizes]
        factor = (values[-1] / values[0]) / (sizes[-1] / sizes[0])
        return " ".join(f"{v:.0f}" for v in values), factor < 0.5

    return judge


def less_than_others(found: Found, sizes: list[int]) -> tuple[str, bool]:
    """In the largest system the daisy attaches least."""
    n = sizes[-1]
    least = min(found[f"daisy, {levels} levels", n].control for levels in LEVELS)
    others = [found[name, n].control for name in OTHERS]
    shown = " ".join(f"{v:,.0f}" for v in others)
    return f"{least:.0f} against {shown}", least < min(others)


def across_takes_longer(found: Found, sizes: list[int]) -> tuple[str, bool]:
    """Servers on the way take time."""
    n = sizes[-1]
    pairs = [found[f"daisy, {levels} levels", n] for levels in LEVELS]
    ratios = [(m.across or 0) / (m.within or 1) for m in pairs]
    return " ".join(f"{ratio:.1f} ×" for ratio in ratios), min(ratios) > 1


def more_levels_take_longer(found: Found, sizes: list[int]) -> tuple[str, bool]:
    """Each level adds its broadcasts, up and down."""
    n = sizes[-1]
    delays = [found[f"daisy, {levels} levels", n].across or 0 for levels in LEVELS]
    return " ".join(f"{ms:.1f}" for ms in delays) + " ms", delays == sorted(delays)


CLAIMS: tuple[tuple[str, Judge], ...] = (
    *(
        (f"{levels} levels: control grows far slower than n", control_is_the_groups(levels))
        for levels in LEVELS
    ),
    ("the daisy attaches less than protocols without groups", less_than_others),
    ("messages that cross groups take longer", across_takes_longer),
    ("the more levels, the longer", more_levels_take_longer),
)


def show_claims(found: Found, sizes: list[int]) -> None:
    """What the paper says, what is measured."""
    out = Console(highlight=False, width=120)
    table = Table(box=None, pad_edge=False)
    for head in ("the paper", "measured", ""):
        table.add_column(head)
    for words, judge in CLAIMS:
        shown, holds = judge(found, sizes)
        table.add_row(words, shown, "yes" if holds else "[bold]no[/]")
    out.print(table)


def show_variants(found: Found) -> None:
    """What the optimisations of section 3.4 gain and cost."""
    table = Table(box=None, pad_edge=False)
    table.add_column(f"{VARIED} processes, 2 levels")
    for label, _, _ in COMPARED:
        table.add_column(label, justify="right")
    for name in VARIANTS:
        its = found[name, VARIED]
        table.add_row(name, *(form.format(getattr(its, key)) for _, key, form in COMPARED))
    Console(highlight=False, width=120).print(table)


def draw(found: Found, sizes: list[int], directory: Path) -> Path:
    """Control information and delay against the number of processes, as SVG and PNG."""
    directory.mkdir(parents=True, exist_ok=True)
    with styled():
        drawn = new_figure(PAGE, PAGE * 0.45)
        panels = (("control", "control (bytes a copy)"), ("delay", "delay (ms)"))
        for axes, (key, label) in zip(drawn.subplots(1, 2), panels, strict=True):
            for index, name in enumerate(names()):
                values = [getattr(found[name, n], key) for n in sizes]
                draw_curve(axes, index, name, sizes, values)
            axes.set(xlabel="processes", ylabel=label, xscale="log", yscale="log")
            axes.set_xticks(sizes, [str(n) for n in sizes])
            axes.minorticks_off()
        save(drawn, directory, "control-and-delay")
    return directory


if __name__ == "__main__":
    sys.exit(main())
