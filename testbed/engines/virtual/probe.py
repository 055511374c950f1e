"""Observes a running guest from outside, without any effect on it but on programs that ask for it.

CPU time does not show whether a guest makes progress: a program that spins on the clock uses as much
as one that works. Nor can a process inside the guest report it: it would wake the guest, cost virtual
time at each clock reading, and shift packets. But the kernel is an ordinary process of this user,
linked at a fixed address, so its variables can be read from /proc/<pid>/mem at the addresses that nm
printed when it was built. That costs the guest nothing and changes nothing in it. What a program cannot
know in virtual time, how long it has been computing, is written into its memory: see ``host_clock``.
"""

import os
import struct
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from testbed.engines.virtual.kernel import Kernel
from testbed.host_clock import set_host_clock

_MODE = "using_seccomp"  # an int
_USED = (
    *("time_travel_time", "kernel_cpustat", "total_forks", "cpu_tasks", "init_task"),
    "vm_zone_stat",  # enum zone_stat_item in include/linux/mmzone.h: first the free pages
)
# enum cpu_usage_stat in include/linux/kernel_stat.h: user, nice, system, softirq, irq, idle, …
_CPU_STATISTICS = 7
_IDLE = 5
# The name of the idle task, which is a variable; it shows at which offset a task has its name.
_IDLE_TASK_NAME = b"swapper"
_NAME_SIZE = 16
_TASK_SIZE = 16384
_TOLD_EVERY_S = 0.5


@dataclass(frozen=True)
class Reading:
    """The state of a guest at one instant."""

    virtual_ns: int  # guest time since boot; 0 in a guest that runs in real time
    idle_ns: int  # time in which no program was runnable; does not grow while one spins
    # All time that the guest's scheduler has accounted for; grows while the kernel lives.
    accounted_ns: int
    forks: int  # how many processes have been started since boot
    program: str  # the program that runs on the guest's CPU
    free_pages: int  # of the guest's memory


class Probe:
    """Reads the clock and the scheduler's counts of the guest whose kernel is process ``pid``."""

    def __init__(self, pid: int, kernel: Kernel) -> None:
        self._pid = pid
        self._path = f"/proc/{pid}/mem"
        self._address = _addresses(kernel.symbols)
        self._times = self._address["kernel_cpustat"] + kernel.release.statistics_at
        self._name_offset: int | None = None
        self._used_s: dict[int, float] = {}  # CPU time of each process, by its number
        self._told_s = 0.0
        self._busiest = 0  # the process that has used most since it was last looked at

    def read(self) -> Reading | None:
        """The present state, or None if the guest has ended or not started yet."""
        try:
            # Opened each time: opened before exec, it would show the memory before exec.
            with open(self._path, "rb", buffering=0) as memory:
                return self._reading(memory)
        except OSError:
            return None

    def mode(self) -> str | None:
        """How the kernel catches its programs' system calls; None if the guest has ended."""
        if not (address := self._address.get(_MODE)):  # an older one, which has no choice
            return "ptrace"
        try:
            with open(self._path, "rb", buffering=0) as memory:
                return "seccomp" if os.pread(memory.fileno(), 4, address) != bytes(4) else "ptrace"
        except OSError:
            return None

    def used_s(self) -> float:
        """CPU time of the kernel and of the guest's programs, which are its children."""
        try:
            children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        except OSError:
            children = []
        before, self._used_s = self._used_s, {int(pid): _used_s(int(pid)) for pid in children}
        grown = {pid: used - before.get(pid, 0.0) for pid, used in self._used_s.items()}
        self._busiest = max(grown, key=grown.__getitem__, default=0)
        return _used_s(self._pid) + sum(self._used_s.values())

    def tell(self, used_s: float) -> None:
        """Tell the program that computes, if it wants to know, how much CPU time has been used."""
        if used_s >= self._told_s + _TOLD_EVERY_S:
            self._told_s = used_s
            set_host_clock(self._busiest, used_s)

    def _reading(self, memory: FileIO) -> Reading:
        times = _numbers(memory, self._times, _CPU_STATISTICS)
        return Reading(
            virtual_ns=_numbers(memory, self._address["time_travel_time"])[0],
            idle_ns=times[_IDLE],
            accounted_ns=sum(times),
            forks=_numbers(memory, self._address["total_forks"])[0],
            program=self._program(memory),
            free_pages=_numbers(memory, self._address["vm_zone_stat"])[0],
        )

    def _program(self, memory: FileIO) -> str:
        if self._name_offset is None:
            idle_task = os.pread(memory.fileno(), _TASK_SIZE, self._address["init_task"])
            if (offset := idle_task.find(_IDLE_TASK_NAME)) < 0:
                return ""
            self._name_offset = offset
        if not (task := _numbers(memory, self._address["cpu_tasks"])[0]):
            return ""
        name = os.pread(memory.fileno(), _NAME_SIZE, task + self._name_offset)
        return name.split(b"\0")[0].decode("utf-8", "replace")


def _numbers(memory: FileIO, address: int, count: int = 1) -> tuple[int, ...]:
    raw = os.pread(memory.fileno(), 8 * count, address)
    if len(raw) < 8 * count:
        raise OSError("the guest's memory is gone")
    return struct.unpack(f"<{count}Q", raw)


def _addresses(symbols: Path) -> dict[str, int]:
    lines = (line.split() for line in symbols.read_text().splitlines())
    found = {words[-1]: int(words[0], 16) for words in lines if words[-1] in (*_USED, _MODE)}
    if missing := set(_USED) - found.keys():
        raise LookupError(f"{symbols} does not name {', '.join(sorted(missing))}")
    return found


def _used_s(pid: int) -> float:
    """CPU time of a process and its children that have ended; 0 if it has ended itself."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
