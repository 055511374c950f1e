"""Baldoni, Friedman & van Renesse 1996: the daisy's control information, messages and delays.

The paper has no measurements, but says what they must be: in a group of m a message carries a vector of
m entries, whatever the number of processes; it takes one broadcast in its sender's group, one in every
group of servers on its way, and one in every group with recipients; messages that cross groups take
longer. All of this is measured, and compared with protocols without groups (Timestamp, which
broadcasts, and RST and KS, which send to any set of processes), with the alternatives that section 2.3
names, with groups of other sizes, and with the optimisations of section 3.4. Groups by domain are
compared with groups by number on a transit–stub network.

Assumptions: channels have exponential delays of 5 ms on average; all processes send, 100 messages a
second together, each to three others; Timestamp sends as many to everybody. With L levels groups have
about n^(1/L) members. The alternatives meet more load as well, with 16 processes. Under KS every
process sends at least 20 messages, so that its logs fill. "Control" includes the list of destinations.
"Datagrams" are all that is sent until the last delivery, divided by the number of messages: copies of
messages, reports and heartbeats. Relaying is ``safe``, but for "section 3.1" and early relaying.

Claims are judged by 95 % confidence intervals over seeds.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean

from scripts import reproductions as shared
from scripts.reproductions.baldoni import domains
from scripts.reproductions.baldoni.claims import CLAIMS, curve
from scripts.reproductions.baldoni.points import (
    ALTERNATIVES,
    CURVES,
    DAISIES,
    GROUP_SIZES,
    LOADED,
    LOADS,
    PLAIN,
    SAFE,
    SIZES,
    VARIANTS,
    VARIED,
    Found,
    Point,
    experiment,
    measured,
    parts,
    work,
)
from scripts.reproductions.intervals import draw, shown

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


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    names = [*PARTS, DOMAINS]
    add("--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names))
    add("--sizes", type=int, nargs="+", default=[*SIZES], metavar="N", help="numbers of processes")
    add("--messages", type=int, default=200, help="messages of a run, at least")
    add("--seeds", type=int, default=10, help="of each point, at least 2")


def reproduce(options: Namespace) -> None:
    """Run all points, show what was measured, judge the claims and draw the plots."""
    if DOMAINS in options.only:
        domains.reproduce(options.seeds)
    if others := [part for part in PARTS if part in options.only]:
        _reproduce(others, options)


def _reproduce(names: list[str], options: Namespace) -> None:
    chosen = parts(sorted(set(options.sizes)))
    runs = {
        point: [experiment(point, seed, options) for seed in range(1, options.seeds + 1)]
        for part in names
        for point in chosen[part]
    }
    rows = shared.run(runs, options, work)
    found = {p: measured(p, list(zip(runs[p], rows[p], strict=True))) for p in runs}
    print(f"{options.messages} messages a run, {options.seeds} seeds a point")
    for part in names:
        PARTS[part](found, options.runs / "baldoni")
    shared.show_claims(("section", "the paper"), CLAIMS, found)
    print(f"figures: {options.runs / 'baldoni'}")


def show_curves(found: Found, directory: Path) -> None:
    """Show the means of all curves, and plot control information and delay."""
    rows = []
    for figure, label in CURVED.items():
        for name in DAISIES.values() if figure in ("within", "across") else CURVES:
            values = (getattr(measured, figure) for measured in curve(found, name).values())
            rows.append([label, name, *(f"{fmean(value):,.1f}" for value in values)])
            label = ""
    places = [*curve(found, CURVES[0])]
    shared.show_table(("", "processes", *map(str, places)), rows, words=2)
    curves = {name: [Point(name, nodes) for nodes in places] for name in CURVES}
    _draw(found, directory, "control-and-delay", "processes", places, curves)


def show_optimisations(found: Found, directory: Path) -> None:
    """Show what the optimisations of section 3.4 gain and cost."""
    _show_list({name: Point(name, VARIED) for name in VARIANTS}, found)


def show_group_sizes(found: Found, directory: Path) -> None:
    """Show what larger and smaller groups gain and cost."""
    _show_list({f"groups of {m}": Point(SAFE, VARIED, group_size=m) for m in GROUP_SIZES}, found)


def _show_list(listed: dict[str, Point], found: Found) -> None:
    rows = [
        [name, *(shown(getattr(found[point], figure)) for figure in LISTED)]
        for name, point in listed.items()
    ]
    shared.show_table((f"{VARIED} processes, 2 levels", *LISTED.values()), rows)


def show_alternatives(found: Found, directory: Path) -> None:
    """Show what the alternatives of section 2.3 cost under load, and plot it."""
    rows = []
    for figure in ("copies", "control", "datagrams", "delay"):
        for name, label in COMPARED.items():
            values = (getattr(found[Point(name, LOADED, load)], figure) for load in LOADS)
            rows.append([{**LISTED, **CURVED}[figure], label, *map(shown, values)])
    heads = (f"{LOADED} processes", "", *(f"{load}/s" for load in LOADS))
    shared.show_table(heads, rows, words=2)
    loads = {
        label: [Point(name, LOADED, load) for load in LOADS] for name, label in COMPARED.items()
    }
    _draw(found, directory, "alternatives", "messages a second", LOADS, loads)


def _draw(
    found: Found,
    directory: Path,
    name: str,
    label: str,
    places: Iterable[int],
    curves: dict[str, list[Point]],
) -> None:
    ticks = [*places]
    with shared.plot(directory, name, 0.45, 1, 2) as panels:
        shown = (("control", "control (bytes a copy)"), ("delay", "delay (ms)"))
        for axes, (figure, title) in zip(panels, shown, strict=True):
            for index, (legend, each) in enumerate(curves.items()):
                values = [getattr(found[point], figure) for point in each]
                draw(axes, index, legend, ticks, values)
            axes.set(xlabel=label, ylabel=title, xscale="log", yscale="log")
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.minorticks_off()


PARTS: dict[str, Callable[[Found, Path], None]] = {
    "curves": show_curves,
    "optimisations": show_optimisations,
    "group-sizes": show_group_sizes,
    "alternatives": show_alternatives,
}


if __name__ == "__main__":
    shared.main("baldoni", __doc__, add_options, reproduce)
