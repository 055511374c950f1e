"""The oracle, against examples worked by hand, and at size."""

import random
from collections import Counter
from pathlib import Path

import pytest

from testbed.check import Event, check_events, check_run
from tests.check.events import (
    CRASH,
    JOIN,
    LEAVE,
    Logs,
    Name,
    deliver,
    found,
    send,
    triangle,
    write_run,
)


def test_relay_triangle_in_order() -> None:
    verdict = check_events(range(3), triangle(deliver(0, 1), deliver(1, 1)))
    assert verdict.ok
    assert (verdict.nodes, verdict.messages, verdict.deliveries) == (3, 3, 3)
    assert verdict.explain() == ["valid: 3 messages, 3 deliveries, 3 nodes"]


def test_relay_triangle_overtaken() -> None:
    verdict = check_events(range(3), triangle(deliver(1, 1), deliver(0, 1)))
    assert verdict.verdict == "invalid"
    assert found(verdict) == {"order": [(2, (1, 1))]}
    (violation,) = verdict.violations()
    assert (violation.kind, violation.process) == ("order", 2)
    assert (violation.cause, violation.effect) == ((0, 1), (1, 1))
    assert violation.path == (
        (0, "send", (0, 1), 10, (0, 2), 11),
        (1, "deliver", (0, 2), 20, (1, 1), 21),
    )
    assert verdict.explain()[1] == (
        "node 2 delivered m(1,1) before m(0,1), but m(0,1) happened before m(1,1):  "
        "0 sent m(0,1) and then m(0,2) → 1 delivered that and sent m(1,1)"
    )


def test_relay_triangle_with_a_loss_is_a_gap() -> None:
    verdict = check_events(range(3), triangle(deliver(1, 1)))
    assert found(verdict) == {"gap": [(2, (1, 1))], "loss": [(2, (0, 1))]}
    assert "node 2 delivered m(1,1) but never m(0,1), although" in verdict.explain()[1]
    assert verdict.verdict == "invalid"


def test_the_long_way_round_is_told_relay_by_relay() -> None:
    logs = {
        0: [send(0, 3), deliver(0, 3), deliver(1, 9), deliver(2, 5)],
        1: [deliver(0, 3), send(1, 9), deliver(1, 9), deliver(2, 5)],
        2: [deliver(0, 3), deliver(1, 9), send(2, 5), deliver(2, 5)],
        4: [deliver(2, 5), deliver(1, 9), deliver(0, 3)],
    }
    logs[2].remove(deliver(0, 3))
    logs[2].append(deliver(0, 3))
    verdict = check_events([0, 1, 2, 4], logs)
    # Each delivery is one violation however much it overtakes, and shows its nearest cause.
    assert found(verdict)["order"] == [(2, (1, 9)), (2, (2, 5)), (4, (1, 9)), (4, (2, 5))]
    by_place = {(v.process, v.effect): str(v) for v in verdict.violations()}
    assert by_place[2, (2, 5)].endswith(
        "0 sent m(0,3) → 1 delivered it and sent m(1,9) → 2 delivered that and sent m(2,5)"
    )
    assert by_place[4, (2, 5)].endswith("1 sent m(1,9) → 2 delivered it and sent m(2,5)")


def test_fifo_of_one_sender() -> None:
    logs = {0: [send(0, s, [1]) for s in (7, 3, 5)], 1: [deliver(0, s) for s in (3, 7, 5)]}
    verdict = check_events([0, 1], logs)  # the order of sending counts, not the numbers
    assert found(verdict) == {"order": [(1, (0, 3))]}
    assert str(verdict.violations()[0]).endswith("0 sent m(0,7) and then m(0,3)")


def test_of_equally_near_causes_the_latest_is_shown() -> None:
    logs = {0: [send(0, s, [1]) for s in (1, 2, 3)], 1: [deliver(0, s) for s in (3, 2, 1)]}
    causes = [violation.cause for violation in check_events([0, 1], logs).violations()]
    assert causes == [(0, 2), (0, 1)]


