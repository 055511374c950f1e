"""Numbers that no engine can work with are refused in one sentence, where the file is read."""

import os
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UserError
from testbed.experiment import Scenario, estimate, load
from testbed.progress import silent
from testbed.run import run_experiment
from tests.experiments import SMALL, parsed

ONE = SMALL | {"protocol": {"name": "overlay"}}
DEEP = "a = " + "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topology": {"model": "ring", "nodes": 10**9}}, "at most 20000"),
        ({"topology": {"model": "ring", "nodes": 2**63}}, "topology.nodes = 9223372036854775808"),
        ({"topology": {"model": "grid", "rows": 10**5, "columns": 10**5}}, "at most 20000"),
        (
            {"workload": {"model": "bursts", "senders": 4, "burst": 10**9}},
            "more than 2,000 messages",
        ),
        ({"workload": {"model": "bursts", "burst": 2**64}}, "workload.burst"),
        ({"workload": {"model": "bursts", "duration_ms": 1e308}}, "workload.duration_ms"),
        (
            {"workload": {"model": "steady", "senders": 4, "interval_ms": 1e-9}},
            "more than 2,000 messages",
        ),
        (
            {"workload": {"model": "poisson", "senders": 4, "rate_per_s": 1e12}},
            "more than 2,000 messages",
        ),
        ({"workload": {"model": "reply", "depth": 10**9}}, "more than a million answers"),
        ({"workload": {"model": "reply", "answers": 2, "depth": 10**6}}, "more than a million"),
        ({"workload": {"model": "reply", "answers": 2, "depth": 10**9}}, "more than a million"),
        ({"links": {"delay_ms": 5e12}}, "links.delay_ms"),
        ({"links": {"delay_ms": [0.0, float("nan")]}}, "links.delay_ms = nan"),
        ({"fault": [{"kind": "loss", "rate": 0.1, "for_ms": float("nan")}]}, "fault.for_ms = nan"),
        (
            {"fault": [{"kind": "reordering", "rate": 0.1, "late_ms": float("inf")}]},
            "late_ms = inf",
        ),
        ({"fault": [{"kind": "reordering", "rate": 0.1, "late_ms": -10}]}, "not be negative"),
        ({"fault": [{"kind": "slow", "factor": 1e10}]}, "from 1 to 1,000,000"),
        ({"fault": [{"kind": "link-down", "per_s": 1e10}]}, "at most 1,000,000"),
        ({"fault": [{"kind": "partition", "nodes": [], "for_ms": 1}]}, "nothing is parted"),
        ({"fault": [{"kind": "partition", "nodes": [*range(8)]}]}, "nothing is parted"),
        ({"channel": {"model": "reliable", "ack_delay_ms": float("nan")}}, "channel.ack_delay_ms"),
        ({"name": "n" * 300}, "name has 300 characters"),
        ({"topology": {"model": "file", "path": "/dev/zero"}}, "not a regular file"),
        (
            {"topology": {"model": "locality", "nodes": 4, "beta": 0.0, "gamma": 0.0}},
            "locality: none of",
        ),
        ({"protocol": 7}, r"small.toml: protocol = 7: should be"),
        ({"links": {"delay_ms": "x"}}, r"small.toml: links.delay_ms = 'x': should be"),
    ],
)
def test_what_cannot_be_is_refused(
    changes: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.experiment.scenario.MOST_MESSAGES", 2_000)
    with pytest.raises(UserError, match=said):
        Scenario.of(parsed(ONE, **changes))


@pytest.mark.parametrize(
    ("changes", "have", "said"),
    [
        ({}, {}, None),
        ({"workload": {"model": "bursts", "senders": 8, "burst": 10}}, {}, "about 800 messages"),
        ({}, {"_memory": 1e6}, r"small.toml.*takes 60 MB of memory or more, and there is 1 MB"),
        ({}, {"_room": 1e3}, r"their log takes 0 MB or more, and .* has room for 0 MB"),
    ],
)
def test_a_run_is_estimated_before_it_starts(
    changes: dict[str, Any],
    have: dict[str, float],
    said: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(estimate, "LONG_S", 0.005)  # 500 deliveries
    for name, value in have.items():
        monkeypatch.setattr(estimate, name, lambda *_, value=value: value)
    warnings: list[str] = []
    if have:
        with pytest.raises(UserError, match=said):
            run_experiment(parsed(ONE, **changes), tmp_path, silent, warn=warnings.append)
        assert not list(tmp_path.iterdir())
    else:
        done = run_experiment(parsed(ONE, **changes), tmp_path, silent, warn=warnings.append)
        found = estimate.Estimate.of(Scenario.of(done.experiment))
        assert found.messages == done.summary["multicasts"]
        assert found.deliveries == done.summary["deliveries"]
        assert len(warnings) == (said is not None)
        assert said is None or said in warnings[0]


def test_large_states_and_endless_heartbeats_count() -> None:
    def of(name: str, nodes: int, **workload: Any) -> estimate.Estimate:
        topology = {"model": "ring", "nodes": nodes}
        workload = {"model": "bursts", "senders": 2, "burst": 1, **workload}
        document = ONE | {"protocol": {"name": name}, "topology": topology, "workload": workload}
        return estimate.Estimate.of(Scenario.of(parsed(document)))

    assert of("rst", 100).memory - of("timestamp", 100).memory > 100 * 99 * 100 * 4
    assert of("cluster", 8, settle_ms=1e9).seconds > estimate.LONG_S > of("cluster", 8).seconds


def test_a_seed_may_be_any_integer() -> None:
    assert parsed(ONE, seed=2**80).seed == 2**80


def test_files_that_are_none_and_files_too_deep(tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text(DEEP)
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name, said in (
        ("deep", "nested too deeply"),
        ("pipe", "not a regular file"),
        ("loop", "cannot be read"),
        ("zero", "not a regular file"),
    ):
        with pytest.raises(UserError, match=said):
            load(tmp_path / f"{name}.toml")
