"""Faults: what each does to links and processes of the simulator, and what protocols make of it."""

import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import pytest

from testbed.check import Event, Verdict, check_events
from testbed.check.memory import MemoryLog
from testbed.engines.simulate.engine import Simulation
from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario
from testbed.faults import Condition, Crash, FaultSchedule, LinkDown, Loss
from testbed.progress import silent
from testbed.protocols import Message, Place
from testbed.protocols.base import SEQUENCE_BITS
from testbed.protocols.overlay import Overlay
from tests.check.events import CRASH, deliver, send
from tests.engines.simulate.test_simulator import MS, Wire, line, message
from tests.experiments import log_of, parsed, run

HOP = 74 * 800 + MS  # a message without payload on a link of `line`


def experiment(protocol: str, nodes: int = 4, **changes: Any) -> Experiment:
    document = {
        "name": "faults",
        "protocol": {"name": protocol},
        "topology": {"model": "pure-random", "nodes": nodes, "edge_probability": 1.0},
        "workload": {"model": "steady", "senders": nodes, "duration_ms": 20, "interval_ms": 4},
    }
    return parsed(document, **changes)


def judged(what: Experiment) -> tuple[Verdict, Simulation, MemoryLog]:
    log = MemoryLog()
    simulation = Simulation(Scenario.of(what), log)
    simulation.run(silent)
    nodes = range(len(simulation.nodes))
    return check_events(nodes, {n: log.events[n] for n in nodes}), simulation, log


class Scribe:
    """An engine that writes down what it is told."""

    def __init__(self) -> None:
        self.did: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *what: self.did.append((name, *what))


def timetable(*faults: Any, graph: Any = None, duration: int = 100 * MS) -> Iterator[Any]:
    """When what is done."""
    schedule = FaultSchedule(faults, graph or nx.path_graph(3), random.Random(1), duration)
    while (due := schedule.next()) is not None:
        scribe: Any = Scribe()
        schedule.advance(due, scribe)
        yield from ((due / MS, *did) for did in scribe.did)


# the schedule


def test_faults_that_overlap_add_up() -> None:
    told = list(
        timetable(
            Loss(rate=0.5, link=(0, 1), for_ms=10),
            Loss(rate=0.5, link=(1, 0), at_ms=5, for_ms=10),
            LinkDown(link=(0, 1), at_ms=7, for_ms=1),
        )
    )
    states = [(at, condition.up, condition.loss) for at, _, _, _, condition in told]
    assert states == [
        (0, True, 0.5),
        (5, True, 0.75),
        (7, False, 0.75),
        (8, True, 0.75),
        (10, True, 0.5),
        (15, True, 0.0),
    ]
    assert {did[1:4] for did in told} == {("set_link", 0, 1)}


def test_a_process_is_up_again_when_its_last_crash_is_over() -> None:
    told = list(timetable(Crash(node=1, for_ms=10), Crash(node=1, at_ms=5, for_ms=10)))
    assert told == [(0, "kill", 1), (15, "start", 1)]
    assert list(timetable(Crash(node=1), Crash(node=1, at_ms=5, for_ms=1))) == [(0, "kill", 1)]