def test_concurrent_messages_may_come_in_any_order() -> None:
    logs = {
        0: [send(0, 1), deliver(0, 1), deliver(1, 1)],
        1: [send(1, 1), deliver(1, 1), deliver(0, 1)],
    }
    assert check_events([0, 1], logs).ok


def test_time_orders_nothing() -> None:
    logs = triangle(deliver(0, 1), deliver(1, 1))
    backwards = {n: [e._replace(t=-i) for i, e in enumerate(log)] for n, log in logs.items()}
    assert check_events(range(3), backwards).ok


@pytest.mark.parametrize(("to", "missing"), [(None, True), ([0, 1], True), ([1], False)])
def test_sender_among_the_destinations_or_not(to: list[int] | None, missing: bool) -> None:
    logs = {0: [send(0, 1, to)], 1: [deliver(0, 1)]}
    expected = {"loss": [(0, (0, 1))]} if missing else {}
    assert found(check_events([0, 1], logs)) == expected


def test_own_messages_are_ordered_too() -> None:
    logs = {0: [send(0, 1), send(0, 2), deliver(0, 2), deliver(0, 1)]}
    assert found(check_events([0], logs)) == {"order": [(0, (0, 2))]}


def test_message_to_nobody_still_makes_order() -> None:
    logs = {0: [send(0, 1, [1]), send(0, 2, []), send(0, 3, [1])], 1: [deliver(0, 3)]}
    verdict = check_events([0, 1], logs)
    assert found(verdict) == {"gap": [(1, (0, 3))], "loss": [(1, (0, 1))]}


@pytest.mark.parametrize(
    ("kind", "logs", "node", "name"),
    [
        ("duplicate", {0: [send(0, 1, [1])], 1: [deliver(0, 1)] * 2}, 1, (0, 1)),
        ("loss", {0: [send(0, 1, [1])], 1: []}, 1, (0, 1)),
        ("unsent", {0: [], 1: [deliver(0, 1)]}, 1, (0, 1)),
        ("unsent", {0: [], 1: [deliver(9, 1)]}, 1, (9, 1)),
        ("misdelivered", {0: [send(0, 1, [0]), deliver(0, 1)], 1: [deliver(0, 1)]}, 1, (0, 1)),
        ("cycle", {0: [deliver(0, 1), send(0, 1, [0])], 1: []}, 0, (0, 1)),
        ("forged", {0: [send(1, 1, [0])], 1: []}, 0, (1, 1)),
        ("resent", {0: [send(0, 1, [])] * 2, 1: []}, 0, (0, 1)),
    ],
)
def test_each_kind_alone(kind: str, logs: Logs, node: int, name: Name) -> None:
    verdict = check_events([0, 1], logs)
    assert found(verdict) == {kind: [(node, name)]}
    assert verdict.verdict == "invalid"
    assert f"node {node} " in verdict.explain()[1]
    assert f"m({name[0]},{name[1]})" in verdict.explain()[1]


def test_two_nodes_that_each_answer_first() -> None:
    logs = {0: [deliver(1, 1), send(0, 1, [1])], 1: [deliver(0, 1), send(1, 1, [0])]}
    assert found(check_events([0, 1], logs)) == {"cycle": [(0, (1, 1)), (1, (0, 1))]}


def test_crash_excuses_the_crashed_and_its_messages() -> None:
    logs = {0: [send(0, 1), deliver(0, 1), CRASH], 1: [send(1, 1), deliver(1, 1)]}
    verdict = check_events([0, 1], logs)
    assert found(verdict) == {"excused": [(0, (1, 1))], "orphaned": [(1, (0, 1))]}
    assert verdict.ok
    assert verdict.crashed == (0,)


