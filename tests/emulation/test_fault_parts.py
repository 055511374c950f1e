"""Parts of the emulation that deal with faults, and need no guest."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from testbed.check.fidelity import UnjudgeableSpans, judge, replay
from testbed.engines.mininet.hosts.counters import (
    LiveLog,
    SharedCounters,
)
from testbed.engines.mininet.kernel import netem
from testbed.engines.mininet.plan import PlannedLink
from testbed.engines.mininet.summary import summarise_emulation
from testbed.experiment.network import Network
from testbed.faults import Condition, Watch
from testbed.node.meter import Carried
from testbed.packets.framing import ETHERNET_BYTES
from testbed.packets.pcap import Packets
from testbed.protocols import Overlay
from testbed.runs.directory import RunDirectory
from testbed.runs.events import EventLog
from tests.packets.captures import write_capture

US = 1000
SIZE = 100 - ETHERNET_BYTES  # 100 µs on the wire
INTERFACES = {10: (None, 0), 11: (0, 1), 12: (1, 2)}
Arrival = tuple[int, int, int]


def line() -> "nx.Graph[int]":
    graph: nx.Graph[int] = nx.path_graph(3)
    for edge in graph.edges:
        graph.edges[edge].update(delay_ns=1000 * US, bandwidth_bps=8_000_000)
    return graph


def judged(arrivals: list[Arrival], *conditions: dict[str, Any]) -> tuple[Carried, list[int]]:
    """The errors, in µs, of packets that come in at (time in µs, interface, number)."""
    rows = [(t * US, interface, SIZE, 1, 2, number, 0) for t, interface, number in arrivals]
    packets = Packets(*np.array(rows, np.int64).T)
    carried, errors, _ = replay(packets, INTERFACES, line(), UnjudgeableSpans(conditions))
    return carried, [error // US for error in errors.tolist()]


def condition(t: int, link: list[int], **changes: Any) -> dict[str, Any]:
    return {"t": t * US, "link": link, **Condition(**changes)._asdict()}


HERE = [(0, 10, 1), (50, 10, 2), (1100, 11, 1), (1205, 11, 2), (2200, 12, 1), (2305, 12, 2)]


def test_without_conditions_every_hop_has_an_error() -> None:
    carried, errors = judged(HERE)
    assert carried.hops == 4
    assert errors == [0, 5, 0, 0]


@pytest.mark.parametrize("trouble", [{"slowness": 2.0}, {"reordering": 0.1, "late_ns": 5}])
def test_hops_over_a_link_that_is_late_are_left_out_and_those_behind_them(
    trouble: dict[str, Any],
) -> None:
    begin, end = condition(100, [0, 1], **trouble), condition(200, [0, 1])
    after = [(3000, 10, 3), (4100, 11, 3)]
    carried, errors = judged([*HERE, *after], begin, end)
    assert carried.hops == 5
    assert errors == [0, 0, 0]  # the second link's two, and the one after all that
    assert judged([*HERE, *after], begin)[1] == [0, 0]  # a condition without an end


def test_hops_over_links_that_lose_or_were_down_have_an_error() -> None:
    conditions = [condition(0, [0, 1], loss=0.5), condition(90, [1, 2], up=False)]
    assert judged(HERE, *conditions)[1] == [0, 5, 0, 0]


def test_of_a_packet_that_comes_twice_only_what_was_before_counts() -> None:
    twice = [(0, 10, 1), (1100, 11, 1), (1200, 11, 1), (2200, 12, 1), (2300, 12, 1)]
    carried, errors = judged(twice, condition(0, [0, 1], duplication=0.5))
    assert carried.hops == 4
    assert errors == [0]


def test_nothing_is_known_of_a_network_all_of_whose_hops_are_left_out() -> None:
    nothing = np.array([], np.int64)
    assert judge(nothing, dropped=0, left_out=3).verdict == "unknown"
    assert judge(nothing, dropped=0).verdict == "exact"
    assert judge(nothing, dropped=1, left_out=3).verdict == "suspect"


@pytest.mark.parametrize("where", ["kernel_dropped", "upcalls_lost", "udp_errors"])
def test_whatever_the_emulation_dropped_makes_a_run_suspect(where: str, tmp_path: Path) -> None:
    counts = {"kernel_dropped": 0, "upcalls_lost": 0, "udp_errors": 0}
    raw = {
        "start_unix_ns": 0,
        "hosts": [],
        "warm_ups_missing": 0,
        "captured": 0,
        "capture_dropped": 0,
        "dropped": counts | {where: 1},
        "upcalls": 0,
        "links": {"lost": 0, "dropped": 0},
        "cut_short": False,
        "conditions": [],
        "interfaces": {},
    }
    directory = RunDirectory.create(tmp_path, "suspect", "run")
    write_capture(directory.path / "packets" / "capture-0000.pcap", [])
    (directory.path / "emulation.json").write_text(json.dumps(raw))
    assert summarise_emulation(Overlay, Network(line(), None), directory)["fidelity"] == "suspect"
    assert directory.manifest["counters"][where] == 1


LINKS = st.builds(
    PlannedLink,
    st.just(0),
    st.just(1),
    delay_ns=st.integers(0, 10**12),
    bandwidth_bps=st.integers(1, 10**12 + 1),
    queue_packets=st.integers(0, 1000),
    loss=st.sampled_from([0, 0.01, 0.5]),
)


@example(PlannedLink(0, 1, 10**12, 9_999_999), Condition())
@example(PlannedLink(0, 1, 1, 10**12 + 1, queue_packets=7, loss=0.5), Condition())
@given(
    LINKS,
    st.builds(
        Condition,
        loss=st.floats(0, 1),
        duplication=st.floats(0, 1),
        reordering=st.floats(0, 1),
        late_ns=st.integers(0, 10**10),
        slowness=st.floats(1, 1e6),
    ),
)
def test_a_queue_reads_back_as_it_was_set(link: PlannedLink, condition: Condition) -> None:
    assert sum(one.delay_ns for one in netem.queues(link).values()) == link.delay_ns
    wanted = netem.queues(link, condition)
    for settings in wanted.values():
        assert netem.decode(netem.encode(settings)) == settings
        shares = (settings.loss, settings.duplication)
        assert all(0 <= share < 2**32 for share in shares)
    assert sum(settings.rate > 0 for settings in wanted.values()) == 1


def test_a_link_that_reordered_keeps_its_last_netem_without_effect() -> None:
    link = PlannedLink(0, 1, delay_ns=5000, bandwidth_bps=10**7)
    late = netem.queues(link, Condition(reordering=0.1, late_ns=7))
    after = netem.queues(link, Condition(), reorders=True)
    assert late.keys() == after.keys() > netem.queues(link).keys()
    assert max(after.items())[1] == netem.Netem()


def test_a_live_log_is_whole_without_being_closed_and_goes_on(tmp_path: Path) -> None:
    path, counters = tmp_path / "h0.jsonl", SharedCounters(2, {Watch(0, "deliver")})
    log: EventLog = LiveLog(path, counters)
    log.deliver(1, 0, 1, 1)
    log.deliver(2, 0, 1, 2)
    with LiveLog(path, counters) as more:
        more.note(4, 0, "crash", {})
    with LiveLog(path, counters) as more:
        more.deliver(5, 0, 1, 3)
    events = [json.loads(text)["event"] for text in path.read_text().splitlines()]
    assert events == ["deliver", "deliver", "crash", "deliver"]
    assert list(counters.told()) == [(0, "deliver")] * 3
    log.close()
    counters.close()
