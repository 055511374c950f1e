"""The judges of the claims of Mostefaoui and Raynal, on made-up numbers."""

import pytest

from scripts.reproductions import Claim
from scripts.reproductions.mostefaoui import (
    BSS,
    CLAIMS,
    LOCK_STEP,
    ONE_GROUP,
    PANELS,
    PLAIN,
    Found,
    Measured,
)
from tests.scripts.judged import Case, Change, edge, hold_against


def good(panel: str, index: int, value: str, protocol: str) -> Measured:
    groups = int(value) if panel == "groups" else 6
    return Measured(
        stamp=(24 if protocol == BSS else 4) * groups,
        control=144 if protocol == BSS else 100,
        resynchs=0,
        resynchs_sent=0 if value == LOCK_STEP else 300 / (1 + index),
        delay=6 if protocol == BSS else 10 + index,
        added=max(0, index - 1) if panel == "synchrony" and protocol != BSS else 0,
        held=0,
    )


GOOD = {
    (name, value, protocol): good(name, index, value, protocol)
    for name, panel in PANELS.items()
    for index, value in enumerate(panel.values)
    for protocol in panel.protocols
}


def trade_off(panel: str) -> Case:
    first, *others = PANELS[panel].values
    dear: Change = {(panel, value, PLAIN): {"control": 144} for value in others}
    late = {(panel, first, PLAIN): {"delay": 6.01}}
    as_early = {(panel, first, PLAIN): {"delay": 6.0}}
    return [dear, late], [dear | {(panel, first, PLAIN): {"control": 144}}, as_early]


CASES: dict[str, Case] = {
    "stamps of 4|G| bytes, BSS: 4Σ|g|": (
        [],
        [{("groups", "6", PLAIN): {"stamp": 25}}, {("groups", "16", BSS): {"stamp": 383}}],
    ),
    "BSS delivers as early as possible": (
        [{("size", "4", PLAIN): {"added": 1}}],
        [{("size", "4", BSS): {"added": 0.001}}],
    ),
    "in lock-step no resynch is sent": (
        [{("synchrony", "at once", PLAIN): {"resynchs_sent": 1}}],
        [{("synchrony", LOCK_STEP, PLAIN): {"resynchs_sent": 1}}],
    ),
    "… and deliveries are optimal: one group": (
        [{("synchrony", LOCK_STEP, PLAIN): {"added": 1}}],
        [{("synchrony", ONE_GROUP, PLAIN): {"added": 0.001}}],
    ),
    "… several groups": (
        [{("synchrony", ONE_GROUP, PLAIN): {"added": 1}}],
        [{("synchrony", LOCK_STEP, PLAIN): {"added": 0.001}}],
    ),
    "the more synchronous, the nearer to optimal": (
        [
            {("synchrony", "at once", PLAIN): {"added": 2}},
            {("synchrony", ONE_GROUP, PLAIN): {"added": 9}},
        ],
        [{("synchrony", "at once", PLAIN): {"added": 2.1}}],
    ),
    "a timer decreases the number of resynchs": edge(
        ("timer", "10", PLAIN), "resynchs_sent", 300, 301
    ),
    "… one busy sender: at least 3 times": edge(
        ("timer-one", "10", PLAIN), "resynchs_sent", 100, 101
    ),
    "a longer timer delays deliveries": (
        [{("timer", "5", PLAIN): {"delay": 11}}],
        [{("timer", "5", PLAIN): {"delay": 10.9}}, {("timer", "40", PLAIN): {"delay": 13.9}}],
    ),
    **{
        f"trade-off, {PANELS[panel].title}": trade_off(panel)
        for panel in ("groups", "size", "overlap", "senders", "interval")
    },
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.said[1])
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Found]) -> None:
    hold_against(claim, GOOD, CASES[claim.said[1]])
