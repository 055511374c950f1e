"""A space-time diagram of an execution as printed, and of the same with the repair.

Every process has a line, time goes to the right, and long pauses are shortened. Messages of the
application have a colour each, others are grey. A filled mark is a multicast, an open one a delivery; a
bar says who owns a ticket.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isinf
from statistics import median
from typing import TYPE_CHECKING, Any

from scripts.reproductions.errata.cases import Case
from scripts.reproductions.errata.execution import Execution, execution
from testbed.report.style import COLOURS, GREY, PAGE, PALE, new_figure, render, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RED = "#B00020"
LINE, HEAD = 0.42, 0.55  # inches for a process, and for the rest of a panel
TALLEST = 2.6  # inches for all processes
NEAR_NS = 30_000  # within which two moments are one
SHORTEST, LONGEST = 0.8, 3.0  # steps between two moments; one is the usual
TOLD = {"crash": "crashes", "join": "joins", "leave": "leaves"}
APART = 0.045  # of the width, between two numbers on the axis


class Axis:
    """Time, with pauses that are neither too short nor too long."""

    def __init__(self, times: Iterable[float]) -> None:
        moments = sorted(t for t in set(times) if not isinf(t))
        self.moments = [t for i, t in enumerate(moments) if not i or t - moments[i - 1] > NEAR_NS]
        gaps = [b - a for a, b in pairwise(self.moments)]
        usual = median(gaps) if gaps else 1
        self.at = [0.0]
        for gap in gaps:
            self.at.append(self.at[-1] + min(max(gap / usual, SHORTEST), LONGEST))
        self.end = self.at[-1] + 1

    def __call__(self, t: float) -> float:
        """Where a time is; what is after all moments is at the end."""
        if not self.moments or t > self.moments[-1] + NEAR_NS:
            return self.end
        return self.at[max(0, bisect_right(self.moments, t) - 1)]

    def ticks(self) -> list[tuple[float, str]]:
        """Some moments that are far enough apart, in milliseconds."""
        chosen: list[tuple[float, str]] = []
        for t, x in zip(self.moments, self.at, strict=True):
            if not chosen or x - chosen[-1][0] >= APART * self.end:
                chosen.append((x, f"{t / 1e6:.1f}"))
        return chosen


def diagram(case: Case) -> bytes:
    """The diagram of an erratum, as SVG."""
    found = [execution(case, experiment) for experiment in case.experiments()]
    with styled():
        figure = new_figure(PAGE, 2 * (HEAD + min(TALLEST, LINE * found[0].processes)))
        panels = figure.subplots(2, 1)
        for axes, title, one in zip(panels, ("as printed", "repaired"), found, strict=True):
            axes.set_title(title, loc="left", fontweight="bold")
            draw(axes, one)
        panels[-1].set_xlabel("time (ms; long pauses are shortened)")
        return render(figure, "svg")


def draw(axes: Axes, found: Execution) -> None:
    """One execution."""
    messages = [multicast.name for multicast in found.multicasts]
    shown = [
        (s, wrong) for s, wrong in found.steps if s.kind in TOLD or (s.delivers and not found.owned)
    ]
    times: list[float] = [multicast.t for multicast in found.multicasts]
    times += [step.t for step, _ in shown]
    times += [t for copy, got in found.copies for t in (copy.at, got)]
    times += [owned.since for owned in found.owned]
    axis = Axis(times)
    for process in range(found.processes):
        axes.plot([-0.5, axis.end], [-process, -process], color=PALE, zorder=1)
    _tickets(axes, axis, found)
    for copy, got in found.copies:
        colour = colour_of(copy.name, messages)
        start, end = (axis(copy.at), -copy.sender), (axis(got), -copy.receiver)
        if isinf(got):
            _lost(axes, start, end[1], colour)
        else:
            _arrow(axes, start, end, colour, "" if copy.name in messages else _kind(copy.what))
    for step, wrong in shown:
        if step.kind in TOLD:
            _tell(axes, axis(step.t), step.node, TOLD[step.kind])
        others = [name for name in step.delivers if not name.startswith(f"m({step.node},")]
        if others and not found.owned:
            colour = RED if wrong else colour_of(others[-1], messages)
            _deliver(axes, axis(step.t), step.node, ", ".join(others), colour)
    for t, process, name in found.multicasts:
        axes.plot(axis(t), -process, marker="o", color=colour_of(name, messages), zorder=4)
        _name(axes, axis(t), -process + 0.14, name, "bottom")
    for process in range(found.processes):
        lacks = [name for node, name in found.never if node == process]
        if lacks:
            text = "never " + ", ".join(lacks)
            axes.text(axis.end, -process + 0.1, text, color=RED, ha="right", fontweight="bold")
    axes.set_yticks([-p for p in range(found.processes)], map(str, range(found.processes)))
    axes.set_xticks(*zip(*axis.ticks(), strict=True))
    axes.set(ylabel="process", ylim=(0.6 - found.processes, 0.6), xlim=(-0.6, axis.end + 0.1))
    axes.grid(visible=False)


def colour_of(name: str, messages: Sequence[str]) -> str:
    """The colour of a message; grey for what is not the application's."""
    return COLOURS[messages.index(name) % len(COLOURS)] if name in messages else GREY


