"""Delays within and across local groups, and how long a crash cuts a group off.

For protocols that divide processes into such groups; these are the groups at the beginning of a run.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from testbed.check.history import History
from testbed.check.judge import Judge
from testbed.check.verdict import Verdict
from testbed.progress import Tick
from testbed.protocols import NS_PER_MS


def check_locality(judge: Judge, verdict: Verdict, _: Tick) -> Verdict:
    """Measure a valid run of a protocol with local groups."""
    if not verdict.ok or not verdict.promises.local_groups:
        return verdict
    return verdict.with_figures(local_figures(judge.history, verdict.promises.local_groups))


def local_figures(history: History, groups: Iterable[frozenset[int]]) -> dict[str, float]:
    """Mean delays within groups and across, and how long groups were cut off after crashes.

    A group is cut off while messages are on their way into it or out of it, and none arrives.
    """
    group = {node: number for number, members in enumerate(groups) for node in members}
    sent, at, here, there = _deliveries(history, group)
    delays = at - sent
    figures = {
        f"delay_{where}_groups_ms_mean": int(found.sum()) / len(found) / NS_PER_MS
        for where, found in (("within", delays[here == there]), ("across", delays[here != there]))
        if len(found)
    }
    longest = []
    for crash, node in history.logs.crashes:
        crosses = (at > crash) & ((here == group[node]) != (there == group[node]))
        if (crosses & (sent > crash)).any():
            longest.append(_standstill(crash, sent[crosses], at[crosses]))
    if longest:
        figures["recovery_ms_max"] = max(longest) / NS_PER_MS
    if len(longest) < len(history.logs.crashes):
        figures["crashes_without_recovery"] = len(history.logs.crashes) - len(longest)
    return figures


def _standstill(start: int, sent: NDArray[np.int64], at: NDArray[np.int64]) -> int:
    """The longest time, after a moment, in which messages are on their way and none arrives."""
    order = np.argsort(at, kind="stable")
    arrivals = at[order]
    waiting_since = np.minimum.accumulate(sent[order][::-1])[::-1]  # of what is still to arrive
    before = np.concatenate([[start], arrivals[:-1]])
    return int((arrivals - np.maximum(before, waiting_since)).max())


def _deliveries(history: History, group: dict[int, int]) -> NDArray[np.int64]:
    """Of each delivery of another's message: when sent, when delivered, to and from which group."""
    columns = [np.zeros((4, 0), np.int64)]
    sent = np.zeros(history.slots, np.int64)
    for process in history.senders:
        track = history.tracks[process]
        sends = track.events < 0
        sent[~track.events[sends]] = track.times[sends]
    groups = np.array([group[node] for node in history.home.tolist()], np.int64)
    for process, track in history.tracks.items():
        node = history.logs.node(process)
        deliveries = track.events >= 0
        slots, at = track.events[deliveries], track.times[deliveries]
        others = history.home[slots] != node
        slots, at = slots[others], at[others]
        here = np.full(len(slots), group[node], np.int64)
        columns.append(np.stack([sent[slots], at, here, groups[slots]]))
    return np.concatenate(columns, axis=1)
