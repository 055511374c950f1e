"""Does to an emulated run what its fault schedule says, when it is due."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from testbed.engines.mininet.hosts.conditions import Conditions
from testbed.engines.mininet.hosts.host import JOIN, LEAVE
from testbed.engines.mininet.kernel.timerfd import Alarm
from testbed.faults import Condition, FaultSchedule

if TYPE_CHECKING:
    from testbed.engines.mininet.hosts.supervisor import Hosts


class Harm:
    """The ``Engine`` of a fault schedule, and its clock: wait for ``files``, then ``advance``."""

    def __init__(self, faults: FaultSchedule, conditions: Conditions, hosts: Hosts) -> None:
        self.faults = faults
        self.conditions = conditions
        self.hosts = hosts
        self.board = hosts.board
        self.latest = 0  # when something was last done, by the monotonic clock
        self._start = 0
        self._alarm = Alarm()

    def __enter__(self) -> Harm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._alarm.close()

    def set_link(self, a: int, b: int, condition: Condition) -> None:
        """Changes of one instant are made together."""
        self.conditions.set(a, b, condition)

    def kill(self, node: int) -> None:
        """By the signal that nobody can hear."""
        self.hosts.kill(node)

    def start(self, node: int) -> None:
        """A new process in the old namespace."""
        self.hosts.restart(node)

    def pause(self, node: int) -> None:
        """Datagrams gather in its socket."""
        self.hosts.pause(node)

    def resume(self, node: int) -> None:
        """It reads them."""
        self.hosts.resume(node)

    def leave(self, node: int) -> None:
        """Its process is told."""
        self.hosts.ask(node, LEAVE)

    def join(self, node: int) -> None:
        """Its process is told."""
        self.hosts.ask(node, JOIN)

    def files(self) -> tuple[int, int]:
        """What becomes readable when there may be something to do."""
        return self._alarm.fileno(), self.board.bell

    def pending(self) -> bool:
        """Whether something is known to come."""
        return self.faults.next() is not None

    def begin(self, start: int) -> None:
        """What is so from the start is so before it; ``start`` is by the monotonic clock."""
        self._start = start
        self._do(0)

    def advance(self) -> None:
        """Do all that is due by now."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.board.bell)
        now = time.monotonic_ns() - self._start
        for node in self.faults.awaited():
            self.faults.delivered(node, self.board.delivered[node], now)
        self._do(now)

    def _do(self, now: int) -> None:
        self.faults.advance(now, self)
        self.conditions.apply(now)
        self.latest = self._start + now
        due = self.faults.next()
        self._alarm.set(0 if due is None else self._start + due)
