"""How all reproductions decide: by 95 % confidence intervals over seeds.

Two points are compared seed by seed, with the same sends. A claim holds if the whole interval of what
it compares is on its side, and does not if it is on the other; else the measurements decide nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isnan, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from scripts.reproductions.chapter import Cell
from scripts.reproductions.claims import Answer, CannotJudgeError, Finding, all_of, judges
from testbed.report.style import draw_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Key = TypeVar("Key")
PAIRED = "paired by seed: the 95 % interval of the difference is on one side of 0"


def half_width(values: Sequence[float]) -> float:
    """Half the length of the interval of a mean, which takes two values at least."""
    from scipy.stats import t

    if len(values) < 2:
        raise CannotJudgeError("one value has no interval; more seeds would give one")

    return float(t.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))


class Interval(NamedTuple):
    """A 95 % confidence interval of a mean."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Interval":
        """By Student's t, since seeds are few."""
        half = half_width(values)
        return cls(fmean(values) - half, fmean(values) + half)

    def within(self, low: float, high: float) -> bool | None:
        """Whether it is between two numbers, or beyond them; None if it is neither."""
        if low <= self.low and self.high <= high:
            return True
        return False if self.high < low or high < self.low else None

    def above(self, number: float) -> bool | None:
        """Whether all of it is above a number; None if only a part is."""
        return True if self.low > number else None if self.high > number else False


def minus(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    """The difference, seed by seed."""
    return tuple(a - b for a, b in zip(one, other, strict=True))


def ratio(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    """The ratio, seed by seed."""
    if not all(other):
        raise CannotJudgeError("there is nothing to compare: a figure is 0")
    return tuple(a / b for a, b in zip(one, other, strict=True))


def shown(values: Sequence[float]) -> str:
    """A mean and the half-width of its interval; 0 if that is less than any digit could show."""
    mean, half = fmean(values), half_width(values)
    return f"{_digits(mean, 3)} ± {_digits(half if half > abs(mean) / 10_000 else 0, 2)}"


def _digits(number: float, digits: int) -> str:
    """So many digits at least, and never a power of ten for a large number."""
    return f"{number:,.0f}" if abs(number) >= 10**digits else f"{number:.{digits}g}"


def cell(values: Sequence[float], form: str = "") -> Cell:
    """A mean with the half-width of its interval, if there is one; or in a form, without."""
    numbers = tuple(value for value in values if not isnan(value))
    if not numbers:
        return Cell("")
    if form:
        return Cell(f"{fmean(numbers):{form}}", numbers)
    return Cell(shown(numbers) if len(numbers) > 1 else _digits(numbers[0], 3), numbers)


def value(number: Callable[[], str]) -> str:
    """A number for the text; a dash, where that was not run."""
    try:
        return number()
    except (LookupError, CannotJudgeError):
        return "–"


def draw(
    axes: "Axes", index: int, label: str, places: Sequence[Any], values: Sequence[Sequence[float]]
) -> None:
    """Draw a curve through the means of what was measured at its places, with their intervals."""
    draw_curve(axes, index, label, places, [*map(fmean, values)], [*map(half_width, values)])


def less(found: Mapping[Key, Any], figure: str, one: Key, *others: Key) -> Answer:
    """Whether a figure of one point is less than those of others."""
    values = [getattr(found[point], figure) for point in (one, *others)]
    return all_of([Interval.of(minus(more, values[0])).above(0) for more in values[1:]])


@judges("{figure}: {one} < {others}", PAIRED)
def is_less(found: Mapping[Key, Any], figure: str, one: Key, *others: Key) -> Finding:
    """A figure of one point is less than those of others."""
    first, *rest = (shown(getattr(found[point], figure)) for point in (one, *others))
    return Finding(f"{first} against {', '.join(rest)}", less(found, figure, one, *others))
