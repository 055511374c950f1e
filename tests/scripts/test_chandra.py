"""The judges of the claims on KS and KS', on made-up percentages."""

import pytest

from scripts.reproductions.chandra.claims import CLAIMS
from scripts.reproductions.chandra.points import (
    ALL,
    COPY,
    EVENTS,
    FIGURES,
    MESSAGE,
    PROCESS,
    ROUNDS,
    TURNS,
    WEIGHTINGS,
    Found,
    Measured,
    Point,
    Size,
    experiment,
    measured,
    points,
)
from scripts.reproductions.chandra.readings import (
    KS,
    KS_PRIME,
    LITERAL,
    PAPER,
    PRINTED,
    READINGS,
    SHORTER,
    Curves,
    Reading,
)
from scripts.reproductions.claims import UNJUDGED, CannotJudgeError, Claim, judged

NOISE = (-1, 1) * 5  # of ten seeds
Place = tuple[int, int, float]  # figure, setting, x
Percent = dict[str, float]  # of KS, of KS', and of their logs
Change = dict[Place, Percent]
LOG, LOG_PRIME = "log", "log'"


def good(figure: int, setting: int, x: float) -> Percent:
    """Percentages for which all claims hold."""
    if figure == 3:
        ks = 25 if x == 15 else 380 / x
        meet = {3: 62, 4: 45}.get(setting, 50)
        prime = ks * (0.6 if x == 15 else 1 + (x - meet) / 100)
    elif figure == 4:
        ks = (10 if setting == 3 else 30) * (0.95 if x == 50 or x == 20 else 1)
        prime = ks if setting == 3 else ks / 2
    elif figure == 5:
        ks, prime = 19, 11
        ks = 15 if x == 50 and setting in (2, 3) else ks
    else:
        ks = 19 if x == 1 and setting in (1, 4) else 20
        prime = {7: 19.5, 8: 20.5}.get(figure, 10) if setting == 2 else 10
    return {KS: ks, KS_PRIME: prime, LOG: 1.1 * ks, LOG_PRIME: 1.2 * prime}


def run(nodes: int, its: Percent, noise: float) -> Measured:
    """A run in which Fig. 2's counting gives these percentages."""
    n2 = nodes**2 * (1 + noise) / 100
    array = nodes**2 / 32
    message = Size(0, 0, its[KS_PRIME] * n2 - array, own=its[KS] * n2)
    log = Size(0, its[LOG] * n2, its[LOG_PRIME] * n2 - array - its[LOG] * n2)
    return Measured(nodes, dict.fromkeys(WEIGHTINGS, message), log)


def found(change: Change | None = None, noise: float = 0.001) -> Found:
    made: Found = {}
    for point in points([*FIGURES], [], few=False):
        its = good(*point[1:]) | (change or {}).get(point[1:], {})
        nodes = int(point.x) if point.figure == 3 else 40
        made[point] = [run(nodes, its, noise * sign) for sign in NOISE]
    return made


def edge(place: Place, whose: str, *limits: float) -> tuple[list[Change], list[Change]]:
    """The last percentages that are tolerated, and the first that are not, in turn."""
    changes: list[Change] = [{place: {whose: limit}} for limit in limits]
    return changes[::2], changes[1::2]


def both(*cases: tuple[list[Change], list[Change]]) -> tuple[list[Change], list[Change]]:
    return [c for yes, _ in cases for c in yes], [c for _, no in cases for c in no]


def steady(
    figure: int, setting: int, x: float, whose: str = KS
) -> tuple[list[Change], list[Change]]:
    """A curve of at least five points leaves its mean by less than a tenth, and by more."""
    level = good(figure, setting, x)[whose]
    return edge((figure, setting, x), whose, 1.07 * level, 1.2 * level, 0.93 * level, 0.8 * level)


