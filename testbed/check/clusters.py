"""Several clusters in one run: each is judged by itself, by the events that belong to it.

A message belongs to the cluster that its sender names. Happens-before is made of the cluster's own
messages: events of different clusters are not ordered, since each has a clock of its own (Gidenstam et
al. 2011, section 3). Who has never been interested in a cluster must not deliver its messages. While a
process stays interested, it is owed what is sent from the first event of the stay that it delivers or
makes to the last one; what it misses before or after that is the price of coming and going.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.check.logs import Logs, NodeLog
from testbed.check.verdict import Verdict
from testbed.protocols import NS_PER_MS

NEVER = -1


class _Stay(NamedTuple):
    """A part of a log, from one position to another, in which its process was interested."""

    t: int
    start: int
    end: int
    begins: bool


def by_cluster(logs: Logs) -> dict[int, Logs]:
    """The logs of each cluster; nothing if there is one cluster only."""
    moves = [move for log in logs.of.values() for move in log.moves]
    clusters = {*logs.clusters.values(), *(move.cluster for move in moves)}
    of = np.full(len(logs.numbers), NEVER)
    of[list(logs.clusters)] = list(logs.clusters.values())
    return {cluster: _logs_of(logs, cluster, of == cluster) for cluster in sorted(clusters)}


def _logs_of(logs: Logs, cluster: int, mine: NDArray[np.bool_]) -> Logs:
    some = Logs(logs.nodes)
    some.numbers, some.home = logs.numbers, logs.home
    some.doubtful, some.missing = logs.doubtful, logs.missing
    some.of = {process: _log_of(log, mine, cluster) for process, log in logs.of.items()}
    some.to.update(_destinations(some, mine))
    some.forged, some.resent = (
        [(node, number) for node, number in found if mine[number]]
        for found in (logs.forged, logs.resent)
    )
    for node, lines in logs.tickets.items():
        some.tickets[node] = [line for line in lines if line.cluster in (None, cluster)]
    for node, wishes in logs.wishes.items():
        some.wishes[node] += [wish for wish in wishes if wish[1] in ("crash", "restart")]
    for process, log in some.of.items():
        came = [(m.t, "join" if m.interested else "leave") for m in log.moves if not m.begins]
        some.wishes[logs.node(process)] += came
    for wishes in some.wishes.values():
        wishes.sort(key=lambda wish: wish[0])
    return some


def _log_of(log: NodeLog, mine: NDArray[np.bool_], cluster: int) -> NodeLog:
    """What a process did in one cluster."""
    events, held = np.frombuffer(log.events, np.int32), np.frombuffer(log.held, np.int32)
    kept, held_kept = mine[np.where(events < 0, ~events, events)], mine[held]
    before = np.concatenate([[0], np.cumsum(kept)])  # positions in the shorter log
    own = NodeLog()
    own.events.frombytes(events[kept].tobytes())
    own.times.frombytes(np.frombuffer(log.times, np.int64)[kept].tobytes())
    own.held.frombytes(held[held_kept].tobytes())
    own.held_times.frombytes(np.frombuffer(log.held_times, np.int64)[held_kept].tobytes())
    own.crash = None if log.crash is None else int(before[log.crash])
    own.restarted = log.restarted
    own.moves = [
        move._replace(position=int(before[move.position]))
        for move in log.moves
        if move.cluster == cluster
    ]
    return own


def _stays(log: NodeLog) -> Iterator[_Stay]:
    moves = [*log.moves, None]
    for move, after in pairwise(moves):
        if move is not None and move.interested:
            end = len(log.events) if after is None else after.position
            yield _Stay(move.t, move.position, end, move.begins)


def _destinations(logs: Logs, mine: NDArray[np.bool_]) -> dict[int, list[int]]:
    """By message of a cluster, the nodes that deliver it once they were interested, or are owed it."""
    sent_at = np.full(len(mine), NEVER, np.int64)
    columns = {
        process: (np.frombuffer(log.events, np.int32), np.frombuffer(log.times, np.int64))
        for process, log in logs.of.items()
    }
    for events, times in columns.values():
        sent_at[~events[events < 0]] = times[events < 0]
    to: dict[int, list[int]] = {int(number): [] for number in np.flatnonzero(sent_at >= 0)}
    for process, (events, times) in columns.items():
        due, stays = np.zeros(len(mine), np.bool_), [*_stays(logs.of[process])]
        if not stays:
            continue
        due[(rest := events[stays[0].start :])[rest >= 0]] = True
        for _, start, end, _ in stays:
            known = np.where(events < 0, ~events, events)[start:end]
            if known.size:
                due |= (sent_at >= times[start]) & (sent_at <= sent_at[known].max())
        for number in np.flatnonzero(due & (sent_at >= 0)):
            to[int(number)].append(logs.node(process))
    return to


def visitors(logs: Logs) -> int:
    """How many nodes were interested in a cluster at any time."""
    return len({logs.node(process) for process, log in logs.of.items() if any(_stays(log))})


def waits(logs: Logs) -> list[int]:
    """How long each process was interested before it delivered or made an event of the cluster."""
    return [
        log.times[stay.start] - stay.t
        for log in logs.of.values()
        for stay in _stays(log)
        if not stay.begins and stay.start < stay.end
    ]


def together(logs: Logs, clusters: Mapping[int, Logs], parts: Mapping[int, Verdict]) -> Verdict:
    """One verdict on all clusters."""
    some = [*parts.values()]
    strays = len([number for number in logs.to if number not in logs.clusters])
    lost = [f"{strays} messages belong to no cluster"] if strays else []
    return Verdict(
        nodes=len(logs.nodes),
        messages=sum(part.messages for part in some),
        deliveries=sum(part.deliveries for part in some),
        due=sum(part.due for part in some),
        malformed=logs.malformed,
        malformed_lines=tuple(logs.malformed_lines),
        missing=tuple(sorted(logs.missing)),
        damaged=tuple(sorted(logs.doubtful)),
        crashed=tuple(sorted({node for part in some for node in part.crashed})),
        problems=(*logs.problems, *lost),
        promises=some[0].promises,
        tickets=sum(part.tickets for part in some),
        conflicts=tuple(
            conflict._replace(sentence=f"cluster {cluster}: {conflict.sentence}")
            for cluster, part in parts.items()
            for conflict in part.conflicts
        ),
        notes=tuple(_notes(parts)),
        figures=_figures(some, [wait for each in clusters.values() for wait in waits(each)]),
        parts=parts,
    )


def _notes(parts: Mapping[int, Verdict]) -> Iterator[str]:
    yield from (f"cluster {cluster}: {part.headline}" for cluster, part in parts.items())
    for cluster, part in parts.items():
        yield from (f"cluster {cluster}: {note}" for note in part.notes)


def _figures(parts: Sequence[Verdict], entering: Sequence[int]) -> dict[str, float]:
    """The largest of maxima, the means of means by deliveries, and the sums of the rest."""
    figures: dict[str, float] = {"clusters": len(parts)}
    if entering:
        figures["entering_ms_mean"] = float(np.mean(entering)) / NS_PER_MS
    for key in dict.fromkeys(key for part in parts for key in part.figures):
        some = [(part.figures[key], part.deliveries) for part in parts if key in part.figures]
        if key.endswith("_max"):
            figures[key] = max(value for value, _ in some)
        elif key.endswith(("_mean", "_percent")):
            figures[key] = sum(v * n for v, n in some) / max(1, sum(n for _, n in some))
        else:
            figures[key] = sum(value for value, _ in some)
    return figures
