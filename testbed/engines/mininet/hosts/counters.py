"""What all processes of a run share, counters in memory and a pipe, and logs that several write to.

The supervisor reads the counters to see when a run is over. The pipe tells it of the events that may
trigger a fault, in the order in which they happened.
"""

import mmap
import os
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from testbed.faults import DELIVERY, Watch
from testbed.runs.events import EventLog

RECORD = struct.Struct("II")  # the node, and the number of the event's name
RECORDS_PER_READ = 1024


class SharedCounters:
    """A number of each kind for each host, and the pipe that tells of events awaited."""

    def __init__(self, hosts: int, awaited: Collection[Watch] = ()) -> None:
        numbers = memoryview(mmap.mmap(-1, 8 * (5 * hosts + 2))).cast("q")
        self.moved = numbers[:hosts]  # datagrams sent and received
        self.timers = numbers[hosts : 2 * hosts]  # that are set
        self.deliveries = numbers[2 * hosts : 3 * hosts]  # messages
        self.events = numbers[3 * hosts : 4 * hosts]  # of the protocol itself: see ``vain``
        self.busy = numbers[4 * hosts : 5 * hosts]  # whether it computes: 1, or 0 while it waits
        self.vain = numbers[-2:-1]  # one number: events in vain, once there are too many
        self.failed = numbers[-1:]  # one number: 1 as soon as a protocol has failed
        self._awaited = frozenset(awaited)
        self._names = sorted({watch.event for watch in awaited})
        self.wake, self.tell = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.wake, False)

    def has_happened(self, node: int, event: str) -> None:
        """Tell of an event, if a fault may wait for it."""
        if not self._awaited.isdisjoint((Watch(node, event), Watch(None, event))):
            os.write(self.tell, RECORD.pack(node, self._names.index(event)))

    def told(self) -> Iterator[tuple[int, str]]:
        """The events of which nobody has been told yet: which node, and what."""
        while True:
            try:
                records = os.read(self.wake, RECORDS_PER_READ * RECORD.size)
            except BlockingIOError:
                return
            for node, name in RECORD.iter_unpack(records):
                yield node, self._names[name]

    def close(self) -> None:
        """Close the pipe."""
        os.close(self.wake)
        os.close(self.tell)


class LiveLog(EventLog):
    """The log of a host that may crash: the supervisor and the host's next incarnation continue it.

    Lines are written one by one, so that what a fault waits for is in it when the fault strikes.
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
        self._counters.has_happened(node, DELIVERY)

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        super().note(t, node, event, facts)
        self._counters.has_happened(node, event)

    @override
    def _add(self, line: str) -> None:
        super()._add(line)
        self.flush()
