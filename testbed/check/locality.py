"""What local groups make of delays and of crashes, of protocols that divide processes into such groups.

Told from the event logs alone. The groups are those at the beginning of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from testbed.protocols import NS_PER_MS, MessageId

Groups = Iterable[frozenset[int]]


def local_figures(path: Path, groups: Groups) -> dict[str, float]:
    """Mean delays within groups and across, and how long groups were cut off by crashes.

    A crash is over when a message that was sent after it has gone into the group of the process, or
    out of it.
    """
    home = {process: number for number, group in enumerate(groups) for process in group}
    sent: dict[MessageId, int] = {}
    deliveries: list[tuple[int, int, MessageId]] = []
    crashes: list[tuple[int, int]] = []
    for event in _events(path):
        match event["event"]:
            case "send":
                sent[MessageId(event["source"], event["seq"])] = event["t"]
            case "deliver" if event["node"] != event["source"]:
                name = MessageId(event["source"], event["seq"])
                deliveries.append((event["t"], event["node"], name))
            case "crash":
                crashes.append((event["t"], event["node"]))
    delays: dict[bool, list[int]] = {True: [], False: []}
    for at, node, name in deliveries:
        delays[home[node] == home[name.source]].append(at - sent[name])
    figures = {
        f"delay_{where}_groups_ms_mean": sum(found) / len(found) / NS_PER_MS
        for where, found in (("within", delays[True]), ("across", delays[False]))
        if found
    }
    over = [_over(crash, home[node], deliveries, sent, home) for crash, node in crashes]
    if ended := [time for time in over if time is not None]:
        figures["recovery_ms_max"] = max(ended) / NS_PER_MS
    if len(ended) < len(over):
        figures["crashes_without_recovery"] = len(over) - len(ended)
    return figures


def _over(
    crash: int,
    group: int,
    deliveries: list[tuple[int, int, MessageId]],
    sent: dict[MessageId, int],
    home: dict[int, int],
) -> int | None:
    """How long after a crash something crosses the border of a group again, if ever."""
    crossing = (
        at
        for at, node, name in deliveries
        if sent[name] > crash and (home[node] == group) != (home[name.source] == group)
    )
    first = min(crossing, default=None)
    return None if first is None else first - crash


def _events(path: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((path / "events").glob("*.jsonl")):
        with file.open(encoding="ascii") as lines:
            yield from map(json.loads, lines)
