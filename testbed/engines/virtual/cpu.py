"""Chooses a CPU for a guest to stay on.

A user-mode kernel and the programs in it take turns at every system call, so only one of them runs
at a time. On one CPU that is a context switch; across two, each turn wakes the other CPU, which made a
guest three times slower when it was measured. A guest takes a CPU that no other guest has: it claims
one by binding an abstract socket named after the CPU, which the kernel releases when the process ends.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager


class Cpu:
    """A CPU for one guest alone, as long as there are enough."""

    def __init__(self) -> None:
        allowed = sorted(os.sched_getaffinity(0))
        self._claim = socket.socket(socket.AF_UNIX)
        for number in reversed(allowed):  # the first is where most interrupts go
            try:
                self._claim.bind(f"\0causal-testbed-cpu-{number}")
            except OSError:
                continue
            self.number = number
            return
        self.number = allowed[os.getpid() % len(allowed)]

    @contextmanager
    def inherited(self) -> Iterator[None]:
        """Keep the processes that are started meanwhile, and their children, on the CPU."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.number})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def close(self) -> None:
        """Release the CPU for another guest."""
        self._claim.close()
