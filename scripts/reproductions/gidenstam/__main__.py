"""Gidenstam et al. 2011, sections 5.2 and 6: how the two-layer protocol scales, and what recovery does.

Fig. 4 (throughput, latency and message size against the number of processes, for 5, 25 and all as
coordinators) and Fig. 5 (latency, loss and recovery against load, with 25 processes), loss under 20 %
lost datagrams, the bounds of Theorems 5.1 and 5.2 against what is observed, and what section 4.4 says
of the cluster management (``--only tickets``; simulated only).

The paper ran on up to 125 workstations. Here: a star of links of 10 Mbit/s with round trips of 1 to 5
ms, where 0.2 % of the messages are lost. Its figures are pictures without numbers, so that curves are
compared by what the text says of them. For Fig. 4 it tuned the length of rounds until 0.2 % of its
connections failed; here a round is as long as 99.8 % of the messages take at most, found by trial.
Throughput is what a process delivers in a second. An event is lost at a process that never delivers
it: it did not come, or not in time for the order. "No causality layer" counts in the same way, as the
paper does: what comes out of order is lost.

A figure is run with as many hops as its largest group needs, as in the paper: 5 up to 250 processes, 7
beyond (``--sizes 25 50 125 250 500 1000``). ``--engine virtual`` runs the same on up to 25 emulated
hosts, in virtual time, and then says how far the simulator is from it.

Claims are judged by 95 % confidence intervals over ten seeds, of 20 rounds each; ``--rounds 50`` is
more exact and takes longer. Throughput is for the expected number of events, since what varies most
from seed to seed is how many are drawn.

Fig. 5 c is run by itself, as long as it takes for some hundred events at every load, with two rules of
forwarding and two kinds of failures (0.2 % of the messages either way): of single messages, or of all
messages of a host in a round. Coverage is run without any failure, against the analysis of gossip as
balls and bins.
"""

import math
import os
from argparse import ArgumentParser, Namespace
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median

from scripts.reproductions import main, plot, run, show_claims, show_table, verdict
from scripts.reproductions.gidenstam import claims, points, tickets
from scripts.reproductions.gidenstam.points import (
    COVERAGE,
    FIG4,
    FIG5,
    FIG5C,
    HEAVY,
    Found,
    Measured,
    Point,
    Tuned,
)
from scripts.reproductions.intervals import draw, shown
from testbed.commands.terminal import progress_bar


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    add("--engine", choices=("simulate", "virtual"), default="simulate")
    add("--sizes", type=int, nargs="+", help="numbers of processes in Fig. 4")
    add("--rounds", type=int, help="rounds in which events are multicast (20)")
    add("--seeds", type=int, help="of each point, at least 2 (10; emulated: 2)")
    add("--only", choices=(*points.PARTS, "tickets"), help="one part of the paper")


def reproduce(options: Namespace) -> None:
    """Tune the rounds, run all points, show every curve, judge the claims and draw the plots."""
    if options.only in (None, "tickets"):
        tickets.reproduce(options)
    if options.only == "tickets":
        return
    emulated = options.engine == "virtual"
    options.sizes = options.sizes or [
        size for size in points.SIZES if not emulated or size <= HOSTS
    ]
    options.rounds = options.rounds or 20
    options.seeds = options.seeds or (2 if emulated else 10)
    tuned = tune(options)
    found = measure(options, tuned, options.engine)
    simulated = measure(options, tuned, "simulate") if emulated else None
    print(f"{options.rounds} rounds of sending, {options.seeds} seeds a point")
    for part, key, label in SHOWN:
        show(part, key, label, found)
    show_rounds(tuned)
    if options.only in (None, "bounds"):
        if not emulated:  # buffers can be searched in the simulator only
            show_buffers(options.seeds)
        show_targets(found)
    show_claims(("", "claim", "paper"), claims.CLAIMS, found)
    if simulated is not None:
        show_engines(found, simulated)
    directory = options.runs / ("gidenstam-emulated" if emulated else "gidenstam")
    print(f"figures: {draw_all(found, directory)}")


def chosen_parts(options: Namespace) -> list[str]:
    """The parts of the paper to reproduce."""
    return [*points.PARTS.values()] if options.only is None else [points.PARTS[options.only]]


def tune(options: Namespace) -> Tuned:
    """The length of a round for every point of Fig. 4."""
    wanted = [
        (label, nodes)
        for label, count in points.COORDINATORS.items()
        for nodes in dict.fromkeys(options.sizes)
        if count <= nodes and FIG4 in chosen_parts(options)
    ]
    one = partial(points.tuned_round, hops=points.hops_for(max(options.sizes)))
    tuned = {}
    with progress_bar("gidenstam") as progress, ProcessPoolExecutor(os.cpu_count()) as pool:
        for where, length in zip(wanted, pool.map(one, wanted), strict=True):
            tuned[where] = length
            progress("rounds tuned", len(tuned), len(wanted))
    return tuned


def measure(options: Namespace, tuned: Tuned, engine: str) -> Found:
    """Run what has not been run, and take the means over seeds."""
    planned = {
        point: [
            replace(points.experiment(point, seed, options.rounds, tuned), engine=engine)
            for seed in range(1, options.seeds + 1)
        ]
        for point in points.all_points(tuned)
        if point.part in chosen_parts(options)
    }
    rows = run(planned, options, points.weight, absent=0)
    return {
        point: points.measured([*zip(runs, rows[point], strict=True)])
        for point, runs in planned.items()
    }


