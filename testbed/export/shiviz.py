"""Event logs for ShiViz and TSViz, which draw space-time diagrams from vector clocks.

A file begins with the regular expression that reads it, then the one that separates executions,
which is empty here. Every event is two lines; its clock is a JSON object with an entry for the
process itself, which grows by one from event to event.
"""

import json
from collections.abc import Iterable, Iterator

from testbed.export.events import Event

SHIVIZ = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
TSVIZ = r"(?<timestamp>(\d*)) (?<event>.*)\n(?<host>\w*) (?<clock>.*)"
COMFORTABLE = 2_500  # events; both load the whole log into the page

Clocked = Iterable[tuple[Event, dict[str, int]]]


def shiviz(events: Clocked) -> Iterator[str]:
    """The lines of a log for ShiViz."""
    yield from (SHIVIZ, "")
    for event, clock in events:
        yield f"h{event.node} {json.dumps(clock)}"
        yield str(event)


def tsviz(events: Clocked) -> Iterator[str]:
    """The lines of a log for TSViz, with the run's clock in nanoseconds."""
    yield from (TSVIZ, "")
    for event, clock in events:
        yield f"{event.t} {event}"
        yield f"h{event.node} {json.dumps(clock)}"
