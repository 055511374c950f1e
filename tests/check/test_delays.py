"""The delay that a protocol adds: worked by hand, by definition, and of protocols that add none."""

import json
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.check import CHECKS, Event, check_run
from testbed.check.delays import added_delays, summarise
from testbed.check.history import rebuild
from testbed.check.judge import Judge
from testbed.check.logs import logs_in_memory
from testbed.protocols import MessageId
from testbed.runs.events import EventLog
from tests.check.brute_force import Brute, Execution
from tests.check.events import CRASH, Logs, Name, deliver, hold, send, triangle, write_run
from tests.experiments import log_of, parsed, run


def delays(logs: Logs) -> list[int]:
    found: list[int] = added_delays(Judge(rebuild(logs_in_memory(logs, logs)))).tolist()
    return found


def delays_of_run(path: Path) -> list[int]:
    judge = check_run(path).judge
    assert judge is not None
    found: list[int] = added_delays(judge).tolist()
    return found


@pytest.mark.parametrize(
    ("at_c", "delayed"),
    [
        ([deliver(0, 1, 5), deliver(1, 1, 6)], [0, 0]),
        ([hold(1, 1, 4), deliver(0, 1, 5), deliver(1, 1, 5)], [0, 0]),  # no sooner than its cause
        ([hold(1, 1, 4), deliver(0, 1, 5), deliver(1, 1, 8)], [0, 3]),
        ([hold(0, 1, 4), deliver(0, 1, 9), deliver(1, 1, 9)], [5, 0]),
        ([hold(0, 1, 4), hold(1, 1, 6), deliver(0, 1, 9), deliver(1, 1, 9)], [5, 3]),
        ([hold(1, 1, 4), hold(1, 1, 7), deliver(1, 1, 9)], [5]),  # what is lost delays nothing
        ([hold(0, 1, 4), hold(1, 1, 5), deliver(1, 1, 9)], [4]),
        ([hold(7, 7, 4), deliver(0, 1, 5), deliver(8, 8, 6)], [0]),  # nobody sent these
    ],
)
def test_the_relay_triangle(at_c: list[Event], delayed: list[int]) -> None:
    assert delays(triangle(*at_c)) == [0, *delayed]


def test_a_cause_that_goes_elsewhere_is_no_reason_to_wait() -> None:
    logs = {
        0: [send(0, 1, [1]), send(0, 2, [2], 1)],
        1: [deliver(0, 1, 50)],
        2: [hold(0, 2, 3), deliver(0, 2, 7)],
    }
    assert delays(logs) == [0, 4]


def test_a_sender_waits_for_nothing_and_is_left_out() -> None:
    assert delays({0: [send(0, 1), deliver(0, 1)], 1: [deliver(0, 1, 4)]}) == [0]


def test_a_node_that_was_started_again_waits_only_for_what_it_can_know_of() -> None:
    a = [send(0, 1, [1]), send(0, 2, [1], 1)]
    b = [hold(0, 2, 3), CRASH, Event("restart"), hold(0, 2, 9), deliver(0, 2, 11)]
    assert delays({0: a, 1: [*b, deliver(0, 1, 12)]}) == [0, 2]


def test_summary() -> None:
    assert summarise(np.array([0, 3_000_000, 0, 1_000_000])) == {
        "added_delay_ms_mean": 1.0,
        "added_delay_ms_max": 3.0,
        "delayed_percent": 50.0,
    }
    assert summarise(np.zeros(0, np.int64)) == {}


def invent(seed: int, nodes: int, messages: int) -> Logs:
    """An execution in causal order, with some dawdling."""
    rng = random.Random(seed)
    logs: Logs = {node: [] for node in range(nodes)}
    before: dict[MessageId, set[MessageId]] = {}
    past: list[set[MessageId]] = [set() for _ in range(nodes)]
    due: list[set[MessageId]] = [set() for _ in range(nodes)]  # sent there, not yet delivered
    counts = [0] * nodes
    for t in range(8 * messages):
        node = rng.randrange(nodes)
        free = [m for m in due[node] if not before[m] & due[node]]
        action = rng.random()
        if action < 0.2 and len(before) < messages:
            counts[node] += 1
            name = MessageId(node, counts[node])
            to = rng.choice([None, rng.sample(range(nodes), rng.randint(1, nodes))])
            logs[node].append(send(*name, to, t))
            before[name] = set(past[node])
            past[node].add(name)
            for peer in range(nodes) if to is None else to:
                due[peer].add(name)
        elif action < 0.5 and due[node]:
            logs[node].append(hold(*rng.choice(sorted(due[node])), t))
        elif free:
            name = rng.choice(sorted(free))
            logs[node].append(deliver(*name, t))
            due[node].remove(name)
            past[node] |= before[name] | {name}
    return logs


