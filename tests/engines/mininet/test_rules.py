"""The rules of the switches: followed hop by hop, they are the routes of the simulator."""

import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.mininet.controller import rules
from testbed.engines.mininet.plan import (
    HOST_PORT,
    MULTICAST_IP,
    Plan,
    PlannedLink,
    build,
    group_ip,
    host_ip,
    host_mac,
)
from testbed.engines.mininet.ways import Ways
from testbed.topologies.routing import UNREACHED, Metric, path, shortest_path_tree

METRICS = st.sampled_from(["hops", "delay"])


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """A network.json: a tree, so that all hang together, and more links at random."""
    nodes = draw(st.integers(2, 30))
    pairs = {(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)}
    more = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    pairs |= {rules.arc(a, b) for a, b in draw(st.lists(more, max_size=2 * nodes)) if a != b}
    # Few different delays, some of them none, so that there are ties to break.
    delays = [draw(st.sampled_from([0, 1, 2, 5])) for _ in pairs]
    links = [
        {"a": a, "b": b, "delay_ns": delay, "bandwidth_bps": 1}
        for (a, b), delay in zip(draw(st.permutations(sorted(pairs))), delays, strict=True)
    ]
    group = st.sets(st.integers(0, nodes - 1), min_size=2)
    groups = {
        f"g{x}": sorted(members) for x, members in enumerate(draw(st.lists(group, max_size=3)))
    }
    return {"nodes": [{"id": n} for n in range(nodes)], "links": links, "groups": groups}


@st.composite
def broken_networks(draw: st.DrawFn) -> tuple[Plan, set[tuple[int, int]]]:
    plan = build(draw(networks()))
    down = draw(st.sets(st.sampled_from(plan.links), max_size=len(plan.links)))
    return plan, {rules.arc(link.a, link.b) for link in down}


def graph_of(plan: Plan, down: Any = ()) -> Any:
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(plan.nodes))
    for link in plan.links:
        if rules.arc(link.a, link.b) not in down:
            graph.add_edge(link.a, link.b, delay_ns=link.delay_ns)
    return graph


def neighbours(plan: Plan) -> list[dict[int, int]]:
    """Where each port leads."""
    return [{port: other for other, port in ports.items()} for ports in plan.ports]


def unicast_way(
    plan: Plan, switches: list[rules.SwitchRules], start: int, ip: str
) -> list[int] | None:
    """Follow the rules; the way ends where the packet is handed to a host, or is None."""
    way, leads = [start], neighbours(plan)
    while len(way) <= plan.nodes:
        action = switches[way[-1]].flows.get(rules.Match(ip))
        if action is None:
            return None
        assert isinstance(action, rules.Output)
        if action.port == HOST_PORT:
            assert action == rules.Output(HOST_PORT, eth_dst=host_mac(way[-1]))
            return way
        assert action == rules.Output(action.port)
        way.append(leads[way[-1]][action.port])
    raise AssertionError(f"a packet for {ip} goes round and round: {way}")


def multicast_copies(
    plan: Plan, switches: list[rules.SwitchRules], source: int, ip: str = MULTICAST_IP
) -> tuple[Counter[int], Counter[tuple[int, int]]]:
    """Follow the rules; return how often hosts got the packet, and links carried it."""
    hosts: Counter[int] = Counter()
    links: Counter[tuple[int, int]] = Counter()
    leads, waiting = neighbours(plan), [source]
    while waiting:
        node = waiting.pop()
        assert len(links) <= plan.nodes, "a packet goes round and round"
        action = switches[node].flows.get(rules.Match(ip, host_ip(source)))
        if action is None:
            continue
        assert isinstance(action, rules.ToGroup)
        for copy in switches[node].groups[action.group]:
            if copy.port == HOST_PORT:
                assert copy == rules.Output(HOST_PORT, host_mac(node), host_ip(node))
                hosts[node] += 1
            else:
                assert copy == rules.Output(copy.port)
                links[node, leads[node][copy.port]] += 1
                waiting.append(leads[node][copy.port])
    return hosts, links


@given(networks(), METRICS)
def test_unicast_takes_the_simulators_path(network: dict[str, Any], metric: Metric) -> None:
    plan = build(network)
    switches = rules.rules(plan, metric)
    for destination in range(plan.nodes):
        tree = shortest_path_tree(graph_of(plan), destination, metric)
        for start in range(plan.nodes):
            way = unicast_way(plan, switches, start, host_ip(destination))
            assert way == path(tree, start)


@given(networks(), METRICS)
def test_multicast_reaches_every_other_host_once_over_the_sources_tree(
    network: dict[str, Any], metric: Metric
) -> None:
    plan = build(network)
    switches = rules.rules(plan, metric)
    for source in range(plan.nodes):
        hosts, links = multicast_copies(plan, switches, source)
        assert hosts == {node: 1 for node in range(plan.nodes) if node != source}
        tree = shortest_path_tree(graph_of(plan), source, metric)
        assert links == {(tree[node], node): 1 for node in range(plan.nodes) if node != source}


@given(broken_networks(), METRICS)
def test_multicast_to_a_group_goes_no_further_than_its_members(
    broken: tuple[Plan, set[tuple[int, int]]], metric: Metric
) -> None:
    plan, down = broken
    switches = rules.rules(plan, metric, down)
    for x, members in enumerate(plan.groups):
        for source in range(plan.nodes):
            tree = shortest_path_tree(graph_of(plan, down), source, metric)
            heard = members - {source} if source in members else frozenset[int]()
            reached = [node for node in heard if tree[node] != UNREACHED]
            hosts, links = multicast_copies(plan, switches, source, group_ip(x))
            assert hosts == dict.fromkeys(reached, 1)
            ways = {step for node in reached for step in pairwise(path(tree, node))}
            assert links == {(b, a): 1 for a, b in ways}


