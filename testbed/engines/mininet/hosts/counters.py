"""Counters in memory that all processes of a run share, and logs that survive SIGKILL.

The supervisor reads the counters to see when a run is over, and which deliveries trigger a fault.
"""

import mmap
import os
from collections.abc import Collection
from pathlib import Path

from typing_extensions import override

from testbed.runs.events import EventLog


class SharedCounters:
    """A number of each kind for each host; the eventfd ``wake`` tells of a delivery awaited."""

    def __init__(self, hosts: int, awaited: Collection[int] = ()) -> None:
        numbers = memoryview(mmap.mmap(-1, 4 * 8 * hosts)).cast("q")
        self.moved = numbers[:hosts]  # datagrams sent and received
        self.timers = numbers[hosts : 2 * hosts]  # that are set
        self.delivered = numbers[2 * hosts : 3 * hosts]  # messages, if a delivery may be awaited
        self.deliveries = numbers[3 * hosts :]  # messages, in all
        self.awaited = awaited
        self.wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def close(self) -> None:
        """Close the eventfd."""
        os.close(self.wake)


class LiveLog(EventLog):
    """The log of one host that may be killed at any time: nothing that it did is missing in it.

    Lines are written one by one, to the end of a file that goes on when the host starts again.
    """

    def __init__(self, path: Path, counters: SharedCounters) -> None:
        super().__init__(path)
        self._counters = counters

    @override
    def flush(self) -> None:
        if self._file is None:
            self._file = self._path.open("a", encoding="ascii")
        super().flush()

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        super().deliver(t, node, source, seq)
        self._counters.delivered[node] += 1
        if node in self._counters.awaited:
            os.eventfd_write(self._counters.wake, 1)

    @override
    def _add(self, line: str) -> None:
        super()._add(line)
        self.flush()


def cut_half_line(path: Path) -> None:
    """Remove what a process that was killed has not written to its end."""
    if path.exists():
        with path.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


def events_since(path: Path, place: int) -> dict[str, int]:
    """How many messages were sent and delivered according to a log, from a place in it on."""
    lines = path.read_bytes()[place:] if path.exists() else b""
    return {
        "multicasts": lines.count(b'"event":"send"'),
        "deliveries": lines.count(b'"event":"deliver"'),
    }
