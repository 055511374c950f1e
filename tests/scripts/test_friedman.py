"""The judges of the statements on Overlay and Timestamp, on made-up numbers."""

from pathlib import Path

import pytest

from scripts.reproductions.friedman import (
    CARRIED,
    DATA,
    STATEMENTS,
    Case,
    Figures,
    Judge,
    show_files,
)

OTHER = {"network": "unicast", "unicast": "network"}
Change = tuple[str, int, int, str, float]  # protocol, nodes, data, figure, value
Tolerance = tuple[list[Change], list[Change]]  # what a statement tolerates, and what it does not
T = "timestamp"


def figures(timestamp: str) -> Figures:
    """Figures for which every statement holds with this Timestamp, and nothing with the other."""
    dear = {0: 10, 100: 40, 1000: 200}
    cheap = {0: 20, 100: 50, 1000: 100}
    found: Figures = {}
    for rank, nodes in enumerate((100, 200, 300)):
        for data in DATA:
            keys = ("delay_ms_mean", "delay_ms_max", "bytes", "network_load_mean", "link_queue_max")
            found["overlay", nodes, data] = dict.fromkeys(keys, dear[data])
            found["overlay", nodes, data] |= {"messages": 100, "hops": 100}
            found["overlay", nodes, data] |= {"delivery_queue_mean": 0, "delivery_queue_max": 0}
            found[timestamp, nodes, data] = dict.fromkeys(keys, cheap[data])
            found[timestamp, nodes, data] |= {"messages": 50, "hops": 50}
            queue = 10 + rank
            found[timestamp, nodes, data] |= {"delivery_queue_mean": queue}
            found[timestamp, nodes, data] |= {"delivery_queue_max": queue}
            found[OTHER[timestamp], nodes, data] = {}
        found[CARRIED, nodes, 0] = {"delivery_queue_mean": rank, "delivery_queue_max": rank}
    return found


def less(key: str, data: int, timestamp: float, by: float = 0.1, any_: float = 999) -> Tolerance:
    tolerable = ("overlay", 300, data, key, timestamp - by)
    return [tolerable, ("overlay", 200, data, key, any_)], [("overlay", 300, data, key, timestamp)]


def more(key: str, data: int, timestamp: float) -> Tolerance:
    return less(key, data, timestamp, by=-0.1, any_=0)


def grows(key: str) -> Tolerance:
    return [(T, 200, 0, key, 11.9), (T, 100, 0, key, 99)], [(T, 200, 0, key, 12)]


def grows_when_carried(key: str) -> Tolerance:
    return [(CARRIED, 200, 0, key, 99)], [(CARRIED, 100, 0, key, 2)]


CASES: dict[str, Tolerance] = {
    "data 0: Overlay delivers faster (mean delay)": less("delay_ms_mean", 0, 20),
    "data 0: Overlay delivers faster (max delay)": less("delay_ms_max", 0, 20),
    "data 100: the difference decreases": (
        [("overlay", 300, 100, "delay_ms_mean", 25.1)],
        [("overlay", 300, 100, "delay_ms_mean", 25)],
    ),
    "data 1000: Timestamp delivers faster (mean delay)": more("delay_ms_mean", 1000, 100),
    "data 1000: Timestamp delivers faster (max delay)": more("delay_ms_max", 1000, 100),
    "data 0: Overlay sends more messages": more("messages", 0, 50),
    "data 0: Overlay sends fewer bytes": less("bytes", 0, 20),
    "data 100: Overlay sends fewer bytes": less("bytes", 100, 50),
    "data 1000: Overlay sends more bytes": more("bytes", 1000, 100),
    "data 0: Overlay takes more hops": more("hops", 0, 50),
    "data 1000: Overlay takes more hops": more("hops", 1000, 50),
    "data 0: Timestamp's delivery queue grows with n (mean)": grows("delivery_queue_mean"),
    "data 0: Timestamp's delivery queue grows with n (max)": grows("delivery_queue_max"),
    "the same where links carry the load (mean)": grows_when_carried("delivery_queue_mean"),
    "the same where links carry the load (max)": grows_when_carried("delivery_queue_max"),
    "Overlay's delivery queue is always empty": (
        [("overlay", 200, 100, "delivery_queue_max", 1)],
        [("overlay", 300, data, "delivery_queue_max", 1) for data in DATA],
    ),
    "data size has little effect on Timestamp's queue": (
        [(T, 300, 1000, "delivery_queue_mean", 23.9)],
        [(T, 300, 1000, "delivery_queue_mean", 24), (T, 300, 100, "delivery_queue_mean", 6)],
    ),
    "data 0: Timestamp loads the network more (mean)": less("network_load_mean", 0, 20),
    "data 1000: Overlay loads the network more (mean)": more("network_load_mean", 1000, 100),
    "data 1000: Overlay's longest link queue is longer": more("link_queue_max", 1000, 100),
}


def changed(timestamp: str, change: Change) -> Case:
    protocol, nodes, data, key, value = change
    found = figures(timestamp)
    found[timestamp if protocol == T else protocol, nodes, data][key] = value
    return Case(found, timestamp, 300)


@pytest.mark.parametrize("timestamp", OTHER)
@pytest.mark.parametrize(("words", "judge"), [(words, judge) for _, words, judge in STATEMENTS])
def test_a_statement_holds_for_some_numbers_and_not_for_others(
    words: str, judge: Judge, timestamp: str
) -> None:
    tolerable, intolerable = CASES[words]
    assert all(judge(Case(figures(timestamp), timestamp, nodes)) for nodes in (100, 200, 300))
    for change in tolerable:
        assert judge(changed(timestamp, change)), change
    for change in intolerable:
        assert not judge(changed(timestamp, change)), change


def test_plots_are_named_by_the_figures_of_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("delay-payload-bytes-0.svg", "network-load-payload-bytes-1000.svg", "other.svg")
    show_files(Path("sweep"), [Path(name) for name in names])
    assert capsys.readouterr().out.splitlines() == [
        "figures: sweep/figures",
        "  Fig. 3: delay-payload-bytes-0.svg",
        "  Fig. 17: network-load-payload-bytes-1000.svg",
        "report: sweep/report.html",
    ]
