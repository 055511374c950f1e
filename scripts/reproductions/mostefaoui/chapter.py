"""Mostefaoui & Raynal 1993, section 5: small stamps and resynchs against large ones and no waiting."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from scripts.reproductions.chapter import Cell, Cells, Chapter, Plot, Reproduction, Table
from scripts.reproductions.claims import judged
from scripts.reproductions.command import text
from scripts.reproductions.drawing import drawn
from scripts.reproductions.intervals import cell, draw, shown, value
from scripts.reproductions.mostefaoui.claims import CLAIMS, everywhere
from scripts.reproductions.mostefaoui.points import (
    BSS,
    LOCK_STEP,
    ONE,
    PANELS,
    PLAIN,
    PROTOCOLS,
    Found,
    Where,
    experiment,
    measured,
)
from scripts.reproductions.running import run, total
from testbed.experiment import Experiment
from testbed.sweep.points import cost

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = (
    ("stamp, bytes a copy", "stamp"),
    ("control, bytes a copy", "control"),
    ("resynchs a copy", "resynchs"),
    ("delay, ms", "delay"),
    ("of this added, ms", "added"),
    ("held messages", "held"),
    ("memory, bytes", "memory"),
    ("links crossed", "hops"),
)
DRAWN = (("control", "control (bytes a copy)"), ("delay", "delay (ms)"))


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    add("--panels", nargs="+", choices=PANELS, default=[*PANELS], metavar="NAME")
    add("--duration-ms", type=float, default=400.0, help="how long senders send")
    add("--seeds", type=int, default=10, help="of each point, at least 2")


def reproduce(options: Namespace) -> Chapter:
    """Run all points, and judge the claims by what was measured."""
    rows = run(plan(options), options, absent=0)
    found = {where: measured(each) for where, each in rows.items()}
    panels = [*dict.fromkeys(options.panels)]
    return Chapter(
        name="mostefaoui",
        title="Mostefaoui & Raynal 1993: overlapping groups",
        paper="A. Mostefaoui, M. Raynal: *Causal Multicasts in Overlapping Groups: Towards a Low "
        "Cost Approach*, 1993",
        text=text(__file__),
        scale=f"{options.duration_ms:g} ms of sending in every run",
        seeds=f"1 to {options.seeds} at every point",
        command=f"scripts/reproduce mostefaoui --panels {' '.join(panels)} "
        f"--duration-ms {options.duration_ms:g} --seeds {options.seeds}",
        tables=[overview(found), *(table(panel, found) for panel in panels)],
        plots=[plot(panel, found) for panel in panels],
        claims=judged(CLAIMS, found),
        values=values(found),
    )


OVERVIEW = (
    ("2 groups", "groups", "2"),
    ("6 groups", "groups", "6"),
    ("16 groups", "groups", "16"),
    ("groups of 12", "size", "12"),
    ("4 groups, no overlap", "overlap", "0"),
    ("4 groups, 5 of 6 members in earlier ones", "overlap", "5"),
    ("a message every 5 ms from each", "interval", "5"),
    ("a message every 50 ms from each", "interval", "50"),
    ("all send in lock-step", "synchrony", LOCK_STEP),
    ("all send in turn", "synchrony", "in turn"),
    ("one sends, 400 per second", "synchrony", "one alone"),
)


def overview(found: Found) -> Table:
    """Bytes and delays at some points of all panels."""
    rows: list[Cells] = []
    for label, panel, at in OVERVIEW:
        cells = []
        for protocol, key in product(PROTOCOLS, ("control", "delay")):
            its = found.get(Where(panel, at, protocol))
            cells.append(cell(getattr(its, key)) if its else Cell(""))
        if any(its.text for its in cells):
            rows.append([label, *cells])
    heads = [f"{p}: {key}" for p in PROTOCOLS for key in ("control, bytes", "delay, ms")]
    caption = "Control: bytes of stamps and whole resynchs for each copy of a message."
    return Table("overview", "Some points of all panels", ("", *heads), rows, caption=caption)


def values(found: Found) -> dict[str, str]:
    """The numbers that the text names."""

    def ratio() -> str:
        plain, timer = (found[Where("timer-one", ms, PLAIN)].resynchs_sent for ms in ("0", "10"))
        return shown([a / b for a, b in zip(plain, timer, strict=True)])

    def at(figure: str, panel: str, place: str, protocol: str = PLAIN) -> str:
        return shown(getattr(found[Where(panel, place, protocol)], figure))

    def longer(one: str, other: str) -> str:
        short, long = (found[Where("gap", place, PLAIN)].delay for place in (one, other))
        return shown([b - a for a, b in zip(short, long, strict=True)])

    def where(figure: str) -> str:
        return everywhere(figure, PLAIN, ONE)(found).measured

    told: dict[str, Callable[[], str]] = {
        "timer_factor": ratio,
        "one_resynchs": lambda: where("resynchs"),
        "one_later": lambda: where("delay"),
        "mr_network": lambda: at("hops", "multicast", "network"),
        "mr_sender": lambda: at("hops", "multicast", "sender"),
        "bss_network": lambda: at("hops", "multicast", "network", BSS),
        "bss_sender": lambda: at("hops", "multicast", "sender", BSS),
        "gap_longer": lambda: longer("0", "1"),
        "gap_longer_one": lambda: longer("0, one", "1, one"),
        "lock_step_added": lambda: at("added", "synchrony", LOCK_STEP),
    }
    return {name: value(number) for name, number in told.items()}


def plan(options: Namespace) -> dict[Where, list[Experiment]]:
    """The runs of every point of the panels that were chosen."""
    return {
        Where(panel, value, protocol): [
            experiment(panel, value, protocol, seed, options.duration_ms)
            for seed in range(1, options.seeds + 1)
        ]
        for panel in dict.fromkeys(options.panels)
        for value in PANELS[panel].values
        for protocol in PANELS[panel].protocols
    }


def table(panel: str, found: Found) -> Table:
    """A panel as a table."""
    its = PANELS[panel]
    rows: list[Cells] = [
        [
            "" if index else label,
            protocol,
            *(cell(getattr(found[Where(panel, value, protocol)], key)) for value in its.values),
        ]
        for label, key in SHOWN
        for index, protocol in enumerate(its.protocols)
    ]
    return Table(
        panel, f"{its.title[0].upper()}{its.title[1:]}", (its.label, "", *its.values), rows, words=2
    )


def plot(panel: str, found: Found) -> Plot:
    """Control bytes and delay of a panel."""
    title = PANELS[panel].title
    caption = f"{title[0].upper()}{title[1:]}: what a copy carries, and how long a message takes."
    return drawn(f"{panel}-plot", caption, 0.4, 1, 2, partial(_draw, panel=panel, found=found))


def _draw(panels: "list[Axes]", panel: str, found: Found) -> None:
    its = PANELS[panel]
    for axes, (key, label) in zip(panels, DRAWN, strict=True):
        for index, protocol in enumerate(its.protocols):
            values = [getattr(found[Where(panel, v, protocol)], key) for v in its.values]
            draw(axes, index, protocol, [*its.values], values)
        axes.set(ylim=(0, None), xlabel=its.label, ylabel=label)


MOSTEFAOUI = Reproduction(
    "mostefaoui",
    __doc__,
    add_options,
    reproduce,
    lambda options: total(plan(options), cost),
    quick=("--seeds", "3"),
    paper=("--seeds", "10", "--duration-ms", "2000"),
)
