"""The simulator: times that can be worked out by hand, counts that follow from the graph, and order."""

import math
import random
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.engines.simulate.engine import Simulation
from testbed.engines.simulate.network import SimulatedNetwork
from testbed.experiment import Experiment, Network, Scenario, build_network
from testbed.progress import silent
from testbed.protocols import Message
from testbed.topologies import Graph
from tests.experiments import log_of, parsed, run
from tests.test_world import Plain
from tests.world import MemoryLog

MS = 1_000_000
SIZES = (2, 3, 5, 16, 33, 64, 100)


def line(nodes: int, delay_ms: float = 1.0, mbit: float = 10.0, queue: int = 0) -> Graph:
    graph: Graph = nx.path_graph(nodes)
    attributes = {
        "delay_ns": round(delay_ms * MS),
        "bandwidth_bps": round(mbit * 1e6),
        "queue_packets": queue,
        "loss": 0.0,
        "length": 1.0,
    }
    nx.set_edge_attributes(graph, dict.fromkeys(graph.edges, attributes))
    return graph


class Wire:
    """A simulated network whose receptions are written down."""

    def __init__(self, graph: Graph, **settings: Any) -> None:
        self.received: list[tuple[int, int, int]] = []
        defaults: dict[str, Any] = {"metric": "hops", "framing": "udp", "mtu": 1500}
        self.network = SimulatedNetwork(graph, **{**defaults, **settings}, rng=random.Random(1))
        self.network.receivers = [partial(self.receive, node) for node in graph]

    def receive(self, node: int, message: Message, sender: int, now: int) -> None:
        self.received.append((now, node, message.seq))

    def run(self) -> list[tuple[int, int, int]]:
        self.network.scheduler.run()
        return self.received


def message(seq: int = 1, payload: int = 0) -> Message:
    return Message(0, seq, bytes(payload))


def test_one_hop_is_transmission_plus_propagation() -> None:
    wire = Wire(line(2))
    wire.network.unicast(0, (1,), message())
    assert wire.run() == [(74 * 800 + MS, 1, 1)]  # 32 + 42 bytes at 800 ns a byte


def test_the_second_waits_for_the_first_to_leave() -> None:
    wire = Wire(line(2))
    for seq in (1, 2, 3):
        wire.network.unicast(0, (1,), message(seq))
    assert wire.run() == [(k * 74 * 800 + MS, 1, k) for k in (1, 2, 3)]
    link = wire.network.links[0, 1]
    assert link.longest == 2
    assert wire.network.links[1, 0].packets == 0


def test_each_link_stores_before_it_forwards() -> None:
    wire = Wire(line(4, delay_ms=2.0), framing="bare")
    wire.network.unicast(0, (3,), message(payload=968))
    assert wire.run() == [(3 * (1000 * 800 + 2 * MS), 3, 1)]


def test_fragments_travel_one_behind_the_other_and_arrive_as_one_message() -> None:
    wire = Wire(line(3))
    wire.network.unicast(0, (2,), message(payload=3000 - 32))
    first, second, third = 1514, 1514, 34 + 3008 - 2960
    last = (first + second + third) * 800 + MS + third * 800 + MS
    # the third is small: it waits for the second on the second link as well
    last = max(last, first * 800 + MS + (first + second + third) * 800 + MS)
    assert wire.run() == [(last, 2, 1)]
    assert wire.network.sent.messages == 3
    assert sum(link.packets for link in wire.network.links.values()) == 6


def test_a_full_queue_drops_and_a_lossy_link_loses() -> None:
    wire = Wire(line(2, queue=4))
    for seq in range(1, 11):
        wire.network.unicast(0, (1,), message(seq))
    assert [seq for _, _, seq in wire.run()] == [1, 2, 3, 4, 5]  # one under way, four waiting
    assert wire.network.links[0, 1].dropped == 5
    graph = line(2)
    graph.edges[0, 1]["loss"] = 0.3
    wire = Wire(graph)
    for seq in range(1, 1001):
        wire.network.unicast(0, (1,), message(seq))
    arrived = len(wire.run())
    assert arrived == 1000 - wire.network.links[0, 1].lost
    assert 630 < arrived < 770


