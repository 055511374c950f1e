"""Claims and verdicts: yes, no, unclear, or that nothing can be judged; none is left out."""

from typing import Any

import pytest

from scripts.reproductions.baldoni.claims import CLAIMS as BALDONI
from scripts.reproductions.claims import (
    NO,
    UNCLEAR,
    UNJUDGED,
    YES,
    CannotJudgeError,
    Claim,
    Finding,
    all_of,
    any_of,
    judged,
    judges,
    tally,
)
from scripts.reproductions.gidenstam.claims import CLAIMS as GIDENSTAM
from scripts.reproductions.intervals import cell, shown
from scripts.reproductions.mostefaoui.claims import CLAIMS as MOSTEFAOUI


@judges("{what} against {limits}", "less than each; {why}")
def small(
    found: dict[str, float], what: str, *limits: float, why: str = "by any margin"
) -> Finding:
    value = found[what]
    if value == 0:
        raise CannotJudgeError("there is none of it")
    return Finding(f"{value:g}", None if value in limits else value < min(limits))


CLAIMS = [Claim(f"§ {n}", f"{what} is small", small(what, 5, 7)) for n, what in enumerate("abcde")]
FOUND: dict[str, float] = {"a": 1, "b": 9, "c": 5, "d": 0}


def test_every_claim_has_a_verdict_and_what_was_measured_or_why_not() -> None:
    found = judged(CLAIMS, FOUND)
    assert [its.verdict for its in found] == [YES, NO, UNCLEAR, UNJUDGED, UNJUDGED]
    missing = "not run at this scale: e"
    assert [its.measured for its in found] == ["1", "9", "5", "there is none of it", missing]
    assert tally(found) == {YES: 1, NO: 1, UNCLEAR: 1, UNJUDGED: 2}


def test_a_judge_says_what_it_compares_and_by_which_rule() -> None:
    (its, *_) = judged(CLAIMS, FOUND)
    assert its[:4] == ("§ 0", "a is small", "a against 5, 7", "less than each; by any margin")
    assert small("a", 5, why="or so").rule == "less than each; or so"


def test_a_claim_about_several_settings_names_those_in_which_it_does_not_hold() -> None:
    assert Finding.of_each("1, 2", {"S1": True, "S2": True}) == Finding("1, 2", True)
    mixed = Finding.of_each("1, 9", {"S1": True, "S2": False, "S3": None, "S4": True})
    assert mixed == Finding("1, 9 (yes at S1, S4; no at S2; unclear at S3)", False)
    assert Finding.of_each("1, 5", {"S1": True, "S2": None}).holds is None


@pytest.mark.parametrize("every", [all_of, any_of])
def test_without_an_answer_nothing_can_be_judged(every: Any) -> None:
    with pytest.raises(CannotJudgeError):
        every([])


@pytest.mark.parametrize("claims", [BALDONI, GIDENSTAM, MOSTEFAOUI], ids="bgm")
def test_what_was_not_run_is_said_and_not_left_out(claims: tuple[Claim[Any], ...]) -> None:
    found = judged(claims, {})
    assert len(found) == len(claims) == len({its.says for its in found})
    assert {its.verdict for its in found} == {UNJUDGED}
    assert all(its.where and its.compared and its.rule for its in found)


def test_an_interval_too_narrow_to_show_is_none() -> None:
    assert shown([1.28, 1.280001]) == "1.28 ± 0"
    assert shown([1.28, 1.30]) == "1.29 ± 0.13"


def test_large_numbers_are_written_out() -> None:
    assert shown([2000.0, 2500.0, 2300.0]) == "2,267 ± 625"
    assert shown([0.5, 0.6]) == "0.55 ± 0.64"
    assert [cell([7.25]).text, cell([]).text, cell([float("nan")]).text] == ["7.25", "", ""]
    assert cell([1.0, 2.0], ",.1f").text == "1.5"
