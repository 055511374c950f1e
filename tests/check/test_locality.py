"""Delays within groups and across, and the time after a crash, from event logs."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.check.locality import local_figures

GROUPS = (frozenset({0, 1}), frozenset({2, 3}))
MS = 1_000_000


def write(path: Path, *events: tuple[float, int, str, Any]) -> Path:
    """Events as (ms, node, kind, message)."""
    (path / "events").mkdir()
    lines = []
    for at, node, kind, message in events:
        line = {"t": round(at * MS), "node": node, "event": kind}
        if message is not None:
            line |= {"source": message[0], "seq": message[1]}
        lines.append(json.dumps(line) + "\n")
    (path / "events" / "nodes.jsonl").write_text("".join(lines))
    return path


def test_delays_are_told_apart_and_own_deliveries_left_out(tmp_path: Path) -> None:
    a = (0, 1)
    run = write(
        tmp_path,
        (0, 0, "send", a),
        (0, 0, "deliver", a),
        (2, 1, "deliver", a),
        (10, 2, "deliver", a),
        (20, 3, "deliver", a),
    )
    assert local_figures(run, GROUPS) == {
        "delay_within_groups_ms_mean": 2,
        "delay_across_groups_ms_mean": 15,
    }


def test_a_crash_is_over_when_something_new_crosses_the_border(tmp_path: Path) -> None:
    old, within, into = (2, 1), (1, 1), (3, 1)
    run = write(
        tmp_path,
        (0, 2, "send", old),
        (5, 0, "crash", None),
        (6, 1, "deliver", old),  # was under way
        (7, 1, "send", within),
        (8, 3, "send", into),
        (30, 1, "deliver", into),
        (40, 2, "deliver", within),
    )
    figures = local_figures(run, GROUPS)
    assert figures["recovery_ms_max"] == pytest.approx(25)
    assert "crashes_without_recovery" not in figures


def test_a_group_that_stays_cut_off_is_counted(tmp_path: Path) -> None:
    run = write(tmp_path, (5, 0, "crash", None), (6, 2, "send", (2, 1)), (8, 3, "deliver", (2, 1)))
    assert local_figures(run, GROUPS) == {
        "delay_within_groups_ms_mean": 2,
        "crashes_without_recovery": 1,
    }
