"""What Gidenstam et al. claim, and the judges of what is measured."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from scripts.reproductions import Claim, Finding, curried
from scripts.reproductions.gidenstam.points import (
    ALL,
    FEW,
    FIG4,
    FIG5,
    HEAVY,
    LOADS,
    NONE,
    PLAIN,
    R1,
    R4,
    SOME,
    Found,
    curve,
)

ALIKE = 0.01  # if R² differs by less, neither curve fits better


def buffer_bound(expected: float) -> float:
    """Theorem 5.1: how often an event may be absent from a buffer, where npT events are expected."""
    return math.pow(math.e / 4, expected)


def recovery_bound(targets: float) -> float:
    """Theorem 5.2: the least percentage of recoveries from k targets that succeed."""
    return 100 * (1 - math.pow(math.e / 4, targets / 2))


def buffers_suffice(expected: float, absent: float) -> bool:
    """Theorem 5.1: events are absent more rarely than the bound."""
    return absent < buffer_bound(expected)


def recoveries_succeed(targets: float, success: float) -> bool:
    """Theorem 5.2: a larger percentage of recoveries succeeds than the bound."""
    return success > recovery_bound(targets)


def ends(found: Found, part: str, label: str, key: str) -> tuple[float, float]:
    """A curve at its beginning, with 25 processes in Fig. 4, and at its end."""
    places, values = curve(found, part, label, key)
    first = places.index(25) if part == FIG4 else 0
    if first + 1 == len(places):
        raise ValueError(f"{part} has no more than one place on the curve of {label}")
    return values[first], values[-1]


def misfit(places: list[float], values: list[float], scale: Callable[[Any], Any]) -> float:
    """What a straight line through a curve over this scale leaves unexplained."""
    x, y = scale(np.array(places)), np.array(values)
    return float(
        ((np.polyval(np.polyfit(x, y, 1), x) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    )


@curried
def shape(found: Found, label: str, key: str, logarithmic: bool) -> Finding:
    """A logarithm fits the curve better than a line does, or the other way round."""
    first, last = ends(found, FIG4, label, key)
    places, values = curve(found, FIG4, label, key)
    log, line = (misfit(places, values, scale) for scale in (np.log, lambda x: x))
    words = f"{first:,.1f} → {last:,.1f}; R² {1 - log:.3f} over ln n, {1 - line:.3f} over n"
    alike = abs(log - line) < ALIKE
    return Finding(words, None if alike else (log < line) == logarithmic)


@curried
def change(
    found: Found, label: str, key: str, within: tuple[float, float], part: str = FIG4
) -> Finding:
    """The factor between the end and the beginning of a curve is within limits."""
    first, last = ends(found, part, label, key)
    least, most = within
    factor = last / first
    return Finding(f"{first:,.4g} → {last:,.4g} (× {factor:.2f})", least < factor <= most)


@curried
def nearly_all(found: Found, scheme: str) -> Finding:
    """At most one in two hundred deliveries is missing, at any load."""
    most = max(curve(found, FIG5, scheme, "lost")[1])
    return Finding(f"at most {most:.3f} % lost", most <= 0.5)


@curried
def rising(found: Found, scheme: str) -> Finding:
    """There are more attempts with more load."""
    attempts = curve(found, FIG5, scheme, "attempts")[1]
    words = " ".join(f"{a:.0f}" for a in attempts)
    return Finding(words, attempts == sorted(attempts))


@curried
def success(found: Found, scheme: str, low: bool) -> Finding:
    """Recoveries often fail where there is least to recover, or hardly ever under the highest load."""
    rates = [rate for rate in curve(found, FIG5, scheme, "success")[1] if not math.isnan(rate)]
    words = " ".join(f"{rate:.0f}" for rate in rates) + " %"
    return Finding(words, rates[0] < 80 if low else rates[-1] > 90)


def tenth(found: Found) -> Finding:
    """R4 loses at most a tenth of what is lost without recovery, all loads together."""
    none, r4 = (sum(curve(found, HEAVY, scheme, "lost")[1]) for scheme in (NONE, R4))
    words = f"{none / len(LOADS):.3f} → {r4 / len(LOADS):.3f} % of the deliveries"
    return Finding(words, r4 <= none / 10)


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
    ratios = [a / b for a, b in zip(ones, others, strict=True)]
    words = "× " + " ".join(f"{ratio:.2f}" for ratio in ratios)
    return Finding(words, max(ratios) < most)


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
    Claim(("6.3", "recovery attempts with load, R4", "more"), rising(R4)),
    Claim(("6.3", "successful recoveries at low load, R4", "few"), success(R4, low=True)),
    Claim(
        ("6.3", "successful recoveries at high load, R4", "as predicted"), success(R4, low=False)
    ),
    Claim(("", f"lost under 20 % loss, {NONE} → R4", "(a tenth or less)"), tenth),
)
