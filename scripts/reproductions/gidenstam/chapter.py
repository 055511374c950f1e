"""Gidenstam et al. 2011, sections 4 to 6: how the two-layer protocol scales, and what recovery does."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isnan
from statistics import fmean, median
from typing import TYPE_CHECKING

from scripts.reproductions.chapter import Cell, Cells, Chapter, Plot, Reproduction, Table
from scripts.reproductions.claims import judged
from scripts.reproductions.command import text
from scripts.reproductions.drawing import drawn
from scripts.reproductions.gidenstam import analysis, claims, points, tickets
from scripts.reproductions.gidenstam.points import (
    BUFFER_SHARES,
    CLUSTERS,
    COVERAGE,
    FIG4,
    FIG5,
    FIG5C,
    HEAVY,
    Buffers,
    Found,
    Measured,
    Point,
    Seeds,
    Tuned,
)
from scripts.reproductions.intervals import cell, draw, ratio, shown, value
from scripts.reproductions.running import compute, run, total
from testbed.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TICKETS = "tickets"  # a part of its own
HOSTS = 25  # emulated at most


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    names = [*points.PARTS, TICKETS]
    add("--engine", choices=("simulate", "virtual"), default="simulate")
    add("--sizes", type=int, nargs="+", help="numbers of processes in Fig. 4")
    add("--rounds", type=int, default=20, help="rounds in which events are multicast (20)")
    add("--seeds", type=int, default=10, help="of each point, at least 2 (10)")
    add("--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names))


def reproduce(options: Namespace) -> Chapter:
    """Tune the rounds, run all points, and judge the claims by what was measured."""
    emulated = options.engine == "virtual"
    tuned = tune(options)
    found = measure(options, tuned, options.engine)
    tables = [made for part, key, label in SHOWN if (made := table(part, key, label, found))]
    plots = [plot(part, found) for part in PANELS if any(p.part == part for p in found)]
    if tuned:
        tables.append(rounds_table(tuned))
    if emulated:  # beside the simulator
        simulated = measure(options, tuned, "simulate")
        tables.append(engines_table(found, simulated))
        named = {**_named(found, "emulated"), **_named(simulated, "simulated")}
        plots = [plot(part, named) for part in PANELS if any(p.part == part for p in found)]
    buffers = {} if emulated or "bounds" not in options.only else search_buffers(options)
    churn = {} if emulated or TICKETS not in options.only else tickets.measured(options)
    if buffers:
        tables.append(buffers_table(buffers))
    if "coverage" in options.only:
        tables.append(analysis_table())
    if churn:
        tables += tickets.tables(churn)
        plots.append(tickets.plot(churn))
    return Chapter(
        name="gidenstam",
        title="Gidenstam, Koldehofe, Papatriantafilou & Tsigas 2011: causal cluster consistency",
        paper="A. Gidenstam, B. Koldehofe, M. Papatriantafilou, P. Tsigas: *Scalable Group "
        "Communication Supporting Configurable Levels of Consistency*, 2011",
        text=text(__file__),
        scale=f"{options.engine}, Fig. 4 with {', '.join(map(str, sizes(options)))} processes, "
        f"{options.rounds} rounds of sending",
        seeds=f"1 to {options.seeds} at every point",
        command=f"scripts/reproduce gidenstam --only {' '.join(options.only)} "
        f"--sizes {' '.join(map(str, sizes(options)))} --rounds {options.rounds} "
        f"--seeds {options.seeds} --engine {options.engine}",
        tables=tables,
        plots=plots,
        claims=judged(claims.CLAIMS, {**found, **buffers, **churn}),
        values=values(found),
    )


def values(found: Found) -> dict[str, str]:
    """The numbers that the text names."""

    def change(label: str) -> str:
        first, last = claims.ends(found, FIG4, label, "throughput")
        return f"× {shown(ratio(last, first))}"

    def busiest(one: str, other: str, key: str) -> str:
        ones, others = (points.curve(found, FIG5, scheme, key)[1][-1] for scheme in (one, other))
        return shown(ratio(ones, others))

    def load() -> str:
        ends = [points.curve(found, FIG4, label, "load")[1][-1] for label in points.COORDINATORS]
        means = [fmean(values) for values in ends]
        return f"{min(means):.2f} to {max(means):.2f}"

    spread = analysis.in_step(points.REACHED, claims.FANOUT, points.HOPS)
    told: dict[str, Callable[[], str]] = {
        "few_throughput": lambda: change(points.FEW),
        "some_throughput": lambda: change(points.SOME),
        "load": load,
        "layer_loss": lambda: busiest(points.NONE, points.PLAIN, "lost"),
        "r4_latency": lambda: busiest(points.R4, points.NONE, "latency"),
        "in_step_250": lambda: f"{100 * spread.coverage:.2f} % with {spread.copies:,.0f} copies",
    }
    return {name: value(number) for name, number in told.items()}


def analysis_table() -> Table:
    """What the analysis of gossip says."""
    rows = []
    for nodes in points.COVERED:
        kinds = (analysis.in_step, analysis.out_of_step)
        both = [kind(nodes, claims.FANOUT, points.HOPS) for kind in kinds]
        cells = [(f"{100 * (1 - its.coverage):.2f}", f"{its.copies:,.0f}") for its in both]
        rows.append([str(nodes), *cells[0], *cells[1]])
    heads = ("", "in step: not reached, %", "copies", "out of step: not reached, %", "copies")
    title = "Coverage by the analysis of balls and bins, and by a logistic curve out of step"
    return Table("analysis", title, heads, rows)


def sizes(options: Namespace) -> list[int]:
    """The numbers of processes in Fig. 4; there are not as many emulated hosts."""
    most = HOSTS if options.engine == "virtual" else points.SIZES[-1]
    return sorted(set(options.sizes or (size for size in points.SIZES if size <= most)))


def tune(options: Namespace) -> Tuned:
    """The length of a round for every point of Fig. 4."""
    hops = points.hops_for(max(sizes(options)))
    pieces = {
        f"{label}, {nodes} processes, {hops} hops": (label, nodes, hops)
        for label, nodes in wanted(options)
    }
    found = compute("gidenstam-rounds", points.tuned_round, pieces, options, ["cluster"])
    return {(label, nodes): found[name] for name, (label, nodes, _) in pieces.items()}


def wanted(options: Namespace) -> list[tuple[str, int]]:
    """The curves and places of Fig. 4."""
    return [
        (label, nodes)
        for label, count in points.COORDINATORS.items()
        for nodes in sizes(options)
        if count <= nodes and "fig4" in options.only
    ]


def plan(options: Namespace, tuned: Tuned, engine: str) -> dict[Point, list[Experiment]]:
    """The runs of every point of the parts that were chosen."""
    parts = [part for name, part in points.PARTS.items() if name in options.only]
    return {
        point: [
            replace(points.experiment(point, seed, options.rounds, tuned), engine=engine)
            for seed in range(1, options.seeds + 1)
        ]
        for point in points.all_points(tuned)
        if point.part in parts
    }


def measure(options: Namespace, tuned: Tuned, engine: str) -> Found:
    """Run what has not been run."""
    planned = plan(options, tuned, engine)
    rows = run(planned, options, points.weight, absent=0) if planned else {}
    return {
        point: points.measured([*zip(runs, rows[point], strict=True)])
        for point, runs in planned.items()
    }


def work(options: Namespace) -> float:
    """The weight of all rounds of a sweep; how long they are changes nothing."""
    planned = plan(options, dict.fromkeys(wanted(options), 40.0), options.engine)
    return float(options.rounds * total(planned, points.weight))


SHOWN = (
    (FIG4, "throughput", "(a) throughput, events/s"),
    (FIG4, "latency_ms", "(b) latency, ms"),
    (FIG4, "latency", "latency, rounds"),
    (FIG4, "message", "(c) message size, bytes"),
    (FIG4, "lost", "lost, %"),
    (FIG4, "failed", "failed messages, %"),
    (FIG4, "load", "busiest process : mean"),
    (FIG5, "latency", "(a) latency, rounds"),
    (FIG5, "lost", "(b) lost, %"),
    (FIG5, "attempts", "recoveries a round"),
    (FIG5C, "tried", "recoveries, all seeds"),
    (FIG5C, "success", "of these successful, %"),
    (FIG5C, "lost", "lost, %"),
    (HEAVY, "lost", "lost, %"),
    (HEAVY, "latency", "latency, rounds"),
    (HEAVY, "success", "successful recoveries, %"),
    (COVERAGE, "missed", "not reached, %"),
    (COVERAGE, "copies", "copies of an event"),
)
COMPARED = {
    "throughput": "throughput",
    "latency": "latency",
    "message": "message size",
}
AXES = {FIG4: "processes", FIG5: "p", FIG5C: "p", HEAVY: "p", COVERAGE: "processes"}
SLUGS = {FIG4: "fig-4", FIG5: "fig-5", FIG5C: "fig-5-c", HEAVY: "loss", COVERAGE: "coverage"}


def table(part: str, key: str, label: str, found: Found) -> Table | None:
    """One panel, if it was run."""
    curves = dict.fromkeys(point.curve for point in found if point.part == part)
    places = sorted({point.x for point in found if point.part == part})
    rows: list[Cells] = [
        [name, *(_cell(found.get(Point(part, name, x)), key) for x in places)] for name in curves
    ]
    heads = (f"by {AXES[part]}", *(f"{x:g}" for x in places))
    return (
        Table(f"{SLUGS[part]}-{key.replace('_', '-')}", f"{part} {label}", heads, rows)
        if rows
        else None
    )


def _cell(measured: Measured | None, key: str) -> Cell:
    """A mean with its interval, or how many there are of all, or nothing if there is none."""
    values: Seeds = getattr(measured, key, ())
    return Cell(f"{sum(values):,.0f}", values) if key == "tried" and values else cell(values)


def rounds_table(tuned: Tuned) -> Table:
    """How long a round is in Fig. 4."""
    places = sorted({nodes for _, nodes in tuned})
    rows = [
        [label, *(f"{tuned[label, n]:.1f}" if (label, n) in tuned else "" for n in places)]
        for label in dict.fromkeys(label for label, _ in tuned)
    ]
    heads = ("by processes", *map(str, places))
    return Table("fig-4-round", "Fig. 4 length of a round, ms", heads, rows)


def search_buffers(options: Namespace) -> dict[Buffers, Seeds]:
    """Theorem 5.1: how often an event is absent from buffers of some sizes."""
    kinds = [cluster._replace(share=share) for cluster in CLUSTERS for share in BUFFER_SHARES]
    seeds = range(1, options.seeds + 1)
    pieces = {f"{kind}, seed {seed}": (seed, kind) for kind in kinds for seed in seeds}
    found = compute("gidenstam-buffers", points.absent, pieces, options, ["cluster"])
    return {kind: tuple(found[f"{kind}, seed {seed}"] for seed in seeds) for kind in kinds}


def buffers_table(found: dict[Buffers, Seeds]) -> Table:
    """The bound of Theorem 5.1 and what is observed."""
    rows: list[Cells] = [
        [
            *(f"{its.nodes}", f"{its.per_round:g}", f"{its.expected:g}"),
            f"{claims.buffer_bound(its.expected):.4f}",
            *(cell(found[its._replace(share=share)]) for share in BUFFER_SHARES),
        ]
        for its in CLUSTERS
    ]
    heads = ("n", "np", "npT", "bound (e/4)^npT", "2npT events", "1.5npT", "npT")
    title = "Theorem 5.1: how often an event is absent from recovery buffers after T rounds"
    return Table("buffers", title, heads, rows, words=0)


def engines_table(emulated: Found, simulated: Found) -> Table:
    """How far the simulator is from the emulation, in the same runs."""
    rows = []
    for key, label in COMPARED.items():
        pairs = [
            (fmean(getattr(emulated[point], key)), fmean(getattr(simulated[point], key)))
            for point in emulated
        ]
        apart = [abs(ours / theirs - 1) for ours, theirs in pairs if theirs]
        rows.append([label, f"{100 * median(apart):.2f}", f"{100 * max(apart):.2f}"])
    title = f"The simulator against the emulation, {len(emulated)} points: difference, %"
    return Table("engines", title, ("", "median", "max"), rows)


ORDER = (
    ("latency", "latency (rounds)"),
    ("lost", "lost events (%)"),
    ("success", "successful recoveries (%)"),
)
SCALE = (
    ("throughput", "throughput (events/s)"),
    ("latency_ms", "latency (ms)"),
    ("message", "message size (bytes)"),
)
RECOVERY = (
    ("tried", "recoveries in a run"),
    ("success", "successful (%)"),
    ("lost", "lost events (%)"),
)
PANELS = {FIG4: SCALE, FIG5: ORDER, FIG5C: RECOVERY, HEAVY: ORDER}
CAPTIONS = {
    FIG4: "Fig. 4: throughput, latency and message size by the number of processes.",
    FIG5: "Fig. 5: latency, lost events and recoveries by the load p, with 25 processes.",
    FIG5C: "Fig. 5 c by itself: recoveries for two rules of forwarding and two kinds of failures.",
    HEAVY: "The same as Fig. 5 if 20 % of the datagrams are lost.",
}


def _named(found: Found, engine: str) -> Found:
    return {p._replace(curve=f"{p.curve}, {engine}"): its for p, its in found.items()}


def plot(part: str, found: Found) -> Plot:
    """A figure of the paper, in its axes."""
    return drawn(SLUGS[part], CAPTIONS[part], 0.34, 1, 3, partial(_draw, part=part, found=found))


def _draw(panels: "list[Axes]", part: str, found: Found) -> None:
    labels = dict.fromkeys(point.curve for point in found if point.part == part)
    for axes, (key, title) in zip(panels, PANELS[part], strict=True):
        for index, label in enumerate(labels):
            places, values = points.curve(found, part, label, key)
            there = [i for i, each in enumerate(values) if not any(map(isnan, each))]
            draw(axes, index, label, [places[i] for i in there], [values[i] for i in there])
        axes.set(ylim=(0, None), xlabel=AXES[part], ylabel=title)


GIDENSTAM = Reproduction(
    "gidenstam",
    __doc__,
    add_options,
    reproduce,
    work,
    quick=("--sizes", "25", "40", "60", "--seeds", "3", "--rounds", "10"),
    paper=("--seeds", "10", "--rounds", "50"),
)
