"""Why one message happened before another: the shortest chain of deliveries and sends.

A breadth-first search backwards in time: from the send of the effect through its sender's log, then
through the logs of those whose messages were delivered there, each up to that send, and so on, one
relay at a time, until a log holds a wanted message. Each log is read at most once, so a path costs no
more than a pass over the run.
"""

from typing import NamedTuple

import numpy as np

from testbed.check.history import Bools, History, Ints
from testbed.check.logs import Name


class Step(NamedTuple):
    """A process delivered ``cause``, or sent it, at ``t`` and then sent ``effect``."""

    process: int
    event: str  # "deliver" or "send"
    cause: Name
    t: int
    effect: Name
    sent_t: int


class _Reach(NamedTuple):
    """A process's log up to its send of ``slot``, which was delivered at ``at`` in ``onward``."""

    process: int
    slot: int
    at: int
    onward: "_Reach | None"


def shortest_path(history: History, effect: int, wanted: Bools) -> list[Step]:
    """The steps from the nearest wanted message to ``effect``; among equals the latest sent."""
    read = dict.fromkeys(history.senders, 0)
    frontier = [_Reach(history.senders[history.sender[effect]], effect, -1, None)]
    while frontier:
        for reach in frontier:
            start, slots = read[reach.process], _messages(history, reach)
            found = np.flatnonzero(wanted[slots[start:]])
            if found.size:
                at = start + int(found[-1])
                own = history.senders[history.sender[slots[at]]] == reach.process
                # Its own message it had in hand when it sent it, not when it delivered it.
                return _steps(history, reach, int(history.sent_at[slots[at]]) if own else at)
        frontier = _expand(history, frontier, read)
    raise AssertionError("a message without a cause was judged to have one")


def _messages(history: History, reach: _Reach) -> Ints:
    """The messages of a log up to a send; slot 0, which holds none, where there is no cause."""
    events = history.tracks[reach.process].events[: history.sent_at[reach.slot]]
    slots = np.where(events < 0, ~events, events)
    slots[slots >= history.slots] = 0
    slots[_impossible(history, reach.process, len(slots))] = 0
    return slots


def _impossible(history: History, process: int, end: int) -> Ints:
    links = history.impossible
    at_process = history.sender[links.effect] == history.senders.index(process)
    at: Ints = links.at[at_process & (links.at < end)]
    return at


def _expand(history: History, frontier: list[_Reach], read: dict[int, int]) -> list[_Reach]:
    """The logs, or further parts of logs, that are one relay further back."""
    best: dict[int, _Reach] = {}
    for reach in frontier:
        start, slots = read[reach.process], _messages(history, reach)
        read[reach.process] = len(slots)
        at = start + np.flatnonzero(slots[start:])
        latest = np.zeros(len(history.senders), np.int32)
        np.maximum.at(latest, history.sender[slots[at]], slots[at])
        for slot in latest[latest > 0].tolist():
            process = history.senders[history.sender[slot]]
            if process not in best or slot > best[process].slot:
                where = int(at[slots[at] == slot][0])
                best[process] = _Reach(process, slot, where, reach)
    further = (r for r in best.values() if history.sent_at[r.slot] > read[r.process])
    return sorted(further, key=lambda reach: reach.process)


def _steps(history: History, reach: _Reach, at: int) -> list[Step]:
    steps = []
    onward: _Reach | None = reach
    while onward is not None:
        track = history.tracks[onward.process]
        event = int(track.events[at])
        steps.append(
            Step(
                history.logs.node(onward.process),
                "send" if event < 0 else "deliver",
                history.names[~event if event < 0 else event],
                int(track.times[at]),
                history.names[onward.slot],
                int(track.times[history.sent_at[onward.slot]]),
            )
        )
        at, onward = onward.at, onward.onward
    return steps
