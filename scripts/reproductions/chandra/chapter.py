"""Chandra, Gambhire & Kshemkalyani 2004, Figs. 3-8: what KS and KS' attach, as per cent of RST's n²."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from scripts.reproductions.chandra.claims import CLAIMS
from scripts.reproductions.chandra.points import (
    ALL,
    CLOCKS,
    COPY,
    EVENTS,
    FIGURES,
    TURNS,
    WEIGHTINGS,
    Found,
    Point,
    experiment,
    measured,
    points,
    work,
)
from scripts.reproductions.chandra.readings import (
    KS,
    KS_PRIME,
    LITERAL,
    PRINTED,
    READINGS,
    SHORTER,
    Curve,
    Curves,
    Reading,
)
from scripts.reproductions.chapter import Cell, Cells, Chapter, Plot, Reproduction, Table
from scripts.reproductions.claims import Judged, judged, tally
from scripts.reproductions.command import text
from scripts.reproductions.drawing import drawn
from scripts.reproductions.intervals import cell, draw
from scripts.reproductions.running import measure, total
from testbed.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = tuple[str, Callable[[Found, int, int], Curve]]  # what a curve is called, and how it is had


def _row(label: str, reading: Reading, whose: str = KS, log: bool = False) -> Row:
    return label, lambda found, figure, setting: Curves(found, reading)(figure, setting, whose, log)


def _rows(clock: str) -> list[Row]:
    printed, literal, shorter = (Reading(clock, c) for c in (PRINTED, LITERAL, SHORTER))
    return [
        _row(f"KS, 3 + |Dests|, {clock}", printed),
        _row(f"KS', flags, {clock}", printed, KS_PRIME),
        _row(f"KS', entries, {clock}", literal, KS_PRIME),
        _row(f"KS, 2 + |Dests|, {clock}", shorter),
        _row(f"KS', entries + dests, {clock}", shorter, KS_PRIME),
        _row(f"log of KS, 3 + |Dests|, {clock}", printed, log=True),
        _row(f"log of KS', flags, {clock}", printed, KS_PRIME, log=True),
    ]


AS_PRINTED = _rows(TURNS)
BESIDE = [
    row for clock in (TURNS, EVENTS) for row in _rows(clock) if row[0].startswith(("KS,", "log of KS,"))
]  # fmt: skip


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    every = [*FIGURES]
    add = parser.add_argument
    add("--figures", type=int, nargs="+", default=every, choices=every, metavar="N")
    add("--by-events", type=int, nargs="*", default=[3, 4, 5], choices=every, metavar="N",
        help="figures that are run without turns too, event by event; default: 3 4 5")  # fmt: skip
    add("--sizes", type=int, nargs="+", metavar="N", help="numbers of processes in Fig. 3")
    add("--few", action="store_true", help="a few points of each curve")
    add("--messages", type=int, default=30_000, help="of a run, a sixth of them as warm-up")
    add("--seeds", type=int, default=10, help="runs of each point, at least 2; the paper has 10")
    add("--seeds-beside", type=int, default=3,
        help="runs of each point by events or by rounds, which the paper does not have")  # fmt: skip


def plan(options: Namespace) -> dict[Point, list[Experiment]]:
    """The runs of every point."""
    return {
        point: [experiment(point, s, options.messages) for s in range(1, seeds(point, options) + 1)]
        for point in points(options.figures, options.by_events, options.few, options.sizes)
    }


def seeds(point: Point, options: Namespace) -> int:
    """How many runs a point has."""
    return int(options.seeds if point.clock == TURNS else options.seeds_beside)


def reproduce(options: Namespace) -> Chapter:
    """Run all points, and judge the claims by what was measured, as the paper and in other ways."""
    rows = measure(plan(options), options, work)
    found = {point: [*map(measured, each)] for point, each in rows.items()}
    numbers = sorted(set(options.figures))
    verdicts = {name: judged(CLAIMS, Curves(found, how)) for name, how in READINGS.items()}
    few = " --few" if options.few else ""
    few += f" --sizes {' '.join(map(str, sorted(set(options.sizes))))}" if options.sizes else ""
    return Chapter(
        name="chandra",
        title="Chandra, Gambhire & Kshemkalyani 2004: KS and KS' against RST",
        paper="P. Chandra, P. Gambhire, A. D. Kshemkalyani: *Performance of the Optimal Causal "
        "Multicast Algorithm: A Statistical Analysis*, 2004",
        text=text(__file__),
        scale=f"{options.messages:,} multicasts a run, of which the first sixth is not counted",
        seeds=f"1 to {options.seeds} at every point, 1 to {options.seeds_beside} without turns and by "
        "rounds",
        command=f"scripts/reproduce chandra --figures {' '.join(map(str, numbers))} --by-events "
        f"{' '.join(map(str, sorted(options.by_events)))}{few} --messages {options.messages} "
        f"--seeds {options.seeds} --seeds-beside {options.seeds_beside}",
        tables=[
            beside(found),
            weightings(found),
            readings(verdicts),
            *(table(number, setting, found) for number in numbers for setting in ALL),
        ],
        plots=[
            *(plot(n, "", AS_PRINTED[:5], found) for n in numbers),
            *(plot(n, "-events", BESIDE, found) for n in numbers if n in options.by_events),
        ],
        claims=verdicts["turns, Fig. 2"],
        values=values(found),
    )


def table(number: int, setting: int, found: Found) -> Table:
    """A setting of a figure of the paper, with turns and by events."""
    figure, rows = FIGURES[number], []
    places = sorted(Curves(found)(number, setting))
    for clock in CLOCKS:
        for label, curve in _rows(clock):
            try:
                its = curve(found, number, setting)
            except LookupError:
                continue
            rows.append([label, *(cell(its[x]) if x in its else "" for x in places)])
    title = f"Fig. {number}, S{setting}{figure.settings[setting - 1].words(figure.label)}: % of n²"
    heads = (figure.label, *(f"{x:g}" for x in places))
    return Table(f"fig-{number}-s{setting}", title, heads, rows)


def beside(found: Found) -> Table:
    """What the three clocks give where the text of the paper has a number."""
    wanted = [
        *((f"Fig. 3, n = {n}, S{s}", 3, s, float(n), said) for n, said in ((15, "about 25"), (100, "4"))
          for s in ALL),
        *((f"Fig. 4, S{s}, n = {n}, highest", 4, s, None, said)
          for s, n, said in ((1, 15, "< 35"), (2, 15, "< 35"), (4, 15, "< 35"), (3, 40, "< 11"))),
        *((f"Fig. 5, S{s}, n = 20, highest", 5, s, None, "< 20") for s in (2, 3, 4)),
    ]  # fmt: skip
    rows: list[Cells] = [
        [label, *(_at(found, Reading(clock, counting), figure, setting, x)
                  for counting in (PRINTED, SHORTER) for clock in CLOCKS), said]
        for label, figure, setting, x, said in wanted
    ]  # fmt: skip
    heads = ("KS, % of n²", *(f"{c.ks}, {clock}" for c in (PRINTED, SHORTER) for clock in CLOCKS))
    return Table(
        "clocks", "What the clock is, and how integers are counted", (*heads, "paper"), rows
    )


def _at(found: Found, reading: Reading, figure: int, setting: int, x: float | None) -> Cell:
    """KS at x, or where it is highest; nothing where that was not run."""
    try:
        curve = Curves(found, reading)(figure, setting)
        return cell(max(curve.values(), key=fmean) if x is None else curve[x])
    except LookupError:
        return Cell("")


def weightings(found: Found) -> Table:
    """Means over copies, over messages, and over processes."""
    places = sorted({point.x for point in found if point.figure == 3})
    rows: list[Cells] = [
        [f"S{s}, {clock}, by {weighting}",
         *(_at(found, Reading(clock, PRINTED, weighting), 3, s, x) for x in places)]
        for clock in (TURNS, EVENTS)
        for s in ALL
        for weighting in WEIGHTINGS
    ]  # fmt: skip
    heads = ("KS, 3 + |Dests|, % of n²; n:", *(f"{n:g}" for n in places))
    return Table("weightings", "What the mean is of", heads, rows)


def readings(verdicts: dict[str, tuple[Judged, ...]]) -> Table:
    """The verdicts on all claims by every reading, and how many of each there are."""
    columns = [*verdicts.values()]
    rows: list[Cells] = [
        [claims[0].where, claims[0].says, *(claim.verdict for claim in claims)]
        for claims in zip(*columns, strict=True)
    ]
    counts = [tally(column) for column in columns]
    rows += [["", f"in all: {word}", *(str(count[word]) for count in counts)] for word in counts[0]]
    caption = "Means are over processes unless said otherwise."
    heads = ("where", "the paper", *verdicts)
    return Table("readings", "Verdicts by other readings of the paper", heads, rows, 2, caption)


def plot(number: int, suffix: str, rows: list[Row], found: Found) -> Plot:
    """A figure of the paper, a panel for each setting."""
    figure = FIGURES[number]
    how = "with turns, and without (events)" if suffix else "with turns"
    caption = f"Fig. {number}: overhead in per cent of n² over {figure.label}, {how}."
    draw_panels = partial(_draw, number=number, rows=rows, found=found)
    return drawn(f"fig-{number}{suffix}", caption, 0.7, 2, 2, draw_panels)


def _draw(panels: "list[Axes]", number: int, rows: list[Row], found: Found) -> None:
    figure = FIGURES[number]
    for setting, axes in enumerate(panels, 1):
        for index, (label, of) in enumerate(rows):
            curve = dict(sorted(of(found, number, setting).items()))
            draw(axes, index, label, [*curve], [*curve.values()])
        axes.set(ylim=(0, None), xlabel=figure.label, ylabel="% of n²")
        fixed = figure.settings[setting - 1].words(figure.label)
        axes.set_title(f"S{setting}{fixed}", loc="left")


def values(found: Found) -> dict[str, str]:
    """The numbers that the text names."""
    named = {}
    for n in (15, 100):
        for clock in (TURNS, EVENTS):
            ways = {
                "printed": Reading(clock),
                "shorter": Reading(clock, SHORTER),
                "copies": Reading(clock, weighting=COPY),
            }
            for name, way in ways.items():
                cells = [_at(found, way, 3, s, float(n)) for s in ALL]
                named[f"{clock}_{n}_{name}"] = _listed(cells)
    for clock in (TURNS, EVENTS):
        shortest, longest = (_ends(found, Reading(clock), 7, s) for s in (1, 2))
        named[f"dests_12_{clock}"], named[f"dests_40_{clock}"] = shortest, longest
        named[f"mtt_{clock}"] = _listed([_at(found, Reading(clock), 4, s, None) for s in (1, 2)])
        named[f"mtt_40_{clock}"] = _at(found, Reading(clock), 4, 3, None).text or "not run"
    return named


def _ends(found: Found, reading: Reading, figure: int, setting: int) -> str:
    """From the first point of a curve to the last, in words."""
    try:
        curve = Curves(found, reading)(figure, setting)
    except LookupError:
        return "not run"
    return f"from {fmean(curve[min(curve)]):.3g} to {fmean(curve[max(curve)]):.3g} %"


def _listed(cells: list[Cell]) -> str:
    return " / ".join(f"{fmean(each.values):.3g}" if each.values else "not run" for each in cells)


CHANDRA = Reproduction(
    "chandra",
    __doc__,
    add_options,
    reproduce,
    lambda options: total(plan(options), work),
    quick=("--few", "--messages", "3000", "--seeds", "3"),
    paper=("--messages", "30000", "--seeds", "10"),
)
