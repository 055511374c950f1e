"""The look of all plots: sizes of a paper's columns, colours and marks that survive a grey print.

Runs differ by colour (Okabe and Ito's), line style and mark at once, so that no reader and no
printer depends on one of them alone. The same plot comes out as the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.4  # width of a plot for one column of a paper, in inches
PAGE = 7.0  # width of a plot across both columns
GREY, PALE = "#595959", "#D0D0D0"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
MARKS = "osD^vPX"

RC: Any = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.4,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
    "hatch.linewidth": 0.4,
    "svg.hashsalt": "testbed",
    "savefig.dpi": 300,
}


@dataclass(frozen=True)
class Look:
    """How one run is drawn wherever it appears."""

    colour: str
    dash: Any
    mark: str


def look(index: int) -> Look:
    """The look of the run of this number."""
    return Look(
        COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)], MARKS[index % len(MARKS)]
    )


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save in this look, whatever the user's own settings are."""
    from matplotlib import rc_context, rcdefaults

    with rc_context():
        rcdefaults()
        with rc_context(RC):
            yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02)
    return figure


def render(figure: Figure, suffix: str) -> bytes:
    """The figure as the bytes of an "svg" or "png" file, the same each time."""
    buffer = io.BytesIO()
    unchanging: dict[str, Any] = {"Date": None} if suffix == "svg" else {"Software": None}
    figure.savefig(buffer, format=suffix, metadata=unchanging)
    return buffer.getvalue()


def draw_curve(
    axes: Axes,
    index: int,
    label: str,
    x: Sequence[Any],
    y: Sequence[float],
    spread: Sequence[float] | None = None,
) -> None:
    """The curve of this number among those of a panel; ``spread`` is half the length of error bars."""
    its = look(index)
    how = {"label": label, "color": its.colour, "linestyle": its.dash, "marker": its.mark}
    axes.errorbar(x, y, yerr=spread, capsize=0 if spread is None else 2, **how)


def save(figure: Figure, directory: Path, name: str) -> None:
    """Write the figure as SVG and PNG, with a legend for its first panel."""
    legend(figure, figure.axes[0])
    for suffix in ("svg", "png"):
        (directory / f"{name}.{suffix}").write_bytes(render(figure, suffix))


def legend(figure: Figure, axes: Axes) -> None:
    """Name what is drawn, above the plot, if there is more than one thing to tell apart."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        columns = len(names) if len(names) < 5 else 3
        figure.legend(handles, names, loc="outside upper center", ncols=columns)


def time_unit(most: float) -> tuple[float, str]:
    """The unit for times up to this number of nanoseconds: its size and its name."""
    return next(
        (u, n) for u, n in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")) if most >= 2 * u or u < 1e4
    )
