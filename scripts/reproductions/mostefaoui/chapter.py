"""Mostefaoui & Raynal 1993, section 5: small stamps and resynchs against large ones and no waiting."""

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from scripts.reproductions.chapter import Cells, Chapter, Plot, Reproduction, Table
from scripts.reproductions.claims import judged
from scripts.reproductions.command import text
from scripts.reproductions.drawing import drawn
from scripts.reproductions.intervals import cell, draw
from scripts.reproductions.mostefaoui.claims import CLAIMS
from scripts.reproductions.mostefaoui.points import PANELS, Found, Where, experiment, measured
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
        tables=[table(panel, found) for panel in panels],
        plots=[plot(panel, found) for panel in panels],
        claims=judged(CLAIMS, found),
    )


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
    return Table(panel, its.title, (its.label, "", *its.values), rows, words=2)


def plot(panel: str, found: Found) -> Plot:
    """Control bytes and delay of a panel."""
    caption = f"M–R, one integer and BSS: {PANELS[panel].title}."
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
