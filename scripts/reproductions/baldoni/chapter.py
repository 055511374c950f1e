"""Baldoni, Friedman & van Renesse 1996: the daisy's control information, messages and delays."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from scripts.reproductions.baldoni import domains
from scripts.reproductions.baldoni.claims import CLAIMS, curve, largest
from scripts.reproductions.baldoni.points import (
    ALTERNATIVES,
    CURVES,
    DAISIES,
    EARLY,
    GROUP_SIZES,
    LOADED,
    LOADS,
    PLAIN,
    SAFE,
    SIZES,
    VARIANTS,
    VARIED,
    WAIT,
    Found,
    Point,
    experiment,
    measured,
    parts,
    work,
)
from scripts.reproductions.chapter import Cells, Chapter, Plot, Reproduction, Table
from scripts.reproductions.claims import judged
from scripts.reproductions.command import text
from scripts.reproductions.drawing import drawn
from scripts.reproductions.intervals import cell, draw, ratio, value
from scripts.reproductions.running import run, total
from testbed.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOMAINS = "domains"  # a part of its own
COMPARED = {PLAIN: f"{PLAIN}, daisy", SAFE: f"{SAFE}, daisy", **ALTERNATIVES}
CURVED = {
    "control": "control, bytes a copy",
    "broadcasts": "broadcasts a message",
    "datagrams": "datagrams a message",
    "delay": "delay, ms",
    "within": "delay within groups, ms",
    "across": "delay across groups, ms",
}
LISTED = {
    "copies": "copies a message",
    "control": "control, bytes a copy",
    "datagrams": "datagrams a message",
    "within": "within groups, ms",
    "across": "across, ms",
}
PANELS = (("control", "control (bytes a copy)"), ("delay", "delay (ms)"))


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    names = [*PARTS, DOMAINS]
    add("--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names))
    add("--sizes", type=int, nargs="+", default=[*SIZES], metavar="N", help="numbers of processes")
    add("--messages", type=int, default=200, help="messages of a run, at least")
    add("--seeds", type=int, default=10, help="of each point, at least 2")


def reproduce(options: Namespace) -> Chapter:
    """Run all points, and judge the claims by what was measured."""
    planned = plan(options)
    rows = run(planned, options, work) if planned else {}
    found: Found = {
        point: measured(point, [*zip(planned[point], rows[point], strict=True)])
        for point in planned
    }
    tables: list[Table] = []
    plots: list[Plot] = []
    for part, show in PARTS.items():
        if part in options.only:
            show(found, tables, plots)
    grouped = domains.measured(options) if DOMAINS in options.only else {}
    if grouped:
        tables.append(domains.table(grouped))
    return Chapter(
        name="baldoni",
        title="Baldoni, Friedman & van Renesse 1996: the hierarchical daisy",
        paper="R. Baldoni, R. Friedman, R. van Renesse: *The Hierarchical Daisy Architecture for "
        "Causal Delivery*, 1996",
        text=text(__file__),
        scale=f"{', '.join(map(str, sizes(options)))} processes, {options.messages} messages a run",
        seeds=f"1 to {options.seeds} at every point",
        command=f"scripts/reproduce baldoni --only {' '.join(options.only)} "
        f"--sizes {' '.join(map(str, sizes(options)))} --messages {options.messages} "
        f"--seeds {options.seeds}",
        tables=tables,
        plots=plots,
        claims=judged(CLAIMS, {**found, **grouped}),
        values=values(found),
    )


def values(found: Found) -> dict[str, str]:
    """The numbers that the text names."""

    def mean(point: Point, figure: str) -> float:
        return fmean(getattr(found[point], figure))

    def across_times() -> str:
        ends = [found[Point(name, largest(found))] for name in DAISIES.values()]
        times = [fmean(ratio(end.across, end.within)) for end in ends]
        return f"{min(times):.0f} to {max(times):.0f}"

    def best(figure: str) -> str:
        sized = {m: Point(SAFE, VARIED, group_size=m) for m in GROUP_SIZES}
        return str(min(sized, key=lambda m: mean(sized[m], figure)))

    plain, safe, early = (Point(name, VARIED) for name in (PLAIN, SAFE, EARLY))

    def end(figure: str) -> float:
        return mean(Point(DAISIES[2], largest(found)), figure)

    waits, daisy = (Point(name, LOADED, LOADS[-1]) for name in (WAIT, SAFE))
    told: dict[str, Callable[[], str]] = {
        "largest": lambda: str(largest(found)),
        "across_times": across_times,
        "plain_across": lambda: f"{mean(plain, 'across'):.1f}",
        "safe_across": lambda: f"{mean(safe, 'across'):.1f}",
        "datagrams": lambda: f"{end('datagrams'):.0f}",
        "copies": lambda: f"{end('copies'):.0f}",
        "early_gain": lambda: f"{1 - mean(early, 'across') / mean(plain, 'across'):.1%}",
        "wait_times": lambda: f"{mean(waits, 'delay') / mean(daisy, 'delay'):.1f}",
        "copies_128": lambda: f"{mean(Point(SAFE, 128), 'copies'):.1f}",
        "least_control": lambda: best("control"),
        "least_copies": lambda: best("copies"),
        "least_delay": lambda: best("delay"),
    }
    return {name: value(number) for name, number in told.items()}


def sizes(options: Namespace) -> list[int]:
    """The numbers of processes on the curves."""
    return sorted(set(options.sizes))


def plan(options: Namespace) -> dict[Point, list[Experiment]]:
    """The runs of every point of the parts that were chosen."""
    chosen = parts(sizes(options))
    return {
        point: [experiment(point, seed, options) for seed in range(1, options.seeds + 1)]
        for part in PARTS
        if part in options.only
        for point in chosen[part]
    }


def show_curves(found: Found, tables: list[Table], plots: list[Plot]) -> None:
    """The means of all curves, and plots of control information and delay."""
    rows: list[Cells] = []
    places = [*curve(found, CURVES[0])]
    for figure, label in CURVED.items():
        for name in DAISIES.values() if figure in ("within", "across") else CURVES:
            its = curve(found, name)
            cells = (cell(getattr(its[n], figure)) if n in its else "" for n in places)
            rows.append([label, name, *cells])
            label = ""
    heads = ("", "processes", *map(str, places))
    tables.append(Table("curves", "Larger and larger systems", heads, rows, words=2))
    curves = {name: [Point(name, nodes) for nodes in places] for name in CURVES}
    caption = "What a copy carries, and how long a message takes, by the number of processes."
    draw_them = partial(_draw, found=found, label="processes", places=places, curves=curves)
    plots.append(drawn("control-and-delay", caption, 0.45, 1, 2, draw_them))


def show_optimisations(found: Found, tables: list[Table], plots: list[Plot]) -> None:
    """What the optimisations of section 3.4 gain and cost."""
    listed = {name: Point(name, VARIED) for name in VARIANTS}
    tables.append(_list("optimisations", "The optimisations of section 3.4", listed, found))


def show_group_sizes(found: Found, tables: list[Table], plots: list[Plot]) -> None:
    """What larger and smaller groups gain and cost."""
    listed = {f"groups of {m}": Point(SAFE, VARIED, group_size=m) for m in GROUP_SIZES}
    tables.append(_list("group-sizes", "Groups of other sizes", listed, found))


def _list(name: str, title: str, listed: dict[str, Point], found: Found) -> Table:
    rows: list[Cells] = [
        [label, *(cell(getattr(found[point], figure)) for figure in LISTED)]
        for label, point in listed.items()
    ]
    return Table(name, title, (f"{VARIED} processes, 2 levels", *LISTED.values()), rows)


def show_alternatives(found: Found, tables: list[Table], plots: list[Plot]) -> None:
    """What the alternatives of section 2.3 cost under load, with a plot."""
    rows: list[Cells] = []
    for figure in ("copies", "control", "datagrams", "delay"):
        head = {**LISTED, **CURVED}[figure]
        for name, label in COMPARED.items():
            values = (getattr(found[Point(name, LOADED, load)], figure) for load in LOADS)
            rows.append([head, label, *map(cell, values)])
            head = ""
    heads = (f"{LOADED} processes", "", *(f"{load}/s" for load in LOADS))
    title = "The alternatives of section 2.3, by messages a second"
    tables.append(Table("alternatives", title, heads, rows, words=2))
    loads = {
        label: [Point(name, LOADED, load) for load in LOADS] for name, label in COMPARED.items()
    }
    caption = "The alternatives of section 2.3 against the daisy, by messages a second."
    draw_them = partial(_draw, found=found, label="messages a second", places=LOADS, curves=loads)
    plots.append(drawn("alternatives-under-load", caption, 0.45, 1, 2, draw_them))


def _draw(
    panels: "list[Axes]",
    found: Found,
    label: str,
    places: Iterable[int],
    curves: dict[str, list[Point]],
) -> None:
    ticks = [*places]
    for axes, (figure, title) in zip(panels, PANELS, strict=True):
        for index, (legend, each) in enumerate(curves.items()):
            its = {x: found[p] for x, p in zip(ticks, each, strict=True) if p in found}
            draw(axes, index, legend, [*its], [getattr(m, figure) for m in its.values()])
        axes.set(xlabel=label, ylabel=title, xscale="log", yscale="log")
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()


PARTS: dict[str, Callable[[Found, list[Table], list[Plot]], Any]] = {
    "curves": show_curves,
    "optimisations": show_optimisations,
    "group-sizes": show_group_sizes,
    "alternatives": show_alternatives,
}
BALDONI = Reproduction(
    "baldoni",
    __doc__,
    add_options,
    reproduce,
    lambda options: total(plan(options), work),
    quick=("--sizes", "8", "16", "32", "64", "--seeds", "4"),
    paper=("--seeds", "10"),
)