def _kind(what: str) -> str:
    """What a protocol's message is called in its paper."""
    name = what.removeprefix("Printed")
    return name.lower() if name == "Resynch" else name.upper()


Point = tuple[float, float]


def _arrow(axes: Axes, start: Point, end: Point, colour: str, text: str) -> None:
    how = {"color": colour, "linewidth": 0.6 if text else 1.0, "shrinkA": 1, "shrinkB": 2}
    style = {"arrowstyle": "-|>", "mutation_scale": 6, **how}
    axes.annotate("", end, start, arrowprops=style, zorder=2)
    if text:
        where = (start[0] + 0.6 * (end[0] - start[0]), start[1] + 0.6 * (end[1] - start[1]))
        axes.text(*where, text, fontsize=5.5, color=GREY, ha="center", va="center", zorder=3)


def _lost(axes: Axes, start: Point, level: float, colour: str) -> None:
    """A copy that its receiver never got ends in a cross on the way."""
    end = (start[0] + 0.8, start[1] + 0.5 * (level - start[1]))
    axes.plot(*zip(start, end, strict=True), color=colour, linewidth=1.0, zorder=2)
    axes.plot(*end, marker="x", markersize=6, markeredgewidth=1.4, color=colour, zorder=4)


def _tell(axes: Axes, x: float, process: int, what: str) -> None:
    """What happens to a process from outside."""
    axes.plot(x, -process, marker="X" if what == "crashes" else "|", markersize=7, color="black")
    _name(axes, x, -process + 0.14, what, "bottom")


def _deliver(axes: Axes, x: float, process: int, names: str, colour: str) -> None:
    """A delivery; a red cross is one too early."""
    mark, face = ("X", RED) if colour == RED else ("o", "white")
    axes.plot(x, -process, marker=mark, color=colour, markersize=5, zorder=4, markerfacecolor=face)
    _name(axes, x, -process - 0.14, names, "top", RED if colour == RED else "black")


def _name(axes: Axes, x: float, y: float, text: str, side: str, colour: str = "black") -> None:
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4}
    how: dict[str, Any] = {"ha": "center", "va": side, "fontsize": 6.5, "zorder": 5}
    axes.text(x, y, text, color=colour, bbox=box, **how)


def _tickets(axes: Axes, axis: Axis, found: Execution) -> None:
    """Who owns the ticket: a bar, and a red one where two do."""
    for owned in found.owned:
        _bar(axes, axis, owned.process, owned.since, owned.until, COLOURS[2])
    for one in found.owned:
        for other in found.owned:
            begin, end = max(one.since, other.since), min(one.until, other.until)
            if one.process != other.process and begin < end:
                _bar(axes, axis, one.process, begin, end, RED)


def _bar(axes: Axes, axis: Axis, process: int, begin: int, end: int, colour: str) -> None:
    ends = [axis(begin), axis(end)]
    axes.plot(
        ends, [-process, -process], color=colour, linewidth=4, solid_capstyle="butt", zorder=1.5
    )
