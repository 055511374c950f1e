"""The checks of a run, by name, from one reading of its event logs.

The way of a run through the modules: ``logs`` reads, ``history`` rebuilds happens-before, ``judge``
holds each node's log against it, ``oracle`` makes a ``verdict`` of that, and ``paths`` says why for
what is shown. ``tickets`` judges who owned which ticket when. If a run has several ``clusters``, each
is a case of its own. ``delays`` and ``locality`` measure
runs that were found valid. What a protocol ``promises`` is in the run's manifest. ``fidelity`` is
about the network of an emulation, not about the protocol.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from testbed.check.clusters import by_cluster, together, visitors
from testbed.check.delays import check_delays
from testbed.check.judge import APART, VIOLATIONS, Judge
from testbed.check.locality import check_locality
from testbed.check.logs import Event, Logs, logs_in_memory, read_logs, read_nodes
from testbed.check.oracle import check_order, check_tickets, open_case
from testbed.check.promises import promises_json, promises_of
from testbed.check.tickets import CONFLICTS
from testbed.check.verdict import Finding, Promises, Verdict, finding
from testbed.progress import Tick
from testbed.runs.directory import RunDirectory

__all__ = [
    "APART",
    "CHECKS",
    "CONFLICTS",
    "VIOLATIONS",
    "Event",
    "Finding",
    "Verdict",
    "check_events",
    "check_run",
    "finding",
    "promises_json",
]

# A check is given the judge, which has history and logs, and the verdict so far, to which it adds
# what it finds and measures; while it works it reports how far it is.
Check = Callable[[Judge, Verdict, Tick], Verdict]

CHECKS: dict[str, Check] = {
    "order": check_order,
    "tickets": check_tickets,
    "delays": check_delays,
    "locality": check_locality,
}
JUDGING = ("order", "tickets")  # the others only measure
NOTHING_SENT = "the logs hold no message, so there is nothing to judge"


def _no_tick(done: int, of: int) -> None:
    pass


def check_run(path: Path, tick: Tick = _no_tick, checks: Iterable[str] = JUDGING) -> Verdict:
    """Judge a run directory by these checks; the logs are read once for all of them."""
    run = RunDirectory(path)
    promises = promises_of(run)
    try:
        nodes, files = read_nodes(run.network_file), run.event_logs
        reading = sum(file.stat().st_size for file in files)
    except (OSError, ValueError) as error:
        return Verdict(nodes=0, problems=(str(error),), promises=promises)
    total = max(1, reading) * 3 // 2
    logs = read_logs(nodes, files, lambda done, _: tick(done, total))
    judging = total - reading
    verdict = _check(
        logs, promises, checks, lambda done, of: tick(reading + judging * done // of, total)
    )
    tick(total, total)
    doubts = [*run.changes, *(() if verdict.messages else (NOTHING_SENT,))]
    return replace(verdict, problems=(*verdict.problems, *doubts))


def check_events(
    nodes: Iterable[int], logs: Mapping[int, Sequence[Event]], *, optimistic: bool = False
) -> Verdict:
    """Judge logs in memory, one for each node; a node without one counts as a missing log."""
    return _check(logs_in_memory(nodes, logs), Promises(optimistic), JUDGING, _no_tick)


def _check(logs: Logs, promises: Promises, checks: Iterable[str], tick: Tick) -> Verdict:
    if not (clusters := by_cluster(logs)):
        return _judge(logs, promises, checks, tick)
    parts: dict[int, Verdict] = {}
    for cluster, some in clusters.items():
        found = _judge(some, promises, checks, _no_tick)
        parts[cluster] = replace(found, nodes=visitors(some))
        tick(len(parts), len(clusters))
    return together(logs, clusters, parts)


def _judge(logs: Logs, promises: Promises, checks: Iterable[str], tick: Tick) -> Verdict:
    judge, verdict = open_case(logs, promises)
    for name in checks:
        verdict = CHECKS[name](judge, verdict, tick)
    return verdict
