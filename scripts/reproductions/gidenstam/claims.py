"""What Gidenstam et al. claim, and the judges: by 95 % confidence intervals over seeds."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from scripts.reproductions import Claim, Finding, curried
from scripts.reproductions.gidenstam import analysis
from scripts.reproductions.gidenstam.points import (
    AGES,
    ALL,
    COVERAGE,
    COVERED,
    FEW,
    FIG4,
    FIG5,
    FIG5C,
    HEAVY,
    HOPS,
    HOSTS,
    KEEP,
    NONE,
    ONCE,
    PACKETS,
    PLAIN,
    R1,
    R4,
    SOME,
    TRIED,
    Found,
    Point,
    Seeds,
    curve,
)
from scripts.reproductions.intervals import Interval, all_of, half_width, shown

FANOUT = 4


def buffer_bound(expected: float) -> float:
    """Theorem 5.1: how often an event may be absent from a buffer, where npT events are expected."""
    return math.pow(math.e / 4, expected)


def recovery_bound(targets: float) -> float:
    """Theorem 5.2: the least percentage of recoveries from k targets that succeed."""
    return 100 * (1 - math.pow(math.e / 4, targets / 2))


def buffers_suffice(expected: float, absent: Sequence[float]) -> bool | None:
    """Theorem 5.1: events are absent more rarely than the bound."""
    return Interval.of([buffer_bound(expected) - share for share in absent]).above(0)


def recoveries_succeed(targets: float, success: Sequence[float]) -> bool | None:
    """Theorem 5.2: a larger percentage of recoveries succeeds than the bound."""
    return Interval.of(known(success)).above(recovery_bound(targets))


def known(values: Sequence[float]) -> list[float]:
    """The seeds for which there is a number; two at least."""
    numbers = [value for value in values if not math.isnan(value)]
    if len(numbers) < 2:
        raise ValueError("too few numbers for an interval")
    return numbers


def ends(found: Found, part: str, label: str, key: str) -> tuple[Seeds, Seeds]:
    """A curve at its beginning, with 25 processes in Fig. 4, and at its end."""
    places, values = curve(found, part, label, key)
    first = places.index(25) if part == FIG4 else 0
    if first + 1 == len(places):
        raise ValueError(f"{part} has no more than one place on the curve of {label}")
    return values[first], values[-1]


def ratios(ones: Seeds, others: Seeds) -> list[float]:
    """One divided by the other, seed by seed."""
    return [one / other for one, other in zip(ones, others, strict=True)]


def misfit(places: list[float], values: Sequence[float], scale: Callable[[Any], Any]) -> float:
    """What a straight line through a curve over this scale leaves unexplained."""
    x, y = scale(np.array(places)), np.array(values)
    return float(
        ((np.polyval(np.polyfit(x, y, 1), x) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    )


@curried
def shape(found: Found, label: str, key: str, logarithmic: bool) -> Finding:
    """A logarithm fits the curve better than a line does, or the other way round."""
    places, values = curve(found, FIG4, label, key)
    if len(places) < 3:
        return Finding("two points, through which all curves go", None)
    log, line = (
        [misfit(places, seed, scale) for seed in zip(*values, strict=True)]
        for scale in (np.log, lambda x: x)
    )
    better = [b - a if logarithmic else a - b for a, b in zip(log, line, strict=True)]
    words = (
        f"{fmean(values[0]):,.3g} → {fmean(values[-1]):,.3g}; R² "
        f"{1 - fmean(log):.3f} over ln n, {1 - fmean(line):.3f} over n (± {half_width(better):.3f})"
    )
    return Finding(words, Interval.of(better).above(0))


@curried
def change(
    found: Found, label: str, key: str, within: tuple[float, float], part: str = FIG4
) -> Finding:
    """The factor between the end and the beginning of a curve is within limits."""
    first, last = ends(found, part, label, key)
    factors = ratios(last, first)
    words = f"{fmean(first):,.4g} → {fmean(last):,.4g} (× {shown(factors)})"
    return Finding(words, Interval.of(factors).within(*within))


@curried
def nearly_all(found: Found, scheme: str) -> Finding:
    """At most one in two hundred deliveries is missing, at any load."""
    losses = curve(found, FIG5, scheme, "lost")[1]
    most = max(losses, key=fmean)
    answers = [Interval.of(lost).within(0, 0.5) for lost in losses]
    return Finding(f"at most {shown(most)} % lost", all_of(answers))


@curried
def rising(found: Found, part: str, label: str) -> Finding:
    """There are more attempts under the highest load than under the lowest."""
    low, high = ends(found, part, label, "attempts")
    more = [b - a for a, b in zip(low, high, strict=True)]
    return Finding(f"{shown(low)} → {shown(high)} a round", Interval.of(more).above(0))


@curried
def success(found: Found, label: str, low: bool, part: str = FIG5C) -> Finding:
    """Recoveries fail more often under the lowest load, or hardly ever under the highest."""
    tried = [sum(each) for each in curve(found, part, label, "tried")[1]]
    rates = curve(found, part, label, "success")[1]
    if min(tried if low else tried[-1:]) == 0:
        events = TRIED * len(rates[0])
        return Finding(f"nothing to recover in {events:,} events", None)
    last = known(rates[-1])
    words = f"{shown(last)} % of {tried[-1]:,.0f}"
    if not low:
        return Finding(words, Interval.of(last).above(90))
    words = f"{shown(known(rates[0]))} % of {tried[0]:,.0f} → {words}"
    more = [b - a for a, b in zip(rates[0], rates[-1], strict=True)]
    return Finding(words, Interval.of(known(more)).above(0))


def tenth(found: Found) -> Finding:
    """R4 loses at most a tenth of what is lost without recovery, all loads together."""
    none, r4 = (
        [fmean(seed) for seed in zip(*curve(found, HEAVY, scheme, "lost")[1], strict=True)]
        for scheme in (NONE, R4)
    )
    spare = [a / 10 - b for a, b in zip(none, r4, strict=True)]
    words = f"{shown(none)} → {shown(r4)} % of the deliveries"
    return Finding(words, Interval.of(spare).above(0))


@curried
def reaches(found: Found, label: str, nodes: int) -> Finding:
    """Out of step, an event reaches as many processes as the analysis has for rounds in step."""
    its = found[Point(COVERAGE, label, nodes)]
    coverage = [1 - missed / 100 for missed in its.missed]
    promised = analysis.in_step(nodes, FANOUT, HOPS)
    words = (
        f"{shown([100 * c for c in coverage])} % with {shown(its.copies)} copies; "
        f"in step {100 * promised.coverage:.2f} % with {promised.copies:,.0f}"
    )
    return Finding(words, Interval.of(coverage).within(promised.coverage, 1))


@curried
def even(found: Found, label: str) -> Finding:
    """In the largest cluster the busiest process sends at most a quarter more than the mean."""
    loads = curve(found, FIG4, label, "load")[1][-1]
    return Finding(f"× {shown(loads)}", Interval.of(loads).within(1, 1.25))


EVERYWHERE, BUSIEST, LIGHT = slice(None), slice(-1, None), slice(0, 3)


def scaling(label: str) -> tuple[Claim[Found], ...]:
    """The claims about a fixed number of coordinators."""
    return (
        Claim(
            ("6.2", f"message size, {label}", "falls slightly"), change(label, "message", (0.4, 1))
        ),
        Claim(
            ("6.2", f"throughput, {label}", "constant"), change(label, "throughput", (0.8, 1.25))
        ),
        Claim(("6.2", f"latency in rounds, {label}", "logarithmic"), shape(label, "latency", True)),
    )


@curried
def against(found: Found, one: str, other: str, key: str, at: slice, most: float) -> Finding:
    """One scheme of Fig. 5 has less than ``most`` times as much of something as another."""
    ones, others = (curve(found, FIG5, scheme, key)[1][at] for scheme in (one, other))
    pairs = [ratios(a, b) for a, b in zip(ones, others, strict=True)]
    words = "× " + ", ".join(map(shown, pairs))
    return Finding(words, all_of([Interval.of(pair).within(0, most) for pair in pairs]))


def recoveries(label: str) -> tuple[Claim[Found], ...]:
    """The claims about Fig. 5 c, for a rule of forwarding and a kind of failures."""
    return (
        Claim(("6.3", f"successful at low load, {label}", "fewer"), success(label, low=True)),
        Claim(("6.3", f"… at high load, {label}", "as predicted"), success(label, low=False)),
    )


CLAIMS: tuple[Claim[Found], ...] = (
    *scaling(FEW),
    *scaling(SOME),
    Claim(("6.2", f"message size, {ALL}", "grows with n"), shape(ALL, "message", False)),
    Claim(("6.2", f"throughput, {ALL}", "falls"), change(ALL, "throughput", (0, 0.8))),
    Claim(("6.2", f"latency, {ALL}", "linear"), shape(ALL, "latency_ms", False)),
    Claim(
        ("6.3", f"loss, {NONE} : {PLAIN}", "much less"), against(NONE, PLAIN, "lost", BUSIEST, 0.5)
    ),
    Claim(("6.3", "loss with R1", "nearly none"), nearly_all(R1)),
    Claim(("6.3", "loss with R4", "nearly none"), nearly_all(R4)),
    Claim(("6.3", "latency with load, R4", "grows slowly"), change(R4, "latency", (0, 2), FIG5)),
    Claim(
        ("6.3", f"latency, {NONE} : {PLAIN}, p ≤ 0.2", "little more"),
        against(NONE, PLAIN, "latency", LIGHT, 1.25),
    ),
    Claim(
        ("6.3", f"latency, R1 : {NONE}", "little more"),
        against(R1, NONE, "latency", EVERYWHERE, 1.1),
    ),
    Claim(
        ("6.3", f"latency, R4 : {NONE}", "little more"),
        against(R4, NONE, "latency", EVERYWHERE, 1.1),
    ),
    Claim(
        ("6.3", f"latency, R4 : {NONE}, p = 0.5", "less"), against(R4, NONE, "latency", BUSIEST, 1)
    ),
    Claim(("6.3", "recovery attempts with load, R4", "more"), rising(FIG5, R4)),
    *(
        claim
        for rule in (KEEP, ONCE)
        for fails in (PACKETS, HOSTS)
        for claim in recoveries(f"{R4}, {rule}, {fails}")
    ),
    Claim(("", f"lost under 20 % loss, {NONE} → R4", "(a tenth or less)"), tenth),
    *(
        Claim(
            ("6.2", f"{nodes} processes are reached, {KEEP}, {words}", "w.h.p."),
            reaches(f"{KEEP}, {words}", nodes),
        )
        for words in AGES.values()
        for nodes in COVERED
    ),
    *(Claim(("7", f"load, {label}", "even"), even(label)) for label in (FEW, SOME, ALL)),
)
