"""The oracle, against examples worked by hand and against a second oracle by brute force."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.check import APART, FAULTS, Event, Verdict, check_events, check_run, history, judge

Logs = dict[int, list[Event]]
Name = tuple[int, int]
Found = dict[str, list[tuple[int, Name]]]


def send(source: int, seq: int, to: Iterable[int] | None = None, t: int = 0) -> Event:
    return Event("send", source, seq, None if to is None else sorted(to), t)


def deliver(source: int, seq: int, t: int = 0) -> Event:
    return Event("deliver", source, seq, t=t)


CRASH = Event("crash")
LEAVE = Event("leave")
JOIN = Event("join")


def found(verdict: Verdict) -> Found:
    """Everything that the oracle found, by kind."""
    return {kind: sorted(verdict.where(kind)) for kind in verdict.counts if verdict.count(kind)}


# ---------------------------------------------------------------- examples worked by hand


def triangle(*at_c: Event) -> Logs:
    """a→c m(0,1), a→b m(0,2), b→c m(1,1)."""
    a = [send(0, 1, [2], t=10), send(0, 2, [1], t=11)]
    return {0: a, 1: [deliver(0, 2, t=20), send(1, 1, [2], t=21)], 2: list(at_c)}


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
    assert check_events(range(3), triangle(deliver(1, 1)), optimistic=True).ok


def test_optimistic_order_still_counts() -> None:
    logs = triangle(deliver(1, 1), deliver(0, 1))
    assert check_events(range(3), logs, optimistic=True).verdict == "invalid"


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


# ---------------------------------------------------------------- run directories


def as_line(node: int, event: Event) -> dict[str, Any]:
    line: dict[str, Any] = {"t": event.t, "node": node, "event": event.event}
    if event.event in ("send", "deliver", "hold"):
        line |= {"source": event.source, "seq": event.seq, "extra": [1]}
    return line | ({"to": event.to} if event.event == "send" else {})


def write_run(path: Path, nodes: Iterable[int], logs: Logs, shared: bool = False) -> Path:
    (path / "events").mkdir(parents=True)
    (path / "network.json").write_text(json.dumps({"nodes": [{"id": n} for n in nodes]}))
    for node, events in logs.items():
        name = "all.jsonl" if shared else f"h{node}.jsonl"
        with (path / "events" / name).open("a") as file:
            file.writelines(json.dumps(as_line(node, event)) + "\n" for event in events)
    return path


@pytest.mark.parametrize("shared", [False, True])
def test_run_directory(tmp_path: Path, shared: bool) -> None:
    logs = triangle(Event("hold", 1, 1), deliver(1, 1), deliver(0, 1))
    seen: list[tuple[int, int]] = []
    run = write_run(tmp_path / "run", range(3), logs, shared)
    verdict = check_run(run, lambda done, total: seen.append((done, total)))
    assert verdict.to_json() == check_events(range(3), logs).to_json()
    assert json.loads(json.dumps(verdict.to_json())) == verdict.to_json()
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


BAD_LINES = [
    "not json",
    "[]",
    "3",
    '{"t":1,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":77,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":true,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":2,"source":0,"seq":1}',
    '{"t":1,"node":2,"event":"deliver","source":0}',
    '{"t":1,"node":2,"event":"deliver","source":0,"seq":1.0}',
    '{"t":1,"node":2,"event":"deliver","source":false,"seq":1}',
    '{"t":1.5,"node":2,"event":"deliver","source":0,"seq":1}',
    '{"t":1' + "0" * 30 + ',"node":2,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":2,"event":"send","source":2,"seq":1}',
    '{"t":1,"node":2,"event":"send","source":2,"seq":1,"to":[0,77]}',
    '{"t":1,"node":2,"event":"send","source":2,"seq":1,"to":"0"}',
    '{"t":1,"node":0,"event":"deliver","source":0,"seq":1}',  # node 0 has its own file
    '{"t":1,"node":2,"event":"restart"}{"t":1,"node":2,"event":"restart"}',
    "[" * 100_000,
    "\udcff\udcfe",
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=range(len(BAD_LINES)))
def test_bad_line_is_counted_and_leaves_doubt(tmp_path: Path, bad: str) -> None:
    run = write_run(tmp_path / "run", range(3), triangle(deliver(0, 1), deliver(1, 1)))
    with (run / "events" / "h2.jsonl").open("ab") as file:
        file.write(b"\n" + bad.encode(errors="surrogateescape") + b"\n")
    verdict = check_run(run)
    assert (verdict.malformed, verdict.verdict) == (1, "unknown")
    (line,) = verdict.malformed_lines
    assert (line.file, line.line) == ("h2.jsonl", 4)
    assert any(text.startswith("h2.jsonl, line 4: ") for text in verdict.explain())


def test_names_of_any_size_are_names(tmp_path: Path) -> None:
    seq = 10**30
    run = write_run(tmp_path / "run", [0], {0: [send(0, seq), deliver(0, seq), deliver(0, seq)]})
    assert found(check_run(run)) == {"duplicate": [(0, (0, seq))]}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def test_cut_last_line(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", range(3), triangle(deliver(0, 1), deliver(1, 1)))
    cut(run / "events" / "h1.jsonl")  # the send of m(1,1): its delivery is no creation
    verdict = check_run(run)
    assert verdict.verdict == "unknown"
    assert found(verdict) == {"unjudged": [(2, (1, 1))]}
    assert verdict.malformed_lines == (("h1.jsonl", 2, "cut off"),)


def test_last_line_without_newline_is_whole(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", range(3), triangle(deliver(0, 1), deliver(1, 1)))
    file = run / "events" / "h2.jsonl"
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert check_run(run).ok


def test_a_killed_node_may_leave_a_cut_line(tmp_path: Path) -> None:
    logs = {0: [send(0, 1, [0, 1]), deliver(0, 1)], 1: [CRASH, deliver(0, 1)]}
    run = write_run(tmp_path / "run", [0, 1], logs)
    cut(run / "events" / "h1.jsonl")
    verdict = check_run(run)
    assert verdict.ok
    assert (verdict.malformed, verdict.damaged) == (1, (1,))


def test_what_a_killed_node_sent_last_may_be_unknown(tmp_path: Path) -> None:
    logs = {0: [CRASH, send(0, 1, [1])], 1: [deliver(0, 1)]}
    run = write_run(tmp_path / "run", [0, 1], logs)
    assert check_run(run).ok
    cut(run / "events" / "h0.jsonl")
    assert (found(check_run(run)), check_run(run).verdict) == (
        {"unjudged": [(1, (0, 1))]},
        "unknown",
    )


def test_silence_in_a_damaged_log_proves_nothing(tmp_path: Path) -> None:
    logs = {0: [send(0, 1, [2]), deliver(0, 9)], 1: [CRASH, CRASH]}
    run = write_run(tmp_path / "run", range(3), logs, shared=True)
    cut(run / "events" / "all.jsonl")
    assert (check_run(run).missing, check_run(run).count("loss")) == ((2,), 0)


def test_proof_stands_in_damaged_logs(tmp_path: Path) -> None:
    logs = triangle(deliver(1, 1), deliver(0, 1), deliver(0, 5))
    run = write_run(tmp_path / "run", range(3), logs)
    cut(run / "events" / "h2.jsonl")
    assert check_run(run).verdict == "invalid"
    assert found(check_run(run)) == {"order": [(2, (1, 1))]}


def test_missing_file_is_doubt_silence_in_a_whole_log_is_loss(tmp_path: Path) -> None:
    logs: Logs = triangle() | {2: []}
    apart = write_run(tmp_path / "apart", range(3), logs)
    assert check_run(apart).verdict == "invalid"
    (apart / "events" / "h2.jsonl").unlink()
    assert (check_run(apart).verdict, check_run(apart).missing) == ("unknown", (2,))
    together = write_run(tmp_path / "together", range(3), logs, shared=True)
    assert found(check_run(together)) == {"loss": [(2, (0, 1)), (2, (1, 1))]}


@pytest.mark.parametrize("network", [None, "", "{}", '{"nodes": 3}', '{"nodes": [{"id": "a"}]}'])
def test_without_a_list_of_nodes_nothing_can_be_judged(tmp_path: Path, network: str | None) -> None:
    run = write_run(tmp_path / "run", [0], {0: [send(0, 1), deliver(0, 1)]})
    (run / "network.json").unlink()
    if network is not None:
        (run / "network.json").write_text(network)
    verdict = check_run(run)
    assert verdict.verdict == "unknown"
    assert "network.json" in verdict.explain()[1]
    assert verdict.to_json()["problems"]


def test_no_events_at_all(tmp_path: Path) -> None:
    assert check_run(write_run(tmp_path / "run", [0, 1], {})).verdict == "unknown"


@given(st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_survived(junk: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = write_run(Path(directory) / "run", [0, 1], {0: [send(0, 1), deliver(0, 1)]})
        (run / "events" / "h1.jsonl").write_bytes(junk)
        assert check_run(run).verdict in ("unknown", "invalid")


# ---------------------------------------------------------------- brute force


class Execution(NamedTuple):
    nodes: int
    logs: Logs


Spot = tuple[int, int]  # node, position in its log


class Brute:
    """The definitions, taken at their word: reachability in the graph of all events."""

    def __init__(self, execution: Execution) -> None:
        self.nodes, self.logs = execution
        self.found: dict[str, list[tuple[int, Name]]] = {k: [] for k in (*FAULTS, *APART)}
        self.sends: dict[Name, Spot] = {}
        self.first: dict[tuple[int, Name], int] = {}
        self.crash: dict[int, int] = {}
        self.edges = nx.DiGraph()
        self.scan()
        self.untie()
        reach = {spot: nx.descendants(self.edges, spot) for spot in self.sends.values()}
        self.before = {
            (x, y) for x in self.sends for y in self.sends if self.sends[y] in reach[self.sends[x]]
        }
        self.judge()

    def events(self) -> Iterable[tuple[int, int, Event, Name]]:
        for node, log in self.logs.items():
            for at, event in enumerate(log):
                yield node, at, event, (event.source, event.seq)

    def scan(self) -> None:
        for node, at, event, name in self.events():
            self.edges.add_edge((node, at - 1), (node, at))
            if event.event == "crash":
                self.crash.setdefault(node, at)
            elif event.event == "send" and event.source != node:
                self.found["forged"].append((node, name))
            elif event.event == "send" and name in self.sends:
                self.found["resent"].append((node, name))
            elif event.event == "send":
                self.sends[name] = (node, at)
            elif event.event == "deliver" and (node, name) in self.first:
                self.found["duplicate"].append((node, name))
            elif event.event == "deliver":
                self.first[node, name] = at

    def untie(self) -> None:
        """Link sends to deliveries, except to those that happened before their own send."""
        links = [
            (self.sends[name], (node, at))
            for node, at, event, name in self.events()
            if event.event == "deliver" and name in self.sends
        ]
        knotted = self.edges.copy()
        knotted.add_edges_from(links)
        for sent, (node, at) in links:
            if nx.has_path(knotted, (node, at), sent):
                name = self.logs[node][at].source, self.logs[node][at].seq
                self.found["cycle"] += [(node, name)] * (self.first[node, name] == at)
            else:
                self.edges.add_edge(sent, (node, at))

    def addressed(self, name: Name) -> set[int]:
        node, at = self.sends[name]
        to = self.logs[node][at].to
        return set(range(self.nodes)) if to is None else set(to)

    def causes(self, kind: str, node: int, effect: Name) -> set[Name]:
        late = {
            "order": lambda at: at is not None and at > self.first[node, effect],
            "gap": lambda at: at is None,
        }[kind]
        past = (x for x in self.sends if (x, effect) in self.before)
        if kind == "gap":
            past = (x for x in past if self.owed(x, node, self.first[node, effect]))
        return {x for x in past if node in self.addressed(x) and late(self.first.get((node, x)))}

    def owed(self, name: Name, node: int, upto: int) -> bool:
        """Whether a node had never been away by then, or its return was known to who sent this."""
        back = -1
        for at, event in enumerate(self.logs.get(node, [])[:upto]):
            back = at if event.event == "join" and self.was_away(node, at) else back
        since = [x for x, (sender, at) in self.sends.items() if sender == node and at > back]
        return back < 0 or any(x == name or (x, name) in self.before for x in since)

    def was_away(self, node: int, upto: int) -> bool:
        """Whether the node's last word on it was that it leaves."""
        words = [e.event for e in self.logs.get(node, [])[:upto] if e.event in ("leave", "join")]
        return words[-1:] == ["leave"]

    def judge(self) -> None:
        missing = set(range(self.nodes)) - set(self.logs)

        def add(kind: str, node: int, name: Name) -> None:
            self.found[kind].append((node, name))

        for (node, name), at in self.first.items():
            if name not in self.sends:
                add("unjudged" if name[0] in missing else "unsent", node, name)
                continue
            if node not in self.addressed(name):
                add("misdelivered", node, name)
            if self.causes("order", node, name):
                add("order", node, name)
            if self.causes("gap", node, name):
                add("excused_gap" if at > self.crash.get(node, at) else "gap", node, name)
        for name in self.sends:
            for node in self.addressed(name):
                if (node, name) in self.first:
                    continue
                end = len(self.logs.get(node, []))
                kind = (
                    "excused" if node in self.crash else "unjudged" if node in missing else "loss"
                )
                if kind == "loss" and (self.was_away(node, end) or not self.owed(name, node, end)):
                    kind = "left"
                add("orphaned" if kind == "loss" and name[0] in self.crash else kind, node, name)

    def relays(self, causes: set[Name], effect: Name) -> int:
        """The least number of steps from one of the causes to the effect."""
        steps = nx.DiGraph([(y, x) for x, y in self.before if self.at_hand(x, y)])
        lengths = nx.single_source_shortest_path_length(steps, effect)
        return min(lengths[x] for x in causes)

    def at_hand(self, x: Name, y: Name) -> bool:
        """Whether the sender of y had sent or delivered x before."""
        node, sent_at = self.sends[y]
        mine = [(node, at) for at in range(sent_at)]
        return any(
            spot == self.sends[x] or self.edges.has_edge(self.sends[x], spot) for spot in mine
        )


