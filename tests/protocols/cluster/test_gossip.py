"""PrCast: who is reached, for how long, and with how many copies."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from scripts.reproductions.gidenstam import analysis
from testbed.protocols import Message, MessageId, WireError
from testbed.protocols.cluster import Cluster, gossip
from testbed.protocols.cluster.events import Event, EventGossip, Recover
from testbed.protocols.cluster.lpbcast import News
from tests.protocols.cluster.gossiping import ROUND_NS, OutOfStep, make_processes

PROCESSES = 9
RULES = ("keep", "balls", "once")


def one(age: int = 0, seq: int = 1) -> gossip.Ball:
    return gossip.Ball(MessageId(1, seq), Message(1, seq), age)


def alone(**settings: Any) -> gossip.PrCast:
    return make_processes(6, random.Random(3), **settings).processes[0]


# Dissemination


@pytest.mark.parametrize(
    ("n", "runs", "coverage", "all_reached", "copies"),
    [(25, 100, 1, 1, 290), (125, 120, 0.9995, 0.95, 911), (250, 120, 0.996, 0.38, 1378)],
)
def test_four_targets_and_five_rounds_reach_nearly_all_of_250_processes(
    n: int, runs: int, coverage: float, all_reached: float, copies: int
) -> None:
    rng = random.Random(n)
    reached, sent = [], 0
    for _ in range(runs):
        group = make_processes(n, rng)
        group.processes[0].multicast(Message(0, 1), 0)
        group.step(6)
        reached.append((1 + group.received.total()) / n)
        sent += group.copies
        assert not any(prcast.buffer for prcast in group.processes)
    assert np.mean(reached) == pytest.approx(coverage, abs=4 * np.std(reached) / runs**0.5 + 2e-4)
    assert np.mean([r == 1 for r in reached]) == pytest.approx(all_reached, abs=0.15)
    assert sent / runs == pytest.approx(copies, rel=0.02)


def test_in_step_hops_and_rounds_are_the_same() -> None:
    hops, rounds = (make_processes(50, random.Random(1), aging=a) for a in ("hops", "rounds"))
    for group in (hops, rounds):
        group.processes[0].multicast(Message(0, 1), 0)
        group.step(6)
    assert (hops.received, hops.copies) == (rounds.received, rounds.copies)


def spread(n: int, runs: int, **settings: Any) -> tuple[list[int], list[int]]:
    """How many processes each of some events did not reach out of step, and its copies."""
    rng = random.Random(n)
    groups = [make_processes(n, rng, OutOfStep, **settings) for _ in range(runs)]
    for group in groups:
        group.step(12)
        assert not any(prcast.buffer for prcast in group.processes)
    return [n - 1 - g.received.total() for g in groups], [g.copies for g in groups]


@pytest.mark.parametrize(("n", "runs"), [(125, 40), (250, 40), (1000, 8)])
def test_out_of_step_ages_that_are_times_reach_as_many_as_the_analysis_says(
    n: int, runs: int
) -> None:
    missed, copies = spread(n, runs, aging="rounds")
    promised = analysis.out_of_step(n, 4, 5)
    least, most = binomtest(sum(missed), runs * n).proportion_ci(0.95)
    assert least <= 1 - promised.coverage <= most
    assert promised.coverage > analysis.in_step(n, 4, 5).coverage
    assert np.mean(copies) == pytest.approx(promised.copies, rel=0.1)  # its beginning is random


@pytest.mark.parametrize("n", [250, 1000])
def test_out_of_step_ages_that_are_hops_reach_fewer(n: int) -> None:
    missed, copies = spread(n, 8, aging="hops")
    promised = analysis.in_step(n, 4, 5)
    least, _ = binomtest(sum(missed), 8 * n).proportion_ci(0.95)
    assert least > 1 - promised.coverage
    assert np.mean(copies) < 0.9 * promised.copies


def test_forwarding_once_is_the_cheapest_and_reaches_fewest() -> None:
    missed, copies = (
        {rule: np.mean(each) for rule, each in zip(RULES, by, strict=True)}
        for by in zip(
            *(spread(125, 10, aging="rounds", forwarding=rule) for rule in RULES), strict=True
        )
    )
    assert missed["keep"] == missed["balls"] == 0 < missed["once"]
    assert copies["once"] < 4 * 125 < 0.5 * copies["balls"]


def test_a_ball_that_comes_again_is_thrown_again() -> None:
    for rule, thrown in (("keep", [1, 1, 1]), ("balls", [1, 0, 1]), ("once", [1, 0, 0])):
        prcast = alone(forwarding=rule)
        first = gossip.Gossip(2, 0, balls=(one(1),))
        assert prcast.receive(first, 0)
        sent = [prcast.round(0), prcast.round(0)]
        assert not prcast.receive(first, 0)
        sent.append(prcast.round(0))
        assert [len(todo.gossip.balls) if todo else 0 for todo in sent] == thrown


def test_an_age_is_the_time_that_an_event_spent_with_processes() -> None:
    first, second = make_processes(2, random.Random(1), aging="rounds", hops=2).processes
    first.begin(ROUND_NS)
    second.begin(ROUND_NS // 2)
    first.multicast(Message(0, 1), ROUND_NS // 4)
    sent = first.round(ROUND_NS)
    assert sent is not None
    assert sent.gossip.balls[0].age == gossip.FINE * 3 // 4
    assert second.receive(sent.gossip, ROUND_NS + ROUND_NS // 10)
    passed_on = second.round(3 * ROUND_NS // 2)
    assert passed_on is not None
    assert passed_on.gossip.balls[0].age == pytest.approx(gossip.FINE * 1.15, abs=1)
    assert second.round(5 * ROUND_NS // 2) is None  # it would be more than two rounds old
    first.multicast(Message(0, 2), 2 * ROUND_NS)
    assert first.round(9 * ROUND_NS) is None  # the process stood still meanwhile


def test_an_event_is_passed_on_for_as_many_rounds_as_there_are_hops() -> None:
    prcast = alone(hops=3)
    prcast.multicast(Message(0, 1), 0)
    ages = []
    while todo := prcast.round(0):
        ages += [ball.age for ball in todo.gossip.balls]
        assert len(set(todo.targets) - {0}) == len(todo.targets) == 4
    assert ages == [1, 2, 3]


@pytest.mark.parametrize(("age", "further"), [(1, 2), (2, 1), (3, 0), (7, 0)])
def test_what_is_received_is_passed_on_for_the_rest_of_its_time(age: int, further: int) -> None:
    prcast = alone(hops=3)
    assert [e.id for e in prcast.receive(gossip.Gossip(2, 0, balls=(one(age),)), 0)] == [(1, 1)]
    rounds = 0
    while prcast.round(0):
        rounds += 1
    assert rounds == further


def test_of_two_ages_the_lower_is_believed() -> None:
    prcast = alone()
    for age in (3, 1, 2):
        prcast.receive(gossip.Gossip(2, 0, balls=(one(age),)), 0)
    assert [ball.age for ball in prcast.buffer.values()] == [1]


def test_the_oldest_events_go_when_there_are_too_many() -> None:
    prcast = alone(events_per_message=3)
    prcast.receive(
        gossip.Gossip(2, 0, balls=(one(4, 1), one(1, 2), one(1, 3), one(2, 4), one(1, 5))), 0
    )
    todo = prcast.round(0)
    assert todo is not None
    assert {ball.name.seq for ball in todo.gossip.balls} == {2, 3, 5}
    assert todo.dropped == 2
    assert {name.seq for name in prcast.buffer} == {2, 3, 5}


def test_of_the_same_age_those_that_came_first_go() -> None:
    prcast = alone(events_per_message=2)
    prcast.receive(gossip.Gossip(2, 0, balls=(one(1, 1), one(1, 2), one(1, 3))), 0)
    todo = prcast.round(0)
    assert todo is not None
    assert {ball.name.seq for ball in todo.gossip.balls} == {2, 3}


def test_a_history_that_is_too_short_lets_an_event_through_again() -> None:
    for history, again in ((1, 1), (2, 0)):
        prcast = alone(history=history, hops=1)
        prcast.receive(gossip.Gossip(2, 0, balls=(one(1, 1), one(1, 2))), 0)
        assert len(prcast.receive(gossip.Gossip(2, 0, balls=(one(1, 1),)), 0)) == again


@pytest.mark.parametrize(
    "settings",
    [
        {"fanout": 0},
        {"hops": 0},
        {"round_ms": 0},
        {"history": 0},
        {"view_size": 3},
        {"unsubs_rounds": 5},
        {"members": 3},
        {"aging": "rounds", "hops": 256, "unsubs_rounds": 300},
        {"members": -1, "membership": "partial"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"zero|least|negative|most"):
        gossip.GossipSettings(**settings)


# The wire format


def test_nobody_outside_the_run_is_named() -> None:
    event = Event(PROCESSES, 1, ticket=0, t=np.array([1]))
    makers: list[Callable[[], gossip.Gossip]] = [
        lambda: EventGossip(0, 0, balls=(), news=News((PROCESSES,))),
        lambda: EventGossip(0, 0, balls=(), news=News((), ((PROCESSES, 1),))),
        lambda: EventGossip(0, 0, balls=(gossip.Ball(event.id, event, 1),)),
    ]
    for make in makers:
        with pytest.raises(WireError, match=f"process {PROCESSES} is not one of"):
            EventGossip.decode_control(make().encode_control(), PROCESSES)


def test_an_event_must_have_happened() -> None:
    for ticket, t in ((1, [1]), (0, [0]), (0, [1 << 20])):
        event = ticket.to_bytes(4, "big") + np.array(t, ">u4").tobytes()
        with pytest.raises(WireError, match="has no event"):
            Event.decode_control(event, PROCESSES)


def test_an_event_in_a_gossip_message_takes_28_bytes_and_four_for_each_ticket() -> None:
    t = np.arange(1, 8)
    ball = gossip.Ball(MessageId(1, 1), Event(1, 1, bytes(100), ticket=3, t=t), 1)
    sizes = [EventGossip(0, 0, balls=(ball,) * k).size for k in (0, 1, 2)]
    assert np.diff(sizes).tolist() == [28 + 4 * 7 + 100] * 2
    assert sizes[0] == 40
    assert Cluster.messages[:3] == (EventGossip, Event, Recover)
