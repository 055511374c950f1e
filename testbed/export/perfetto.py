"""A run as a trace that Perfetto opens, in the JSON format of Chrome's traces.

A process of the trace is a node, with a track for what it sent and one for what it delivered. Slices
have no length, since an event has none; an arrow leads from each send to each delivery. A message
that was held back is a span of its own, and a counter shows how many are.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from testbed.export.events import Event, Window
from testbed.protocols import MessageId

TRACKS = {"send": 1, "deliver": 2, "other events": 3}


def trace_events(events: Iterable[Event], window: Window) -> Iterator[dict[str, Any]]:
    """The events of the trace, in the order of the run."""
    named: set[int] = set()
    sent: dict[MessageId, Event] = {}
    held: dict[int, set[MessageId]] = {}
    for event in filter(window.shows, events):
        if event.node not in named:
            named.add(event.node)
            yield from _names(event.node)
        if event.event != "hold":
            yield _slice(event)
        if event.name is None:
            continue
        queue = held.setdefault(event.node, set())
        if event.event == "send":
            sent[event.name] = event
        elif event.event == "hold" and event.name not in queue:
            queue.add(event.name)
            yield _span("b", event)
            yield _count(event, len(queue))
        elif event.event == "deliver":
            if event.name in queue:
                queue.discard(event.name)
                yield _span("e", event)
                yield _count(event, len(queue))
            if event.name in sent and event.node != event.name.source:
                yield from (_arrow("s", event, sent[event.name]), _arrow("f", event, event))


def _at(t: int) -> float:
    return t / 1000  # microseconds


def _names(node: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": node, "args": {"name": f"h{node}"}}
    for name, track in TRACKS.items():
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": node,
            "tid": track,
            "args": {"name": name},
        }


def _slice(event: Event) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": str(event),
        "cat": event.event,
        "pid": event.node,
        "tid": TRACKS.get(event.event, TRACKS["other events"]),
        "ts": _at(event.t),
        "dur": 0,
        "args": event.facts,
    }


def _span(phase: str, event: Event) -> dict[str, Any]:
    return {
        "ph": phase,
        "name": f"held {event.name}",
        "cat": "hold",
        "id": f"h{event.node} {event.name}",
        "pid": event.node,
        "tid": TRACKS["deliver"],
        "ts": _at(event.t),
        "args": {"until": str(event)} if phase == "b" else {},
    }


def _count(event: Event, held: int) -> dict[str, Any]:
    return {
        "ph": "C",
        "name": "messages held",
        "pid": event.node,
        "ts": _at(event.t),
        "args": {"messages": held},
    }


def _arrow(phase: str, delivery: Event, end: Event) -> dict[str, Any]:
    """One end of the arrow that leads to a delivery."""
    return {
        "ph": phase,
        "name": str(delivery.name),
        "cat": "message",
        "id": f"{delivery.name} h{delivery.node}",
        "bp": "e",
        "pid": end.node,
        "tid": TRACKS[end.event],
        "ts": _at(end.t),
    }
