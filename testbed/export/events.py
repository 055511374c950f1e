"""The events of a run in causal order, each with a vector clock of its own.

The clocks count the events of the log, not what a protocol counts: an event's clock has one more for
its own process than the event before it there, and whoever holds or delivers a message has learnt
what its sender knew when it sent it. Where only some events are shown, the others pass on what they
learnt without being counted, so that happens-before between those shown is exactly what it was.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbed.errors import UserError, read_text
from testbed.protocols import MessageId
from testbed.runs.directory import RunDirectory

Clock = NDArray[np.int64]
LEARNS = ("hold", "deliver")


class Event(NamedTuple):
    """One line of a log; ``facts`` are the keys that only some events have."""

    t: int
    node: int
    event: str
    name: MessageId | None
    facts: dict[str, Any]

    def __str__(self) -> str:
        words = [self.event]
        if self.name is not None:
            words.append(str(self.name))
        if self.event == "send":
            to = self.facts.get("to")
            words.append("to all" if to is None else f"to {', '.join(f'h{node}' for node in to)}")
        elif self.event == "hold":
            awaited = self.facts.get("for")
            words.append(f"until {MessageId(*awaited)}" if awaited else "")
        elif self.facts:
            words.append(json.dumps(self.facts))
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class Window:
    """Which events are shown: those from one time to another, of these nodes."""

    begin: int = 0
    end: int = 1 << 62
    nodes: frozenset[int] | None = None

    def shows(self, event: Event) -> bool:
        """Whether an event is shown."""
        return self.begin <= event.t <= self.end and (
            self.nodes is None or event.node in self.nodes
        )


def read_events(run: RunDirectory) -> dict[int, list[Event]]:
    """The events of each node in its own order; a line that cannot be used is a ``UserError``."""
    logs: dict[int, list[Event]] = {}
    for file in run.event_logs:
        try:
            lines = read_text(file).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{file}: cannot be read: {error}") from None
        for number, line in enumerate(lines, 1):
            try:
                event = _event(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                raise UserError(
                    f"{file}, line {number}: not an event; `testbed check {run.path}` says more"
                ) from None
            logs.setdefault(event.node, []).append(event)
    if not logs:
        raise UserError(f"{run.path}: its logs hold no event, so there is nothing to export")
    return logs


def _event(line: dict[str, Any]) -> Event:
    facts = dict(line)
    t, node, event = int(facts.pop("t")), int(facts.pop("node")), str(facts.pop("event"))
    if facts.keys() >= {"source", "seq"}:
        name = MessageId(int(facts.pop("source")), int(facts.pop("seq")))
        return Event(t, node, event, name, facts)
    return Event(t, node, event, None, facts)


def in_causal_order(logs: dict[int, list[Event]]) -> Iterator[Event]:
    """All events by time, but none that knows of a message before that was sent."""
    unsent = {event.name for log in logs.values() for event in log if event.event == "send"}
    heap = [(log[0].t, node, 0) for node, log in logs.items()]
    heapify(heap)
    waiting: dict[MessageId, list[tuple[int, int, int]]] = {}
    while heap:
        entry = heappop(heap)
        _, node, number = entry
        event = logs[node][number]
        if event.name is not None and event.event in LEARNS and event.name in unsent:
            waiting.setdefault(event.name, []).append(entry)
            continue
        yield event
        if event.name is not None and event.event == "send":
            unsent.discard(event.name)
            for late in waiting.pop(event.name, ()):
                heappush(heap, late)
        if number + 1 < len(logs[node]):
            heappush(heap, (logs[node][number + 1].t, node, number + 1))
    if waiting:
        raise UserError(
            f"{next(iter(waiting))} was delivered before anything led to its being sent; "
            "`testbed check` says more about such logs"
        )


def with_clocks(events: Iterable[Event], window: Window) -> Iterator[tuple[Event, dict[str, int]]]:
    """The events that are shown, each with its clock by the names of the hosts."""
    events = list(events)
    index = {node: i for i, node in enumerate(sorted({event.node for event in events}))}
    hosts = [f"h{node}" for node in index]
    clocks: dict[int, Clock] = {node: np.zeros(len(index), np.int64) for node in index}
    sent: dict[MessageId, Clock] = {}
    for event in events:
        clock = clocks[event.node]
        if event.event in LEARNS and event.name in sent:
            np.maximum(clock, sent[event.name], out=clock)
        shown = window.shows(event)
        clock[index[event.node]] += shown
        if event.name is not None and event.event == "send":
            sent[event.name] = clock.copy()
        if shown:
            yield event, {hosts[i]: int(clock[i]) for i in np.flatnonzero(clock)}
