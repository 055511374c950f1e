"""A process beside a run that ends whatever is left of it, even if the run is killed outright.

What belongs to a run is known by the network namespaces that it made: every process in one of them is
the run's, and no other process is. The guard waits for the word, or for the run's own process to be
gone (a pidfd tells), kills those that it finds there, and removes the run's directory. With the last
process go the namespaces, and with them everything in them.
"""

import os
import select
import shutil
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from testbed.engines.mininet.kernel.descriptors import close_all_but

_DONE = b"done\n"
_NOT_FOR_THE_GUARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Guard:
    """The guard of the process that makes it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._namespaces: set[int] = set()
        orders, self._orders = os.pipe()
        owner = os.pidfd_open(os.getpid())
        # An interrupt must not meet the guard before it has learnt to ignore it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_THE_GUARD)
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                _watch(directory, owner, os.getppid(), orders)
                status = 0
            finally:
                os._exit(status)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(owner)
        os.close(orders)

    def watch(self, namespaces: Iterable[int]) -> None:
        """Tell the guard of namespaces of the run, by their descriptors."""
        added = {os.fstat(namespace).st_ino for namespace in namespaces}
        self._namespaces |= added
        os.write(self._orders, b"".join(b"%d\n" % number for number in added))

    def clean_up(self) -> None:
        """Have the run cleaned up after; return when that is done."""
        with suppress(BrokenPipeError):
            os.write(self._orders, _DONE)
        os.close(self._orders)
        _, status = os.waitpid(self._pid, 0)
        if status:  # somebody killed the guard
            _end(self._namespaces, os.getpid(), self._directory)


def _watch(directory: Path, owner: int, owner_pid: int, orders: int) -> None:
    os.setsid()  # so that an interrupt that is meant for the run does not reach it at all
    for number in _NOT_FOR_THE_GUARD:
        signal.signal(number, signal.SIG_IGN)
    close_all_but(owner, orders, first=0)  # others may wait for the end of what the owner has open
    os.chdir("/")
    text = b""
    poll = select.poll()
    poll.register(owner, select.POLLIN)
    poll.register(orders, select.POLLIN)
    while not text.endswith(_DONE):
        ready = dict(poll.poll())
        if orders in ready and (more := os.read(orders, 65536)):
            text += more
        elif owner in ready:
            break
    _end({int(line) for line in text.split() if line.isdigit()}, owner_pid, directory)


def _end(namespaces: Collection[int], owner_pid: int, directory: Path) -> None:
    while members := _members(namespaces, owner_pid):
        _kill(members, namespaces)
        time.sleep(0.001)
    shutil.rmtree(directory, ignore_errors=True)


def _members(namespaces: Collection[int], owner_pid: int) -> list[int]:
    """The processes in these namespaces; the owner is none, for it comes and goes as it likes."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in (owner_pid, os.getpid()):
            with suppress(OSError):  # it has just ended, or has no namespace any more
                if os.stat(f"/proc/{entry}/ns/net").st_ino in namespaces:
                    found.append(int(entry))
    return found


def _kill(processes: Iterable[int], namespaces: Collection[int]) -> None:
    for pid in processes:
        with suppress(OSError):
            process = os.pidfd_open(pid)
            # Still the same one, now that the number cannot be given to another any more.
            if os.stat(f"/proc/{pid}/ns/net").st_ino in namespaces:
                signal.pidfd_send_signal(process, signal.SIGKILL)
            os.close(process)
