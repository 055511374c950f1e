"""The judges of the claims of Gidenstam et al., on made-up numbers."""

import math
from collections.abc import Callable

import pytest

from scripts.reproductions import Claim
from scripts.reproductions.gidenstam.claims import CLAIMS, buffers_suffice, recoveries_succeed
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
    SCHEMES,
    SOME,
    Found,
    Measured,
    Point,
    averaged,
)
from tests.scripts.judged import Case, Change, edge, hold_against

NOTHING = Measured(*[0.0] * len(Measured._fields))
SIZES = (10, 25, 50, 100)
HALF = LOADS[-1]


def logarithm(x: float) -> float:
    return math.log(x)


def line(x: float) -> float:
    return x


def of_fig_4(label: str, key: str, shape: Callable[[float], float]) -> Change:
    return {Point(FIG4, label, n): {key: shape(n)} for n in SIZES}


def of_fig_5(scheme: str, key: str, value: float) -> Change:
    return {Point(FIG5, scheme, p): {key: value} for p in LOADS}


def at(part: str, label: str, x: float, key: str, *values: float) -> list[Change]:
    return [{Point(part, label, x): {key: value}} for value in values]


GOOD: Found = {
    **{
        Point(FIG4, label, n): NOTHING._replace(message=100, throughput=100, latency=logarithm(n))
        for label in (FEW, SOME)
        for n in SIZES
    },
    **{
        Point(FIG4, ALL, n): NOTHING._replace(message=n, throughput=100 - n / 2, latency_ms=n)
        for n in SIZES
    },
    **{
        Point(FIG5, scheme, p): NOTHING._replace(
            lost={PLAIN: 3, NONE: 1}.get(scheme, 0),
            latency=0.9 if scheme == R4 else 1,
            attempts=100 * p,
            success=50 + 90 * p,
        )
        for scheme in SCHEMES
        for p in LOADS
    },
    **{
        Point(HEAVY, scheme, p): NOTHING._replace(lost=lost)
        for scheme, lost in ((NONE, 10), (R4, 0))
        for p in LOADS
    },
}


def scaling(label: str) -> dict[str, Case]:
    return {
        f"message size, {label}": (
            [*at(FIG4, label, 100, "message", 40.1), *at(FIG4, label, 10, "message", 999)],
            at(FIG4, label, 100, "message", 40, 100.1),
        ),
        f"throughput, {label}": (
            at(FIG4, label, 100, "throughput", 80.1, 125),
            at(FIG4, label, 100, "throughput", 80, 125.1),
        ),
        f"latency in rounds, {label}": ([], [of_fig_4(label, "latency", line)]),
    }


CASES: dict[str, Case] = {
    **scaling(FEW),
    **scaling(SOME),
    f"message size, {ALL}": ([], [of_fig_4(ALL, "message", logarithm)]),
    f"throughput, {ALL}": (
        at(FIG4, ALL, 100, "throughput", 70, 1),
        at(FIG4, ALL, 100, "throughput", 70.1, 0),
    ),
    f"latency, {ALL}": ([], [of_fig_4(ALL, "latency_ms", logarithm)]),
    f"loss, {NONE} : {PLAIN}": (
        [*at(FIG5, NONE, HALF, "lost", 1.49), *at(FIG5, NONE, 0.1, "lost", 3)],
        at(FIG5, NONE, HALF, "lost", 1.5),
    ),
    "loss with R1": edge(Point(FIG5, R1, 0.2), "lost", 0.5, 0.51),
    "loss with R4": edge(Point(FIG5, R4, 0.2), "lost", 0.5, 0.51),
    "latency with load, R4": edge(Point(FIG5, R4, HALF), "latency", 1.8, 1.81),
    f"latency, {NONE} : {PLAIN}, p ≤ 0.2": (
        [*at(FIG5, NONE, 0.2, "latency", 1.24), *at(FIG5, NONE, 0.3, "latency", 9)],
        at(FIG5, NONE, 0.2, "latency", 1.25),
    ),
    f"latency, R1 : {NONE}": edge(Point(FIG5, R1, 0.3), "latency", 1.09, 1.1),
    f"latency, R4 : {NONE}": edge(Point(FIG5, R4, 0.3), "latency", 1.09, 1.1),
    f"latency, R4 : {NONE}, p = 0.5": (
        [*at(FIG5, R4, HALF, "latency", 0.99), *at(FIG5, R4, 0.4, "latency", 9)],
        at(FIG5, R4, HALF, "latency", 1),
    ),
    "recovery attempts with load, R4": edge(Point(FIG5, R4, HALF), "attempts", 40, 39),
    "successful recoveries at low load, R4": (
        [*at(FIG5, R4, 0.05, "success", 79.9, math.nan)],
        [*at(FIG5, R4, 0.05, "success", 80), of_fig_5(R4, "success", 100)],
    ),
    "successful recoveries at high load, R4": edge(Point(FIG5, R4, HALF), "success", 90.1, 90),
    f"lost under 20 % loss, {NONE} → R4": edge(Point(HEAVY, R4, HALF), "lost", 6, 6.1),
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.said[1])
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Found]) -> None:
    hold_against(claim, GOOD, CASES[claim.said[1]])


def test_the_shape_of_two_points_is_unclear() -> None:
    few = {point: its for point, its in GOOD.items() if point.part == FIG4 and point.x in (25, 50)}
    shapes = [claim for claim in CLAIMS if claim.said[2] in ("logarithmic", "linear")]
    assert [claim.judge(few).holds for claim in shapes] == [None] * 3


def test_theorems_are_judged_by_their_bounds() -> None:
    assert buffers_suffice(2, 0.46)
    assert not buffers_suffice(2, 0.47)  # (e/4)²
    assert recoveries_succeed(2, 33)
    assert not recoveries_succeed(2, 32)  # 1 - e/4


def test_success_is_averaged_over_runs_with_attempts() -> None:
    runs = [NOTHING._replace(lost=lost, success=s) for lost, s in ((1, math.nan), (2, 50), (3, 70))]
    assert (averaged(runs).lost, averaged(runs).success) == (2, 60)
    assert math.isnan(averaged(runs[:1]).success)
