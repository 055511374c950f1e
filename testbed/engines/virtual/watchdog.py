"""Decides when a guest is to be ended because nothing will come of it.

In virtual time a guest makes progress when it *waits*: time passes only while no program wants to
run. So there are two ways to hang, and both are watched for:

- It never waits. A program that spins on the clock keeps virtual time (nearly) still: each reading
  of the clock advances it by 1 ns and costs some 50 µs. In `stall_s` seconds of processor there was
  neither output, nor a new process, nor an idle moment. A program that computes for that long
  without a pause looks the same, and rightly so, as nothing tells it from one that never ends;
  who runs such a program raises the limit. On a busy machine a guest gets its seconds later; if
  it does not get them in ten times as long, it is ended all the same. A slow machine, such as an
  emulated one, shows in how long it took to boot, and gets as much more.
- It waits for ever. Nothing runs but timers, and virtual time races on: `quiet_s` virtual seconds
  went by without output or a change in the results directory.

In real time only a guest whose own clock stands still is taken for hung, for waiting is normal.
"""

from dataclasses import dataclass

from testbed.engines.virtual.probe import Reading

# What a reading of the clock costs in virtual time, by our patch
_CLOCK_READING_NS = 1
_BUSY = 10  # so many times as long may it take on a machine that does other things too
_BOOT_S = 0.5  # of processor, and more than most machines need; an emulated one took 2 to 4


@dataclass(frozen=True)
class Sign:
    """What is seen of a guest at one instant."""

    now_s: float
    """Real time."""
    used_s: float
    """Processor time that it has used."""
    reading: Reading | None
    """From inside; None if the host does not let us look."""
    output: int
    """Changes whenever the guest has written something."""


class Watchdog:
    """Watches one guest. `observe` returns the reason to end it, or None."""

    def __init__(self, *, virtual: bool, stall_s: float, quiet_s: float) -> None:
        self._virtual = virtual
        self._stall_s = stall_s
        self._quiet_s = quiet_s
        self._progress: Sign | None = None
        self._output: Sign | None = None

    def booted(self, used_s: float) -> None:
        """Booting has taken so much processor time."""
        self._stall_s *= max(1.0, used_s / _BOOT_S)

    def observe(self, sign: Sign) -> str | None:
        """Take in what is seen now."""
        if self._output is None or sign.output != self._output.output:
            self._output = sign
        if self._progress is None or self._moved(self._progress, sign):
            self._progress = sign
        used, passed = (sign.used_s - self._progress.used_s, sign.now_s - self._progress.now_s)
        if used >= self._stall_s or passed >= _BUSY * self._stall_s:
            return self._stands_still(self._progress, sign)
        if self._virtual and self._silence_s(sign) >= self._quiet_s:
            return (
                f"The guest waits for something that does not come: {self._quiet_s:g} s of its "
                "virtual time went by without any output or results (the limit is quiet_s)."
            )
        return None

    def _moved(self, before: Sign, after: Sign) -> bool:
        if before.output != after.output:
            return True
        if before.reading is None or after.reading is None:
            return before.reading is not after.reading
        if not self._virtual:
            return before.reading.accounted_ns != after.reading.accounted_ns
        counts = [(r.idle_ns, r.forks) for r in (before.reading, after.reading)]
        return counts[0] != counts[1]

    def _silence_s(self, sign: Sign) -> float:
        assert self._output is not None
        if sign.reading is None or self._output.reading is None:
            return 0.0
        return (sign.reading.virtual_ns - self._output.reading.virtual_ns) / 1e9

    def _stands_still(self, since: Sign, sign: Sign) -> str:
        used, passed = sign.used_s - since.used_s, sign.now_s - since.now_s
        sentence = f"The guest has stood still for {passed:.0f} s, {used:.0f} s of processor,"
        if since.reading is None or sign.reading is None or not self._virtual:
            return f"{sentence} and was ended (the limit is stall_s, {self._stall_s:g})."
        readings = (sign.reading.virtual_ns - since.reading.virtual_ns) // _CLOCK_READING_NS
        did = f"read the clock {readings:,} times" if readings > 1000 else "computed"
        return (
            f"{sentence} and was ended: its program {sign.reading.program or '?'!r} {did} without "
            "ever waiting, and virtual time passes only while all programs wait (a program that "
            f"has to compute for longer needs a higher stall_s than {self._stall_s:g})."
        )
