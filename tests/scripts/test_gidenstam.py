"""The judges of the claims of Gidenstam et al., on made-up numbers."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from scripts.reproductions.claims import UNJUDGED, Claim, judged
from scripts.reproductions.gidenstam import analysis
from scripts.reproductions.gidenstam.claims import CLAIMS, buffers_suffice, recoveries_succeed
from scripts.reproductions.gidenstam.points import (
    AGES,
    ALL,
    COVERAGE,
    COVERED,
    FAILED,
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
    TRIED,
    Buffers,
    Found,
    Measured,
    Point,
    all_points,
    experiment,
    gossip,
    slowest,
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
        f"message size decreases slightly with the group, {label}": (
            [*at(FIG4, label, 100, "message", 76), *at(FIG4, label, 10, "message", 999)],
            at(FIG4, label, 100, "message", 74, 101),
        ),
        f"throughput remains constant, {label}": (
            at(FIG4, label, 100, "throughput", 91, 109),
            at(FIG4, label, 100, "throughput", 89, 111),
        ),
        f"latency (in rounds) increases as a logarithm, {label}": (
            [],
            [of_fig_4(label, "latency", line)],
        ),
        f"the load is even, {label}": edge(Point(FIG4, label, 100), "load", 1.24, 1.26),
    }


def recoveries(label: str) -> dict[str, Case]:
    low, high = Point(FIG5C, label, FEW_LOADS[0]), Point(FIG5C, label, FEW_LOADS[-1])
    return {
        f"fewer recoveries succeed at low load, {label}": edge(low, "success", 94, 96),
        f"at high load they succeed as predicted, {label}": edge(high, "success", 90.1, 89.9),
    }


CASES: dict[str, Case] = {
    **scaling(FEW),
    **scaling(SOME),
    f"message size grows with n, {ALL}": ([], [of_fig_4(ALL, "message", logarithm)]),
    f"throughput decreases, {ALL}": (
        at(FIG4, ALL, 100, "throughput", 78, 1),
        at(FIG4, ALL, 100, "throughput", 80),
    ),
    f"latency increases linearly, {ALL}": ([], [of_fig_4(ALL, "latency_ms", logarithm)]),
    f"the load is even, {ALL}": edge(Point(FIG4, ALL, 100), "load", 1.24, 1.26),
    "the causality layer significantly reduces the lost events": (
        [*at(FIG5, NONE, HALF, "lost", 1.49), *at(FIG5, NONE, 0.1, "lost", 3)],
        at(FIG5, NONE, HALF, "lost", 1.51),
    ),
    "almost all events are delivered, R1": edge(Point(FIG5, R1, 0.2), "lost", 0.49, 0.51),
    "almost all events are delivered, R4": edge(Point(FIG5, R4, 0.2), "lost", 0.49, 0.51),
    "latency grows only slowly with load, R4": edge(Point(FIG5, R4, HALF), "latency", 1.79, 1.81),
    "the causality layer adds a small overhead, p ≤ 0.2": (
        [*at(FIG5, NONE, 0.2, "latency", 1.24), *at(FIG5, NONE, 0.3, "latency", 9)],
        at(FIG5, NONE, 0.2, "latency", 1.26),
    ),
    "recovery does not add much latency, R1": edge(Point(FIG5, R1, 0.3), "latency", 1.09, 1.11),
    "recovery does not add much latency, R4": edge(Point(FIG5, R4, 0.3), "latency", 1.09, 1.11),
    "at higher loads recovery even improves latency, R4, p = 0.5": (
        [*at(FIG5, R4, HALF, "latency", 0.99), *at(FIG5, R4, 0.4, "latency", 9)],
        at(FIG5, R4, HALF, "latency", 1.01),
    ),
    "recovery attempts increase with the load, R4": edge(Point(FIG5, R4, HALF), "attempts", 6, 4),
    **recoveries(f"{R4}, {KEEP}, {PACKETS}"),
    **recoveries(f"{R4}, {KEEP}, {HOSTS}"),
    **recoveries(f"{R4}, {ONCE}, {PACKETS}"),
    **recoveries(f"{R4}, {ONCE}, {HOSTS}"),
    "recovery significantly reduces the lost events: 20 % loss, to a tenth by R4": edge(
        Point(HEAVY, R4, HALF), "lost", 5.9, 6.1
    ),
    **{
        f"an event reaches {n} processes w.h.p., {KEEP}, {words}": edge(
            Point(COVERAGE, f"{KEEP}, {words}", n),
            "missed",
            0.99 * 100 * (1 - analysis.in_step(n, 4, 5).coverage),
            1.01 * 100 * (1 - analysis.in_step(n, 4, 5).coverage),
        )
        for words in AGES.values()
        for n in COVERED
    },
}


GOSSIP = [claim for claim in CLAIMS if claim.where.startswith(("§ 6", "§ 7"))]  # others below


@pytest.mark.parametrize("claim", GOSSIP, ids=lambda claim: claim.says)
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Any]) -> None:
    hold_against(claim, GOOD, CASES[claim.says])


@pytest.mark.parametrize("claim", GOSSIP, ids=lambda claim: claim.says)
def test_what_differs_too_much_from_seed_to_seed_decides_nothing(claim: Claim[Any]) -> None:
    rng = random.Random(1)
    wild = {
        point: Measured(*(tuple(10 ** rng.uniform(-3, 3) for _ in NOISE) for _ in its))
        for point, its in GOOD.items()
    }
    assert claim.judge(wild).holds is not True


def test_the_shape_of_two_points_cannot_be_judged() -> None:
    few = {point: its for point, its in GOOD.items() if point.part == FIG4 and point.x in (25, 50)}
    found = judged([c for c in CLAIMS if "increases" in c.says], few)
    assert [its.verdict for its in found] == [UNJUDGED] * 3
    assert found[0].measured == "two places, through which all curves go"


def test_where_nothing_is_to_be_recovered_success_cannot_be_judged() -> None:
    nan = seeds(math.nan)
    nothing = {point: its._replace(tried=seeds(0), success=nan) for point, its in GOOD.items()}
    low = judged([claim for claim in CLAIMS if claim.says.startswith("fewer")], nothing)
    assert [its.verdict for its in low] == [UNJUDGED] * 4
    assert low[0].measured == f"nothing to recover in {TRIED * len(nan):,} events"
    high = [claim for claim in CLAIMS if claim.says.startswith("at high load they")]
    idle = {p: nothing[p] if p.x == FEW_LOADS[0] else its for p, its in GOOD.items()}
    assert [claim.judge(idle).holds for claim in high] == [True] * 4


@pytest.mark.parametrize(
    ("absent", "holds"), [(seeds(0.46), True), (seeds(0.47), False), (seeds(0.46, 0.5), None)]
)
def test_buffers_are_judged_by_their_bound(absent: Any, holds: Any) -> None:
    buffers = Buffers(5, 2 / 6, 2)
    assert buffers.expected == pytest.approx(2)  # (e/4)² = 0.462
    assert buffers_suffice(buffers)({buffers: absent}).holds is holds


@pytest.mark.parametrize(
    ("success", "holds"), [(seeds(33), True), (seeds(32), False), ((*seeds(33), math.nan), True)]
)
def test_recoveries_are_judged_by_their_bound(success: Any, holds: Any) -> None:
    found = {Point(FAILED, R4, 2): some(tried=9)._replace(success=success)}
    assert recoveries_succeed(2)(found).holds is holds  # 1 - e/4 = 32.04 %


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


def test_how_long_messages_take_depends_on_load_and_not_on_rounds() -> None:
    few = [slowest(gossip(5, ALL, ms, 4, 1, 2)) for ms in (20.0, 40.0)]
    assert few[0] == few[1] < slowest(gossip(25, ALL, 20.0, 4, 1, 2))
