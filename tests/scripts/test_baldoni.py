"""The judges of the daisy's claims, on made-up numbers; and the formula of section 3.3."""

from argparse import Namespace
from itertools import chain
from math import isnan, sqrt
from typing import Any

import pytest

from scripts.reproductions.baldoni.claims import (
    CLAIMS,
    grows_as_root,
    is_exact,
    root_is_best,
)
from scripts.reproductions.baldoni.points import (
    ALL,
    ALTERNATIVES,
    DAISIES,
    DESTINATIONS,
    EARLY,
    FIXED,
    MATRIX,
    MATRIX_FITS,
    OTHERS,
    PIGGYBACK,
    PLAIN,
    SAFE,
    SERVER,
    TO_ONE,
    TO_TWO,
    VARIED,
    WAIT,
    Found,
    Measured,
    Point,
    broadcasts,
    experiment,
    formula,
    group_size,
    parts,
)
from scripts.reproductions.claims import Claim, all_of
from scripts.reproductions.intervals import Interval, is_less
from testbed.packets.framing import LONGEST_DATAGRAM
from testbed.protocols.daisy.tree import daisy
from testbed.protocols.wire import HEADER
from tests.scripts.judged import edge, hold_against

NOISE = (-1, 1, -1, 1)
LARGE = 256
OPTIONS = Namespace(messages=200)


def seeds(mean: float, noise: float = 0.001) -> tuple[float, ...]:
    return tuple(mean * (1 + noise * sign) for sign in NOISE)


def good(point: Point) -> Measured:
    """Numbers for which every claim holds."""
    name, nodes, load, size = point
    levels = next((n for n, label in DAISIES.items() if label == name), 0)
    vector = 4 * nodes ** (1 / levels) if levels else 20
    off = abs((size or group_size(VARIED, 2)) - sqrt(VARIED))  # from the best group size
    control = {EARLY: 90, TO_ONE: 99, TO_TWO: 99, SERVER: 40, PIGGYBACK: 200, ALL: 300}
    copies = {TO_ONE: 6, TO_TWO: 9, SERVER: 11, ALL: 63}
    delay = {WAIT: 50 + load / 10, ALL: 60, PIGGYBACK: 60}
    across = {EARLY: 13, PLAIN: 14, TO_ONE: 20, TO_TWO: 40}
    figures = {
        "control": control.get(name, 9999 if name in OTHERS else FIXED + vector) + off,
        "copies": copies.get(name, 30) + off,
        "broadcasts": 4,
        "datagrams": {TO_ONE: 40, SERVER: 34, ALL: 90}.get(name, 67),
        "delay": delay.get(name, 40) + off,
        "within": 9 if name == SERVER else 5,
        "across": across.get(name, 30 + levels),
        "formula": 4,
        "vector": FIXED + vector,
    }
    return Measured(**{figure: seeds(value) for figure, value in figures.items()})


GOOD = {point: good(point) for part in parts([8, 64, LARGE]).values() for point in part}
REVERSED = {
    point: Measured(*(tuple(10_000 / value for value in values) for values in measured))._replace(
        formula=measured.formula, vector=measured.vector
    )
    for point, measured in GOOD.items()
}


def test_rst_is_run_where_a_datagram_holds_its_matrix() -> None:
    control = [4 * (n**2 + DESTINATIONS) for n in (MATRIX_FITS, MATRIX_FITS + 1)]
    small, large = (HEADER.size + size for size in control)
    assert small <= LONGEST_DATAGRAM < large
    curves = {(p.name, p.nodes) for p in parts([64, LARGE])["curves"]}
    assert (MATRIX, 64) in curves
    assert {n for name, n in curves if name == "ks"} == {64, LARGE}
    assert (MATRIX, LARGE) not in curves


OF_THE_DAISY = [
    claim for claim in CLAIMS if claim.where != "footnote 5"
]  # the others: test_domains


@pytest.mark.parametrize("claim", OF_THE_DAISY, ids=lambda claim: claim.says)
def test_a_claim_holds_for_some_numbers_and_not_for_the_reverse(claim: Claim[Found]) -> None:
    assert claim.judge(GOOD).holds is True, claim.judge(GOOD).measured
    assert claim.judge(REVERSED).holds is False