def by_brute_force(execution: Execution) -> Found:
    return {kind: sorted(where) for kind, where in Brute(execution).found.items() if where}


def invent(seed: int, nodes: int, size: int, lies: bool) -> Execution:
    """What may happen when nothing keeps order; with lies, also what cannot happen."""
    rng = random.Random(seed)
    logs: Logs = {n: [] for n in range(nodes)}
    sent: list[Name] = []
    width = rng.choice([0.15, 0.5, 0.8])  # few destinations make long ways, many make short ones
    for _ in range(size):
        at, action = rng.randrange(nodes), rng.random()
        log = logs[at]
        if action < 0.25 or not sent:
            own = not lies or rng.random() < 0.95
            source = at if own else rng.randrange(nodes)
            sent.append((source, rng.randrange(40) if lies else 3 * len(sent) + 5))
            some = [n for n in range(nodes) if rng.random() < width]
            log.append(send(*sent[-1], rng.choice([None, some, some])))
        elif action < 0.97:
            recent = -1 - int(len(sent) * rng.random() ** 2)
            log.append(deliver(*sent[recent]))
        elif action < 0.985:
            log.append(rng.choice([CRASH, LEAVE, JOIN, JOIN, Event("hold", 0, 1)]))
        elif lies:
            log.append(deliver(rng.randrange(nodes + 1), rng.randrange(40)))
    if lies and rng.random() < 0.4:
        logs[rng.randrange(nodes)].reverse()
    if lies and rng.random() < 0.2:
        del logs[rng.randrange(nodes)]
    return Execution(nodes, logs)


