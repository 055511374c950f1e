"""Chandra, Gambhire & Kshemkalyani 2004, Figs. 3-8: what KS and KS' attach, as per cent of RST's n².

The paper prints no numbers beside its figures but some percentages in the text. They are compared
with what is measured, and what it says of the shape of its curves is judged.

What the paper leaves open, and what is taken here:
- "30,000 messages" are multicasts, not copies: it stops a process after 30,000/n messages and calls a
  multicast one send event. In copies, 100 processes that multicast would send six times each, and
  the warm-up would be over when each has sent once. What a message carries is the mean of its copies,
  since each copy has a log of its own.
- How an entry of a log is counted. The text says 3 + |Dests| integers (Fig. 2); the percentages that it
  gives are nearer to 2 + |Dests|. Both are shown. The second was found by trying several, so that
  its agreement is no evidence of what the authors counted.
- "The number of entries in the log" of KS'. With Fig. 2, one clock for each flag of its array, as
  protocols/ks_prime.py sends it; with 2 + |Dests|, one for each entry and one for each destination.
- Processes take no turns of 500 ms: every event happens at its own time.
All countings come from one run of KS, whose messages are the same as those of KS'.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from testbed.commands.terminal import progress_bar
from testbed.errors import UserError
from testbed.experiment import Experiment, read_document
from testbed.report.style import PAGE, draw_curve, new_figure, save, styled
from testbed.sweep.points import Sweep, expand, flatten
from testbed.sweep.runner import run_points

FILE = Path(__file__).parents[1] / "experiments" / "chandra.toml"
NEAR = 0.25  # how far from "about" a percentage may be, relative to it
SLIGHT = 0.8  # what a slight fall leaves of a percentage
FLAT = 0.15  # how far a constant curve may leave its mean, up and down together


class Setting(NamedTuple):
    """What is fixed of a curve: the paper's MTT and MIMT in milliseconds, M/T, and n."""

    mtt: float = 50
    mimt: float = 100
    multicast: float = 0.1
    nodes: int = 0

    def words(self, varying: str) -> str:
        """What is fixed while something else varies."""
        values = {"MTT": self.mtt, "MIMT": self.mimt, "M/T": self.multicast, "n": self.nodes}
        instead = {"|Dests|/n": "M/T", "B/T": "M/T"}.get(varying, varying.split()[0])
        return "".join(f", {k} {v:g}" for k, v in values.items() if k != instead)


class Figure(NamedTuple):
    """One of the paper's figures: the key that varies, and its four settings."""

    key: str
    label: str
    values: tuple[tuple[float, ...], ...]
    settings: tuple[Setting, ...]


SIZES = (10, 15, 20, 30, 40, 50, 60, 80, 100)
FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
FAR, NEARER = (20, 50, 100, 400, 1500, 6000), (50, 100, 200, 400, 1000)
INTERVALS = (50, 100, 200, 400, 800, 1200)
FREQUENCIES = (
    Setting(75, 500, 1, 12),
    Setting(50, 500, 1, 40),
    Setting(50, 400, 1, 20),
    Setting(50, 1600, 1, 15),
)
FIGURES = {
    3: Figure(
        "topology.nodes",
        "n",
        (SIZES,) * 4,
        (Setting(), Setting(mtt=400), Setting(mimt=1600), Setting(mimt=400, multicast=0.99)),
    ),
    4: Figure(
        "topology.mean_ms",
        "MTT (ms)",
        (FAR, FAR, NEARER, NEARER),
        (
            Setting(mimt=1600, nodes=15),
            Setting(mimt=400, nodes=15),
            Setting(mimt=400, nodes=40),
            Setting(mimt=1600, multicast=0.9, nodes=15),
        ),
    ),
    5: Figure(
        "workload.mean_interval_ms",
        "MIMT (ms)",
        (INTERVALS,) * 4,
        (
            Setting(nodes=40),
            Setting(nodes=20),
            Setting(mtt=400, nodes=20),
            Setting(multicast=0.9, nodes=20),
        ),
    ),
    6: Figure("workload.multicast_fraction", "M/T", (FRACTIONS,) * 4, FREQUENCIES),
    7: Figure("workload.destinations_fraction", "|Dests|/n", (FRACTIONS,) * 4, FREQUENCIES),
    8: Figure("workload.broadcast_fraction", "B/T", (FRACTIONS,) * 4, FREQUENCIES),
}
Curve = dict[float, float]
Row = dict[Any, Any]  # of a run: its settings as "table.key", and its figures


class Counting(NamedTuple):
    """A way of counting: the curve of KS, and that of KS' beside it."""

    ks: str
    ks_prime: str


