"""Event logs made by hand, in memory and as run directories."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.check import Event, Verdict
from testbed.runs.directory import SCHEMA

Logs = dict[int, list[Event]]
Name = tuple[int, int]
Found = dict[str, list[tuple[int, Name]]]
MS = 1_000_000

CRASH = Event("crash")
LEAVE = Event("leave")
JOIN = Event("join")


def send(source: int, seq: int, to: Iterable[int] | None = None, t: int = 0) -> Event:
    return Event("send", source, seq, None if to is None else sorted(to), t)


def deliver(source: int, seq: int, t: int = 0) -> Event:
    return Event("deliver", source, seq, t=t)


def hold(source: int, seq: int, t: int = 0) -> Event:
    return Event("hold", source, seq, t=t)


def triangle(*at_c: Event) -> Logs:
    """a→c m(0,1), a→b m(0,2), b→c m(1,1)."""
    a = [send(0, 1, [2], t=10), send(0, 2, [1], t=11)]
    return {0: a, 1: [deliver(0, 2, t=20), send(1, 1, [2], t=21)], 2: list(at_c)}


def found(verdict: Verdict) -> Found:
    """Everything that the oracle found, by kind."""
    return {kind: sorted(verdict.where(kind)) for kind in verdict.counts if verdict.count(kind)}


def as_line(node: int, event: Event) -> dict[str, Any]:
    line: dict[str, Any] = {"t": event.t, "node": node, "event": event.event}
    if event.event in ("send", "deliver", "hold"):
        line |= {"source": event.source, "seq": event.seq, "extra": [1]}
    return line | ({"to": event.to} if event.event == "send" else {}) | dict(event.facts or {})


def write_run(
    path: Path, nodes: Iterable[int], logs: Logs, shared: bool = False, **manifest: Any
) -> Path:
    """A run directory with these logs, a file for each node or one for all."""
    (path / "events").mkdir(parents=True)
    (path / "network.json").write_text(json.dumps({"nodes": [{"id": n} for n in nodes]}))
    complete = {"status": "complete", "schema": SCHEMA, **manifest}
    (path / "manifest.json").write_text(json.dumps(complete))
    for node, events in logs.items():
        name = "all.jsonl" if shared else f"h{node}.jsonl"
        with (path / "events" / name).open("a") as file:
            file.writelines(json.dumps(as_line(node, event)) + "\n" for event in events)
    return path
