"""Numbers that no engine can work with are refused in one sentence, where the file is read."""

import os
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UserError
from testbed.experiment import Scenario, load
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
    ],
)
def test_what_cannot_be_is_refused(
    changes: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.experiment.scenario.MOST_MESSAGES", 2_000)
    with pytest.raises(UserError, match=said):
        Scenario.of(parsed(ONE, **changes))


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