COUNTINGS = (
    Counting("KS, 3+|Dests| (Fig. 2)", "KS', flags"),
    Counting("KS, 2+|Dests|", "KS', entries + dests"),
)
Curves = dict[tuple[int, int, str], Curve]  # figure, setting from 1 on, what is counted


def percentages(run: Row) -> dict[str, float]:
    """What a message of a run carries, in all ways of counting."""
    squared = run["nodes"] ** 2
    names = ("integers", "entries", "destinations", "empty_entries")
    fig2, entries, dests, empty = (run[f"control_{name}"] / run["control_copies"] for name in names)
    integers = {
        COUNTINGS[0].ks: fig2,
        COUNTINGS[1].ks: fig2 - entries,
        COUNTINGS[0].ks_prime: squared / 32 + dests + empty,
        COUNTINGS[1].ks_prime: squared / 32 + dests + entries,
    }
    return {name: 100 * value / squared for name, value in integers.items()}


def main() -> int:
    """Sweep, draw, show all percentages, judge what the paper says of them."""
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce chandra", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--figures", type=int, nargs="+", choices=FIGURES, default=[*FIGURES], metavar="N")
    add("--sizes", type=int, nargs="+", default=[*SIZES], metavar="N", help="of Fig. 3")
    add("--messages", type=int, default=30_000, help="of a run; a sixth is the warm-up")
    add("--runs-per-point", type=int, default=1, help="the paper has 10; seeds to average over")
    add("--master", default="local[*]", help="where Spark runs")
    add("--runs", type=Path, default=Path("runs"))
    options = parser.parse_args()
    points = {
        (number, which): expand(document(number, which, options), FILE)
        for number in sorted(set(options.figures))
        for which in range(1, 5)
    }
    sweep = Sweep.of([experiment for each in points.values() for experiment in each])
    try:
        runs = run_all(sweep, options)
    except UserError as error:
        sys.exit(f"reproduce: {error}")
    curves: Curves = {}
    for (number, which), experiments in points.items():
        rows = [runs[point] for point in Sweep.of(experiments).points]
        for name, curve in curves_of(rows, FIGURES[number].key).items():
            curves[number, which, name] = curve
    print(
        f"{options.messages:,} multicasts a run, the first sixth not counted; "
        f"runs a point: {options.runs_per_point}"
    )
    for number in sorted(set(options.figures)):
        show(number, curves)
    show_claims(curves)
    print(f"figures: {draw_all(curves, options.runs / 'chandra')}")
    return 0


def document(number: int, which: int, options: argparse.Namespace) -> dict[str, Any]:
    """The sweep of one curve."""
    figure, base = FIGURES[number], read_document(FILE)
    setting = figure.settings[which - 1]
    values: tuple[float, ...] = figure.values[which - 1]
    if number == 3:
        values = tuple(sorted(set(options.sizes)))
    topology = {**base["topology"], "nodes": setting.nodes, "mean_ms": setting.mtt}
    workload = {
        **base["workload"],
        "messages": options.messages,
        "warm_up_messages": options.messages // 6,
        "mean_interval_ms": setting.mimt,
        "multicast_fraction": 0 if number == 8 else setting.multicast,
    }
    table, key = figure.key.split(".")
    {"topology": topology, "workload": workload}[table][key] = list(values)
    seeds = list(range(1, options.runs_per_point + 1))
    return {**base, "seed": seeds, "topology": topology, "workload": workload}


def run_all(sweep: Sweep, options: argparse.Namespace) -> dict[str, Row]:
    """The summary of every point with its settings; a point that two figures share is run once."""
    with progress_bar(sweep.name) as progress:
        frame = run_points(sweep, options.runs, options.master, progress, integers)
    figures = {str(row["point"]): row for row in frame.to_dict("records")}
    return {
        point: {**flatten(tomllib.loads(experiment.to_toml())), **figures[point]}
        for point, experiment in sweep.points.items()
    }


def integers(experiment: Experiment) -> float:
    """Roughly how much a run has to do: a copy of a message takes time as its log is long."""
    nodes: int = experiment.topology.nodes
    workload: Any = experiment.workload
    multicast: float = workload.multicast_fraction * (workload.destinations_fraction or 0.5)
    return float(nodes * (1 + nodes * (multicast + workload.broadcast_fraction)))


