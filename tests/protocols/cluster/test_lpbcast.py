"""lpbcast's membership: who knows whom, who joins and who leaves."""

import random
from typing import Any

import networkx as nx
import pytest

from testbed.protocols import Message
from testbed.protocols.cluster import gossip
from testbed.protocols.cluster.lpbcast import News, PartialView
from tests.protocols.cluster.gossiping import LockStep, make_processes


def view_of(prcast: gossip.PrCast) -> PartialView:
    assert isinstance(prcast.view, PartialView)
    return prcast.view


def who_knows(group: LockStep, process: int) -> set[int]:
    return {p.me for p in group.processes if process in view_of(p).view}


def view_graph(group: LockStep) -> "nx.DiGraph[int]":
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(p.me for p in group.processes if p.view.member)
    graph.add_edges_from((p.me, q) for p in group.processes for q in view_of(p).view)
    return graph


def partial_group(count: int, seed: int = 1, **settings: Any) -> LockStep:
    chosen = {"view_size": 6, "fanout": 3, **settings}
    return make_processes(count, random.Random(seed), membership="partial", **chosen)


@pytest.mark.parametrize("seed", range(3))
def test_small_views_change_and_stay_connected(seed: int) -> None:
    group = partial_group(60, seed)
    first = view_graph(group)
    for _ in range(60):
        group.step()
        graph = view_graph(group)
        assert nx.is_weakly_connected(graph)
        assert max(d for _, d in graph.out_degree()) <= 6
        assert not any(graph.has_edge(p, p) for p in graph)
    assert len(set(graph.edges) & set(first.edges)) < len(first.edges) / 2


def test_a_process_that_joins_becomes_known_and_receives() -> None:
    group = partial_group(41, members=40)
    newcomer = group.processes[40]
    group.step(5)
    assert not newcomer.view.member
    assert not who_knows(group, 40)
    view_of(newcomer).join()
    assert len(view_of(newcomer).view) == 1
    group.step(15)
    assert len(who_knows(group, 40)) >= 3
    assert len(view_of(newcomer).view) == 6
    group.processes[0].multicast(Message(0, 1), 0)
    group.step(6)
    assert (0, 1) in newcomer.history


def test_a_process_that_leaves_is_forgotten_and_falls_silent() -> None:
    group = partial_group(40)
    group.step(5)
    leaver = group.processes[7]
    view_of(leaver).leave()
    assert leaver.view.member
    assert not leaver.view.active
    group.step(12)
    assert not leaver.view.member
    assert leaver.round(0) is None
    assert not who_knows(group, 7)
    group.step(30)
    assert not any(view_of(p).unsubs for p in group.processes)
    assert not who_knows(group, 7)
    assert nx.is_weakly_connected(view_graph(group))


def test_who_comes_back_is_believed_when_the_news_of_its_departure_is_old() -> None:
    group = partial_group(40)
    view_of(group.processes[7]).leave()
    group.step(12)
    view_of(group.processes[7]).join()
    group.step(40)
    assert len(who_knows(group, 7)) >= 3


def test_who_has_left_is_not_taken_in() -> None:
    view = view_of(partial_group(40).processes[0])
    known = view.view[0]
    stranger = next(p for p in range(1, 40) if p not in view.view)
    view.learn(News((known, stranger), ((known, 3), (stranger, 3))))
    assert not {known, stranger} & {*view.view, *view.subs}
    assert view.unsubs == {known: 3, stranger: 3}


def test_who_is_pushed_out_of_a_view_is_passed_on() -> None:
    view = view_of(partial_group(40).processes[0])
    before = set(view.view)
    strangers = tuple(p for p in range(1, 40) if p not in before)[:3]
    view.learn(News(strangers))
    assert len(view.view) == 6
    assert {*view.view, *view.subs} == before | set(strangers)


def test_news_of_departures_is_bounded() -> None:
    view = view_of(partial_group(40).processes[0])
    view.learn(News((), tuple((p, 1) for p in range(1, 30))))
    assert len(view.unsubs) == 6