def test_an_interval_is_student_s() -> None:
    low, high = Interval.of([1.0, 2.0, 3.0])
    assert (low + high) / 2 == 2
    assert high - 2 == pytest.approx(2.4841, abs=1e-4)
    assert Interval(2, 3).within(1, 4) is True
    assert Interval(2, 3).within(4, 5) is False
    assert Interval(2, 3).within(2.5, 5) is None
    assert [Interval(2, 3).above(x) for x in (1, 2, 2.5, 3)] == [True, None, None, False]
    assert Interval(0, 0).above(0) is False  # what is the same is not less


@pytest.mark.parametrize(
    ("answers", "one"),
    [([True, True], True), ([True, None], None), ([None, False, True], False)],
)
def test_one_no_is_a_no_and_else_what_is_unclear_stays_so(answers: Any, one: Any) -> None:
    assert all_of(answers) is one


def test_points_are_compared_seed_by_seed() -> None:
    one, other = Point(PLAIN, VARIED), Point(SAFE, VARIED)
    claim = Claim("", "", is_less("delay", one, other))
    spread = {one: GOOD[one]._replace(delay=(1, 2, 3, 40)), other: GOOD[other]}
    ahead = {"delay": (1.5, 2.6, 3.4, 40.5)}  # by little, and with every seed
    behind = {"delay": (0.5, 1.6, 2.4, 39.5)}
    hold_against(claim, {**spread, other: spread[other]._replace(**ahead)}, ([], [{other: behind}]))  # type: ignore[dict-item]
    mixed = spread[other]._replace(delay=(2, 1, 4, 39))
    assert claim.judge({**spread, other: mixed}).holds is None


@pytest.mark.parametrize(
    ("judge", "point", "figure", "tolerable", "intolerable"),
    [
        (is_exact("broadcasts", "formula"), Point(DAISIES[2], 8), "broadcasts", 4.03, 4.2),
        (is_exact("control", "vector"), Point(DAISIES[3], 8), "control", FIXED + 8.2, FIXED + 12),
        (grows_as_root(2), Point(DAISIES[2], 8), "control", FIXED + 10, FIXED + 30),
    ],
)
def test_a_formula_may_be_missed_by_little(
    judge: Any, point: Point, figure: str, tolerable: float, intolerable: float
) -> None:
    case = edge(point, figure, seeds(tolerable, 0), seeds(intolerable, 0))  # type: ignore[arg-type]
    hold_against(Claim("", "", judge), GOOD, case)


def test_another_group_size_that_is_as_good_decides_nothing() -> None:
    six = Point(SAFE, VARIED, group_size=6)
    root = GOOD[Point(SAFE, VARIED, group_size=8)]
    assert root_is_best("copies")({**GOOD, six: root._replace(copies=seeds(30, 0))}).holds is None


def test_groups_on_all_levels_are_of_one_size() -> None:
    assert [group_size(64, levels) for levels in (2, 3, 4)] == [8, 4, 3]
    assert group_size(2, 4) == 2


# the formula


def test_a_message_is_broadcast_in_its_sender_s_group_the_servers_and_its_recipients() -> None:
    two, three = daisy(12, 4, 2), daisy(27, 3, 3)
    assert broadcasts(two, 1, frozenset({2, 3})) == [4]
    assert broadcasts(two, 1, frozenset({2, 6})) == [4, 4, 3]
    assert broadcasts(two, 1, frozenset({6, 10})) == [4, 4, 4, 3]
    assert len(broadcasts(three, 4, frozenset({13}))) == 5  # Figure 5
    assert len(broadcasts(three, 4, frozenset({7}))) == 3


def test_the_formula_is_of_the_messages_that_a_run_sends() -> None:
    count, control = formula(experiment(Point(DAISIES[2], 64), 1, OPTIONS))
    assert 4 < count < 5
    assert control == FIXED + 4 * 8


def test_every_point_is_an_experiment() -> None:
    for point in chain(*parts([8, 16]).values()):
        made = experiment(point, 3, OPTIONS)
        assert made.seed == 3
        assert (made.protocol.name in ALTERNATIVES) == (point.name in ALTERNATIVES)
        assert not isnan(made.workload.duration)
