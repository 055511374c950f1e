"""The judges of the claims of Mostefaoui and Raynal, on made-up numbers."""

from typing import Any

import pytest

from scripts.reproductions.claims import Claim, any_of
from scripts.reproductions.mostefaoui.claims import CLAIMS, FEW, VARIED, Found
from scripts.reproductions.mostefaoui.points import (
    BSS,
    LOCK_STEP,
    ONE,
    ONE_GROUP,
    PANELS,
    PLAIN,
    Measured,
    Where,
    experiment,
)
from tests.scripts.judged import Case, Change, hold_against

NOISE = (-1, 1, -1, 1)  # of four seeds


def seeds(mean: float, noise: float = 0.001) -> Any:
    return tuple(mean * (1 + noise * sign) for sign in NOISE)


def good(panel: str, index: int, value: str, protocol: str) -> Measured:
    groups = int(value) if panel == "groups" else 6
    means = {
        "stamp": {BSS: 24 * groups, ONE: 4}.get(protocol, 4 * groups),
        "control": 144 if protocol == BSS else 100,
        "resynchs": {BSS: 0, ONE: 9}.get(protocol, 3),
        "resynchs_sent": 0 if value == LOCK_STEP else 300 / (1 + index),
        "delay": {BSS: 6, ONE: 20 + index}.get(protocol, 10 + index),
        "added": max(0, index - 1) if panel == "synchrony" and protocol != BSS else 0,
        "held": 0,
        "memory": 144 if protocol == BSS else 50,
        "hops": 20 if value == "sender" else 15,
    }
    exact = ("stamp", "added")
    return Measured(**{k: seeds(m, 0 if k in exact else 0.001) for k, m in means.items()})


GOOD = {
    Where(name, value, protocol): good(name, index, value, protocol)
    for name, panel in PANELS.items()
    for index, value in enumerate(panel.values)
    for protocol in panel.protocols
}


def edge(point: Any, figure: str, tolerable: float, intolerable: float) -> Case:
    both = (tolerable, intolerable)
    yes, no = ([{point: {figure: seeds(mean, 1e-6)}}] for mean in both)
    return yes, no


def trade_off(panel: str) -> Case:
    first, *others = PANELS[panel].values
    dear: Change = {(panel, value, PLAIN): {"control": seeds(145)} for value in others}
    late: Change = {(panel, first, PLAIN): {"delay": seeds(6.1)}}
    early: Change = {(panel, first, PLAIN): {"delay": seeds(5.9)}}
    return [dear, late], [dear | {(panel, first, PLAIN): {"control": seeds(145)}}, early]


CASES: dict[str, Case] = {
    "stamps of 4|G| bytes, one integer: 4, BSS: 4Σ|g|": (
        [],
        [
            {("groups", "6", PLAIN): {"stamp": seeds(25)}},
            {("groups", "16", BSS): {"stamp": seeds(383)}},
            {("groups", "2", ONE): {"stamp": seeds(8)}},
        ],
    ),
    "BSS delivers as early as possible (ms added)": (
        [{("size", "4", PLAIN): {"added": seeds(1)}}],
        [{("size", "4", BSS): {"added": seeds(0.001)}}],
    ),
    "in lock-step no resynch is sent": (
        [{("synchrony", "at once", PLAIN): {"resynchs_sent": seeds(1)}}],
        [{("synchrony", LOCK_STEP, PLAIN): {"resynchs_sent": seeds(1)}}],
    ),
    "in lock-step deliveries are optimal: one group (ms added)": (
        [{("synchrony", LOCK_STEP, PLAIN): {"added": seeds(1)}}],
        [{("synchrony", ONE_GROUP, PLAIN): {"added": seeds(0.001)}}],
    ),
    "… and with several groups (ms added)": (
        [{("synchrony", ONE_GROUP, PLAIN): {"added": seeds(1)}}],
        [{("synchrony", LOCK_STEP, PLAIN): {"added": seeds(0.001)}}],
    ),
    "the more synchronous, the nearer to optimal (ms added)": edge(
        ("synchrony", "at once", PLAIN), "added", 1.9, 2.1
    ),
    "a timer decreases the number of resynchs": edge(
        ("timer", "10", PLAIN), "resynchs_sent", 299, 301
    ),
    f"… with one busy sender at least {FEW} times": edge(
        ("timer-one", "10", PLAIN), "resynchs_sent", 99, 101
    ),
    "a longer timer delays deliveries (ms)": edge(("timer", "5", PLAIN), "delay", 11.1, 10.9),
    **{f"trade-off, {PANELS[panel].title}": trade_off(panel) for panel in VARIED},
    "M–R keeps less than BSS": edge(("size", "4", PLAIN), "memory", 143, 145),
    "one integer: more resynchs than M–R": edge(("size", "4", ONE), "resynchs", 3.1, 2.9),
    "one integer: later deliveries than M–R": edge(("overlap", "3", ONE), "delay", 13.1, 12.9),
    **{
        f"the network multicasts: fewer links crossed, {protocol}": edge(
            ("multicast", "network", protocol), "hops", 19, 21
        )
        for protocol in (PLAIN, ONE, BSS)
    },
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says)
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Found]) -> None:
    hold_against(claim, GOOD, CASES[claim.says])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says)
def test_what_differs_too_much_from_seed_to_seed_decides_nothing(claim: Claim[Found]) -> None:
    mean = dict.fromkeys(Measured._fields, 1.0)
    wild = {where: Measured(**{k: seeds(m, 0.9) for k, m in mean.items()}) for where in GOOD}
    other = {where: Measured(*(each[::-1] for each in its)) for where, its in wild.items()}
    mixed = {where: (wild if n % 2 else other)[where] for n, where in enumerate(GOOD)}
    assert claim.judge(mixed).holds is not True


@pytest.mark.parametrize(
    ("answers", "one"), [([False, True], True), ([False, None], None), ([False, False], False)]
)
def test_one_yes_is_enough_for_some(answers: Any, one: Any) -> None:
    assert any_of(answers) is one


def test_every_point_is_an_experiment() -> None:
    for panel, value, protocol in GOOD:
        made = experiment(panel, value, protocol, 3, 400.0)
        assert (made.seed, made.workload.duration) == (3, 400_000_000)