CASES: dict[tuple[str, str], tuple[list[Change], list[Change]]] = {
    ("4.1, Fig. 3", "only 4 percent"): edge((3, 2, 100), KS, 4.4, 4.6, 3.6, 3.4),
    ("5", "less than 4 percent"): edge((3, 3, 100), KS, 3.9, 4.1),
    ("4.1, Fig. 3", "KS about 25 percent"): edge((3, 2, 15), KS, 34, 36, 16, 14),
    ("4.1, Fig. 3", "KS' about 15 percent"): edge((3, 4, 15), KS_PRIME, 24, 26),
    ("4.1, Fig. 3", "the percentage falls"): edge((3, 1, 20), KS, 13, 12),
    ("4.1, 5", "almost linear in n"): (
        [{(3, 1, n): {KS: 380 / n * (n / 10) ** 0.2} for n in FIGURES[3].values[0].all}],
        [{(3, 1, n): {KS: 380 / n * (n / 10) ** 0.35} for n in FIGURES[3].values[0].all}],
    ),
    ("4.1, Fig. 3", "unicast or a multicast"): edge((3, 4, 40), KS, 10.9, 12),
    ("4.1, Fig. 3", "KS' is much more efficient"): edge((3, 3, 10), KS_PRIME, 37, 39),
    ("4.1, Fig. 3", "KS outperforms KS'"): edge((3, 1, 100), KS_PRIME, 3.9, 3.7),
    ("4.1, Fig. 3", "curves are close together"): edge((3, 1, 100), KS_PRIME, 10, 30),
    ("4.1, Fig. 3", "threshold of S3"): edge((3, 3, 60), KS_PRIME, 6.3, 8),
    ("4.1, Fig. 3", "threshold of S4"): edge((3, 4, 50), KS_PRIME, 8.2, 7),
    ("4.2, Fig. 4", "never more than 35"): edge((4, 4, 200), KS, 34, 36),
    ("4.2, Fig. 4", "less than 11"): edge((4, 3, 200), KS, 10.9, 11.1),
    ("4.2, Fig. 4", "first rises"): edge((4, 2, 6000), KS, 32, 34, 29, 28),
    ("4.2, Fig. 4", "noticeably outperforms"): edge((4, 1, 20), KS_PRIME, 28, 29),
    ("4.2, Fig. 4", "very close together in S3"): edge((4, 3, 100), KS_PRIME, 9.1, 8.9, 10.9, 11.1),
    ("4.2, Fig. 4", "more multicasts"): edge((4, 4, 400), KS, 32, 34, 28, 26),
    ("4.3, Fig. 5", "KS less than 20"): edge((5, 2, 400), KS, 19.9, 20.1),
    ("4.3, Fig. 5", "KS' less than 12"): edge((5, 3, 12000), KS_PRIME, 11.9, 12.1),
    ("4.3, Fig. 5", "S1 and S4 everywhere"): steady(5, 4, 50),
    ("4.3, Fig. 5", "S2 and S3 but for low"): both(
        steady(5, 3, 200), ([{(5, 2, 100): {KS: 99}}], [])
    ),
    ("4.3", "beyond 1,200 ms"): both(
        edge((5, 3, 12000), KS, 20, 25), ([{(5, 3, 800): {KS: 99}}], [])
    ),
    ("4.3, Fig. 5", "KS' is noticeably lower"): edge((5, 1, 50), KS_PRIME, 18, 20),
    ("4.4, Fig. 6", "KS' is lower"): edge((6, 2, 1), KS_PRIME, 19, 21),
    ("4.4, Fig. 7", "equal or marginally lower"): edge((7, 2, 1), KS_PRIME, 19.9, 20.1, 18.1, 17.9),
    ("4.4, Fig. 8", "S1, S3 and S4"): edge((8, 3, 1), KS_PRIME, 19, 21),
    ("4.4, Fig. 8", "marginally more"): edge((8, 2, 1), KS_PRIME, 20.1, 19.9, 21.9, 22.1),
    ("1, 4", "messages, KS"): edge((6, 2, 0.5), LOG, 23.5, 26),
    ("1, 4", "messages, KS'"): edge((6, 1, 0.5), LOG_PRIME, 12.8, 14),
    **{
        (f"4.4, Fig. {figure}", words): case
        for figure in (6, 7, 8)
        for words, case in (
            ("KS is constant", steady(figure, 3, 0.5)),
            ("very slight decrease", edge((figure, 4, 1), KS, 18.1, 17.9, 19.9, 20.1)),
            ("KS' is unaffected", steady(figure, 1, 0.5, KS_PRIME)),
        )
    },
}  # fmt: skip
APART = ("the time overhead", "ten runs differ")


def case_of(claim: Claim[Curves]) -> tuple[list[Change], list[Change]]:
    fitting = [
        (where, words) for where, words in CASES if where == claim.where and words in claim.says
    ]
    return CASES[max(fitting, key=lambda case: len(case[1]))]


@pytest.mark.parametrize(
    "claim",
    [claim for claim in CLAIMS if not claim.says.startswith(APART)],
    ids=lambda claim: f"{claim.where}: {claim.says}",
)
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Curves]) -> None:
    tolerable, intolerable = case_of(claim)
    for change in ({}, *tolerable):
        assert claim.judge(Curves(found(change))).holds is True, change
    for change in intolerable:
        assert claim.judge(Curves(found(change))).holds is False, change


def test_what_the_seeds_do_not_decide_is_unclear() -> None:
    verdicts = {each.says: each.verdict for each in judged(CLAIMS, Curves(found(noise=0.5)))}
    assert verdicts["15 processes: KS about 25 percent"] == "unclear"
    assert verdicts["n = 20: KS less than 20 percent"] == "unclear"


