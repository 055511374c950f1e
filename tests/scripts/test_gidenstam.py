"""The judges of the claims of Gidenstam et al., on made-up numbers."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from scripts.reproductions import Claim
from scripts.reproductions.gidenstam import analysis
from scripts.reproductions.gidenstam.claims import CLAIMS, buffers_suffice, recoveries_succeed
from scripts.reproductions.gidenstam.points import (
    AGES,
    ALL,
    COVERAGE,
    COVERED,
    FEW,
    FEW_LOADS,
    FIG4,
    FIG5,
    FIG5C,
    HEAVY,
    HOSTS,
    KEEP,
    LOADS,
    NONE,
    ONCE,
    PACKETS,
    PLAIN,
    R1,
    R4,
    RECOVERIES,
    SCHEMES,
    SOME,
    Found,
    Measured,
    Point,
    all_points,
    experiment,
)
from tests.scripts.judged import Case, Change, hold_against

NOISE = (-1, 1, -1, 1)  # of four seeds
SIZES = (10, 25, 50, 100)
HALF = LOADS[-1]


def seeds(mean: float, noise: float = 1e-6) -> Any:
    return tuple(mean * (1 + noise * sign) for sign in NOISE)


def some(**means: float) -> Measured:
    return Measured(**{key: seeds(means.get(key, 0.0)) for key in Measured._fields})


def logarithm(x: float) -> float:
    return math.log(x)


def line(x: float) -> float:
    return x


def of_fig_4(label: str, key: str, shape: Callable[[float], float]) -> Change:
    return {Point(FIG4, label, n): {key: seeds(shape(n))} for n in SIZES}


def at(part: str, label: str, x: float, key: str, *values: float) -> list[Change]:
    return [{Point(part, label, x): {key: seeds(value)}} for value in values]


def edge(point: Point, key: str, tolerable: float, intolerable: float) -> Case:
    return at(*point, key, tolerable), at(*point, key, intolerable)


GOOD: Found = {
    **{
        Point(FIG4, label, n): some(message=100, throughput=100, latency=logarithm(n), load=1.1)
        for label in (FEW, SOME)
        for n in SIZES
    },
    **{
        Point(FIG4, ALL, n): some(message=n, throughput=100 - n / 2, latency_ms=n, load=1.1)
        for n in SIZES
    },
    **{
        Point(FIG5, scheme, p): some(
            lost={PLAIN: 3, NONE: 1}.get(scheme, 0),
            latency=0.9 if scheme == R4 else 1,
            attempts=100 * p,
        )
        for scheme in SCHEMES
        for p in LOADS
    },
    **{
        Point(FIG5C, label, p): some(tried=100, success=50 + 90 * p)
        for label in RECOVERIES
        for p in FEW_LOADS
    },
    **{
        Point(HEAVY, scheme, p): some(lost=lost)
        for scheme, lost in ((NONE, 10), (R4, 0))
        for p in LOADS
    },
    **{
        Point(COVERAGE, f"{KEEP}, {words}", n): some(missed=0.01, copies=1000)
        for words in AGES.values()
        for n in COVERED
    },
}


def scaling(label: str) -> dict[str, Case]:
    return {
        f"message size, {label}": (
            [*at(FIG4, label, 100, "message", 41), *at(FIG4, label, 10, "message", 999)],
            at(FIG4, label, 100, "message", 39, 101),
        ),
        f"throughput, {label}": (
            at(FIG4, label, 100, "throughput", 81, 124),
            at(FIG4, label, 100, "throughput", 79, 126),
        ),
        f"latency in rounds, {label}": ([], [of_fig_4(label, "latency", line)]),
        f"load, {label}": edge(Point(FIG4, label, 100), "load", 1.24, 1.26),
    }


def recoveries(label: str) -> dict[str, Case]:
    low, high = Point(FIG5C, label, FEW_LOADS[0]), Point(FIG5C, label, FEW_LOADS[-1])
    return {
        f"successful at low load, {label}": edge(low, "success", 94, 96),
        f"… at high load, {label}": edge(high, "success", 90.1, 89.9),
    }


CASES: dict[str, Case] = {
    **scaling(FEW),
    **scaling(SOME),
    f"message size, {ALL}": ([], [of_fig_4(ALL, "message", logarithm)]),
    f"throughput, {ALL}": (
        at(FIG4, ALL, 100, "throughput", 69, 1),
        at(FIG4, ALL, 100, "throughput", 71),
    ),
    f"latency, {ALL}": ([], [of_fig_4(ALL, "latency_ms", logarithm)]),
    f"load, {ALL}": edge(Point(FIG4, ALL, 100), "load", 1.24, 1.26),
    f"loss, {NONE} : {PLAIN}": (
        [*at(FIG5, NONE, HALF, "lost", 1.49), *at(FIG5, NONE, 0.1, "lost", 3)],
        at(FIG5, NONE, HALF, "lost", 1.51),
    ),
    "loss with R1": edge(Point(FIG5, R1, 0.2), "lost", 0.49, 0.51),
    "loss with R4": edge(Point(FIG5, R4, 0.2), "lost", 0.49, 0.51),
    "latency with load, R4": edge(Point(FIG5, R4, HALF), "latency", 1.79, 1.81),
    f"latency, {NONE} : {PLAIN}, p ≤ 0.2": (
        [*at(FIG5, NONE, 0.2, "latency", 1.24), *at(FIG5, NONE, 0.3, "latency", 9)],
        at(FIG5, NONE, 0.2, "latency", 1.26),
    ),
    f"latency, R1 : {NONE}": edge(Point(FIG5, R1, 0.3), "latency", 1.09, 1.11),
    f"latency, R4 : {NONE}": edge(Point(FIG5, R4, 0.3), "latency", 1.09, 1.11),
    f"latency, R4 : {NONE}, p = 0.5": (
        [*at(FIG5, R4, HALF, "latency", 0.99), *at(FIG5, R4, 0.4, "latency", 9)],
        at(FIG5, R4, HALF, "latency", 1.01),
    ),
    "recovery attempts with load, R4": edge(Point(FIG5, R4, HALF), "attempts", 6, 4),
    **recoveries(f"{R4}, {KEEP}, {PACKETS}"),
    **recoveries(f"{R4}, {KEEP}, {HOSTS}"),
    **recoveries(f"{R4}, {ONCE}, {PACKETS}"),
    **recoveries(f"{R4}, {ONCE}, {HOSTS}"),
    f"lost under 20 % loss, {NONE} → R4": edge(Point(HEAVY, R4, HALF), "lost", 5.9, 6.1),
    **{
        f"{n} processes are reached, {KEEP}, {words}": edge(
            Point(COVERAGE, f"{KEEP}, {words}", n),
            "missed",
            0.99 * 100 * (1 - analysis.in_step(n, 4, 5).coverage),
            1.01 * 100 * (1 - analysis.in_step(n, 4, 5).coverage),
        )
        for words in AGES.values()
        for n in COVERED
    },
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.said[1])
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Found]) -> None:
    hold_against(claim, GOOD, CASES[claim.said[1]])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.said[1])
def test_what_differs_too_much_from_seed_to_seed_decides_nothing(claim: Claim[Found]) -> None:
    rng = random.Random(1)
    wild = {
        point: Measured(*(tuple(10 ** rng.uniform(-3, 3) for _ in NOISE) for _ in its))
        for point, its in GOOD.items()
    }
    assert claim.judge(wild).holds is not True


def test_the_shape_of_two_points_is_unclear() -> None:
    few = {point: its for point, its in GOOD.items() if point.part == FIG4 and point.x in (25, 50)}
    shapes = [claim for claim in CLAIMS if claim.said[2] in ("logarithmic", "linear")]
    assert [claim.judge(few).holds for claim in shapes] == [None] * 3


def test_where_nothing_is_to_be_recovered_success_is_unclear() -> None:
    nan = seeds(math.nan)
    nothing = {point: its._replace(tried=seeds(0), success=nan) for point, its in GOOD.items()}
    judged = [claim.judge(nothing) for claim in CLAIMS if claim.said[1].startswith("successful")]
    assert [finding.holds for finding in judged] == [None] * 4
    high = [claim for claim in CLAIMS if claim.said[1].startswith("… at high load")]
    idle = {p: nothing[p] if p.x == FEW_LOADS[0] else its for p, its in GOOD.items()}
    assert [claim.judge(idle).holds for claim in high] == [True] * 4
    assert "nothing to recover in 1,200 events" in judged[0].measured


def test_theorems_are_judged_by_their_bounds() -> None:
    assert buffers_suffice(2, seeds(0.46)) is True
    assert buffers_suffice(2, seeds(0.47)) is False  # (e/4)²
    assert buffers_suffice(2, seeds(0.46, 0.5)) is None
    assert recoveries_succeed(2, seeds(33)) is True
    assert recoveries_succeed(2, seeds(32)) is False  # 1 - e/4
    assert recoveries_succeed(2, (*seeds(33), math.nan)) is True


def test_the_analysis_of_gossip() -> None:
    for spread in (analysis.in_step, analysis.out_of_step):
        assert spread(2, 1, 30).coverage == pytest.approx(1)
        assert 0.8 < spread(250, 4, 4).coverage < spread(250, 4, 6).coverage < 1
    assert analysis.in_step(1000, 3, 1) == pytest.approx((0.004, 3))
    assert analysis.in_step(250, 4, 5).copies == pytest.approx(250 * math.log(250), rel=0.01)


def test_every_point_is_an_experiment() -> None:
    tuned = {(FEW, 10): 12.5, (ALL, 125): 40.0}
    for point in all_points(tuned):
        made = experiment(point, 3, 20, tuned)
        assert made.seed == 3
