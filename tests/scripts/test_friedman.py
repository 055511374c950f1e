"""The judges of the claims on Overlay and Timestamp, on made-up numbers."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.reproductions.claims import UNJUDGED, Claim, judged
from scripts.reproductions.command import options_of
from scripts.reproductions.friedman import emulated
from scripts.reproductions.friedman.analysis import break_even
from scripts.reproductions.friedman.chapter import FRIEDMAN, plan, scale_of
from scripts.reproductions.friedman.claims import CLAIMS
from scripts.reproductions.friedman.crashes import Case, Survived, survived
from scripts.reproductions.friedman.judges import Results
from scripts.reproductions.friedman.points import (
    CLIQUE,
    CUBE,
    FIGURES,
    HYPERCAST,
    KEYS,
    NETWORK,
    ODD_SIZE,
    OVERLAY,
    UNICAST,
    Found,
    Measured,
    Point,
    Scale,
    experiment,
)
from scripts.reproductions.friedman.shown import FIGURE_PANELS, plot
from testbed.errors import UserError
from testbed.sweep.points import Sweep

SCALE = Scale((100, 200, 300), 5.0, (2.0, 5.0), (0.02, 0.03))
EMULATED = SCALE._replace(engine="virtual")
NOISE = (-1, 1, -1, 1)  # of four seeds
Change = dict[Any, dict[str, float]]  # of which point, or crashes: the figures that are different
SENDS = {100: 613, 200: 1425, 300: 2317, ODD_SIZE: 400}
LOADS = ("network_load_mean", "network_load_bytes_mean", "link_queue_max", "link_queue_bytes_max")


def seeds(mean: float, noise: float = 1e-4) -> tuple[float, ...]:
    return tuple(mean * (1 + noise * sign) for sign in NOISE)


def good(point: Point) -> Measured:
    """Figures for which all claims hold."""
    n, d, overlay = point.nodes, point.data, point.protocol == OVERLAY
    sends = (n - 1) ** 2 if point.overlay == CLIQUE else SENDS[n] if overlay else n - 1
    delay = {0: 10, 100: 40, 1000: 900}[d] if overlay else {0: 20, 100: 50, 1000: 200}[d]
    queue = 0 if overlay else n / 10
    fast = 200 if d == 100 else 1  # Overlay sends fewer bytes with 100 bytes of data at any size
    exact = {
        "multicasts": 10,
        "copies": 10 * sends,
        "control_bytes": 0 if overlay else 10 * sends * 4 * n,
        "bytes": 10 * sends * ((32 + d) if overlay else fast * (32 + 4 * n + d)),
        "delivery_queue_mean": queue,
        "delivery_queue_max": queue,
    }
    noisy = {
        "delay_ms_mean": delay,
        "delay_ms_max": delay,
        "messages": sends,
        "hops": 2 * sends,
        **dict.fromkeys(LOADS, delay),
    }
    if overlay and d == 0:
        noisy["link_queue_max"] = 15
    its = {figure: seeds(mean, 0) for figure, mean in exact.items()}
    return its | {figure: seeds(mean) for figure, mean in noisy.items()}


CRASHES = {
    **{Case(CUBE, n, k): Survived(9, 9, 1000, 1000) for n in SCALE.sizes for k in (6, 7, 8)},
    Case(CUBE, ODD_SIZE, 1): Survived(6, 6, 640, 640),
    Case(HYPERCAST, ODD_SIZE, 1): Survived(1, 1, 640, 630),
}


def results(change: Change | None = None) -> Results:
    found: Found = {point: good(point) for point in SCALE.points()}
    crashes = dict(CRASHES)
    for place, its in (change or {}).items():
        if isinstance(place, Case):
            crashes[place] = crashes[place]._replace(**its)  # type: ignore[arg-type]
        else:
            found[place] = found[place] | {figure: seeds(mean) for figure, mean in its.items()}
    return Results(found, SCALE, crashes)


def at(protocol: str, n: int, data: int, **figures: float) -> Change:
    return {Point(protocol, n, data): figures}


def edge(protocol: str, n: int, data: int, figure: str, *limits: float) -> Any:
    """The last values that are tolerated, and the first that are not, in turn."""
    changes = [at(protocol, n, data, **{figure: limit}) for limit in limits]
    return changes[::2], changes[1::2]


def flat(*places: tuple[str, int, int], **figures: float) -> Change:
    return {Point(*place): figures for place in places}


WORDS = {key: words for words, key in KEYS.items()}
SMALL, LARGE = SCALE.sizes[0], SCALE.sizes[-1]
CASES: dict[str, Any] = {
    "a message is sent O(n log n) times": (
        [at(OVERLAY, 100, 0, copies=6640)],
        [at(OVERLAY, 100, 0, copies=6650), at(NETWORK, 200, 0, copies=2000),
         at(OVERLAY, 100, 0, control_bytes=1), at(NETWORK, 200, 0, control_bytes=1)],
    ),
    "n/(log n - 1)": ([], [at(OVERLAY, 300, 1000, bytes=10 * 2317 * 1032 * 9)]),
    "overcome log n failures": ([], [{Case(CUBE, 300, 8): {"delivered": 999}}]),
    "fewer than log n nodes fail": ([], [{Case(CUBE, 100, 6): {"delivered": 999}}]),
    "fewer than the overlay's": ([{Case(CUBE, 100, 6): {"delivered": 999}}],
                                 [{Case(CUBE, 100, 8): {"delivered": 999}}]),
    "one has a single neighbour": (
        [], [{Case(CUBE, ODD_SIZE, 1): {"delivered": 639}},
             {Case(HYPERCAST, ODD_SIZE, 1): {"least_degree": 2}},
             {Case(HYPERCAST, ODD_SIZE, 1): {"delivered": 640}}],
    ),
    "flat clique": ([], [{SCALE.overlays()[2]: {"copies": 3900}}]),
    "Overlay delivers much faster (mean delay)": edge(OVERLAY, 200, 0, "delay_ms_mean", 19, 21),
    "Overlay delivers much faster (longest delay)": edge(OVERLAY, 300, 0, "delay_ms_max", 19, 21),
    "the difference decreases": edge(OVERLAY, 200, 100, "delay_ms_mean", 26, 24),
    "Timestamp becomes faster (mean delay)": edge(NETWORK, 100, 1000, "delay_ms_mean", 899, 901),
    "Timestamp becomes faster (longest delay)": edge(NETWORK, 100, 1000, "delay_ms_max", 899, 901),
    "more influenced": edge(OVERLAY, 100, 1000, "delay_ms_mean", 101, 99),
    **{f"data {d}: Timestamp generates fewer": edge(NETWORK, 200, d, "messages", 1424, 1426)
       for d in (0, 100, 1000)},
    **{f"data {d}: Timestamp takes fewer hops": edge(NETWORK, 200, d, "hops", 2849, 2851)
       for d in (0, 100, 1000)},
    "data 0: Overlay uses fewer bytes": edge(OVERLAY, 100, 0, "bytes", 427_000, 428_000),
    "data 100: Overlay uses fewer bytes": edge(OVERLAY, 100, 100, "bytes", 1e8, 2e8),
    "data 1000: Overlay sends more": edge(OVERLAY, 100, 1000, "bytes", 1_418_000, 1_417_000),
    "always empty": ([], [at(OVERLAY, 300, 100, delivery_queue_max=1)]),
    **{f"data {d}: Timestamp's delivery queues become longer with n ({WORDS[key]})":
       edge(NETWORK, LARGE, d, key, 11, 9)
       for d in (0, 100, 1000) for key in ("delivery_queue_mean", "delivery_queue_max")},
    **{f"where the links can carry the load ({WORDS[key]})":
       ([{SCALE.carried()[0]: {key: 29}}], [{SCALE.carried()[0]: {key: 31}}])
       for key in ("delivery_queue_mean", "delivery_queue_max")},
    **{f"little effect on Timestamp's queues ({WORDS[key]})":
       edge(NETWORK, 200, 1000, key, 39, 41, 11, 9)
       for key in ("delivery_queue_mean", "delivery_queue_max")},
    **{f"Timestamp has the larger mean load ({WORDS[key]})": edge(OVERLAY, 200, 0, key, 19, 21)
       for key in LOADS[:2]},
    "high maximum queue size": edge(OVERLAY, 100, 0, "link_queue_max", 11, 9),
    **{f"Overlay's increase in comparison ({WORDS[key]})":
       edge(NETWORK, 200, 100, key, *((53, 54) if key == "link_queue_max" else (79, 81)))
       for key in LOADS},
    **{f"they increase further ({WORDS[key]})": edge(OVERLAY, 200, 1000, key, 161, 159)
       for key in LOADS},
    **{f"Overlay has more ({WORDS[key]})": edge(OVERLAY, 300, 1000, key, 201, 199) for key in LOADS},
    "Overlay is faster, however long": (
        [{Point(OVERLAY, SMALL, 0, 2.0): {"delay_ms_mean": 19}}],
        [{Point(OVERLAY, SMALL, 0, 2.0): {"delay_ms_mean": 21}}],
    ),
    **{f"however long senders send ({WORDS[key]})":
       ([{Point(NETWORK, LARGE, 0, 2.0): {key: 11}}], [{Point(NETWORK, LARGE, 0, 2.0): {key: 9}}])
       for key in ("delivery_queue_mean", "delivery_queue_max")},
    **{f"data {d}: {words}, whatever":
       tuple([{Point(OVERLAY, 300, d, 5.0, 0.03): {key: value}}] for value in (yes, no))
       for words, key, d, yes, no in (
           ("Overlay is faster", "delay_ms_mean", 0, 19, 21),
           ("Timestamp is faster", "delay_ms_mean", 1000, 201, 199),
           ("Overlay loads the network less, in bytes", "network_load_bytes_mean", 0, 19, 21),
           ("Overlay loads the network more, in bytes", "network_load_bytes_mean", 1000, 201, 199),
       )},
}  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says)
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Claim[Results]) -> None:
    (case,) = (case for words, case in CASES.items() if words in claim.says)
    tolerable, intolerable = case
    for change in ({}, *tolerable):
        assert claim.judge(results(change)).holds is True, change
    for change in intolerable:
        assert claim.judge(results(change)).holds is False, change


def test_every_case_is_of_a_claim() -> None:
    assert all(any(words in claim.says for claim in CLAIMS) for words in CASES)


def test_empty_queues_and_a_single_size_give_no_verdict() -> None:
    empty = {point: {"delivery_queue_mean": 0.0} for point in SCALE.points()}
    verdicts = {each.says: each.verdict for each in judged(CLAIMS, results(empty))}
    unjudged = [says for says, verdict in verdicts.items() if verdict == UNJUDGED]
    assert len(unjudged) == 6
    assert all("(mean queue)" in says for says in unjudged)
    alone = results()._replace(scale=SCALE._replace(sizes=(100,)))
    verdicts = {each.says: each.verdict for each in judged(CLAIMS, alone)}
    assert {v for says, v in verdicts.items() if "become longer with n" in says} == {UNJUDGED}


def test_what_the_topologies_do_not_decide_is_unclear() -> None:
    found = results().found | {
        Point(OVERLAY, 100, 0): good(Point(OVERLAY, 100, 0)) | {"delay_ms_mean": (1, 90, 2, 3)}
    }
    verdicts = {each.says: each.verdict for each in judged(CLAIMS, results()._replace(found=found))}
    assert verdicts["data 0: Overlay delivers much faster (mean delay)"] == "unclear"
    assert verdicts["data 0: Overlay delivers much faster (longest delay)"] == "yes"


def test_the_other_timestamp_is_judged_by_its_own_figures() -> None:
    slow = results(at(UNICAST, 100, 1000, delay_ms_mean=901))
    says = "data 1000: Timestamp becomes faster (mean delay)"
    for timestamp, verdict in ((NETWORK, "yes"), (UNICAST, "no")):
        verdicts = judged(CLAIMS, slow._replace(timestamp=timestamp))
        assert {each.says: each.verdict for each in verdicts}[says] == verdict


def test_the_break_even_is_where_both_lines_meet() -> None:
    sends, others = 613, 99
    expected = (others * 432 - sends * 32) / (sends - others)
    assert break_even(results(), 100) == pytest.approx(expected)


def test_a_hypercube_survives_fewer_crashes_than_its_connectivity() -> None:
    assert survived(Case(CUBE, 20, 3)) == Survived(4, 4, 136, 136)  # 8 senders live
    cut = survived(Case(CUBE, 20, 4))
    assert cut.delivered < cut.due
    lonely = survived(Case(HYPERCAST, 17, 1))
    assert lonely.least_degree == lonely.connectivity == 1
    assert lonely.delivered < lonely.due


def test_points_are_experiments_on_the_same_topologies() -> None:
    made = [experiment(point, 3, "bare") for point in SCALE.points() if point.nodes == 100]
    assert len({experiment.topology for experiment in made}) == 1
    assert {point.engine for point in SCALE.points()} == {"simulate"}
    assert not SCALE.emulated()


def both_ways(**different: float) -> Found:
    """Figures of packets beside simulated ones, of four topologies; one point differs."""
    found = {point: good(point) | {"deliveries": (0.0,) * 4} for point in EMULATED.points()}
    for point in EMULATED.emulated():
        its = found[point._replace(engine="simulate")]
        found[point] = {key: seeds[:1] for key, seeds in its.items()}
    found[Point(OVERLAY, 200, 100, engine="virtual")] |= {k: (v,) for k, v in different.items()}
    return found


def test_one_topology_of_each_point_is_emulated_and_simulated() -> None:
    points = EMULATED.emulated()
    assert {point.engine for point in points} == {"virtual"}
    assert {point.protocol for point in points} == {OVERLAY, NETWORK}
    assert {point._replace(engine="simulate") for point in points} < {*EMULATED.points()}
    for point, (emulated_run,) in emulated.experiments(EMULATED).items():
        simulated_run = experiment(point._replace(engine="simulate"), 1, "udp")
        assert replace(emulated_run, engine="simulate") == simulated_run


def test_what_differs_from_the_simulator_is_shown() -> None:
    assert not emulated.beside(both_ways(), EMULATED).rows
    hops = both_ways()[Point(OVERLAY, 200, 100)]["hops"][0]
    found = both_ways(hops=1.01 * hops)
    assert emulated.beside(found, EMULATED).rows == [
        ["Overlay", "100", "hops", "same", "+1.000%", "same"]
    ]
    assert "the same at 18 of 18 points" in emulated.beside(found, EMULATED).caption
    lost = emulated.beside(both_ways(deliveries=1), EMULATED)
    assert "the same at 17 of 18 points" in lost.caption


def test_emulated_points_are_marked_in_the_plots() -> None:
    found = both_ways()
    plots = [plot(FIGURE_PANELS[0], 1, found, scale).svg for scale in (SCALE, EMULATED)]
    assert ["from packets" in svg.decode() for svg in plots] == [False, True]


def test_an_estimate_is_of_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    todo = emulated.experiments(EMULATED)
    options = Namespace(runs=tmp_path)
    assert "18 of 18 runs" in emulated.estimate(todo, options)
    sweep = Sweep.of([one for each in todo.values() for one in each])
    (tmp_path / sweep.within).mkdir(parents=True)
    done = [*sweep.points][:5]
    monkeypatch.setattr(emulated, "finished", lambda *_: dict.fromkeys(done))
    assert "13 of 18 runs" in emulated.estimate(todo, options)


def test_a_network_that_is_not_exact_is_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {**dict.fromkeys(FIGURES, 1), "run": "a-run", "fidelity": "suspect"}
    monkeypatch.setattr(emulated, "run", lambda todo, *_: {key: [row] for key in todo})
    with pytest.raises(UserError, match="a-run: its network was suspect"):
        emulated.emulate(EMULATED, Namespace(runs=tmp_path))
    row["fidelity"] = "exact"
    assert len(emulated.emulate(EMULATED, Namespace(runs=tmp_path))) == 18


def test_packets_have_headers() -> None:
    options = options_of(FRIEDMAN, ["--engine", "virtual"])
    assert scale_of(options).duration_ms == 1
    assert scale_of(options_of(FRIEDMAN, [])).duration_ms == 5
    with pytest.raises(UserError, match="--framing bare"):
        plan(options_of(FRIEDMAN, ["--engine", "virtual", "--framing", "bare"]))