def executions(lies: bool = False) -> st.SearchStrategy[Execution]:
    seed, nodes, size = st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 60)
    return st.builds(invent, seed, nodes, size, st.just(lies))


def sample(count: int, lies: bool = False) -> Iterable[Execution]:
    return (invent(seed, 2 + seed % 4, 10 + seed % 40, lies) for seed in range(count))


def by_oracle(execution: Execution) -> Found:
    return found(check_events(range(execution.nodes), execution.logs))


THOROUGH = settings(
    max_examples=350, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@given(executions())
@THOROUGH
def test_agrees_with_brute_force(execution: Execution) -> None:
    assert by_oracle(execution) == by_brute_force(execution)


@given(executions(lies=True))
@THOROUGH
def test_agrees_with_brute_force_on_impossible_logs(execution: Execution) -> None:
    assert by_oracle(execution) == by_brute_force(execution)


@pytest.mark.parametrize("lies", [False, True])
def test_paths_are_real_and_shortest(lies: bool) -> None:
    for seed in range(80):
        check_paths(invent(seed, nodes=3 + seed % 5, size=40 + seed, lies=lies))


def check_paths(execution: Execution) -> None:
    verdict, brute = check_events(range(execution.nodes), execution.logs), Brute(execution)
    violations = verdict.violations(limit=10**6)
    assert len(violations) == verdict.count("order") + verdict.count("gap")
    for violation in violations:
        causes = brute.causes(violation.kind, violation.process, violation.effect)
        names = [step.cause for step in violation.path] + [violation.path[-1].effect]
        assert names[0] == violation.cause
        assert names[0] in causes
        assert names[-1] == violation.effect
        assert len(violation.path) == brute.relays(causes, violation.effect)
        for step, cause, effect in zip(violation.path, names, names[1:], strict=False):
            assert (step.process, step.effect) == (effect[0], effect)
            assert brute.at_hand(cause, effect)
            assert (step.event == "send") == (cause[0] == step.process)


@given(executions(), st.booleans())
@settings(THOROUGH, max_examples=40)
def test_files_and_memory_agree(execution: Execution, shared: bool) -> None:
    in_memory = check_events(range(execution.nodes), execution.logs)
    with tempfile.TemporaryDirectory() as directory:
        run = write_run(Path(directory) / "run", range(execution.nodes), execution.logs, shared)
        from_files = check_run(run)
    if not from_files.missing:  # a lone log in a lone file may have lost its company
        assert from_files.to_json() == in_memory.to_json()


@given(executions())
@settings(THOROUGH, max_examples=40)
def test_one_log_one_verdict(execution: Execution) -> None:
    nodes, logs = execution
    shuffled = dict(sorted(logs.items(), reverse=True))
    one, other = check_events(range(nodes), logs), check_events(reversed(range(nodes)), shuffled)
    assert one.to_json() == other.to_json()
    assert one.explain() == other.explain()


# ---------------------------------------------------------------- could these tests fail?


def without_transitivity(links: history.Links, sender: Any, senders: int) -> tuple[Any, Any]:
    """What a sender itself had delivered or sent, and nothing that lies further back."""
    none_yet = np.searchsorted(sender, np.arange(senders))
    rows = np.tile(none_yet, (len(sender), 1)).astype(np.int32)
    rows[np.arange(len(sender)), sender] = np.arange(len(sender))
    for cause, effect in zip(links.cause, links.effect, strict=True):
        later = (sender == sender[effect]) & (np.arange(len(sender)) >= effect)
        rows[later, sender[cause]] = np.maximum(rows[later, sender[cause]], cause)
    return rows, np.ones(len(sender), bool)


def to_everybody(self: history.History, node: int) -> Any:
    mask = np.ones(self.slots, bool)
    mask[[slot for slot, name in enumerate(self.names[: self.slots]) if name == (-1, -1)]] = False
    return mask


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "no transitivity": (history, "_rows", without_transitivity),
    "destinations ignored": (history.History, "addressed_to", to_everybody),
    "last message of a sender only": (judge.Judge, "running_maximum", lambda self, values: values),
    "senders mixed up": (
        judge.Judge,
        "running_maximum",
        lambda self, values: np.maximum.accumulate(values),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_weakened_oracle_is_found_out(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def disagree(execution: Execution) -> bool:
        return by_oracle(execution) != by_brute_force(execution)

    monkeypatch.setattr(*MUTANTS[mutant])
    caught = [execution for execution in sample(60) if disagree(execution)]
    monkeypatch.undo()
    assert caught
    assert not any(disagree(execution) for execution in caught)


def test_every_kind_is_generated() -> None:
    kinds = {kind for execution in sample(200, lies=True) for kind in by_oracle(execution)}
    assert kinds == {*FAULTS, *APART}


# ---------------------------------------------------------------- size


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
