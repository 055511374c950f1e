"""The protocols on channels whose schedule the tests choose: examples first, then chance."""

import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Message, MessageId, Overlay, Place, Protocol, Timestamp
from testbed.protocols.broken.overlay import Printed
from testbed.protocols.broken.timestamp import FifoOnly, Impatient
from testbed.topologies.overlays import Hypercube
from testbed.workloads import Bursts, Reply, Workload
from tests.world import World

SILENT, TALKATIVE = Bursts(), Reply(answers=1, depth=3)


def m(source: int, seq: int) -> MessageId:
    return MessageId(source, seq)


def unicast(place: Place) -> Timestamp:
    return Timestamp(place, Timestamp.Settings(multicast="unicast"))


def on_hypercube(
    protocol: type[Protocol], n: int, workload: Workload, fifo: bool = True, seed: int = 0
) -> World[Protocol]:
    graph = Hypercube().generate(n, random.Random(0))
    neighbours = lambda node: tuple(sorted(graph[node]))  # noqa: E731
    return World(protocol, n, seed, neighbours=neighbours, application=workload, fifo=fifo)


# the relay triangle: a's first message may not be overtaken at c by b's answer to it


@pytest.mark.parametrize("protocol", [Timestamp, unicast], ids=["network", "unicast"])
def test_timestamp_holds_the_message_that_overtook_its_cause(protocol: type[Protocol]) -> None:
    a, b, c = range(3)
    net = World(protocol, 3)
    question = net.say(a)
    net.pass_on(a, b)
    answer = net.say(b)
    net.pass_on(b, c)
    assert net.delivered(c) == []
    assert net.log.held == [(c, answer, question)]
    net.pass_on(a, c)
    assert net.delivered(c) == [question, answer]
    assert net.meter.queue_longest == 1
    net.pass_on(b, a)
    assert net.check().ok


def test_overlay_lets_nobody_be_overtaken_on_a_triangle() -> None:
    a, b, c = range(3)
    others = lambda node: tuple(p for p in range(3) if p != node)  # noqa: E731
    net = World(Overlay, 3, neighbours=others, fifo=True)
    question = net.say(a)
    net.pass_on(a, b)  # b forwards it to c, then answers behind it on the same channel
    answer = net.say(b)
    net.pass_on(b, c)
    net.pass_on(b, c)
    assert net.delivered(c) == [question, answer]
    net.play()
    assert net.check().ok


def test_timestamp_carries_the_vectors_of_the_papers_figure() -> None:
    """T is counted up before it is attached, and a delivery sets the source's entry."""
    net = World(Timestamp, 3)
    net.say(0)
    net.say(0)
    assert net.channel(0, 1)[1].message.vector.tolist() == [2, 0, 0]
    net.pass_on(0, 1, place=1)  # a second message before the first: held
    assert net.log.held == [(1, m(0, 2), m(0, 1))]
    net.pass_on(0, 1)
    assert net.delivered(1) == [m(0, 1), m(0, 2)]
    net.say(1)
    assert net.channel(1, 2)[0].message.vector.tolist() == [2, 1, 0]


def test_timestamp_drops_duplicates_whether_they_waited_or_not() -> None:
    net = World(Timestamp, 2)
    net.say(0)
    net.say(0)
    first, second = net.channel(0, 1)
    for copy in (second, first, second):
        net.repeat(copy)
    net.pass_on(0, 1, place=1)
    net.pass_on(0, 1, place=1)  # the second once more, while it waits
    net.pass_on(0, 1)
    net.pass_on(0, 1)
    net.pass_on(0, 1)
    assert net.delivered(1) == [m(0, 1), m(0, 2)]
    assert net.meter.discarded["duplicate"] == 3
    assert not net.nodes[1].held


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 11, 16, 21, 33])
def test_overlay_costs_two_sends_a_link_less_the_tree(n: int) -> None:
    net = on_hypercube(Overlay, n, SILENT)
    links = Hypercube().generate(n, random.Random(0)).number_of_edges()
    for source in range(n):
        before = net.sent[Message].copies
        net.say(source)
        net.play()
        assert net.sent[Message].copies - before == 2 * links - n + 1
    assert net.check().ok


@given(n=st.integers(2, 9), messages=st.integers(1, 12), seed=st.integers())
@pytest.mark.parametrize("workload", [SILENT, TALKATIVE], ids=["silent", "talkative"])
def test_timestamp_keeps_causal_order_whatever_the_schedule(
    workload: Workload, n: int, messages: int, seed: int
) -> None:
    net = World(Timestamp, n, seed, application=workload)
    net.play(messages)
    assert net.check().ok
    assert all(not node.held for node in net.nodes)


@given(
    n=st.integers(2, 9),
    messages=st.integers(1, 12),
    extra=st.floats(0, 1),
    seed=st.integers(),
)
@pytest.mark.parametrize("workload", [SILENT, TALKATIVE], ids=["silent", "talkative"])
def test_overlay_keeps_causal_order_on_any_connected_overlay(
    workload: Workload, n: int, messages: int, extra: float, seed: int
) -> None:
    rng = random.Random(seed)
    graph = nx.Graph((node, rng.randrange(node)) for node in range(1, n))
    graph.add_edges_from(e for e in nx.complete_graph(n).edges if rng.random() < extra)
    neighbours = lambda node: tuple(sorted(graph[node]))  # noqa: E731
    net = World(Overlay, n, seed, neighbours=neighbours, application=workload, fifo=True)
    net.play(messages)
    assert net.check().ok
    assert not net.log.held


@given(seed=st.integers(), n=st.integers(2, 6))
def test_timestamp_holds_nothing_back_without_need(seed: int, n: int) -> None:
    """A message is held only while a message that its sender had delivered is missing."""
    net = World(Timestamp, n, seed, application=TALKATIVE)
    net.play(8)
    for node, name, waits_for in net.log.held:
        order = net.delivered(node)
        assert waits_for is not None
        assert order.index(waits_for) < order.index(name)
    first = net.protocols[0].T
    assert all(np.array_equal(first, process.T) for process in net.protocols)


def violations(protocol: type[Protocol], workload: Workload, fifo: bool) -> int:
    found = 0
    for seed in range(20):
        net = on_hypercube(protocol, 6, workload, fifo, seed)
        net.play(20)
        found += not net.check().ok
    return found


@pytest.mark.parametrize(
    ("protocol", "workload", "fifo"),
    [
        (Impatient, TALKATIVE, True),
        (FifoOnly, TALKATIVE, True),
        (Overlay, SILENT, False),
        (Printed, TALKATIVE, True),
    ],
)
def test_mutants_are_caught(protocol: type[Protocol], workload: Workload, fifo: bool) -> None:
    assert violations(protocol, workload, fifo) > 10


@pytest.mark.parametrize("protocol", [Overlay, Timestamp])
def test_what_catches_the_mutants_lets_the_protocols_pass(protocol: type[Protocol]) -> None:
    assert violations(protocol, TALKATIVE, fifo=True) == 0


def test_the_printed_overlay_is_right_while_nobody_answers() -> None:
    assert violations(Printed, SILENT, fifo=True) == 0
