"""Triggers: faults that begin when something has been delivered, or a protocol has logged an event."""

import random
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from testbed.check import Event
from testbed.errors import UserError
from testbed.experiment import parse
from testbed.faults import Condition, Crash, Fault, FaultSchedule, Partition, Pause, Trigger, Watch
from testbed.protocols import Transition
from testbed.protocols.cluster import Cluster
from testbed.protocols.overlay import Overlay
from tests.engines.simulate.test_faults import Scribe, experiment, judged
from tests.engines.simulate.test_simulator import MS


def test_a_trigger_strikes_once_when_enough_has_been_delivered() -> None:
    graph = nx.path_graph(3)
    fault = Pause(node=0, when=Trigger(node=2, delivered=3), for_ms=2)
    schedule = FaultSchedule([fault], graph, random.Random(1), 0)
    assert schedule.awaited() == {Watch(2, "deliver")}
    for node in (2, 1, 1, 2):
        schedule.happened(node, "deliver", 5 * MS)
    assert schedule.next() is None
    schedule.happened(2, "flush", 5 * MS)
    schedule.happened(2, "deliver", 6 * MS)
    assert (schedule.next(), schedule.awaited()) == (6 * MS, frozenset())


def test_a_trigger_without_a_node_counts_all_and_can_strike_where_it_happens() -> None:
    flush = Trigger(event="flush", count=2)
    faults: list[Fault] = [
        Crash(node="same", when=flush),
        Partition(nodes="same", when=flush, for_ms=1),
    ]
    faults.append(Crash(node=0, when=Trigger(delivered=3)))
    schedule = FaultSchedule(faults, nx.path_graph(3), random.Random(1), 0)
    assert schedule.awaited() == {Watch(None, "flush"), Watch(None, "deliver")}
    for node, event in [(1, "flush"), (0, "deliver"), (1, "deliver"), (2, "flush"), (2, "deliver")]:
        schedule.happened(node, event, MS)
    scribe: Any = Scribe()
    schedule.advance(MS, scribe)
    down = Condition(up=False)
    assert scribe.did == [("kill", 2), ("set_link", 1, 2, down), ("kill", 0)]


def test_a_crash_by_trigger_comes_right_after_the_delivery() -> None:
    fault = {"kind": "crash", "node": 0, "when": {"node": 3, "delivered": 5}}
    _, _, log = judged(experiment("overlay", fault=[fault]))
    fifth = [event.t for event in log.events[3] if event.event == "deliver"][4]
    assert log.events[0][-1] == Event("crash", t=fifth)


@pytest.mark.parametrize("node", [None, 2])
def test_a_crash_by_trigger_comes_right_after_an_event_of_the_protocol(node: int | None) -> None:
    when = {"event": "stamp", "count": 3} | ({} if node is None else {"node": node})
    crash = {"kind": "crash", "node": "same", "when": when}
    managed = Cluster.Settings(management="leases")
    what = replace(experiment("cluster", fault=[crash]), settings=managed)
    assert parse(tomllib.loads(what.to_toml()), Path("again.toml"))[0].faults == what.faults
    _, _, log = judged(what)
    stamps = [(e.t, n) for n, lines in log.events.items() for e in lines if e.event == "stamp"]
    third, where = [stamp for stamp in sorted(stamps) if node in (None, stamp[1])][2]
    (crashed,) = (n for n, lines in log.events.items() if lines[-1].event == "crash")
    assert log.events[crashed][-1].t == third
    assert crashed in [n for t, n in stamps if t == third] if node is None else crashed == where


def test_an_event_that_a_protocol_never_logs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = {"kind": "crash", "node": 1, "when": {"event": "fluhs"}}
    judged(experiment("overlay", fault=[crash]))  # which says nothing of its events
    monkeypatch.setattr(Overlay, "transitions", (Transition("open", "flush", "frozen"),))
    with pytest.raises(UserError, match="overlay logs no event 'fluhs'; it logs flush"):
        judged(experiment("overlay", fault=[crash]))
