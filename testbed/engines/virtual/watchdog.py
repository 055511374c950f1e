"""Decides when a guest is hung and has to be ended.

In virtual time a guest makes progress when it *waits*: time passes only while no program wants to
run. So there are two ways to hang, and both are watched for:

- It never waits. A program that spins on the clock keeps virtual time (nearly) still: each reading
  of the clock advances it by 1 ns and costs some 50 µs. In ``stall_s`` seconds of CPU time there was
  neither output, nor a new process, nor an idle moment, nor more memory in use than ever before: one
  that sets up a large network needs ever more, one that spins does not. A program that computes for
  that long in the same memory cannot be distinguished from one that never ends. On a busy machine
  a guest gets its CPU time later; if it takes ten times as long, it is ended all the same. On a slow
  machine, such as an emulated one, booting takes longer, and the limit grows in proportion.
- It waits for ever. Only timers run, and virtual time races on: ``quiet_s`` virtual seconds passed
  without output or a change in the results directory.

In real time, where waiting is normal, only a guest whose own clock stands still counts as hung.
"""

import math
from dataclasses import dataclass

from testbed.engines.virtual.probe import Reading

_CLOCK_READING_NS = 1  # the virtual time that a reading of the clock takes, by kernel.patch
_BUSY = 10  # the factor by which other load on the machine may slow a guest down
_MORE_PAGES = 256  # 1 MiB, more than comes and goes by itself
_BOOT_S = 0.5  # CPU time, more than most machines need to boot; an emulated one took 2 to 4


@dataclass(frozen=True)
class Observation:
    """What can be observed of a guest at one instant."""

    now_s: float  # real time
    used_s: float  # CPU time that it has used
    reading: Reading | None  # the state inside; None if the host does not permit access to it
    output: int  # a number that changes whenever the guest has written something


class Watchdog:
    """Watches one guest by observations, one after another."""

    def __init__(self, *, virtual: bool, stall_s: float, quiet_s: float) -> None:
        self._virtual = virtual
        self._stall_s = stall_s
        self._quiet_s = quiet_s
        self._progress: Observation | None = None
        self._output: Observation | None = None
        self._fewest_free: float = math.inf

    def booted(self, used_s: float) -> None:
        """Adapt the limit to the CPU time that booting took."""
        self._stall_s *= max(1.0, used_s / _BOOT_S)

    def observe(self, seen: Observation) -> str | None:
        """Take in an observation; the reason to end the guest, or None."""
        if self._output is None or seen.output != self._output.output:
            self._output = seen
        if self._progress is None or self._moved(self._progress, seen):
            self._progress = seen
        used, passed = (seen.used_s - self._progress.used_s, seen.now_s - self._progress.now_s)
        if used >= self._stall_s or passed >= _BUSY * self._stall_s:
            return self._stands_still(self._progress, seen)
        if self._virtual and self._silence_s(seen) >= self._quiet_s:
            return (
                f"The guest waits for something that does not come: {self._quiet_s:g} s of its "
                "virtual time went by without any output or results (the limit is quiet_s)."
            )
        return None

    def _moved(self, before: Observation, after: Observation) -> bool:
        if before.output != after.output:
            return True
        if before.reading is None or after.reading is None:
            return before.reading is not after.reading
        if not self._virtual:
            return before.reading.accounted_ns != after.reading.accounted_ns
        self._fewest_free = min(self._fewest_free, before.reading.free_pages)
        if self._fewest_free - after.reading.free_pages >= _MORE_PAGES:
            return True
        counts = [(r.idle_ns, r.forks) for r in (before.reading, after.reading)]
        return counts[0] != counts[1]

    def _silence_s(self, seen: Observation) -> float:
        assert self._output is not None
        if seen.reading is None or self._output.reading is None:
            return 0.0
        return (seen.reading.virtual_ns - self._output.reading.virtual_ns) / 1e9

    def _stands_still(self, since: Observation, seen: Observation) -> str:
        used, passed = seen.used_s - since.used_s, seen.now_s - since.now_s
        sentence = f"The guest has stood still for {passed:.0f} s, {used:.0f} s of CPU time,"
        if since.reading is None or seen.reading is None or not self._virtual:
            return f"{sentence} and was ended (the limit is stall_s, {self._stall_s:g})."
        readings = (seen.reading.virtual_ns - since.reading.virtual_ns) // _CLOCK_READING_NS
        did = f"read the clock {readings:,} times" if readings > 1000 else "computed"
        return (
            f"{sentence} and was ended: its program {seen.reading.program or '?'!r} {did} without "
            "ever waiting, and virtual time passes only while all programs wait (a program that "
            f"has to compute for longer needs a higher stall_s than {self._stall_s:g})."
        )
