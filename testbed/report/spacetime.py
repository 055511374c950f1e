"""The events of a run, packed for the page's space-time diagram."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.report.ways import PARTS, halves, links, violations, ways
from testbed.runs.results import Results

if TYPE_CHECKING:
    from pandas import DataFrame

EVENTS = 1_000_000  # the most events of a run that a page holds
KINDS = ("send", "hold", "deliver")
NONE = 0xFFFFFFFF  # in a column of messages: none

Column = NDArray[Any]


def busiest_stretch(events: DataFrame, most: int) -> tuple[int, int]:
    """The span with about this number of events that has the most holds, or else the beginning."""
    times = events["at"].to_numpy(np.int64)
    if not len(times):
        return 0, 0
    order = np.argsort(times, kind="stable")
    times = times[order]
    most = min(most, len(times))
    holds = np.concatenate([[0], np.cumsum(events["event"].to_numpy()[order] == "hold")])
    start = int(np.argmax(holds[most:] - holds[:-most]))
    return int(times[start]), int(times[start + most - 1])


def pack(run: Results, most: int = EVENTS) -> str:
    """What ``spacetime.js`` unpacks: base64 of gzip of a line of JSON and columns of numbers."""
    first, last = busiest_stretch(run.events, most)
    known = run.events[run.events["event"].isin(KINDS)]
    shown = known[known["at"].between(first, last)]
    names, numbers = _number(shown)
    columns = {
        "node": shown["node"].to_numpy(np.uint32),
        "kind": shown["event"].map(KINDS.index).to_numpy(np.uint8),
        **halves("at", shown["at"].to_numpy(np.int64)),
        "message": numbers["message"],
        "reason": numbers["reason"],
        **_messages(run, names),
        **_before(known[known["at"] < first]),
        **ways(run, shown, names),
    }
    about = {
        "parts": PARTS,
        "links": links(run),
        "violations": violations(run),
        "processes": run.network.processes,
        "events": len(known),
        "first": first,
        "last": last,
        "end": int(run.events["at"].max()) if len(run.events) else 0,
        "columns": [[name, column.dtype.name, len(column)] for name, column in columns.items()],
    }
    head = json.dumps(about, separators=(",", ":")).encode()
    # Columns begin at multiples of 4 bytes, as typed arrays must.
    parts = [_padded(head + b"\n", b" "), *(_padded(c.tobytes(), b"\0") for c in columns.values())]
    size = len(parts[0]).to_bytes(4, "little")
    return base64.b64encode(gzip.compress(size + b"".join(parts), 6, mtime=0)).decode()


def _number(shown: DataFrame) -> tuple[Column, dict[str, Column]]:
    """The names of all messages that events speak of, and each event's messages by number."""
    columns = {"message": ("source", "seq"), "reason": ("for_source", "for_seq")}
    pairs = [
        shown[list(pair)].astype("float64").fillna(-1).to_numpy(np.int64)
        for pair in columns.values()
    ]
    names, inverse = np.unique(np.concatenate(pairs), axis=0, return_inverse=True)
    real = names[:, 0] >= 0
    renumbered = np.where(real, np.cumsum(real) - 1, NONE).astype(np.uint32)
    halves = np.split(renumbered[inverse.ravel()], 2)
    return names[real], dict(zip(columns, halves, strict=True))


def _messages(run: Results, names: Column) -> dict[str, Column]:
    """Of each message its name and when it was sent, -1 if no log says so."""
    sent = run.messages.set_index(["source", "seq"])["sent_at"].to_dict()
    at = np.array([sent.get((int(s), int(q)), -1) for s, q in names], np.int64)
    return {
        "source": names[:, 0].astype(np.uint32),
        "seq": names[:, 1].astype(np.uint32),
        **halves("sent", at),
    }


def _before(past: DataFrame) -> dict[str, Column]:
    """How many messages of whom each process had delivered before the first event shown."""
    counts = past[past["event"] == "deliver"].groupby(["node", "source"]).size()
    return {
        "beforeNode": counts.index.get_level_values("node").to_numpy(np.uint32),
        "beforeSource": counts.index.get_level_values("source").to_numpy(np.uint32),
        "beforeCount": counts.to_numpy(np.uint32),
    }


def _padded(content: bytes, filler: bytes) -> bytes:
    return content + filler * (-len(content) % 4)
