"""Injects the faults of a schedule into an emulated run when they are due."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from typing_extensions import override

from testbed.engines.mininet.hosts.conditions import Conditions
from testbed.engines.mininet.hosts.host import JOIN, LEAVE
from testbed.engines.mininet.kernel.timerfd import TimerFd
from testbed.faults import Actuator, Condition, FaultSchedule

if TYPE_CHECKING:
    from testbed.engines.mininet.hosts.supervisor import Supervisor


class FaultInjector(Actuator, AbstractContextManager["FaultInjector"]):
    """Carries out a fault schedule, and is its clock: poll ``files``, then call ``advance``."""

    def __init__(self, faults: FaultSchedule, conditions: Conditions, hosts: Supervisor) -> None:
        self.faults = faults
        self.conditions = conditions
        self.hosts = hosts
        self.counters = hosts.counters
        self.latest = 0  # when something was last done, by the monotonic clock
        self._start = 0
        self._timer = TimerFd()

    def __exit__(self, *_: object) -> None:
        self._timer.close()

    @override
    def set_link(self, a: int, b: int, condition: Condition) -> None:
        """Changes of one instant are applied together."""
        self.conditions.set(a, b, condition)

    @override
    def kill(self, node: int) -> None:
        """By SIGKILL."""
        self.hosts.kill(node)

    @override
    def start(self, node: int) -> None:
        """Start a new process in the old namespace."""
        self.hosts.restart(node)

    @override
    def pause(self, node: int) -> None:
        """By SIGSTOP; datagrams gather in its socket's buffer."""
        self.hosts.pause(node)

    @override
    def resume(self, node: int) -> None:
        """By SIGCONT."""
        self.hosts.resume(node)

    @override
    def leave(self, node: int) -> None:
        self.hosts.ask(node, LEAVE)

    @override
    def join(self, node: int) -> None:
        self.hosts.ask(node, JOIN)

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
        self.faults.advance(now, self)
        self.conditions.apply(now)
        self.latest = self._start + now
        due = self.faults.next()
        self._timer.set(0 if due is None else self._start + due)
