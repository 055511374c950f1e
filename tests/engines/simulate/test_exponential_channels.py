"""Channels with exponential times: their mean, their order, and what is counted on them."""

import json
import random
from collections import defaultdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest

from testbed.engines.simulate.channels import Channels
from testbed.errors import UserError
from testbed.experiment import Experiment, build_network
from testbed.protocols import Message
from testbed.topologies import describe
from testbed.topologies.channels import ExponentialChannels, Turns
from tests.experiments import log_of, parsed, run

MS = 1_000_000


class Wire:
    """Channels whose receptions are written down by pair."""

    def __init__(self, processes: int, mean_ms: float, **keys: Any) -> None:
        model = ExponentialChannels(processes, mean_ms, **keys)
        self.channels = Channels(model, framing="bare", rng=random.Random(1))
        self.received: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.channels.receivers = [partial(self.receive, node) for node in range(processes)]

    def receive(self, node: int, message: Message, sender: int, now: int) -> None:
        self.received[sender, node].append((message.seq, now))

    def send_at(self, at: int, sender: int, peers: tuple[int, ...], seq: int) -> None:
        message = Message(sender, seq)
        self.channels.scheduler.call_at(at, partial(self.channels.unicast, sender, peers, message))

    def run(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        self.channels.scheduler.run()
        return dict(self.received)


def test_copies_take_exponential_times_each_its_own() -> None:
    wire = Wire(101, 50)
    for seq in range(1, 51):  # so far apart that none can overtake
        wire.send_at(seq * 10_000 * MS, 0, tuple(range(1, 101)), seq)
    times = [at - seq * 10_000 * MS for got in wire.run().values() for seq, at in got]
    assert len(times) == len(set(times)) == 5000
    assert fmean(times) == pytest.approx(50 * MS, rel=0.05)
    assert fmean(t > 50 * MS for t in times) == pytest.approx(0.368, abs=0.03)


@pytest.mark.parametrize(("gap", "ns"), [({}, MS), ({"fifo_gap_ms": 0.0}, 0)])
def test_none_overtakes_on_its_channel_and_one_that_would_comes_a_gap_after(
    gap: dict[str, float], ns: int
) -> None:
    wire = Wire(3, 50, **gap)
    for seq in range(1, 2001):
        wire.send_at(seq * MS, 0, (1, 2), seq)
    received = wire.run()
    assert [seq for seq, _ in received[0, 1]] == list(range(1, 2001))
    assert received[0, 1] != received[0, 2]
    steps = [later - at for (_, at), (_, later) in pairwise(received[0, 1])]
    assert min(steps) >= 0
    assert steps.count(ns) > 1500  # fifty behind each other: nearly all would overtake


def test_a_network_multicast_is_copies() -> None:
    wire = Wire(5, 50)
    wire.channels.multicast(0, (1, 2, 3, 4), Message(0, 1, bytes(5000)))
    received = wire.run()
    assert len({at for ((_, at),) in received.values()}) == 4
    assert wire.channels.sent.messages == wire.channels.carried().hops == 4  # whole, one hop each
    assert wire.channels.carried().wire_bytes == 4 * 5032


def experiment(protocol: dict[str, Any], **changes: Any) -> Experiment:
    document = {
        "name": "channels",
        "protocol": protocol,
        "topology": {"model": "exponential-channels", "nodes": 12, "mean_ms": 30.0},
        "workload": {"model": "poisson", "senders": 6, "rate_per_s": 50, "duration_ms": 300},
    }
    return parsed(document, **changes)


@pytest.mark.parametrize(
    "protocol",
    [
        {"name": "overlay"},
        {"name": "timestamp", "multicast": "network"},
        {"name": "timestamp", "multicast": "unicast"},
        {"name": "rst"},
        {"name": "ks"},
        {"name": "ks-prime"},
    ],
    ids=lambda p: "-".join(p.values()),
)
def test_every_protocol_keeps_causal_order_on_channels(
    protocol: dict[str, Any], tmp_path: Path
) -> None:
    done = run(experiment(protocol), tmp_path)
    assert done.verdict.ok, done.verdict.explain(3)
    figures = done.summary
    assert figures["deliveries"] == figures["multicasts"] * 12
    assert figures["hops"] == figures["copies"] == figures["messages"]
    if protocol["name"] != "overlay":
        assert figures["delivery_queue_max"] > 0


def test_one_seed_is_one_run(tmp_path: Path) -> None:
    runs = (run(experiment({"name": "ks"}, seed=seed), tmp_path) for seed in (3, 3, 4))
    first, again, other = (log_of(each).read_bytes() for each in runs)
    assert first == again != other


def test_the_packet_table_has_a_row_for_each_copy(tmp_path: Path) -> None:
    done = run(experiment({"name": "ks"}, packets="full"), tmp_path)
    table = pq.read_table(done.path / "packets" / "links.parquet")
    assert len(table) == done.summary["copies"]
    assert sum(table["bytes"].to_pylist()) == done.summary["wire_bytes"]
    assert table["started"].to_pylist() == table["queued"].to_pylist()


def test_the_graph_is_complete() -> None:
    figures = describe(build_network(experiment({"name": "overlay"})).graph)
    assert (figures.nodes, figures.links, figures.diameter) == (12, 66, 1)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("mean_ms", 0.0, "mean_ms = 0.0"),
        ("mean_ms", float("nan"), "mean_ms"),
        ("fifo_gap_ms", -1.0, "fifo_gap_ms = -1.0"),
        ("nodes", 1, "nodes"),
    ],
)
def test_values_out_of_range_are_named(key: str, value: float, words: str) -> None:
    topology = {"model": "exponential-channels", "nodes": 12, "mean_ms": 30.0, key: value}
    with pytest.raises(UserError, match=words):
        experiment({"name": "ks"}, topology=topology)


@pytest.mark.parametrize("clock", ["turns", "rounds"])
def test_who_takes_turns_sends_and_receives_in_its_own(clock: str, tmp_path: Path) -> None:
    document = {
        "name": "turns",
        "protocol": {"name": "ks"},
        "topology": {
            "model": "exponential-channels",
            "nodes": 4,
            "mean_ms": 50.0,
            "turn_ms": 500.0,
            "clock": clock,
        },
        "workload": {"model": "random-destinations", "messages": 300, "mean_interval_ms": 100.0},
    }
    done = run(parsed(document), tmp_path)
    lines = [json.loads(line) for line in log_of(done).open()]
    assert done.verdict.ok
    assert len(lines) > 600
    for event in lines:
        turn, rest = divmod(event["t"], 500 * MS)
        assert turn % 4 == event["node"]
        if event["event"] != "send":  # what has arrived is taken first
            assert rest <= MS
    sends = [event["t"] % (500 * MS) for event in lines if event["event"] == "send"]
    assert max(sends) > 400 * MS


def test_by_the_clock_of_rounds_a_copy_can_arrive_in_the_slot_in_which_it_was_sent() -> None:
    turns = Turns(3, 500)
    assert [turns.at(1, own) for own in (0, 499, 500)] == [500, 999, 2000]
    assert [turns.own(time) for time in (500, 999, 2000)] == [0, 499, 500]
    assert turns.next(0, 100) // 500 == 3  # it has its turn, and has taken what was there
    assert turns.next(1, 100) // 500 == 1
    waiting = [turns.next(2, time) for time in range(1500, 2500, 100)]
    assert waiting == sorted(waiting)
    assert {time // 500 for time in waiting} == {5}
