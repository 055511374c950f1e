"""The event log: what each node did, one JSON object a line, in that node's own order.

    {"t":0,"node":3,"event":"send","source":3,"seq":7,"to":null,"payload":100,
     "control":64}
    {"t":4,"node":4,"event":"hold","source":3,"seq":7,"for":[5,2]}
    {"t":9,"node":4,"event":"deliver","source":3,"seq":7}
    {"t":12,"node":4,"event":"crash"}
    {"t":20,"node":4,"event":"restart","incarnation":1}
    {"t":30,"node":4,"event":"leave"}
    {"t":40,"node":4,"event":"join"}
    {"t":50,"node":4,"event":"tickets","owns":2,"epoch":1,"until":250,"assigns":[1,0],"from":90}
    {"t":60,"node":4,"event":"stamp","source":4,"seq":8,"ticket":2,"epoch":1,"number":1}
    {"t":70,"node":4,"event":"tickets","owns":null}

``t`` is the run's clock in nanoseconds; (source, seq) is the message's name; ``to`` is the list of
destinations, or null for all processes, the sender included; ``payload`` and ``control`` are the bytes
of data and of control information in it; ``for`` names a message that must be delivered first, or is
null if that message is not known by name.
After ``crash`` a node does nothing until ``restart``; a restarted process has lost its state and
numbers its messages from ``Place.base`` on, so that no name is used twice. ``leave`` and ``join`` are
the application's requests; the protocol carries them out in its own time.
Where tickets are managed, a ``tickets`` line holds until the node's next one: which ticket the node
owns and until when (null: for good), and which others it may assign meanwhile, not before ``from``.
``stamp`` gives the ticket, epoch and number of the message that the node has just sent.
A file may hold the events of many nodes. Readers ignore keys and events that they do not know. The
oracle and the digest know what a node did from here alone, so the format is versioned with the run
directory.
"""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TextIO

from typing_extensions import override

from testbed.node.log import Log
from testbed.protocols import MessageId

LINES_PER_WRITE = 20_000


class EventLog(Log, AbstractContextManager["EventLog"]):
    """Writes the events of one node or many to one file, in batches of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._lines: list[str] = []

    def __exit__(self, *_: object) -> None:
        self.close()

    def flush(self) -> None:
        """Write the buffered lines; the file is opened only now, in the process that writes it."""
        if self._file is None:
            self._file = self._path.open("w", encoding="ascii")
        lines, self._lines = self._lines, []
        self._file.writelines(lines)
        self._file.flush()

    def close(self) -> None:
        """Write the rest. A log without events is an empty file, not a missing one."""
        try:
            self.flush()
        finally:
            if self._file is not None:
                self._file.close()

    @override
    def send(
        self,
        t: int,
        node: int,
        name: MessageId,
        to: frozenset[int] | None,
        payload: int,
        control: int = 0,
    ) -> None:
        to_json = "null" if to is None else "[" + ",".join(map(str, sorted(to))) + "]"
        self._add(
            f'{{"t":{t},"node":{node},"event":"send","source":{name.source},"seq":{name.seq},'
            f'"to":{to_json},"payload":{payload},"control":{control}}}\n'
        )

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        self._add(f'{{"t":{t},"node":{node},"event":"deliver","source":{source},"seq":{seq}}}\n')

    @override
    def hold(self, t: int, node: int, name: MessageId, waits_for: MessageId | None) -> None:
        for_json = "null" if waits_for is None else f"[{waits_for.source},{waits_for.seq}]"
        self._add(
            f'{{"t":{t},"node":{node},"event":"hold","source":{name.source},"seq":{name.seq},'
            f'"for":{for_json}}}\n'
        )

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        line = {"t": t, "node": node, "event": event, **facts}
        self._add(json.dumps(line, separators=(",", ":")) + "\n")

    def _add(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= LINES_PER_WRITE:
            self.flush()