def test_faults_at_random_are_the_same_for_one_seed_and_end_with_the_workload() -> None:
    drawn = [list(timetable(LinkDown(per_s=200, for_ms=5), graph=nx.cycle_graph(6))) for _ in "ab"]
    assert drawn[0] == drawn[1]
    assert len({did[2:4] for did in drawn[0]}) > 1
    assert max(did[0] for did in drawn[0]) < 105


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"kind": "loss", "rate": 0.1, "link": [0, 9]}, "there is no link [0, 9]"),
        ({"kind": "crash", "node": 9}, "there is no node 9"),
        ({"kind": "crash", "node": 1, "when": {"node": 9, "delivered": 1}}, "there is no node 9"),
        ({"kind": "partition", "nodes": [1, 9]}, "there is no node 9"),
        ({"kind": "crash", "node": "same"}, 'node = "same" needs when'),
        ({"kind": "partition", "nodes": "same"}, 'nodes = "same" needs when'),
        ({"kind": "crash", "node": 1, "when": {"node": 1}}, "either delivered or event"),
        (
            {"kind": "crash", "node": 1, "when": {"delivered": 1, "event": "flush"}},
            "either delivered or event",
        ),
        (
            {"kind": "crash", "node": 1, "when": {"delivered": 1, "count": 2}},
            "count is for an event",
        ),
        ({"kind": "crash", "node": 1, "when": {"event": "flush", "count": 0}}, "at least 1, not 0"),
    ],
)
def test_a_fault_of_what_is_not_there_is_refused(fault: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=r"faults\.toml: fault: ") as refused:
        judged(experiment("overlay", fault=[fault]))
    assert says in str(refused.value)


# links


def test_a_link_that_loses_duplicates_and_delays() -> None:
    wire = Wire(line(2))
    wire.network.set_link(0, 1, Condition(loss=0.3, duplication=0.2, reordering=0.1, late_ns=MS))
    for seq in range(1, 1001):
        wire.network.unicast(0, (1,), message(seq))
    arrived = [seq for _, _, seq in wire.run()]
    link = wire.network.links[0, 1]
    assert len(arrived) == 1000 - link.lost + link.duplicated
    assert 250 < link.lost < 350
    assert 100 < link.duplicated < 180
    assert len(arrived) - len(set(arrived)) == link.duplicated
    assert arrived != sorted(arrived)


def test_a_late_packet_is_late_by_so_much_and_others_overtake_it() -> None:
    wire = Wire(line(2))
    wire.network.set_link(0, 1, Condition(reordering=1.0, late_ns=5 * MS))
    wire.network.unicast(0, (1,), message(1))
    wire.network.set_link(0, 1, Condition())
    wire.network.unicast(0, (1,), message(2))
    assert wire.run() == [(HOP, 1, 2), (5 * MS + HOP, 1, 1)]


def test_a_slow_link_transmits_slowly_until_it_does_not() -> None:
    wire = Wire(line(2))
    wire.network.set_link(0, 1, Condition(slowness=10))
    wire.network.unicast(0, (1,), message(1))
    wire.network.set_link(0, 1, Condition())
    wire.network.unicast(0, (1,), message(2))
    assert wire.run() == [(740 * 800 + MS, 1, 1), (814 * 800 + MS, 1, 2)]


def test_fragments_that_come_twice_make_no_whole_message() -> None:
    graph = line(2)
    wire = Wire(graph)
    wire.network.set_link(0, 1, Condition(duplication=1.0))
    wire.network.unicast(0, (1,), message(payload=3000))
    assert [seq for _, _, seq in wire.run()] == [1]
    wire = Wire(line(2, queue=1))  # of three fragments, the first two are sent, the second twice
    wire.network.set_link(0, 1, Condition(duplication=1.0))
    wire.network.unicast(0, (1,), message(payload=3000))
    assert wire.run() == []


def test_a_link_that_goes_down_loses_what_it_holds_and_packets_go_round() -> None:
    graph = line(3)
    graph.add_edge(0, 2, **graph.edges[0, 1])
    wire = Wire(graph)
    for seq in (1, 2, 3):
        wire.network.unicast(0, (2,), message(seq))
    wire.network.scheduler.call_at(
        MS + 100_000, lambda: wire.network.set_link(0, 2, Condition(up=False))
    )  # the first has arrived, the others have not
    wire.network.scheduler.call_at(2 * MS, lambda: wire.network.unicast(0, (2,), message(4)))
    wire.network.scheduler.call_at(3 * MS, lambda: wire.network.set_link(0, 2, Condition()))
    wire.network.scheduler.call_at(9 * MS, lambda: wire.network.unicast(0, (2,), message(5)))
    assert wire.run() == [(HOP, 2, 1), (2 * MS + 2 * HOP, 2, 4), (9 * MS + HOP, 2, 5)]
    assert wire.network.carried().lost == 2


