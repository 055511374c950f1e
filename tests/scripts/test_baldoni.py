"""The judges of the daisy's claims, on made-up numbers."""

import pytest

from scripts.reproductions import Claim
from scripts.reproductions.baldoni import CLAIMS, CURVES, DAISIES, Found, Measured, group_size
from tests.scripts.judged import Case, edge, hold_against

TWO, THREE, FOUR = DAISIES.values()
GOOD = {
    (name, nodes): Measured(
        control=(40 if nodes == 10 else 60) if name in DAISIES.values() else 1000,
        copies=1,
        broadcasts=1,
        datagrams=1,
        delay=20,
        within=5,
        across=40 + 10 * CURVES.index(name),
    )
    for name in CURVES
    for nodes in (10, 100)
}
CASES: dict[str, Case] = {
    **{
        f"{levels} levels: control grows far slower than n": edge((name, 100), "control", 199, 200)
        for levels, name in DAISIES.items()
    },
    "the daisy attaches less than protocols without groups": (
        [{("timestamp", 100): {"control": 61}}, {("ks", 10): {"control": 1}}],
        [{(name, 100): {"control": 60}} for name in ("timestamp", "rst", "ks")],
    ),
    "messages that cross groups take longer": (
        [{(TWO, 100): {"within": 39.9}}, {(TWO, 10): {"within": 90}}],
        [{(name, 100): {"within": 60}} for name in (TWO, THREE, FOUR)],
    ),
    "the more levels, the longer": (
        [{(THREE, 100): {"across": 40}}, {(THREE, 10): {"across": 1}}],
        [{(THREE, 100): {"across": 39.9}}, {(FOUR, 100): {"across": 49.9}}],
    ),
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.said[0])
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Found]) -> None:
    hold_against(claim, GOOD, CASES[claim.said[0]])


def test_groups_on_all_levels_are_of_one_size() -> None:
    assert [group_size(64, levels) for levels in (2, 3, 4)] == [8, 4, 3]
    assert group_size(2, 4) == 2
