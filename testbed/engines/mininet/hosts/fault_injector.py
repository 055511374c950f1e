"""Injects the faults of a schedule into an emulated run when they are due."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from testbed.engines.mininet.kernel.timerfd import TimerFd
from testbed.faults import FaultSchedule

if TYPE_CHECKING:
    from testbed.engines.mininet.hosts.supervisor import Supervisor


class FaultInjector(AbstractContextManager["FaultInjector"]):
    """Is the clock of a fault schedule: poll ``files``, then call ``advance``."""

    def __init__(self, faults: FaultSchedule, hosts: Supervisor) -> None:
        self.faults = faults
        self.hosts = hosts
        self.counters = hosts.counters
        self.latest = 0  # when something was last done, by the monotonic clock
        self._start = 0
        self._timer = TimerFd()

    def __exit__(self, *_: object) -> None:
        self._timer.close()

    def files(self) -> tuple[int, int]:
        """What becomes readable when there may be something to do."""
        return self._timer.fileno(), self.counters.wake

    def pending(self) -> bool:
        """Whether something is known to come."""
        return self.faults.next() is not None

    def begin(self, start: int) -> None:
        """What is so from the start is so before it; ``start`` is by the monotonic clock."""
        self._start = start
        self._do(0)

    def advance(self) -> None:
        """Do all that is due by now."""
        now = time.monotonic_ns() - self._start
        for node, event in self.counters.told():
            self.faults.happened(node, event, now)
        self._do(now)

    def _do(self, now: int) -> None:
        self.faults.advance(now, self.hosts)
        self.hosts.conditions.apply(now)
        self.latest = self._start + now
        due = self.faults.next()
        self._timer.set(0 if due is None else self._start + due)