def test_a_message_that_lost_a_fragment_never_arrives() -> None:
    wire = Wire(line(2, queue=1))
    wire.network.unicast(0, (1,), message(1, payload=5000))
    wire.network.scheduler.call_at(100 * MS, lambda: wire.network.unicast(0, (1,), message(2)))
    assert [seq for _, _, seq in wire.run()] == [2]


def test_routes_follow_the_metric() -> None:
    graph = line(3, delay_ms=1.0)
    graph.add_edge(0, 2, **{**graph.edges[0, 1], "delay_ns": 10 * MS})
    arrivals = {}
    for metric in ("hops", "delay"):
        wire = Wire(graph, metric=metric)
        wire.network.unicast(0, (2,), message())
        arrivals[metric] = wire.run()[0][0]
    assert arrivals == {"hops": 74 * 800 + 10 * MS, "delay": 2 * (74 * 800 + MS)}


def test_multicast_crosses_each_link_of_the_tree_once_and_only_where_needed() -> None:
    wire = Wire(line(5))
    wire.network.multicast(1, (0, 3), message())
    hop = 74 * 800 + MS
    assert sorted(wire.run()) == [(hop, 0, 1), (2 * hop, 3, 1)]
    assert sum(link.packets for link in wire.network.links.values()) == 3
    assert (wire.network.sent.messages, wire.network.sent.bytes) == (2, 64)


def test_long_paths_are_no_matter() -> None:
    wire = Wire(line(3000, delay_ms=0.001))
    wire.network.multicast(0, tuple(range(1, 3000)), message())
    wire.network.unicast(0, (2999,), message(2))
    assert len(wire.run()) == 3000


def experiment(protocol: dict[str, Any], nodes: int, **changes: Any) -> Experiment:
    document = {
        "name": "test",
        "protocol": protocol,
        "topology": {
            "model": "pure-random",
            "nodes": nodes,
            "edge_probability": min(1.0, 1.5 * math.log(nodes) / nodes + 0.1),
        },
        "workload": {"model": "bursts", "senders": min(10, nodes), "duration_ms": 2},
    }
    return parsed(document, **changes)


PROTOCOLS = (
    {"name": "overlay"},
    {"name": "timestamp", "multicast": "network"},
    {"name": "timestamp", "multicast": "unicast"},
)


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: "-".join(p.values()))
def test_everything_is_delivered_once_in_causal_order(
    protocol: dict[str, Any], nodes: int, tmp_path: Path
) -> None:
    what = experiment(protocol, nodes)
    done = run(what, tmp_path)
    assert done.verdict.ok, done.verdict.explain(3)
    figures = done.summary
    multicasts = min(10, nodes) * 20
    assert figures["multicasts"] == multicasts
    assert figures["deliveries"] == multicasts * nodes
    network = build_network(what)
    if protocol["name"] == "overlay":
        assert network.overlay is not None
        sends = 2 * network.overlay.number_of_edges() - nodes + 1
        assert figures["copies"] == figures["messages"] == multicasts * sends
        assert figures["bytes"] == multicasts * sends * 32
        assert figures["control_bytes"] == figures["delivery_queue_max"] == 0
    else:
        assert figures["copies"] == multicasts * (nodes - 1)
        assert figures["bytes"] == multicasts * (nodes - 1) * (32 + 4 * nodes)
        if protocol["multicast"] == "network":
            assert figures["hops"] == figures["messages"]
        else:
            assert figures["hops"] > figures["messages"] or nodes <= 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_network_and_workload_keeps_causal_order(data: st.DataObject, tmp_path: Path) -> None:
    nodes = data.draw(st.integers(2, 12))
    workload = data.draw(st.sampled_from(["bursts", "steady", "poisson", "reply"]))
    what = experiment(
        data.draw(st.sampled_from(PROTOCOLS)),
        nodes,
        seed=data.draw(st.integers(0, 10**6)),
        links={
            "delay_ms": sorted(data.draw(st.tuples(st.floats(0, 3), st.floats(0, 3)))),
            "bandwidth_mbit": data.draw(st.sampled_from([0.5, 10, 1000])),
        },
        transport={
            "routing": data.draw(st.sampled_from(["hops", "delay"])),
            "mtu": data.draw(st.sampled_from([100, 1500])),
        },
        overlay={"model": data.draw(st.sampled_from(["hypercube", "ring", "tree", "complete"]))},
        workload={
            "model": workload,
            "senders": data.draw(st.integers(1, nodes)),
            "duration_ms": 2,
            "payload_bytes": data.draw(st.integers(4, 300)),
            **({"rate_per_s": 10_000.0} if workload == "poisson" else {}),
        },
    )
    done = run(what, tmp_path)
    assert done.verdict.ok, done.verdict.explain(3)
    assert done.summary["deliveries"] == done.summary["multicasts"] * nodes


