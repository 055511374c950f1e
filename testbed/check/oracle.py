"""The ordering oracle: was every message delivered in causal order, once, where it was sent?

It believes the event logs and the list of nodes, nothing else: no protocol, and no clock to order
what happened at different nodes. A send happened before its deliveries, an event before all later
ones of its node, and so on through any number of nodes. If send(m') happened before send(m), then
a destination of m' that delivers m must have delivered m' first.

Optimistic protocols promise less: a destination that delivers both m' and m delivers m' first, but it
may lose either. What is lost is then counted, and is no fault.

Crashes: a node that crashed owes no deliveries, nor does anybody owe those of its messages; a gap
after its crash is excused too. A node that was restarted counts as a new process, which has no past
(see ``judge``). What was sent to a node that had left, by a sender that did not know it was back, is
not owed either. Damaged logs prove what they show, and nothing by what they lack.

Tickets are judged apart: who owned which ticket when, by the clock of the run.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from testbed.check.availability import find_waits
from testbed.check.history import Ints, rebuild
from testbed.check.judge import Judge
from testbed.check.logs import Logs
from testbed.check.tickets import find_conflicts, tickets_in
from testbed.check.verdict import Promises, Verdict, Where
from testbed.progress import Tick
from testbed.protocols import NS_PER_MS


def open_case(logs: Logs, promises: Promises) -> tuple[Judge, Verdict]:
    """The judge of these logs, and the verdict before anything has been checked."""
    history = rebuild(logs)
    judge = Judge(history)
    verdict = Verdict(
        nodes=len(logs.nodes),
        messages=history.messages,
        deliveries=sum(int((track.events >= 0).sum()) for track in history.tracks.values()),
        due=sum(int(history.addressed_to(node).sum()) for node in logs.nodes),
        malformed=logs.malformed,
        malformed_lines=tuple(logs.malformed_lines),
        missing=tuple(sorted(logs.missing)),
        damaged=tuple(sorted(logs.doubtful)),
        crashed=tuple(sorted(judge.crashed)),
        problems=tuple(logs.problems),
        promises=promises,
        judge=judge,
    )
    return judge, verdict


def check_order(judge: Judge, verdict: Verdict, tick: Tick) -> Verdict:
    """Hold every node's log against happens-before; of an optimistic protocol, count the losses."""
    found: dict[str, list[tuple[int, Ints]]] = defaultdict(list)
    processes = (*judge.history.logs.nodes, *judge.history.logs.home)
    for index, process in enumerate(processes):
        for kind, where, slots in judge.judge(process):
            found[kind].append((where, slots))
        tick(index + 1, len(processes))
    for kind, where, slots in judge.judge_logs():
        found[kind].append((where, slots))
    verdict = replace(verdict, found={kind: _where(parts) for kind, parts in found.items()})
    if not verdict.optimistic:
        return verdict
    return verdict.with_figures({"lost_deliveries": verdict.count("loss")})


def check_tickets(judge: Judge, verdict: Verdict, _: Tick) -> Verdict:
    """Look for tickets with two owners and for events whose name was used twice."""
    records = judge.history.logs.tickets
    conflicts = find_conflicts(records, judge.doubtful)
    verdict = replace(verdict, tickets=tickets_in(records), conflicts=conflicts)
    if not verdict.tickets:
        return verdict
    verdict = verdict.with_figures({"ticket_conflicts": len(conflicts)})
    logs, promises = judge.history.logs, verdict.promises
    if judge.doubtful or not promises.ring_failures:
        return verdict
    end = max(logs.end, round(promises.lasted * NS_PER_MS))
    waits = find_waits(records, logs.wishes, end, promises.ring_failures)
    return replace(verdict, notes=waits.sentences).with_figures(waits.figures())


def _where(parts: list[tuple[int, Ints]]) -> Where:
    nodes = np.repeat([node for node, _ in parts], [len(slots) for _, slots in parts])
    return Where(nodes, np.concatenate([slots for _, slots in parts]))
