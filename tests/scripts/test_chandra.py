"""The judges of the claims on KS and KS', on made-up percentages."""

import pytest

from scripts.reproductions import Claim
from scripts.reproductions.chandra import (
    ALL,
    CLAIMS,
    COUNTINGS,
    Counted,
    Counting,
    Curve,
    Curves,
    percentages,
)

FREQUENT: dict[int, tuple[Curve, Curve]] = {  # Figs. 6-8
    1: ({0.1: 20, 1: 18}, {0.1: 9, 1: 9}),
    2: ({0.1: 10, 1: 10}, {0.1: 9, 1: 9}),
    3: ({0.1: 10, 1: 10}, {0.1: 9, 1: 9}),
    4: ({0.1: 20, 1: 18}, {0.1: 9, 1: 9}),
}
KS_OF_SIZE: Curve = {15: 25, 45: 10, 62: 7, 100: 4}
GOOD: dict[int, dict[int, tuple[Curve, Curve]]] = {  # by figure and setting: KS and KS'
    3: {
        1: (KS_OF_SIZE, {15: 15}),
        2: (KS_OF_SIZE, {15: 15}),
        3: (KS_OF_SIZE, {15: 15, 45: 9, 62: 7, 100: 6}),
        4: (KS_OF_SIZE, {15: 15, 45: 10, 62: 8, 100: 6}),
    },
    4: {setting: ({50: 5, 100: 8, 200: 8}, {}) for setting in ALL},
    5: {setting: ({50: 19, 200: 15, 400: 15}, {50: 10, 200: 9, 400: 9}) for setting in ALL},
    6: FREQUENT,
    7: FREQUENT,
    8: FREQUENT,
}
KS, PRIME = False, True
Change = tuple[int, bool, Curve]  # setting, of KS or of KS', what is different
Case = tuple[
    list[Change], list[Change]
]  # what a claim tolerates in a setting, and what it does not


def edge(prime: bool, x: float, last: float, first: float, *settings: int) -> Case:
    """The last percentage at x that is tolerated in some settings, and the first that is not."""
    return [(s, prime, {x: last}) for s in settings], [(s, prime, {x: first}) for s in settings]


def constant(*settings: int) -> Case:
    return edge(KS, 1, 11.6, 11.7, *settings)


def slight_fall(*settings: int) -> Case:
    tolerable: list[Change] = [(s, KS, {1: y}) for s in settings for y in (16.1, 19.9)]
    return tolerable, [(s, KS, {1: y}) for s in settings for y in (16, 20)]


def lower(figure: int, x: float, *settings: int) -> Case:
    ks = {s: GOOD[figure][s][0][x] for s in settings}
    return [(s, PRIME, {x: ks[s] - 0.1}) for s in ks], [(s, PRIME, {x: ks[s]}) for s in ks]


CASES: dict[tuple[str, str], Case] = {
    ("3", "KS, n = 100, S1 to S4"): (
        [(1, KS, {100: 5}), (4, KS, {100: 3})],
        [(1, KS, {100: 5.1}), (4, KS, {100: 2.9})],
    ),
    ("3", "KS, n = 15, S1 to S4"): (
        [(2, KS, {15: 31.25}), (3, KS, {15: 18.75})],
        [(2, KS, {15: 31.3}), (3, KS, {15: 18.7})],
    ),
    ("3", "KS', n = 15, S1 to S4"): (
        [(2, PRIME, {15: 18.75}), (3, PRIME, {15: 11.25})],
        [(2, PRIME, {15: 18.8}), (3, PRIME, {15: 11.2})],
    ),
    ("3", "KS, from the smallest n to the largest"): edge(KS, 45, 25, 25.1, *ALL),
    ("3", "KS below KS' from, S3"): (  # 46.5 to 77.5
        [(3, PRIME, {62: 6.2})],
        [(3, PRIME, {62: 5}), (3, PRIME, {45: 10, 62: 7.1}), (3, PRIME, {100: 3})],
    ),
    ("3", "KS below KS' from, S4"): (  # 33.75 to 56.25
        [(4, PRIME, {45: 9.5})],
        [(4, PRIME, {45: 6}), (4, PRIME, {45: 17}), (4, PRIME, {62: 7, 100: 3})],
    ),
    ("4", "KS, n = 15 (S1, S2, S4)"): edge(KS, 100, 34.9, 35, 1, 2, 4),
    ("4", "KS, n = 40 (S3)"): edge(KS, 100, 10.9, 11, 3),
    ("4", "KS, MTT growing"): (
        [(s, KS, {200: 9.1}) for s in ALL],
        [(s, KS, {200: y}) for s in ALL for y in (5, 9.3)],
    ),
    ("5", "KS, n = 20 (S2 to S4)"): edge(KS, 50, 19.9, 20, 2, 3, 4),
    ("5", "KS', n = 20 (S2 to S4)"): edge(PRIME, 50, 11.9, 12, 2, 3, 4),
    ("5", "KS, MIMT from 200 ms on"): edge(KS, 400, 17.4, 17.5, *ALL),
    ("5", "KS' and KS"): lower(5, 200, *ALL),
    ("6", "KS, M/T growing (S2, S3)"): constant(2, 3),
    ("6", "KS, M/T growing (S1, S4)"): slight_fall(1, 4),
    ("6", "KS', M/T growing"): edge(PRIME, 1, 10.4, 10.5, *ALL),
    ("6", "KS' and KS"): lower(6, 1, *ALL),
    ("7", "KS, |Dests|/n growing (S2, S3)"): constant(2, 3),
    ("7", "KS, |Dests|/n growing (S1, S4)"): slight_fall(1, 4),
    ("8", "KS, B/T growing (S2, S3)"): constant(2, 3),
    ("8", "KS, B/T growing (S1, S4)"): slight_fall(1, 4),
    ("8", "KS' and KS (S1, S3, S4)"): lower(8, 1, 1, 3, 4),
}


def curves(counting: Counting) -> Curves:
    return {
        (figure, setting, counting[prime]): curve
        for figure, settings in GOOD.items()
        for setting, both in settings.items()
        for prime, curve in enumerate(both)
    }


def verdicts(claim: Claim[Counted], counting: Counting, change: Change) -> list[bool]:
    """Whether a claim holds in each of its settings if one of them is different."""
    setting, prime, values = change
    found = curves(counting)
    place = (int(claim.said[0]), setting, counting[prime])
    holds = claim.judge(Counted(found | {place: found[place] | values}, counting)).holds
    assert isinstance(holds, list)
    return holds


@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.said[0]}: {claim.said[1]}")
def test_a_claim_holds_for_some_numbers_and_not_for_others(
    claim: Claim[Counted], counting: Counting
) -> None:
    figure, words, _ = claim.said
    tolerable, intolerable = CASES[figure, words]
    for change in ((1, KS, {}), *tolerable):
        assert all(verdicts(claim, counting, change)), change
    for change in intolerable:
        assert verdicts(claim, counting, change).count(False) == 1, change


def test_percentages_count_integers_in_both_ways_and_average_over_seeds() -> None:
    run = {
        "nodes": 8,
        "control_copies": 2,
        "control_integers": 64,
        "control_entries": 16,
        "control_destinations": 8,
        "control_empty_entries": 4,
    }
    twice = run | {"control_integers": 128}
    found = percentages([run, twice])
    assert found == {
        COUNTINGS[0].ks: 75,
        COUNTINGS[1].ks: 62.5,
        COUNTINGS[0].ks_prime: 12.5,
        COUNTINGS[1].ks_prime: 21.875,
    }
