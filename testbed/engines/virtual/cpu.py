"""Chooses a CPU for a guest to stay on.

A user-mode kernel and the programs in it take turns at every system call, so only one of them runs
at a time. On one CPU that is a switch of context; across two, each turn wakes the other CPU, which
was seen to make a guest three times slower. A guest takes a CPU that no other guest has: whoever can
bind an abstract socket of the CPU's name has it, and loses it by ending, however that happens.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager


class Cpu:
    """A CPU of one's own, as long as there are enough."""

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
        """Processes that are started meanwhile, and theirs, stay on the CPU."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.number})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def close(self) -> None:
        """Let another guest have it."""
        self._claim.close()
