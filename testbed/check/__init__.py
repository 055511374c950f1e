"""The ordering oracle: was every message delivered in causal order, once, where it was sent?

It believes the event logs and the list of nodes, nothing else: no protocol, and no clock to order
what happened at different nodes. A send happened before its deliveries, an event before all later
ones of its node, and so on through any number of nodes. If send(m') happened before send(m), then
a destination of m' that delivers m must have delivered m' first.

The way of a run through the modules: ``logs`` reads, ``history`` rebuilds happens-before, ``judge``
holds each node's log against it, ``paths`` says why for what is shown, ``verdict`` is the answer.
``tickets`` stands apart: it judges who owned which ticket when, and there believes the run's clock.

Optimistic protocols promise less: a destination that delivers both m' and m delivers m' first, but it
may lose either. What is lost is then counted, and is no fault.

Crashes: a node that crashed owes no deliveries, nor does anybody owe those of its messages; a gap
after its crash is excused too. A node that was started again counts as a new process, which has no
past: see ``judge``. So is what one that left, and perhaps joined again, is owed. Damaged logs prove
what they show, and nothing by what they lack.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from testbed.check.history import Ints, rebuild
from testbed.check.judge import APART, FAULTS, Judge
from testbed.check.logs import (
    Event,
    Logs,
    Malformed,
    logs_in_memory,
    read_logs,
    read_nodes,
)
from testbed.check.paths import Step
from testbed.check.tickets import CONFLICTS, Conflict, find_conflicts, tickets_in
from testbed.check.verdict import Finding, Verdict, Violation, Where, finding
from testbed.progress import Tick
from testbed.protocols import PROTOCOLS
from testbed.protocols.broken import BROKEN

__all__ = [
    "APART",
    "CONFLICTS",
    "FAULTS",
    "Conflict",
    "Event",
    "Finding",
    "Malformed",
    "Step",
    "Verdict",
    "Violation",
    "check_events",
    "check_run",
    "finding",
]


def check_run(path: Path, progress: Tick | None = None) -> Verdict:
    """Judge a run directory; ``progress`` is told of work done and work in all.

    Of its protocol nothing is believed but whether it is optimistic.
    """
    tell: Tick = progress or (lambda done, total: None)
    optimistic = _is_optimistic(path / "experiment.toml")
    try:
        nodes = read_nodes(path / "network.json")
        files = sorted((path / "events").glob("*.jsonl"))
        reading = sum(file.stat().st_size for file in files)
    except (OSError, ValueError) as error:
        return Verdict(nodes=0, problems=(str(error),), optimistic=optimistic)
    total = max(1, reading) * 3 // 2
    logs = read_logs(nodes, files, lambda done, _: tell(done, total))
    judging = total - reading
    verdict = _judge(logs, lambda done, of: tell(reading + judging * done // of, total), optimistic)
    tell(total, total)
    return verdict


def check_events(
    nodes: Iterable[int], logs: Mapping[int, Sequence[Event]], *, optimistic: bool = False
) -> Verdict:
    """Judge logs in memory, one for each node; a node without one counts as a missing log."""
    return _judge(logs_in_memory(nodes, logs), lambda done, total: None, optimistic)


def _is_optimistic(path: Path) -> bool:
    """Whether an experiment's protocol is; if that cannot be told, a run is judged strictly."""
    try:
        name = tomllib.loads(path.read_text(encoding="utf-8"))["protocol"]["name"]
        return (PROTOCOLS | BROKEN)[name].optimistic
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _judge(logs: Logs, tell: Callable[[int, int], None], optimistic: bool) -> Verdict:
    history = rebuild(logs)
    judge = Judge(history)
    found: dict[str, list[tuple[int, Ints]]] = defaultdict(list)
    processes = (*logs.nodes, *logs.home)
    for index, node in enumerate(processes):
        for kind, where, slots in judge.judge(node):
            found[kind].append((where, slots))
        tell(index + 1, len(processes))
    for kind, where, slots in judge.judge_logs():
        found[kind].append((where, slots))
    return Verdict(
        nodes=len(logs.nodes),
        messages=history.messages,
        deliveries=sum(int((track.events >= 0).sum()) for track in history.tracks.values()),
        due=sum(int(history.addressed_to(node).sum()) for node in logs.nodes),
        found={kind: _where(parts) for kind, parts in found.items()},
        malformed=logs.malformed,
        malformed_lines=tuple(logs.malformed_lines),
        missing=tuple(sorted(logs.missing)),
        damaged=tuple(sorted(logs.doubtful)),
        crashed=tuple(sorted(judge.crashed)),
        problems=tuple(logs.problems),
        optimistic=optimistic,
        tickets=tickets_in(logs.tickets),
        conflicts=find_conflicts(logs.tickets, judge.doubtful),
        judge=judge,
    )


def _where(parts: list[tuple[int, Ints]]) -> Where:
    nodes = np.repeat([node for node, _ in parts], [len(slots) for _, slots in parts])
    return Where(nodes, np.concatenate([slots for _, slots in parts]))