def test_what_cannot_be_reached_is_lost_and_counted() -> None:
    wire = Wire(line(4))
    wire.network.set_link(1, 2, Condition(up=False))
    wire.network.unicast(0, (1, 3), message(1))
    wire.network.multicast(0, (1, 2, 3), message(2))
    assert [(node, seq) for _, node, seq in wire.run()] == [(1, 1), (1, 2)]
    assert wire.network.carried().lost == 3


# processes


def test_the_dead_neither_send_nor_deliver() -> None:
    what = experiment("overlay", fault=[{"kind": "crash", "node": 1, "at_ms": 9}])
    verdict, simulation, log = judged(what)
    assert verdict.ok
    assert verdict.crashed == (1,)
    *before, last = log.events[1]
    assert last == Event("crash", t=9 * MS)
    assert before
    assert all(event.t <= 9 * MS for event in before)
    assert sum(event.event == "send" for event in before) < 5
    assert simulation.summary()["crashes"] == 1


def test_one_that_pauses_does_nothing_and_then_catches_up() -> None:
    fault = {"kind": "pause", "node": 2, "at_ms": 3, "for_ms": 10}
    verdict, _, log = judged(experiment("timestamp", fault=[fault]))
    assert verdict.ok
    times = [event.t for event in log.events[2]]
    assert not [t for t in times if 3 * MS < t < 13 * MS]
    assert times.count(13 * MS) > 5


def test_a_paused_process_hears_its_timers_when_it_wakes() -> None:
    fault = [
        {"kind": "pause", "node": 0, "at_ms": 1, "for_ms": 200},
        {"kind": "loss", "rate": 0.3},
    ]
    verdict, _, _ = judged(experiment("overlay", channel="reliable", fault=fault))
    assert verdict.ok


def test_one_seed_is_one_run_with_faults_too(tmp_path: Path) -> None:
    faults = [
        {"kind": "loss", "rate": 0.1},
        {"kind": "link-down", "per_s": 100, "for_ms": 5},
        {"kind": "pause", "per_s": 100, "for_ms": 5},
        {"kind": "crash", "node": 3, "at_ms": 11},
    ]
    logs = []
    for seed in (1, 1, 2):
        what = experiment("overlay", channel="reliable", fault=faults, seed=seed)
        done = run(what, tmp_path)
        logs.append(log_of(done).read_bytes())
        assert done.verdict.ok
    assert logs[0] == logs[1] != logs[2]


# starting again


class Reborn(Overlay):
    """Overlay that numbers its messages as a process that was started again must."""

    name: ClassVar[str] = "reborn"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.seen[self.me] = place.base


@pytest.mark.parametrize("channel", ["raw", "reliable"])
def test_one_that_starts_again_has_new_names_and_takes_part(channel: str) -> None:
    fault = {"kind": "crash", "node": 1, "at_ms": 3, "for_ms": 4}
    what = experiment("overlay", channel=channel, fault=[fault])
    object.__setattr__(what, "protocol", Reborn)
    verdict, simulation, log = judged(what)
    assert verdict.ok, verdict.explain()
    restart = log.events[1].index(Event("restart", t=7 * MS, facts={"incarnation": 1}))
    sent = [event.seq for event in log.events[1][restart:] if event.event == "send"]
    assert sent == list(range((1 << SEQUENCE_BITS) + 1, (1 << SEQUENCE_BITS) + 1 + len(sent)))
    assert sent
    for node in (0, 2, 3):
        delivered = {(e.source, e.seq) for e in log.events[node] if e.event == "deliver"}
        assert {(1, seq) for seq in sent} <= delivered
    assert simulation.summary()["restarts"] == 1


RESTART = Event("restart")


