"""Section 4.4 of Gidenstam et al.: its judges on made-up numbers, and what is read from a log."""

import math

import pytest

from scripts.reproductions.claims import Claim
from scripts.reproductions.gidenstam.claims import CLAIMS as ALL_CLAIMS
from scripts.reproductions.gidenstam.tickets import (
    FAILING,
    ROUND,
    SHARES,
    Churn,
    Claims,
    Found,
    K,
    Measured,
    Sent,
    crashes,
    figures,
    measure,
)
from testbed.protocols.cluster.tickets.lease_messages import Alive, Voter

CLAIMS = [claim for claim in ALL_CLAIMS if claim.where == "§ 4.4"]


def measured(alpha: float, **other: float) -> Measured:
    """Numbers of two seeds for which every claim holds, but for some figures."""
    good = {"alive": 4.9, "messages": 5.9, "available": 0.99, "temporary": 0.9 / alpha}
    shown = {"exclusion": 9.0, "join": 3.0, "served": 1.0}
    values = {**good, **shown, **other}
    return Measured(**{key: (0.999 * value, 1.001 * value) for key, value in values.items()})


def found(**other: float) -> Found:
    return {Churn(a, p): measured(a, **other) for a in SHARES for p in FAILING}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says)
def test_claims_hold_for_good_numbers_only(claim: Claim[Found]) -> None:
    bad = {"alive": 5.1, "messages": 7.0, "available": 0.03, "temporary": 4.5}
    assert claim.judge(found()).holds is True
    assert claim.judge(found(**bad)).holds is False
    wide = {p: m._replace(**dict.fromkeys(bad, (0.0, 9.0))) for p, m in found().items()}
    assert claim.judge(wide).holds is None


def test_no_figure_is_judged_by_another() -> None:
    answers = [claim.judge(found(temporary=4.5)).holds for claim in CLAIMS]
    assert answers.count(False) == len(SHARES)


def test_what_a_log_says_of_one_crash() -> None:
    log = Claims()

    def claim(turn: float, node: int, owns: int | None, *assigns: int, since: float = 0) -> None:
        facts = {"owns": owns, "until": None, "assigns": assigns, "from": int(since * ROUND)}
        log.note(int(turn * ROUND), node, "tickets", facts)

    claim(0, 0, 3)
    claim(0, 1, 2)
    log.note(6 * ROUND, 1, "crash", {})
    log.note(7 * ROUND, 1, "restart", {})
    claim(8, 0, 3, 2, since=10)
    claim(12, 1, 2)
    claim(12, 0, 3)
    sent = Sent(messages=12, alive=5, rounds={(0, 1), (1, 1)})
    sent.add(Alive(0, 0, number=1, voter=Voter(0, 0)), 1)
    got = figures(log, sent, 25 * ROUND)
    assert got.alive == 3
    assert got.messages == 6.5
    assert got.available == 2 / 20  # from round 10 to 12, of rounds 5 to 25
    assert (got.exclusion, got.temporary) == (4, 2)
    assert got.join == 5
    assert got.served == 1


def test_where_nothing_happens_nothing_is_measured() -> None:
    log = Claims()
    log.note(0, 0, "tickets", {"owns": 0, "until": None, "assigns": (1,), "from": 0})
    got = figures(log, Sent(rounds={(0, 1)}), 20 * ROUND)
    assert got.available == 1
    assert math.isnan(got.exclusion)
    assert math.isnan(got.temporary)
    assert math.isnan(got.join)


def test_coordinators_crash_as_often_as_they_should_and_not_while_they_are_down() -> None:
    drawn = [fault for seed in range(200) for fault in crashes(0.5, 0.02, seed)]
    assert len(drawn) / (200 * 10 * 55) == pytest.approx(0.02, rel=0.1)
    assert {fault["node"] for fault in drawn} == set(range(10))


def test_a_run_of_a_cluster_whose_members_crash_is_measured() -> None:
    got = measure((Churn(0.5, 0.02), 1))
    assert 2 * K + 1 <= got.alive < 2 * K + 1.1  # words a round and member
    assert 0 < got.available < 1
    assert got.served > 0