@given(broken_networks(), METRICS)
def test_without_some_links_the_rest_is_reached_and_nothing_else(
    broken: tuple[Plan, set[tuple[int, int]]], metric: Metric
) -> None:
    plan, down = broken
    switches = rules.rules(plan, metric, down)
    for root in range(plan.nodes):
        tree = shortest_path_tree(graph_of(plan, down), root, metric)
        for node in range(plan.nodes):
            way = unicast_way(plan, switches, node, host_ip(root))
            assert way == (None if tree[node] == UNREACHED else path(tree, node))
        hosts, links = multicast_copies(plan, switches, root)
        reached = [node for node, up in enumerate(tree) if up != UNREACHED and node != root]
        assert hosts == dict.fromkeys(reached, 1)
        assert links == {(tree[node], node): 1 for node in reached}


@given(broken_networks(), METRICS, st.data())
def test_rules_for_some_ways_are_those_that_their_packets_meet(
    broken: tuple[Plan, set[tuple[int, int]]], metric: Metric, data: st.DataObject
) -> None:
    plan, down = broken
    some = st.sets(st.integers(0, plan.nodes - 1))
    peers = tuple(tuple(sorted(data.draw(some))) for _ in range(plan.nodes))
    everybody = frozenset(range(plan.nodes))
    ways = Ways(peers, frozenset(data.draw(some)), frozenset([everybody]))
    switches, everything = rules.rules(plan, metric, down, ways), rules.rules(plan, metric, down)
    met = {
        (node, rules.Match(host_ip(to)))
        for start in range(plan.nodes)
        for to in peers[start]
        for node in unicast_way(plan, switches, start, host_ip(to)) or ()
    }
    for node, (switch, full) in enumerate(zip(switches, everything, strict=True)):
        sources = {host_ip(source) for source in ways.multicasters}
        wanted = {m: a for m, a in full.flows.items() if m.source in sources or (node, m) in met}
        assert switch.flows == wanted
        assert switch.groups.keys() == {
            action.group for action in wanted.values() if isinstance(action, rules.ToGroup)
        }
    for start in range(plan.nodes):
        for to in peers[start]:
            way = unicast_way(plan, everything, start, host_ip(to))
            assert unicast_way(plan, switches, start, host_ip(to)) == way


@given(broken_networks())
def test_there_is_no_rule_that_serves_nothing(broken: tuple[Plan, set[tuple[int, int]]]) -> None:
    plan, down = broken
    for switch in rules.rules(plan, "hops", down):
        used = {a.group for a in switch.flows.values() if isinstance(a, rules.ToGroup)}
        assert used == switch.groups.keys()
        assert all(switch.groups.values())


@given(broken_networks(), st.data())
def test_a_change_is_just_what_makes_one_set_of_rules_another(
    broken: tuple[Plan, set[tuple[int, int]]], data: st.DataObject
) -> None:
    plan, down = broken
    other = {rules.arc(link.a, link.b) for link in data.draw(st.sets(st.sampled_from(plan.links)))}
    for before, after in zip(
        rules.rules(plan, "hops", down), rules.rules(plan, "hops", other), strict=True
    ):
        step = rules.change(before, after)
        flows, groups = dict(before.flows), dict(before.groups)
        for group, copies in step.add_groups.items():
            assert group not in groups
            groups[group] = copies
        for group, copies in step.modify_groups.items():
            assert groups[group] != copies
            groups[group] = copies
        for match, action in step.set_flows.items():
            assert flows.get(match) != action
            flows[match] = action
        for match in step.remove_flows:
            del flows[match]
        for group in step.remove_groups:
            del groups[group]
        assert rules.SwitchRules(flows, groups) == after
        assert (len(step) == 0) == (before == after)


def test_the_metric_decides() -> None:
    # From 0 to 2 it is one slow link, or two quick ones.
    plan = Plan(3, (PlannedLink(0, 1, 1, 1), PlannedLink(1, 2, 1, 1), PlannedLink(0, 2, 9, 1)))
    assert unicast_way(plan, rules.rules(plan, "hops"), 0, host_ip(2)) == [0, 2]
    assert unicast_way(plan, rules.rules(plan, "delay"), 0, host_ip(2)) == [0, 1, 2]


def test_ports_do_not_move_when_links_are_down() -> None:
    pairs = ((0, 1), (0, 2), (0, 3), (2, 1))
    plan = Plan(4, tuple(PlannedLink(*pair, 1, 1) for pair in pairs))
    switch = rules.rules(plan, "hops", {(0, 1)})[0]
    assert switch.flows[rules.Match(host_ip(3))] == rules.Output(HOST_PORT + 3)
    assert switch.flows[rules.Match(host_ip(1))] == rules.Output(HOST_PORT + 2)


@pytest.mark.parametrize("metric", ["hops", "delay"])
def test_a_hundred_switches_take_well_under_a_second(metric: Metric) -> None:
    graph = nx.connected_watts_strogatz_graph(100, 6, 0.3, seed=1)
    plan = Plan(100, tuple(PlannedLink(a, b, 1 + (a * b) % 7, 1) for a, b in graph.edges))
    start = time.process_time()
    switches = rules.rules(replace(plan), metric)
    assert time.process_time() - start < 0.5
    assert sum(len(switch.flows) + len(switch.groups) for switch in switches) == 3 * 100 * 100