def curves_of(runs: list[Row], key: str) -> dict[str, Curve]:
    """Of every way of counting the mean over seeds, by the value of the key."""
    found: dict[str, dict[float, list[float]]] = {}
    for run in runs:
        for name, value in percentages(run).items():
            found.setdefault(name, {}).setdefault(run[key], []).append(value)
    return {
        name: {x: fmean(values) for x, values in sorted(curve.items())}
        for name, curve in found.items()
    }


def show(number: int, curves: Curves) -> None:
    """A figure of the paper as a table."""
    out = Console(highlight=False, width=130)
    figure = FIGURES[number]
    for which, setting in enumerate(figure.settings, 1):
        out.print(f"Fig. {number}, S{which}{setting.words(figure.label)}: % of n²")
        table = Table(box=None)
        table.add_column(figure.label)
        for x in curves[number, which, COUNTINGS[0].ks]:
            table.add_column(f"{x:g}", justify="right")
        for name in (name for counting in COUNTINGS for name in counting):
            curve = curves[number, which, name]
            table.add_row(name, *(f"{value:.1f}" for value in curve.values()))
        out.print(table)


def draw_all(curves: Curves, directory: Path) -> Path:
    """The paper's figures as SVG and PNG, a panel for each setting."""
    directory.mkdir(parents=True, exist_ok=True)
    with styled():
        for number in sorted({number for number, _, _ in curves}):
            drawn = new_figure(PAGE, PAGE * 0.7)
            panels = drawn.subplots(2, 2, sharey=number != 3).flat
            for which, axes in enumerate(panels, 1):
                for index, name in enumerate(n for counting in COUNTINGS for n in counting):
                    curve = curves[number, which, name]
                    draw_curve(axes, index, name, [*curve], [*curve.values()])
                axes.set_ylim(bottom=0)
                axes.set_title(f"S{which}", loc="left")
                axes.set_xlabel(FIGURES[number].label)
                axes.set_ylabel("% of n²")
            save(drawn, directory, f"fig-{number}")
    return directory


Found = tuple[str, list[bool]]  # in words, and whether it holds in each setting
Judge = Callable[[Curves, Counting], Found]


def about(number: int, x: float, percent: float, prime: bool = False) -> Judge:
    """All four settings are near a percentage at x."""

    def judge(curves: Curves, counting: Counting) -> Found:
        values = [curves[number, s, counting[prime]][x] for s in range(1, 5)]
        shown = " ".join(f"{value:.3g}" for value in values)
        return f"{shown} %", [abs(value / percent - 1) <= NEAR for value in values]

    return judge


def below(number: int, settings: tuple[int, ...], percent: float, prime: bool = False) -> Judge:
    """The highest point of these settings is below a percentage."""

    def judge(curves: Curves, counting: Counting) -> Found:
        tops = [max(curves[number, s, counting[prime]].values()) for s in settings]
        shown = " ".join(f"{top:.3g}" for top in tops)
        return f"at most {shown} %", [top < percent for top in tops]

    return judge


def falls(curves: Curves, counting: Counting) -> Found:
    """KS takes a smaller part of n² the more processes there are."""
    found = [[*curves[3, s, counting.ks].values()] for s in range(1, 5)]
    shown = " ".join(f"{values[0]:.3g}→{values[-1]:.3g}" for values in found)
    return f"{shown} %", [values == sorted(values, reverse=True) for values in found]


def threshold(setting: int, paper: float) -> Judge:
    """From so many processes on KS takes less than KS'."""

    def judge(curves: Curves, counting: Counting) -> Found:
        ks, prime = (curves[3, setting, name] for name in counting)
        sizes = [*ks]
        lead = [ks[n] - prime[n] for n in sizes]
        for i in range(1, len(sizes)):
            if lead[i] < 0 <= lead[i - 1]:
                share = lead[i - 1] / (lead[i - 1] - lead[i])
                crossing = sizes[i - 1] + share * (sizes[i] - sizes[i - 1])
                return f"n = {crossing:.0f}", [abs(crossing / paper - 1) <= NEAR]
        return f"none from {sizes[0]} to {sizes[-1]}", [False]

    return judge


def levels_off(curves: Curves, counting: Counting) -> Found:
    """KS's overhead rises with MTT, and hardly from the last but one MTT to the last."""
    found = [[*curves[4, s, counting.ks].values()] for s in range(1, 5)]
    shown = " ".join(f"{v[0]:.3g}→{v[-2]:.3g}→{v[-1]:.3g}" for v in found)
    return f"{shown} %", [v[0] < v[-1] < v[-2] * (1 + FLAT) for v in found]


