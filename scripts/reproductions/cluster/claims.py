"""What Gidenstam et al. say of their figures, and whether it is so here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cluster.points import (
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

Judge = Callable[[Found], tuple[str, bool | None]]  # what is measured; None if it decides nothing
ALIKE = 0.01  # fits whose R² differ by less


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


def shape(label: str, key: str, logarithmic: bool) -> Judge:
    """Which of the two curves fits better, if one does."""

    def judge(found: Found) -> tuple[str, bool | None]:
        first, last = ends(found, FIG4, label, key)
        places, values = curve(found, FIG4, label, key)
        log, line = (misfit(places, values, scale) for scale in (np.log, lambda x: x))
        words = f"{first:,.1f} → {last:,.1f}; R² {1 - log:.3f} over ln n, {1 - line:.3f} over n"
        alike = abs(log - line) < ALIKE
        return words, None if alike else (log < line) == logarithmic

    return judge


def change(label: str, key: str, within: tuple[float, float], part: str = FIG4) -> Judge:
    """By which factor a curve grows from its beginning to its end."""

    def judge(found: Found) -> tuple[str, bool]:
        first, last = ends(found, part, label, key)
        least, most = within
        return f"{first:,.4g} → {last:,.4g} (× {last / first:.2f})", least < last / first <= most

    return judge


def nearly_all(scheme: str) -> Judge:
    """At most one in two hundred deliveries is lacking, at any load."""

    def judge(found: Found) -> tuple[str, bool]:
        most = max(curve(found, FIG5, scheme, "lost")[1])
        return f"at most {most:.3f} % lost", most <= 0.5

    return judge


def rising(scheme: str) -> Judge:
    """More attempts with more load."""

    def judge(found: Found) -> tuple[str, bool]:
        attempts = curve(found, FIG5, scheme, "attempts")[1]
        return " ".join(f"{a:.0f}" for a in attempts), attempts == sorted(attempts)

    return judge


def success(scheme: str, low: bool) -> Judge:
    """Poor where there is least to recover, or nearly sure under the highest load."""

    def judge(found: Found) -> tuple[str, bool]:
        rates = [rate for rate in curve(found, FIG5, scheme, "success")[1] if not math.isnan(rate)]
        words = " ".join(f"{rate:.0f}" for rate in rates) + " %"
        return words, rates[0] < 80 if low else rates[-1] > 90

    return judge


def tenth(found: Found) -> tuple[str, bool]:
    """R4 against no recovery, all loads together."""
    none, r4 = (sum(curve(found, HEAVY, scheme, "lost")[1]) for scheme in (NONE, R4))
    words = f"{none / len(LOADS):.3f} → {r4 / len(LOADS):.3f} % of the deliveries"
    return words, r4 <= none / 10


EVERYWHERE, BUSIEST, LIGHT = slice(None), slice(-1, None), slice(0, 3)
Claim = tuple[str, str, str, Judge]  # section, what of which curve, the paper's word for it


def scaling(label: str) -> tuple[Claim, ...]:
    """What is said of a fixed number of coordinators."""
    return (
        ("6.2", f"message size, {label}", "falls slightly", change(label, "message", (0.4, 1))),
        ("6.2", f"throughput, {label}", "constant", change(label, "throughput", (0.8, 1.25))),
        ("6.2", f"latency in rounds, {label}", "logarithmic", shape(label, "latency", True)),
    )


def against(one: str, other: str, key: str, at: slice, most: float) -> Judge:
    """One scheme of Fig. 5 has at most so many times as much of something as another."""

    def judge(found: Found) -> tuple[str, bool]:
        ones, others = (curve(found, FIG5, scheme, key)[1][at] for scheme in (one, other))
        ratios = [a / b for a, b in zip(ones, others, strict=True)]
        return "× " + " ".join(f"{ratio:.2f}" for ratio in ratios), max(ratios) < most

    return judge


CLAIMS: tuple[Claim, ...] = (
    *scaling(FEW),
    *scaling(SOME),
    ("6.2", f"message size, {ALL}", "grows with n", shape(ALL, "message", False)),
    ("6.2", f"throughput, {ALL}", "falls", change(ALL, "throughput", (0, 0.8))),
    ("6.2", f"latency, {ALL}", "linear", shape(ALL, "latency_ms", False)),
    ("6.3", f"loss, {NONE} : {PLAIN}", "much less", against(NONE, PLAIN, "lost", BUSIEST, 0.5)),
    ("6.3", "loss with R1", "nearly none", nearly_all(R1)),
    ("6.3", "loss with R4", "nearly none", nearly_all(R4)),
    ("6.3", "latency with load, R4", "grows slowly", change(R4, "latency", (0, 2), FIG5)),
    (
        "6.3",
        f"latency, {NONE} : {PLAIN}, p ≤ 0.2",
        "little more",
        against(NONE, PLAIN, "latency", LIGHT, 1.25),
    ),
    ("6.3", f"latency, R1 : {NONE}", "little more", against(R1, NONE, "latency", EVERYWHERE, 1.1)),
    ("6.3", f"latency, R4 : {NONE}", "little more", against(R4, NONE, "latency", EVERYWHERE, 1.1)),
    ("6.3", f"latency, R4 : {NONE}, p = 0.5", "less", against(R4, NONE, "latency", BUSIEST, 1)),
    ("6.3", "recovery attempts with load, R4", "more", rising(R4)),
    ("6.3", "successful recoveries at low load, R4", "few", success(R4, low=True)),
    ("6.3", "successful recoveries at high load, R4", "as predicted", success(R4, low=False)),
    ("", f"lost under 20 % loss, {NONE} → R4", "(a tenth or less)", tenth),
)
