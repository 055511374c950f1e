"""What is drawn: sizes, answers inside deliveries, faults aimed at events, changes of priorities."""

import random
from collections import Counter
from typing import Any

import pytest

from testbed.experiment import Scenario
from testbed.fuzz import attempt, draw
from testbed.fuzz.messages import MOST_DELIVERIES, MOST_MESSAGES, STYLES, script
from testbed.fuzz.priorities import change_points
from testbed.fuzz.profiles import profile_of
from testbed.fuzz.profiles.plain import resolved
from testbed.protocols import PROTOCOLS, Transition

RST, DAISY = PROTOCOLS["rst"], PROTOCOLS["daisy"]


def scenario(document: Any) -> Scenario:
    return resolved(document)


def test_most_experiments_are_small_and_some_have_32_processes_and_many_messages() -> None:
    drawn = [draw(RST, seed) for seed in range(1, 301)]
    sizes = [scenario(document).network.processes for document in drawn]
    lengths = [len(document["workload"]["send"]) for document in drawn]
    assert sum(size <= 8 for size in sizes) > 200
    assert 24 < max(sizes) <= 32
    assert sum(length <= MOST_MESSAGES for length in lengths) > 200
    assert max(lengths) > 100
    assert all(
        n * m <= max(MOST_DELIVERIES, n * MOST_MESSAGES)
        for n, m in zip(sizes, lengths, strict=True)
    )
    assert all(
        8 < scenario(draw(RST, seed, large=True)).network.processes <= 32 for seed in range(20)
    )


@pytest.mark.parametrize("style", STYLES)
def test_answers_are_given_in_every_style(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.fuzz.messages.STYLES", (style,))
    depths, bursts = Counter[int](), Counter[int]()
    for seed in range(40):
        send = script(RST, 5, {}, random.Random(seed))
        depth: dict[int, int] = {}
        answered = Counter(line["answers"] for line in send if "answers" in line)
        for number, line in enumerate(send):
            depth[number] = depth[line["answers"]] + 1 if "answers" in line else 0
        depths.update(depth.values())
        bursts.update(answered.values())
    longest = {"some": 3, "burst": 1, "chain": 8, "everybody": 2, "one": 1}[style]
    assert max(depths) >= longest if style == "some" else max(depths) == longest
    most = {"some": 2, "burst": 5, "chain": 1, "everybody": 5, "one": 1}[style]
    assert max(bursts) == most


def test_processes_leave_and_join_again_after_a_crash() -> None:
    found = 0
    for seed in range(1, 121):
        faults = draw(DAISY, seed)["fault"]
        crashes = [f["at_ms"] for f in faults if f["kind"] == "crash" and "at_ms" in f]
        left = [f["at_ms"] for f in faults if f["kind"] == "leave" and {"for_ms", "at_ms"} <= {*f}]
        found += any(crash < leave for crash in crashes for leave in left)
    assert found > 8


def test_faults_are_aimed_at_the_events_of_a_protocol_that_tells_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = (Transition("open", "flush", "frozen"), Transition("frozen", "view", "open"))
    monkeypatch.setattr(DAISY, "transitions", rows)
    drawn = [draw(DAISY, seed)["fault"] for seed in range(1, 121)]
    aimed = [f for faults in drawn for f in faults if "event" in f.get("when", {})]
    assert {f["when"]["event"] for f in aimed} == {"flush", "view"}
    assert any(f.get("node") == "same" for f in aimed)
    assert any(f.get("nodes") == "same" for f in aimed)


def test_priorities_change_at_few_points_that_every_engine_can_do() -> None:
    network = scenario(draw(RST, 1)).network
    kinds = Counter[str]()
    for seed in range(40):
        for fifo in (True, False):
            changes = change_points(network, 30, 10.0, fifo, random.Random(seed))
            assert 1 <= len(changes) <= 4
            kinds.update(change["kind"] for change in changes)
            for change in changes:
                assert change["kind"] != ("reordering" if fifo else "slow")
                assert change.get("rate", 1.0) == 1.0
                assert 1 <= change.get("when", {}).get("delivered", 1) <= 30
    assert set(kinds) == {"reordering", "slow", "pause"}


def test_a_crash_that_may_hit_anybody_must_be_survivable_wherever_it_does() -> None:
    document: dict[str, Any] = {
        "name": "promises",
        "protocol": {"name": "overlay"},
        "topology": {"model": "ring", "nodes": 5},
        "overlay": {"model": "ring"},
        "workload": {"model": "script", "send": [{"node": 0, "at_ms": 0.0}]},
        "channel": "raw",
    }
    same = {"kind": "crash", "node": "same", "when": {"delivered": 1}}
    other = {"kind": "crash", "node": 1, "at_ms": 1.0}
    assert attempt({**document, "fault": [same]}) is not None
    assert attempt({**document, "fault": [same, other]}) is None  # 1 and 3 would part a ring
    assert profile_of(PROTOCOLS["overlay"]).promised(scenario({**document, "fault": [other]}))