def constant(
    number: int, settings: tuple[int, ...], since: float = 0, prime: bool = False
) -> Judge:
    """The curve hardly leaves its mean."""

    def judge(curves: Curves, counting: Counting) -> Found:
        spreads = []
        for s in settings:
            values = [v for x, v in curves[number, s, counting[prime]].items() if x >= since]
            spreads.append((max(values) - min(values)) / fmean(values))
        shown = " ".join(f"{100 * spread:.0f}" for spread in spreads)
        return f"within {shown} %", [spread <= FLAT for spread in spreads]

    return judge


def falls_slightly(number: int) -> Judge:
    """In the small systems KS takes a little less the more often messages are multicast."""

    def judge(curves: Curves, counting: Counting) -> Found:
        found = [[*curves[number, s, counting.ks].values()] for s in (1, 4)]
        shown = " ".join(f"{values[0]:.3g}→{values[-1]:.3g}" for values in found)
        return f"{shown} %", [SLIGHT * v[0] < v[-1] < v[0] for v in found]

    return judge


def prime_is_less(number: int, settings: tuple[int, ...]) -> Judge:
    """KS' takes less than KS everywhere."""

    def judge(curves: Curves, counting: Counting) -> Found:
        tops = []
        for s in settings:
            ks, prime = (curves[number, s, name] for name in counting)
            tops.append(max(prime[x] / ks[x] for x in ks))
        shown = " ".join(f"{top:.2f}" for top in tops)
        return f"KS'/KS at most {shown}", [top < 1 for top in tops]

    return judge


ALL = (1, 2, 3, 4)
CLAIMS: tuple[tuple[int, str, str, Judge], ...] = (
    (3, "KS, n = 100, S1 to S4", "4 %", about(3, 100, 4)),
    (3, "KS, n = 15, S1 to S4", "about 25 %", about(3, 15, 25)),
    (3, "KS', n = 15, S1 to S4", "about 15 %", about(3, 15, 15, prime=True)),
    (3, "KS, from the smallest n to the largest", "falls", falls),
    (3, "KS below KS' from, S3", "n = 62", threshold(3, 62)),
    (3, "KS below KS' from, S4", "n = 45", threshold(4, 45)),
    (4, "KS, n = 15 (S1, S2, S4)", "never above 35 %", below(4, (1, 2, 4), 35)),
    (4, "KS, n = 40 (S3)", "below 11 %", below(4, (3,), 11)),
    (4, "KS, MTT growing", "rises, then is steady", levels_off),
    (5, "KS, n = 20 (S2 to S4)", "below 20 %", below(5, (2, 3, 4), 20)),
    (5, "KS', n = 20 (S2 to S4)", "below 12 %", below(5, (2, 3, 4), 12, prime=True)),
    (5, "KS, MIMT from 200 ms on", "almost constant", constant(5, ALL, since=200)),
    (5, "KS' and KS", "KS' is lower", prime_is_less(5, ALL)),
    (6, "KS, M/T growing (S2, S3)", "constant", constant(6, (2, 3))),
    (6, "KS, M/T growing (S1, S4)", "falls very slightly", falls_slightly(6)),
    (6, "KS', M/T growing", "unaffected", constant(6, ALL, prime=True)),
    (6, "KS' and KS", "KS' is lower", prime_is_less(6, ALL)),
    (7, "KS, |Dests|/n growing (S2, S3)", "constant", constant(7, (2, 3))),
    (7, "KS, |Dests|/n growing (S1, S4)", "falls very slightly", falls_slightly(7)),
    (8, "KS, B/T growing (S2, S3)", "constant", constant(8, (2, 3))),
    (8, "KS, B/T growing (S1, S4)", "falls very slightly", falls_slightly(8)),
    (8, "KS' and KS (S1, S3, S4)", "KS' is lower", prime_is_less(8, (1, 3, 4))),
)


def show_claims(curves: Curves) -> None:
    """Every claim, in both countings; one whose points were not run is left out."""
    out = Console(highlight=False, width=130)
    for counting in COUNTINGS:
        out.print(f"What the paper says, counting {counting.ks}; {counting.ks_prime}")
        table = Table(box=None)
        for head in ("Fig.", "", "paper", "measured", ""):
            table.add_column(head)
        for number, words, paper, judge in CLAIMS:
            with suppress(KeyError, ValueError):
                found, holds = judge(curves, counting)
                table.add_row(str(number), words, paper, found, verdict(holds))
        out.print(table)


def verdict(holds: list[bool]) -> str:
    """Yes, no, or in how many settings."""
    if all(holds):
        return "yes"
    return f"[bold]{sum(holds)} of {len(holds)}[/]" if any(holds) else "[bold]no[/]"


if __name__ == "__main__":
    sys.exit(main())
