"""The rules by which the claims of Friedman & Manor on their figures are judged.

The paper prints no numbers with its figures, so what is judged is what its text says of them: which
protocol has less of something, and what grows. Protocols are compared on the same topologies with the
same sends, seed by seed.
"""

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import NamedTuple

from scripts.reproductions.claims import Answer, CannotJudgeError, Finding, judges
from scripts.reproductions.friedman.crashes import Case, Survived
from scripts.reproductions.friedman.points import (
    DATA,
    KEYS,
    NETWORK,
    OVERLAY,
    Found,
    Point,
    Scale,
    Seeds,
)
from scripts.reproductions.intervals import PAIRED, Interval, minus, ratio, shown
from testbed.report.trends import brief

RATIO = "paired by seed: the 95 % interval of the difference of both ratios is on one side of 0"


class Results(NamedTuple):
    """All that was measured, with Timestamp's multicast along a tree or as n - 1 copies."""

    found: Found
    scale: Scale
    crashes: Mapping[Case, Survived]
    timestamp: str = NETWORK

    def __call__(self, key: str, protocol: str, n: int, data: int) -> Seeds:
        """A figure of a point of the paper's figures; ``timestamp`` is the one looked at."""
        its = self.timestamp if protocol == "timestamp" else protocol
        return self.at(Point(its, n, data, self.scale.duration_ms), key)

    def at(self, point: Point, key: str) -> Seeds:
        """A figure of any point, as claims call it."""
        return self.found[point][KEYS.get(key, key)]


def each_size(results: Results, of: Callable[[int], tuple[str, Answer]]) -> Finding:
    """Judge every size."""
    found = {n: of(n) for n in results.scale.sizes}
    words = "; ".join(words for words, _ in found.values())
    return Finding.of_each(words, {f"n = {n}": answer for n, (_, answer) in found.items()})


@judges("{key} with {data} bytes of data: Overlay < Timestamp, at every size", PAIRED)
def less(results: Results, key: str, data: int) -> Finding:
    """Overlay has less of it than Timestamp."""
    return _compared(results, key, data, 1)


@judges("{key} with {data} bytes of data: Overlay > Timestamp, at every size", PAIRED)
def more(results: Results, key: str, data: int) -> Finding:
    """Overlay has more of it than Timestamp."""
    return _compared(results, key, data, -1)


def _compared(results: Results, key: str, data: int, sign: int) -> Finding:
    def of(n: int) -> tuple[str, Answer]:
        one, other = (results(key, protocol, n, data) for protocol in (OVERLAY, "timestamp"))
        ahead = [sign * lead for lead in minus(other, one)]
        return f"{brief(fmean(one))} : {brief(fmean(other))}", Interval.of(ahead).above(0)

    return each_size(results, of)


@judges(
    "{key}, Overlay's divided by Timestamp's: with {large} bytes of data > with {small}, at every size",
    RATIO,
)
def gains(results: Results, key: str, small: int, large: int) -> Finding:
    """Compared with Timestamp's, Overlay's figure grows with the data."""

    def of(n: int) -> tuple[str, Answer]:
        ratios = [
            ratio(results(key, OVERLAY, n, data), results(key, "timestamp", n, data))
            for data in (small, large)
        ]
        words = " → ".join(f"{fmean(each):.2g}" for each in ratios)
        return words, Interval.of(minus(ratios[1], ratios[0])).above(0)

    return each_size(results, of)


@judges(
    "mean delay with 1000 bytes of data divided by that without: Overlay > Timestamp, at every size",
    RATIO,
)
def more_influenced(results: Results) -> Finding:
    """Overlay's delay depends more on the size of the data than Timestamp's."""

    def of(n: int) -> tuple[str, Answer]:
        ratios = [
            ratio(results("delay_ms_mean", p, n, 1000), results("delay_ms_mean", p, n, 0))
            for p in (OVERLAY, "timestamp")
        ]
        words = " : ".join(f"× {fmean(each):.3g}" for each in ratios)
        return words, Interval.of(minus(*ratios)).above(0)

    return each_size(results, of)


@judges(
    "longest link queue divided by mean load, in packets without data: Overlay > Timestamp, at every "
    "size",
    RATIO,
)
def peaks(results: Results) -> Finding:
    """Overlay's load is a high maximum and a low mean."""

    def of(n: int) -> tuple[str, Answer]:
        ratios = [
            ratio(results("link_queue_max", p, n, 0), results("network_load_mean", p, n, 0))
            for p in (OVERLAY, "timestamp")
        ]
        return " : ".join(f"{fmean(r):.2g}" for r in ratios), Interval.of(minus(*ratios)).above(0)

    return each_size(results, of)


@judges("Overlay's longest delivery queue, at every size and with all data", "it is 0 in every run")
def always_empty(results: Results) -> Finding:
    """Overlay holds nothing back."""
    most = max(
        max(results("delivery_queue_max", OVERLAY, n, data))
        for n in results.scale.sizes
        for data in DATA
    )
    return Finding(f"at most {most:g}", most == 0)


@judges(
    "Timestamp's {key} with {data} bytes of data, in the largest system and in the smallest",
    "the 95 % interval over seeds of the difference is on one side of 0",
)
def grows(results: Results, key: str, data: int) -> Finding:
    """Timestamp's delivery queues become longer as the number of nodes increases."""
    return _grows(results, lambda n: results(key, "timestamp", n, data))


@judges(
    "Timestamp's {key} where the links can carry the load, in the largest system and in the smallest",
    "the 95 % interval over seeds of the difference is on one side of 0",
)
def grows_when_carried(results: Results, key: str) -> Finding:
    """The same under a load that does not saturate the links."""
    points = {point.nodes: point for point in results.scale.carried()}
    return _grows(results, lambda n: results.at(points[n], key))


def _grows(results: Results, of: Callable[[int], Seeds]) -> Finding:
    small, large = results.scale.sizes[0], results.scale.sizes[-1]
    if small == large:
        raise CannotJudgeError("growth takes two sizes")
    first, last = of(small), of(large)
    if not any((*first, *last)):
        raise CannotJudgeError("there is nothing to compare: all queues are empty")
    words = f"n = {small}: {shown(first)}; n = {large}: {shown(last)}"
    return Finding(words, Interval.of(minus(last, first)).above(0))


@judges(
    "Timestamp's {key} with 1000 bytes of data divided by that without, at every size",
    "paired by seed: the 95 % interval is within 0.5 to 2, for the messages grow more than that",
)
def little_effect(results: Results, key: str) -> Finding:
    """The size of the data hardly changes the delivery queues."""

    def of(n: int) -> tuple[str, Answer]:
        ratios = ratio(results(key, "timestamp", n, 1000), results(key, "timestamp", n, 0))
        return f"× {shown(ratios)}", Interval.of(ratios).within(0.5, 2)

    return each_size(results, of)