SHOWN = (
    (FIG4, "throughput", "(a) throughput, events/s"),
    (FIG4, "latency_ms", "(b) latency, ms"),
    (FIG4, "latency", "    latency, rounds"),
    (FIG4, "message", "(c) message size, bytes"),
    (FIG4, "lost", "    lost, %"),
    (FIG4, "failed", "    failed messages, %"),
    (FIG4, "load", "    busiest process : mean"),
    (FIG5, "latency", "(a) latency, rounds"),
    (FIG5, "lost", "(b) lost, %"),
    (FIG5, "attempts", "    recoveries a round"),
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
HOSTS = 25  # emulated at most
AXES = {FIG4: "processes", FIG5: "p", FIG5C: "p", HEAVY: "p", COVERAGE: "processes"}


def show(part: str, key: str, label: str, found: Found) -> None:
    """Show one panel as a table."""
    curves = dict.fromkeys(point.curve for point in found if point.part == part)
    places = sorted({point.x for point in found if point.part == part})
    rows = [
        [name, *(cell(found.get(Point(part, name, x)), key) for x in places)] for name in curves
    ]
    if rows:
        show_table([f"{part} {label} \\ {AXES[part]}", *(f"{x:g}" for x in places)], rows)


def cell(measured: Measured | None, key: str) -> str:
    """A mean with its interval, or how many there are of all, or nothing if there is none."""
    values = [v for v in getattr(measured, key, ()) if not math.isnan(v)]
    if key == "tried":
        return f"{sum(values):,.0f}"
    return shown(values) if len(values) > 1 else ""


def show_rounds(tuned: Tuned) -> None:
    """Show how long a round is in Fig. 4."""
    sizes = sorted({nodes for _, nodes in tuned})
    rows = [
        [label, *(f"{tuned[label, n]:.1f}" if (label, n) in tuned else "" for n in sizes)]
        for label in dict.fromkeys(label for label, _ in tuned)
    ]
    if rows:
        show_table(["Fig. 4 length of a round, ms \\ processes", *map(str, sizes)], rows)


def show_buffers(seeds: int) -> None:
    """Show the bound of Theorem 5.1 and what is observed."""
    cases = [(5, 0.5, 2), (5, 1.0, 2), (5, 2.0, 2), (10, 1.0, 4)]
    todo = [
        (n, *case, share) for case in cases for share in (1, 0.75, 0.5) for n in range(1, seeds + 1)
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(points.absent, *zip(*todo, strict=True)))
    rows = []
    for number, (nodes, per_round, hops) in enumerate(cases):
        its = found[3 * seeds * number : 3 * seeds * (number + 1)]
        full, *less = (its[seeds * i : seeds * (i + 1)] for i in range(3))
        expected = points.expected_events(per_round, hops)
        bound = f"{claims.buffer_bound(expected):.4f}"
        holds = verdict(claims.buffers_suffice(expected, full))
        cells = map(shown, (full, *less))
        rows.append([f"{nodes}", f"{per_round:g}", f"{expected:g}", bound, *cells, holds])
    heads = ("n", "np", "npT", "bound (e/4)^npT", "2npT events", "1.5npT", "npT", "holds")
    print(
        "Theorem 5.1: how often an event is absent from recovery buffers of these sizes after T rounds"
    )
    show_table(heads, rows, words=0)


def show_targets(found: Found) -> None:
    """Show the bound of Theorem 5.2 and what is observed."""
    nodes, rows = 25, []
    for k in points.TARGETS:
        its = found.get(Point(points.FAILED, points.R4, k))
        if its is None:
            return
        cells = (f"{k / 2 / nodes:.2f}", f"> {claims.recovery_bound(k):.0f}")
        observed = (cell(its, "success"), cell(its, "tried"))
        rows.append([str(k), *cells, *observed, verdict(claims.recoveries_succeed(k, its.success))])
    print("Theorem 5.2: processes that have failed, 20 % loss, p = 0.5: recoveries that succeed, %")
    show_table(("k", "p_f = k/2n", "bound", "observed", "attempts", "holds"), rows, words=0)


def show_engines(emulated: Found, simulated: Found) -> None:
    """Show how far the simulator is from the emulation, in the same runs."""
    rows = []
    for key, label in COMPARED.items():
        pairs = [
            (fmean(getattr(emulated[point], key)), fmean(getattr(simulated[point], key)))
            for point in emulated
        ]
        apart = [abs(ours / theirs - 1) for ours, theirs in pairs if theirs]
        rows.append([label, f"{100 * median(apart):.2f}", f"{100 * max(apart):.2f}"])
    print(f"the simulator against the emulation, {len(emulated)} points: difference, %")
    show_table(("", "median", "max"), rows)


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


def draw_all(found: Found, directory: Path) -> Path:
    """Plot the figures whose points were run."""
    for part in dict.fromkeys(point.part for point in found if point.part in PANELS):
        labels = dict.fromkeys(point.curve for point in found if point.part == part)
        name = part.lower().replace(". ", "").replace(" % ", "-")
        with plot(directory, name, 0.34, 1, 3) as panels:
            for axes, (key, title) in zip(panels, PANELS[part], strict=True):
                for index, label in enumerate(labels):
                    places, values = points.curve(found, part, label, key)
                    there = [i for i, each in enumerate(values) if not any(map(math.isnan, each))]
                    chosen = [places[i] for i in there], [values[i] for i in there]
                    draw(axes, index, label, *chosen)
                axes.set(ylim=(0, None), xlabel=AXES[part], ylabel=title)
    return directory


if __name__ == "__main__":
    main("gidenstam", __doc__, add_options, reproduce)