def test_runs_agree_if_they_differ_by_no_more_than_a_percent() -> None:
    (claim,) = (claim for claim in CLAIMS if claim.says.startswith("ten runs differ"))
    for noise, holds in ((0.0049, True), (0.0051, False)):
        assert claim.judge(Curves(found(noise=noise))).holds is holds
    three = {point: runs[:3] for point, runs in found().items()}
    with pytest.raises(CannotJudgeError, match="10 runs of a point, and here are 3"):
        claim.judge(Curves(three))


def test_claims_whose_points_were_not_run_are_not_judged() -> None:
    few = {point: runs for point, runs in found().items() if point.figure == 3 and point.x <= 20}
    verdicts = {each.says: each.verdict for each in judged(CLAIMS, Curves(few))}
    assert verdicts["15 processes: KS about 25 percent"] == "yes"
    for words in ("threshold", "100 processes", "Fig. 4", "S2: KS'"):
        assert {v for says, v in verdicts.items() if words in says} <= {UNJUDGED}, words


def test_one_size_tells_nothing_of_a_shape() -> None:
    one = {point: runs for point, runs in found().items() if point.figure == 3 and point.x == 15}
    verdicts = {each.says: each.verdict for each in judged(CLAIMS, Curves(one))}
    assert verdicts["15 processes: KS about 25 percent"] == "yes"
    for words in ("falls", "linear", "close together", "logs follow", "threshold"):
        assert {v for says, v in verdicts.items() if words in says} == {UNJUDGED}, words


def test_integers_are_counted_in_all_ways() -> None:
    size = Size(entries=2, destinations=5, empty=1, own=6)
    runs = [Measured(8, {COPY: size, MESSAGE: size, PROCESS: size}, Size(4, 10, 2))]
    made = {Point(TURNS, 3, 1, 8.0): runs}
    expected = {
        PRINTED: (6 + 3 * 2 + 5, 2 + 5 + 1, 3 * 4 + 10),
        LITERAL: (6 + 3 * 2 + 5, 2 + 2, 3 * 4 + 10),
        SHORTER: (6 + 2 * 2 + 5, 2 + 2 + 5, 2 * 4 + 10),
    }
    for counting, integers in expected.items():
        curves = Curves(made, Reading(counting=counting))
        values = (curves(3, 1), curves(3, 1, KS_PRIME), curves(3, 1, log=True))
        assert [its[8.0] for its in values] == [(100 * i / 64,) for i in integers]
    with pytest.raises(LookupError):
        Curves(made, Reading(EVENTS))(3, 1)
    assert READINGS["turns, Fig. 2"] == PAPER


def test_a_summary_tells_the_parts_of_messages_and_logs_by_weighting() -> None:
    row = {"nodes": 8, "control_copies": 2}
    row |= {"control_integers": 40, "control_entries": 4, "control_destinations": 10}
    row |= {"control_empty_entries": 2}
    for weight, suffix in ((30, "mean"), (60, "mean_of_processes")):
        row |= {f"message_integers_{suffix}": weight, f"message_entries_{suffix}": 3}
        row |= {f"message_destinations_{suffix}": 6, f"message_empty_entries_{suffix}": 1}
    row |= {"log_integers_mean_of_processes": 20, "log_entries_mean_of_processes": 4}
    row |= {"log_empty_entries_mean_of_processes": 2}
    assert measured(row) == Measured(
        8,
        {COPY: Size(2, 5, 1, 9), MESSAGE: Size(3, 6, 1, 15), PROCESS: Size(3, 6, 1, 45)},
        Size(4, 8, 2),
    )


def test_points_are_experiments_by_every_clock() -> None:
    every = points([*FIGURES], [3, 8], few=True)
    assert {point.clock for point in every if point.figure == 3} == {TURNS, ROUNDS, EVENTS}
    assert {point.clock for point in every if point.figure == 8} == {TURNS, EVENTS}
    assert {point.clock for point in every if point.figure == 5} == {TURNS}
    assert {point.setting for point in every} == {*ALL}
    made = {
        clock: experiment(Point(clock, 3, 2, 15.0), 7, 600) for clock in (TURNS, ROUNDS, EVENTS)
    }
    assert {clock: (e.topology.turn_ms, e.topology.clock) for clock, e in made.items()} == {  # type: ignore[attr-defined]
        TURNS: (500, "turns"), ROUNDS: (500, "rounds"), EVENTS: (0, "turns"),
    }  # fmt: skip
    assert {(e.seed, e.workload.warm_up_messages) for e in made.values()} == {(7, 100)}
