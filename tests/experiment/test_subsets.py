"""Multicasts to some of the processes: the workload, and the protocols that can do it."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario
from testbed.experiment.document import Transport
from testbed.experiment.seeds import stream
from testbed.protocols import PROTOCOLS
from testbed.workloads import RandomDestinations, Sending
from tests.experiments import events_of, parsed, run

SUBSETS = ["rst", "ks", "ks-prime"]
CHANNELS = {"model": "exponential-channels", "mean_ms": 20.0}
GRAPH = {"model": "pure-random", "edge_probability": 0.6}


@dataclass(frozen=True, kw_only=True)
class SenderToo(RandomDestinations, model="sender-too"):
    """Every second message goes to its sender too, and every fifth to nobody else."""

    def sends(self, processes: int, rng: random.Random, *_: object) -> Iterator[Sending]:
        for number, sending in enumerate(super().sends(processes, rng)):
            to = sending.to or frozenset()
            if number % 5 == 4:
                yield sending._replace(to=frozenset([sending.node]))
            else:
                yield sending._replace(to=to | {sending.node} if number % 2 else to)


def sends(processes: int, seed: int = 1, **keys: Any) -> list[Sending]:
    return list(RandomDestinations(**keys).sends(processes, random.Random(seed)))


def sizes(found: list[Sending]) -> list[int]:
    return [len(s.to or ()) for s in found]


def experiment(protocol: str, topology: dict[str, Any], nodes: int, **workload: Any) -> Experiment:
    document = {
        "name": "subsets",
        "protocol": {"name": protocol},
        "topology": {**topology, "nodes": nodes},
        "workload": {"model": "random-destinations", "messages": 60, **workload},
    }
    return parsed(document)


def test_as_many_messages_as_asked_for_at_the_rate_asked_for() -> None:
    found = sends(20, messages=8000, mean_interval_ms=50)
    assert len(found) == 8000
    assert found == sorted(found, key=lambda s: s.at)
    assert found[-1].at / 8000 == pytest.approx(50e6 / 20, rel=0.05)
    counts = Counter(s.node for s in found)
    assert len(counts) == 20
    assert min(counts.values()) > 300
    times = [[s.at for s in found if s.node == node] for node in range(20)]
    gaps = [later - at for of_one in times for at, later in pairwise(of_one)]
    assert fmean(gap > 50e6 for gap in gaps) == pytest.approx(0.368, abs=0.02)  # exponential: 1/e


def test_a_sender_is_never_its_own_destination_and_all_others_are_alike() -> None:
    found = sends(8, messages=20_000, multicast_fraction=0.5)
    assert all(s.to and s.node not in s.to for s in found)
    to = Counter((d - s.node) % 8 for s in found for d in s.to or ())
    assert set(to) == set(range(1, 8))
    assert max(to.values()) < 1.05 * min(to.values())


@pytest.mark.parametrize("multicasts", [0.0, 0.1, 0.9, 1.0])
def test_so_many_are_multicast_to_a_uniform_number(multicasts: float) -> None:
    found = sizes(sends(11, messages=10_000, multicast_fraction=multicasts))
    alone = (1 - multicasts) + multicasts / 10  # a set of one among the ten sizes
    assert fmean(size == 1 for size in found) == pytest.approx(alone, abs=0.02)
    for size in range(2, 11):
        share = fmean(s == size for s in found)
        assert share == pytest.approx(multicasts / 10, abs=0.015)


@pytest.mark.parametrize("broadcasts", [0.1, 0.6, 1.0])
def test_so_many_are_broadcast_and_the_rest_unicast(broadcasts: float) -> None:
    drawn = sends(12, messages=5000, multicast_fraction=0.0, broadcast_fraction=broadcasts)
    found = sizes(drawn)
    assert set(found) <= {1, 11}
    assert fmean(size == 11 for size in found) == pytest.approx(broadcasts, abs=0.03)


@pytest.mark.parametrize(("fraction", "size"), [(0.01, 1), (0.1, 2), (0.6, 12), (1.0, 19)])
def test_a_fixed_fraction_of_the_processes(fraction: float, size: int) -> None:
    found = sends(20, messages=50, multicast_fraction=1, destinations_fraction=fraction)
    assert set(sizes(found)) == {size}


def test_fewer_senders_and_an_earlier_end() -> None:
    found = sends(20, messages=1000, senders=3, mean_interval_ms=1, duration_ms=50)
    assert len({s.node for s in found}) == 3
    assert 100 < len(found) < 200
    assert found[-1].at < 50e6


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"messages": 0}, "messages"),
        ({"mean_interval_ms": 0.0}, "mean_interval_ms"),
        ({"multicast_fraction": 0.7, "broadcast_fraction": 0.4}, "together at most 1"),
        ({"broadcast_fraction": float("nan")}, "broadcast_fraction"),
        ({"destinations_fraction": 0.0}, "destinations_fraction"),
        ({"warm_up_messages": -1}, "warm_up_messages"),
        ({"answers": 2, "payload_bytes": 7}, "payload_bytes must be at least 8, not 7"),
        ({"answers": 2, "depth": 20, "payload_bytes": 8}, "more than a million"),
    ],
)
def test_values_out_of_range_are_named(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RandomDestinations(**keys)


@settings(max_examples=30, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_any_set_gets_its_messages_in_causal_order(data: st.DataObject, tmp_path: Path) -> None:
    nodes = data.draw(st.integers(2, 9))
    what = experiment(
        data.draw(st.sampled_from(SUBSETS)),
        data.draw(st.sampled_from([GRAPH, CHANNELS])),
        nodes,
        mean_interval_ms=data.draw(st.sampled_from([0.2, 5.0, 100.0])),
        multicast_fraction=data.draw(st.sampled_from([0.0, 0.3, 1.0])),
        **data.draw(st.sampled_from([{}, {"answers": 2, "depth": 2, "payload_bytes": 8}])),
    )
    workload = what.workload
    if data.draw(st.booleans()):
        workload = SenderToo(**{k: v for k, v in vars(workload).items() if k != "model"})
    what = replace(what, seed=data.draw(st.integers(0, 10**6)), workload=workload)
    done = run(what, tmp_path)
    assert done.verdict.ok, done.verdict.explain(3)
    events = events_of(done)
    sent = {(e["source"], e["seq"], d) for e in events if e["event"] == "send" for d in e["to"]}
    delivered = [(e["source"], e["seq"], e["node"]) for e in events if e["event"] == "deliver"]
    assert sorted(delivered) == sorted(sent)


def test_some_destinations_answer_to_sets_of_their_own_whatever_the_protocol(
    tmp_path: Path,
) -> None:
    def sent(name: str, **keys: Any) -> list[tuple[int, list[int]]]:
        """By whom and to whom each message was sent, in no order."""
        what = experiment(name, GRAPH, 9, multicast_fraction=0.5, payload_bytes=10, **keys)
        done = run(replace(what, seed=4), tmp_path)
        assert done.verdict.ok
        return sorted((e["node"], e["to"]) for e in events_of(done) if e["event"] == "send")

    quick = {"mean_interval_ms": 0.5}
    unasked = sent("rst", **quick)
    found = [sent(name, answers=3, depth=2, **quick) for name in (*SUBSETS, "daisy")]
    assert all(one == found[0] for one in found)
    answers = Counter(map(str, found[0])) - Counter(map(str, unasked))
    assert len(unasked) == 60
    assert answers.total() == len(found[0]) - 60 > 120  # some sets have fewer than three
    assert all(node not in to for node, to in found[0])


@pytest.mark.parametrize("name", [n for n, p in PROTOCOLS.items() if not p.takes_subsets])
def test_a_protocol_that_sends_to_everybody_refuses(name: str) -> None:
    with pytest.raises(UserError, match=rf"{name} sends every message to everybody.*rst, ks"):
        Scenario.of(experiment(name, GRAPH, 8))


def test_counters_begin_after_the_warm_up(tmp_path: Path) -> None:
    figures = {}
    for warm_up in (0, 40, 59):
        what = experiment("ks", CHANNELS, 6, warm_up_messages=warm_up, multicast_fraction=0.5)
        figures[warm_up] = run(what, tmp_path).summary
        copies = sum(sizes(list(what.workload.sends(6, stream(what.seed, "workload")))[warm_up:]))
        assert figures[warm_up]["control_copies"] == copies
    whole, late = figures[0], figures[40]
    assert whole["copies"] == late["copies"] == whole["control_copies"]
    assert late["control_integers_per_message"] > whole["control_integers_per_message"]
    assert late["message_integers_mean"] > whole["message_integers_mean"]
    assert late["log_integers_mean"] > whole["log_integers_mean"]


def test_a_warm_up_that_leaves_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"subsets.toml.*warm_up_messages = 60 leaves nothing"):
        run(experiment("ks", CHANNELS, 6, warm_up_messages=60), tmp_path)


def test_the_overhead_is_given_as_per_cent_of_the_matrix(tmp_path: Path) -> None:
    found = {name: run(experiment(name, CHANNELS, 16), tmp_path).summary for name in SUBSETS}
    assert found["rst"]["control_integers_per_message"] == 16**2
    assert found["rst"]["control_percent_of_n2"] == found["rst"]["log_percent_of_n2"] == 100
    ks = found["ks"]
    percent = 100 * ks["control_integers"] / ks["copies"] / 16**2
    assert ks["control_percent_of_n2"] == pytest.approx(percent)
    assert found["ks-prime"]["control_percent_of_n2"] < percent < 100
    for key in ("copies", "control_entries", "control_destinations", "control_empty_entries"):
        assert ks[key] == found["ks-prime"][key]
    assert len({f["delay_ms_mean"] for f in found.values()}) == 1  # all wait no longer than needed


def test_a_matrix_that_no_datagram_carries_is_refused_but_not_as_the_papers_count(
    tmp_path: Path,
) -> None:
    star = {"model": "star"}
    assert run(experiment("rst", star, 127, messages=1), tmp_path).verdict.ok
    with pytest.raises(
        UserError, match=r"a message of 65,\d+ bytes; a datagram holds 65,507 at most"
    ):
        run(experiment("rst", star, 128, messages=1), tmp_path)
    bare = replace(experiment("rst", star, 128, messages=1), transport=Transport(framing="bare"))
    assert run(bare, tmp_path).verdict.ok
