"""Delays within groups and across, and the time after a crash, from event logs."""

from pathlib import Path
from typing import Any

import pytest

from testbed.check import CHECKS, Event, check_run
from testbed.check.history import rebuild
from testbed.check.locality import local_figures
from testbed.check.logs import logs_in_memory
from tests.check.events import CRASH, MS, deliver, send, write_run

GROUPS = (frozenset({0, 1}), frozenset({2, 3}))


def figures_of(*events: tuple[float, int, str, Any]) -> dict[str, float]:
    """Of events as (ms, node, kind, message)."""
    logs: dict[int, list[Event]] = {node: [] for node in range(4)}
    for at, node, kind, message in events:
        source, seq = message or (-1, -1)
        logs[node].append(Event(kind, source, seq, t=round(at * MS)))
    return local_figures(rebuild(logs_in_memory(logs, logs)), GROUPS)


def test_delays_are_told_apart_and_own_deliveries_left_out() -> None:
    a = (0, 1)
    figures = figures_of(
        (0, 0, "send", a),
        (0, 0, "deliver", a),
        (2, 1, "deliver", a),
        (10, 2, "deliver", a),
        (20, 3, "deliver", a),
    )
    assert figures == {
        "delay_within_groups_ms_mean": 2,
        "delay_across_groups_ms_mean": 15,
    }


def test_a_group_is_cut_off_while_messages_wait_and_none_crosses_the_border() -> None:
    old, out, into, late = (2, 1), (1, 1), (3, 1), (3, 2)
    figures = figures_of(
        (0, 2, "send", old),
        (5, 0, "crash", None),
        (6, 1, "deliver", old),  # was under way: the border is not closed yet
        (7, 1, "send", out),
        (8, 3, "send", into),
        (30, 1, "deliver", into),  # 23 ms after something had to cross again
        (61, 2, "deliver", out),  # the longest time
        (90, 3, "send", late),  # in between nothing had to cross
        (95, 1, "deliver", late),
    )
    assert figures["recovery_ms_max"] == pytest.approx(31)
    assert "crashes_without_recovery" not in figures


def test_a_group_that_stays_cut_off_is_counted() -> None:
    figures = figures_of((5, 0, "crash", None), (6, 2, "send", (2, 1)), (8, 3, "deliver", (2, 1)))
    assert figures == {
        "delay_within_groups_ms_mean": 2,
        "crashes_without_recovery": 1,
    }


def test_groups_of_the_manifest_and_valid_runs_are_measured(tmp_path: Path) -> None:
    logs = {0: [send(0, 1, [2])], 1: [], 2: [deliver(0, 1, t=3 * MS)], 3: [CRASH]}
    promises = {"optimistic": False, "local_groups": [[0, 1], [2, 3]]}
    run = write_run(tmp_path / "run", logs, logs, promises=promises)
    assert not check_run(run).figures
    figures = check_run(run, checks=CHECKS).figures
    assert figures["delay_across_groups_ms_mean"] == 3
    assert figures["crashes_without_recovery"] == 1
    logs[2] = []
    assert not check_run(
        write_run(tmp_path / "lost", logs, logs, promises=promises), checks=CHECKS
    ).figures