def test_one_seed_is_one_run(tmp_path: Path) -> None:
    logs, figures = [], []
    for seed in (7, 7, 8):
        done = run(experiment({"name": "timestamp"}, 16, seed=seed), tmp_path)
        logs.append(log_of(done).read_bytes())
        figures.append({k: v for k, v in done.summary.items() if k != "seed"})
    assert logs[0] == logs[1] != logs[2]
    assert figures[0] == figures[1] != figures[2]


@pytest.mark.parametrize(
    "protocol",
    [
        {"name": "timestamp", "multicast": "unicast"},
        {"name": "daisy", "group_size": 4},  # it never rests: packets are on their way at the end
    ],
    ids=lambda protocol: protocol["name"],
)
def test_the_packet_table_tells_what_the_counters_count(
    protocol: dict[str, Any], tmp_path: Path
) -> None:
    what = experiment(protocol, 12, packets="full", links={"delay_ms": [20.0, 40.0]})
    done = run(what, tmp_path)
    table = pq.read_table(done.path / "packets" / "links.parquet")
    column = {name: table[name].to_numpy() for name in table.column_names}
    figures = done.summary
    assert len(table) == figures["hops"]
    assert column["bytes"].sum() == figures["wire_bytes"]
    time = (column["arrived"] - column["queued"]).sum() / (figures["duration_ms"] * MS)
    assert time == pytest.approx(figures["network_load_mean"])
    times = column["bytes"] * (column["arrived"] - column["queued"])
    load = times.sum() / (figures["duration_ms"] * MS)
    assert load == pytest.approx(figures["network_load_bytes_mean"])
    longest, most = 0, 0
    for ends in set(zip(column["tail"], column["head"], strict=True)):
        rows = (column["tail"] == ends[0]) & (column["head"] == ends[1])
        queued, started, arrived = (column[c][rows] for c in ("queued", "started", "arrived"))
        assert (np.diff(queued) >= 0).all()
        assert (np.diff(started) > 0).all()
        assert (np.diff(arrived) > 0).all()
        assert (started >= queued).all()
        waiting = [(queued <= t) & (started > t) for t in queued]
        longest = max(longest, *(which.sum() for which in waiting))
        most = max(most, *(column["bytes"][rows][which].sum() for which in waiting))
    assert longest == figures["link_queue_max"]
    assert most == figures["link_queue_bytes_max"]


def test_timers_run_out_once_when_they_should() -> None:
    workload = {"model": "bursts", "senders": 2, "burst": 1, "duration_ms": 1}
    what = experiment({"name": "overlay"}, 2, workload=workload)
    object.__setattr__(what, "protocol", Plain)
    simulation = Simulation(Scenario.on(what, Network(line(2), None)), MemoryLog())
    simulation.run(silent)
    assert simulation.meter.counted == {"early at 10": 2, "late at 20": 2}
