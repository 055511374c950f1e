"""Workloads: drawn from the seed alone, with an end, and answers that all nodes agree on."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Message
from testbed.workloads import WORKLOADS, Bursts, Poisson, Reply, Rounds, Sending, Steady, Workload
from testbed.workloads.lineage import Lineage


def sends(workload: Workload, processes: int = 16, seed: int = 1) -> list[Sending]:
    return list(workload.sends(processes, random.Random(seed)))


def test_the_papers_bursts() -> None:
    """10 senders, bursts of 10 each millisecond: 1,000 messages in 10 ms."""
    found = sends(Bursts(senders=10, burst=10, interval_ms=1, duration_ms=10, payload_bytes=3))
    assert len(found) == 1000
    assert len({s.node for s in found}) == 10
    assert {s.at for s in found} == {ms * 1_000_000 for ms in range(10)}
    assert {s.payload for s in found} == {bytes(3)}


@pytest.mark.parametrize("model", sorted(WORKLOADS.keys() - {"script"}))
def test_every_drawn_workload_is_ordered_ends_and_repeats(model: str) -> None:
    shorter: dict[str, Any] = {"round_ms": 2.0} if model == "rounds" else {}
    workload = WORKLOADS[model](senders=5, duration_ms=20, **shorter)
    found = sends(workload)
    assert found == sorted(found, key=lambda s: (s[0], s[1]))
    assert found == sends(workload)
    assert found != sends(workload, seed=2)
    assert all(0 <= s.at < 20_000_000 for s in found)


def test_steady_senders_are_out_of_step() -> None:
    found = sends(Steady(senders=8, interval_ms=2, duration_ms=20))
    assert len(found) == 80
    assert len({s.at % 2_000_000 for s in found}) == 8


def test_poisson_has_its_rate() -> None:
    found = sends(Poisson(senders=10, rate_per_s=1000, duration_ms=1000))
    assert abs(len(found) - 10_000) < 400  # four standard deviations


@pytest.mark.parametrize("per_round", [0.3, 1.0, 2.4])
def test_the_first_processes_send_so_much_a_round_each_at_a_phase_of_its_own(
    per_round: float,
) -> None:
    rounds = 1000
    workload = Rounds(senders=5, per_round=per_round, round_ms=2, duration_ms=2 * rounds)
    found = sends(workload)
    assert {sending.node for sending in found} == set(range(5))
    assert len({(s.node, s.at % 2_000_000) for s in found}) == 5
    in_a_round = Counter((s.node, s.at // 2_000_000) for s in found)
    assert set(in_a_round.values()) <= {int(per_round), int(per_round) + 1}
    assert len(found) / (5 * rounds) == pytest.approx(per_round, abs=0.03)


@given(
    source=st.integers(0, 8),
    drawn=st.integers(0, 4095),
    answers=st.integers(1, 12),
    depth=st.integers(0, 4),
)
def test_as_many_nodes_answer_as_should(source: int, drawn: int, answers: int, depth: int) -> None:
    reply = Reply(answers=answers, depth=3, payload_bytes=9)
    message = Message(source, 1, Lineage(depth, drawn).payload(9))
    found = {node: reply.answer(node, message, 9) for node in range(9)}
    answers_of = {node: payload for node, payload in found.items() if payload is not None}
    assert source not in answers_of
    assert len(answers_of) == (min(answers, 8) if depth < 3 else 0)
    for payload in answers_of.values():
        assert (len(payload), Lineage.of(payload).depth) == (9, depth + 1)


def test_answers_are_counted_as_a_tree() -> None:
    assert Reply(answers=2, depth=3).answers_per_message() == 2 + 4 + 8
    assert Steady().answers_per_message() == 0


def test_no_number_of_senders_is_all() -> None:
    found = sends(Steady(senders=0, interval_ms=2, duration_ms=2))
    assert len(found) == len({sending.node for sending in found}) > 10


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"senders": -1}, "senders"),
        ({"settle_ms": 0.0}, "settle_ms"),
        ({"payload_bytes": -1}, "payload_bytes"),
        ({"payload_bytes": 70_000}, "payload_bytes"),
        ({"duration_ms": 0.0}, "duration_ms"),
        ({"burst": 0}, "burst"),
        ({"interval_ms": float("nan")}, "interval_ms"),
    ],
)
def test_values_out_of_range_are_named(values: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=key):
        Bursts(**values)


@pytest.mark.parametrize("key", ["per_round", "round_ms"])
def test_rounds_have_a_length_and_messages(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        Rounds(**{key: 0.0})  # type: ignore[arg-type]