def test_what_a_process_knew_before_it_crashed_is_no_cause_of_what_it_sends_after() -> None:
    before = [deliver(0, 1), CRASH, RESTART, send(1, 9), deliver(1, 9)]
    others = [deliver(1, 9), deliver(0, 1)]  # 0's message has not reached node 2 yet
    logs = {0: [send(0, 1), *others[::-1]], 1: before, 2: others}
    assert check_events(range(3), logs).ok
    unbroken = {**logs, 1: [event for event in before if event not in (CRASH, RESTART)]}
    assert check_events(range(3), unbroken).count("order") == 1


def test_a_new_process_may_deliver_again_but_not_twice() -> None:
    logs = {0: [send(0, 1), deliver(0, 1)], 1: [deliver(0, 1), CRASH, RESTART, deliver(0, 1)]}
    assert check_events(range(2), logs).ok
    twice = {**logs, 1: [*logs[1], deliver(0, 1)]}
    assert check_events(range(2), twice).where("duplicate") == [(1, (0, 1))]


def test_order_binds_a_new_process_only_for_those_who_know_of_it() -> None:
    sends = [send(0, 1), deliver(0, 1), send(0, 2), deliver(0, 2)]
    wrong_way = [CRASH, RESTART, deliver(0, 2), deliver(0, 1)]
    assert check_events(range(2), {0: sends, 1: wrong_way}).ok
    knowing = [CRASH, RESTART, send(1, 9), deliver(1, 9), deliver(0, 2), deliver(0, 1)]
    verdict = check_events(range(2), {0: [deliver(1, 9), *sends], 1: knowing})
    assert verdict.where("order") == [(1, (0, 2))]
    assert "m(0,1) happened before m(0,2)" in verdict.explain()[1]


def test_an_incarnation_that_crashed_is_judged_by_its_own_log() -> None:
    sends = [send(0, 1), deliver(0, 1), send(0, 2), deliver(0, 2)]
    verdict = check_events(range(2), {0: sends, 1: [deliver(0, 2), CRASH, RESTART, deliver(0, 1)]})
    assert verdict.where("gap") == [(1, (0, 2))]
    assert verdict.where("loss") == []
    assert verdict.violations()[0].process == 1


def test_names_used_again_are_found() -> None:
    logs = {0: [send(0, 1), deliver(0, 1), CRASH, RESTART, send(0, 1)], 1: [deliver(0, 1)]}
    assert check_events(range(2), logs).where("resent") == [(0, (0, 1))]


# what protocols survive


@pytest.mark.parametrize("protocol", ["overlay", "timestamp"])
def test_a_network_that_loses_duplicates_and_reorders_is_no_matter(protocol: str) -> None:
    faults = [
        {"kind": "loss", "rate": 0.2},
        {"kind": "duplication", "rate": 0.05},
        {"kind": "reordering", "rate": 0.1, "late_ms": 5},
    ]
    channel = {"model": "reliable", "retries": 50}
    what = experiment(protocol, nodes=16, channel=channel, fault=faults)
    verdict, simulation, _ = judged(what)
    assert verdict.ok
    assert verdict.deliveries == verdict.messages * 16 == 16 * 5 * 16
    figures = simulation.summary()
    assert figures["packets_lost"] > 100
    assert figures["packets_duplicated"] > 20


def test_a_hypercube_of_sixteen_survives_any_three_crashes() -> None:
    workload = {"model": "bursts", "senders": 16, "burst": 1, "duration_ms": 1, "interval_ms": 1}
    for crashed in random.Random(1).sample(list(combinations(range(16), 3)), 200):
        faults = [{"kind": "crash", "node": node} for node in crashed]
        verdict, _, log = judged(experiment("overlay", nodes=16, fault=faults, workload=workload))
        assert verdict.ok
        live = set(range(16)) - set(crashed)
        for node in live:
            assert live <= {event.source for event in log.events[node] if event.event == "deliver"}


def test_messages_carry_their_names() -> None:
    assert Place(1, 4, incarnation=2).base + 1 == (2 << SEQUENCE_BITS) + 1
    assert Message(0, (4095 << SEQUENCE_BITS) + 1).seq < 1 << 32
