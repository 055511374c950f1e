"""Storms: much is said around the ends of faults, within what is promised."""

from collections import Counter
from typing import Any

import pytest

from testbed.fuzz.profiles import profile_of
from testbed.fuzz.profiles.plain import resolved
from testbed.protocols import PROTOCOLS

PROFILE = profile_of(PROTOCOLS["daisy"])
SEEDS = range(1, 101)


def lasting(storm: dict[str, Any]) -> list[dict[str, Any]]:
    return [fault for fault in storm["fault"] if "at_ms" in fault]


def subjects(fault: dict[str, Any]) -> list[int]:
    return fault["nodes"] if "nodes" in fault else [fault["node"]]


@pytest.fixture(scope="module")
def storms() -> list[dict[str, Any]]:
    return [PROFILE.storm(seed, 1) for seed in SEEDS]


def test_a_storm_follows_from_its_seed_and_number(storms: list[dict[str, Any]]) -> None:
    assert storms[0] == PROFILE.storm(SEEDS[0], 1)
    assert storms[0] != PROFILE.storm(SEEDS[0], 2)


def test_all_are_within_the_promises_and_small(storms: list[dict[str, Any]]) -> None:
    for storm in storms:
        scenario = resolved(storm)
        assert PROFILE.promised(scenario)
        assert scenario.network.processes <= 6
        assert len(lasting(storm)) <= 3


def test_much_is_said_until_a_fault_ends_or_little_as_it_begins(
    storms: list[dict[str, Any]],
) -> None:
    little = 0
    for storm in storms:
        width = 6 * storm["protocol"]["heartbeat_ms"] + 0.001
        times = [line["at_ms"] for line in storm["workload"]["send"] if "at_ms" in line]
        said = []
        for fault in lasting(storm):
            begin = fault["at_ms"]
            end = begin + fault.get("for_ms", storm["protocol"]["grace_ms"])
            said.append(sum(begin - width <= at <= end + width for at in times))
        assert min(said, default=2) >= 2
        little += min(said, default=8) < 8
    assert len(storms) / 10 < little < len(storms) / 3


def test_scenes_answers_and_addresses_vary(storms: list[dict[str, Any]]) -> None:
    kinds = Counter(fault["kind"] for storm in storms for fault in lasting(storm))
    assert {*kinds} == {"partition", "pause", "leave", "crash"}
    answers = [any("answers" in line for line in storm["workload"]["send"]) for storm in storms]
    subsets = [any("to" in line for line in storm["workload"]["send"]) for storm in storms]
    assert {*answers} == {*subsets} == {True, False}
    assert any(not lasting(storm) for storm in storms), "only splits and merges"


def test_strikes_are_short_and_aimed_at_changes_of_state(storms: list[dict[str, Any]]) -> None:
    events = {row.event for row in PROTOCOLS["daisy"].transitions}
    strikes = [(storm, fault) for storm in storms for fault in storm["fault"] if "when" in fault]
    assert len({storm["name"] for storm, _ in strikes}) > len(storms) / 4
    assert {fault["kind"] for _, fault in strikes} == {"partition", "pause"}
    for storm, fault in strikes:
        assert fault["when"]["event"] in events
        assert fault["for_ms"] <= 4 * storm["protocol"]["heartbeat_ms"]


def test_some_go_again_before_they_are_back(storms: list[dict[str, Any]]) -> None:
    def again(storm: dict[str, Any]) -> bool:
        first, second = sorted(lasting(storm), key=lambda fault: fault["at_ms"])
        same = subjects(first) == subjects(second)
        return same and second["at_ms"] < first["at_ms"] + first.get("for_ms", 0.0)

    assert any(again(storm) for storm in storms if len(lasting(storm)) == 2)