def test_crash_excuses_gaps_only_after_it() -> None:
    sends = [send(0, 1, [1]), send(0, 2, [1])]
    before = check_events([0, 1], {0: sends, 1: [deliver(0, 2), CRASH]})
    assert found(before) == {"gap": [(1, (0, 2))], "excused": [(1, (0, 1))]}
    after = check_events([0, 1], {0: sends, 1: [CRASH, Event("restart"), deliver(0, 2)]})
    assert found(after) == {"excused_gap": [(1, (0, 2))], "excused": [(1, (0, 1))]}
    assert after.ok


def test_a_node_that_left_is_owed_nothing_until_others_know_that_it_is_back() -> None:
    away = {0: [send(0, 1), deliver(0, 1)], 1: [LEAVE]}
    assert found(check_events([0, 1], away)) == {"left": [(1, (0, 1))]}
    assert check_events([0, 1], away).ok
    hello = [LEAVE, JOIN, send(1, 1, [0])]
    knows = {0: [send(0, 1, [1]), deliver(1, 1), send(0, 2, [1])], 1: hello}
    assert found(check_events([0, 1], knows)) == {"left": [(1, (0, 1))], "loss": [(1, (0, 2))]}
    knows[1] = [*hello, deliver(0, 2)]
    assert found(check_events([0, 1], knows)) == {"left": [(1, (0, 1))]}


def test_a_node_that_left_has_no_gaps_before_and_order_always() -> None:
    sends = [send(0, 1, [1]), send(0, 2, [1])]
    for before in ([deliver(0, 2), LEAVE, JOIN], [LEAVE, deliver(0, 2), JOIN]):
        assert check_events([0, 1], {0: sends, 1: before}).faults == ("gap",)
    after = check_events([0, 1], {0: sends, 1: [LEAVE, JOIN, deliver(0, 2)]})
    assert after.ok
    turned = [LEAVE, JOIN, deliver(0, 2), deliver(0, 1)]
    assert check_events([0, 1], {0: sends, 1: turned}).faults == ("order",)


def test_to_join_without_having_left_excuses_nothing() -> None:
    assert check_events([0, 1], {0: [send(0, 1, [1])], 1: [JOIN]}).faults == ("loss",)


def test_a_node_without_a_log_leaves_doubt_but_hides_no_proof() -> None:
    assert check_events([0, 1], {0: [send(0, 1, [1])]}).verdict == "unknown"
    absent = check_events(range(3), {k: v for k, v in triangle(deliver(1, 1)).items() if k != 1})
    assert found(absent) == {"loss": [(2, (0, 1))], "unjudged": [(1, (0, 2)), (2, (1, 1))]}
    assert check_events([0, 1, 2], {0: [send(0, 1)] * 2}).verdict == "invalid"


def test_events_of_a_stranger_are_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="not among the nodes"):
        check_events([0], {1: []})


def test_empty_run() -> None:
    assert check_events([0, 1], {0: [], 1: []}).ok
    assert check_events([], {}).ok


def causal_broadcasts(nodes: int, messages: int, seed: int) -> Logs:
    """Everybody delivers along one order that respects causality, at a pace of its own."""
    rng = random.Random(seed)
    logs: Logs = {node: [] for node in range(nodes)}
    order: list[Name] = []
    done: Counter[int] = Counter()

    def advance(node: int, upto: int) -> None:
        logs[node] += [deliver(*name) for name in order[done[node] : upto]]
        done[node] = max(done[node], upto)

    for seq in range(messages):
        source = rng.randrange(nodes)
        advance(source, rng.randint(done[source], len(order)))
        logs[source].append(send(source, seq))
        order.append((source, seq))
    for node in logs:
        advance(node, messages)
    return logs


def test_size(tmp_path: Path) -> None:
    logs = causal_broadcasts(nodes=60, messages=800, seed=1)
    assert check_run(write_run(tmp_path / "good", range(60), logs)).ok
    last = logs[7][-1]
    logs[7].remove(last)
    logs[7].insert(0, last)
    verdict = check_run(write_run(tmp_path / "bad", range(60), logs))
    assert found(verdict)["order"] == [(7, (last.source, last.seq))]
    assert verdict.violations()[0].process == 7
