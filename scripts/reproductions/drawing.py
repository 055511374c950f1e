"""The plots of chapters, in the look of all plots."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scripts.reproductions.chapter import Plot
from testbed.report.style import PAGE, legend, new_figure, render, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def drawn(
    name: str,
    caption: str,
    height: float,
    rows: int,
    columns: int,
    draw: Callable[[list[Axes]], None],
) -> Plot:
    """A plot of panels, with one legend; the height is relative to the width of a page."""
    with styled():
        figure = new_figure(PAGE, PAGE * height)
        draw([*figure.subplots(rows, columns, squeeze=False).flat])
        legend(figure, figure.axes[0])
        return Plot(name, caption, render(figure, "svg"), render(figure, "png"))