def by_definition(logs: Logs) -> list[int]:
    brute = Brute(Execution(len(logs), logs))
    before = {name: {m for m in brute.sends if (m, name) in brute.before} for name in brute.sends}
    return [delay for node, log in logs.items() for delay in delays_at(node, log, before)]


def delays_at(node: int, log: list[Event], before: dict[Name, set[Name]]) -> list[int]:
    """earliest(m, p) = max(arrival(m, p), earliest(m', p) for all m' → m that p delivers too)."""
    delivered = {(e.source, e.seq): e.t for e in log if e.event == "deliver"}
    held = {(e.source, e.seq): e.t for e in reversed(log) if e.event == "hold"}

    @cache
    def earliest(name: Name) -> int:
        past: list[int] = [earliest(m) for m in before[name] if m in delivered]
        latest: int = max(held.get(name, delivered[name]), *past, 0)
        return latest

    return [t - earliest(name) for name, t in delivered.items() if name[0] != node]


@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 5), messages=st.integers(0, 12))
def test_agrees_with_the_definition(seed: int, nodes: int, messages: int) -> None:
    logs = invent(seed, nodes, messages)
    assert sorted(delays(logs)) == sorted(by_definition(logs))


def test_what_is_invented_is_delayed_sometimes() -> None:
    found = [d for seed in range(20) for d in delays(invent(seed, 4, 10))]
    assert {0} < set(found)
    assert min(found) == 0


@pytest.mark.parametrize("protocol", ["rst", "ks", "timestamp"])
def test_a_protocol_that_knows_enough_adds_no_delay(protocol: str, tmp_path: Path) -> None:
    document = {
        "name": "added",
        "protocol": {"name": protocol},
        "topology": {"model": "exponential-channels", "mean_ms": 20.0, "nodes": 6},
        "workload": {"model": "poisson", "senders": 6, "rate_per_s": 50, "duration_ms": 400.0},
    }
    done = run(parsed(document), tmp_path)
    found = delays_of_run(done.path)
    assert len(found) == done.verdict.deliveries * 5 // 6
    assert '"hold"' in log_of(done).read_text()
    assert not any(found)


def test_a_run_is_read_with_what_was_held_for_no_named_reason(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "network.json").write_text('{"nodes": [{"id": 0}, {"id": 1}]}')
    name = MessageId(0, 1)
    with EventLog(tmp_path / "events" / "nodes.jsonl") as log:
        log.send(0, 0, name, frozenset({1}), 0)
        log.hold(3, 1, name, None)
        log.hold(5, 1, name, MessageId(0, 9))
        log.deliver(7, 1, *name)
    lines = (tmp_path / "events" / "nodes.jsonl").read_text().splitlines()
    assert [json.loads(line)["for"] for line in lines[1:3]] == [None, [0, 9]]
    assert delays_of_run(tmp_path) == [4]
    verdict = check_run(tmp_path, checks=CHECKS)
    assert verdict.ok
    assert verdict.figures["added_delay_ms_max"] == 4e-6


def test_a_directory_without_a_network_has_no_delays(tmp_path: Path) -> None:
    verdict = check_run(tmp_path, checks=CHECKS)
    assert (verdict.verdict, verdict.figures) == ("unknown", {})
    assert "network.json" in verdict.problems[0]


def test_a_hold_that_cannot_be_used_leaves_no_doubt(tmp_path: Path) -> None:
    """It would prove nothing of the order."""
    logs = {0: [send(0, 1), deliver(0, 1)], 1: [deliver(0, 1, t=3)]}
    run = write_run(tmp_path / "run", logs, logs)
    with (run / "events" / "h1.jsonl").open("a") as file:
        file.write(
            '{"t":1,"node":1,"event":"hold"}\n{"t":"?","node":1,"event":"hold","source":0,"seq":1}\n'
        )
    assert check_run(run).ok
    assert delays_of_run(run) == [0]
