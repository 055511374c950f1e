"""Exported runs say what the logs say: happens-before in clocks, holds as spans, messages as arrows."""

from __future__ import annotations

import json
import re
from itertools import pairwise, product
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import UserError
from testbed.export.events import (
    LEARNS,
    Event,
    Window,
    in_causal_order,
    read_events,
    with_clocks,
)
from testbed.export.perfetto import trace_events
from testbed.export.shiviz import SHIVIZ, TSVIZ, shiviz, tsviz
from testbed.protocols import MessageId
from testbed.runs.directory import RunDirectory
from tests.command_line import CommandLine
from tests.experiments import SMALL, parsed, run

Clocked = list[tuple[Event, dict[str, int]]]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with messages that are held back, and a crash."""
    crash = {"kind": "crash", "node": 7, "at_ms": 6}
    document = parsed(SMALL, protocol={"name": "timestamp", "multicast": "unicast"}, fault=[crash])
    return run(document, tmp_path_factory.mktemp("runs")).path


@pytest.fixture(scope="module")
def events(done: Path) -> list[Event]:
    return list(in_causal_order(read_events(RunDirectory(done))))


def happens_before(events: list[Event]) -> nx.DiGraph[int]:
    """By definition: the order at a process, and from a send to whoever learns of the message."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(events)))
    sent = {event.name: i for i, event in enumerate(events) if event.event == "send"}
    last: dict[int, int] = {}
    for i, event in enumerate(events):
        if event.node in last:
            graph.add_edge(last[event.node], i)
        if event.event in LEARNS:
            graph.add_edge(sent[event.name], i)
        last[event.node] = i
    return nx.transitive_closure_dag(graph)


def less(a: dict[str, int], b: dict[str, int]) -> bool:
    return a != b and all(b.get(host, 0) >= count for host, count in a.items())


def test_all_events_are_there_each_node_in_its_own_order(done: Path, events: list[Event]) -> None:
    assert {event.event for event in events} == {"send", "hold", "deliver", "crash"}
    for node, log in read_events(RunDirectory(done)).items():
        assert [event for event in events if event.node == node] == log


@given(
    st.frozensets(st.integers(0, 7), min_size=1),
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted),
)
def test_clocks_are_happens_before_whatever_is_shown(
    events: list[Event], nodes: frozenset[int], span: list[int]
) -> None:
    window = Window(span[0] * 1_000_000, span[1] * 1_000_000, nodes)
    shown = list(with_clocks(events, window))
    before = happens_before(events)
    places = [i for i, event in enumerate(events) if window.shows(event)]
    assert [events[i] for i in places] == [event for event, _ in shown]
    for (i, (_, a)), (j, (_, b)) in product(zip(places, shown, strict=True), repeat=2):
        assert before.has_edge(i, j) == less(a, b)


@pytest.mark.parametrize(("form", "expression"), [(shiviz, SHIVIZ), (tsviz, TSVIZ)])
def test_viewers_read_every_event_and_every_clock_grows_by_one(
    events: list[Event], form: object, expression: str
) -> None:
    clocked = list(with_clocks(events, Window()))
    text = "\n".join((shiviz if form is shiviz else tsviz)(clocked))
    first, separator, *rest = text.split("\n")
    assert (first, separator) == (expression, "")
    found = [match.groupdict() for match in re.finditer(_python(expression), "\n".join(rest))]
    assert [each["event"] for each in found] == [str(event) for event in events]
    own = [(each["host"], json.loads(each["clock"])[each["host"]]) for each in found]
    for host in {host for host, _ in own}:
        counts = [count for other, count in own if other == host]
        assert counts == list(range(1, len(counts) + 1))


def _python(expression: str) -> str:
    return expression.replace("(?<", "(?P<")


def test_a_trace_has_an_arrow_for_each_delivery_and_a_span_for_each_hold(
    events: list[Event],
) -> None:
    trace = list(trace_events(events, Window()))
    deliveries = {
        f"{e.name} h{e.node}"
        for e in events
        if e.event == "deliver" and e.name and e.name.source != e.node
    }
    for phase in "sf":
        ends = [each for each in trace if each["ph"] == phase]
        assert {each["id"] for each in ends} == deliveries
        assert len(ends) == len(deliveries)
        slices = {(e["pid"], e["tid"], e["ts"]) for e in trace if e["ph"] == "X"}
        assert {(each["pid"], each["tid"], each["ts"]) for each in ends} <= slices
    held = [(each["ph"], each["id"]) for each in trace if each["ph"] in "be"]
    begun = {id for phase, id in held if phase == "b"}
    assert begun
    assert {id for phase, id in held if phase == "e"} <= begun
    json.dumps(trace)


def test_times_of_a_trace_are_the_logs(events: list[Event]) -> None:
    slices = [each for each in trace_events(events, Window()) if each["ph"] == "X"]
    assert [round(each["ts"] * 1000) for each in slices] == [
        event.t for event in events if event.event != "hold"
    ]
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(slices))


def test_a_file_is_written_and_named(done: Path, tmp_path: Path, testbed: CommandLine) -> None:
    for name in ("shiviz", "tsviz", "perfetto"):
        file = tmp_path / name
        assert str(file) in testbed("export", done, f"--{name}", "-o", file).out
        assert file.stat().st_size > 1000
    trace = json.loads((tmp_path / "perfetto").read_text())
    assert trace["traceEvents"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pcapng",), "no captures, which only emulated runs have"),
        (("--shiviz", "--from-ms", "9999"), "no event is in this window"),
    ],
)
def test_what_cannot_be_exported_is_said(
    done: Path, tmp_path: Path, testbed: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    file = tmp_path / "out"
    assert sentence in testbed("export", done, *words, "-o", file, status=2).err
    assert not list(tmp_path.iterdir())


def test_logs_that_contradict_themselves_have_no_order() -> None:
    one, two = MessageId(0, 1), MessageId(1, 1)
    logs = {
        0: [Event(1, 0, "deliver", two, {}), Event(2, 0, "send", one, {})],
        1: [Event(1, 1, "deliver", one, {}), Event(2, 1, "send", two, {})],
    }
    with pytest.raises(UserError, match="before anything led to its being sent"):
        list(in_causal_order(logs))
