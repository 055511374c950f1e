"""Gives every port of a switch one CPU that receives its packets, so that links keep their order.

A packet that leaves a veth interface is put into the list of received packets of the CPU that sends
it, and a queue sends from whichever CPU it is served by. With several CPUs two packets of one link
wait in two lists, and the second may be seen first, at the link's end or, what no capture shows, on
the way from the last switch into its host. The kernel can be told which CPU receives for an interface
(receive packet steering, Documentation/networking/scaling.rst): then there is one list, and that CPU
also takes the packet on to the next queue or host.

It is told through sysfs, which shows the interfaces of the namespace in which it was mounted. Here it
is mounted where nobody sees it, and is gone when its descriptor is closed.
"""

import ctypes
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same on every architecture
_CLOEXEC, _CMD_CREATE = 1, 6
_libc = ctypes.CDLL(None, use_errno=True)
_log = logging.getLogger(__name__)


def assign(interfaces: Iterable[str]) -> None:
    """Share the CPUs that this process may use out among interfaces of the present namespace."""
    cpus = sorted(os.sched_getaffinity(0))
    if os.cpu_count() == 1:
        return
    try:
        with _sysfs() as root:
            for interface, cpu in zip(interfaces, cycle(cpus), strict=False):
                _write(root, f"class/net/{interface}/queues/rx-0/rps_cpus", mask(cpu))
    except OSError as error:
        _log.warning(
            "packets may overtake each other on this machine with several CPUs, since it cannot be "
            "said which of them receives (%s): `taskset -c 0` makes that unlikely",
            error.strerror,
        )


def mask(cpu: int) -> str:
    """One CPU, as the kernel writes sets of them: 32 bits at a time, the highest first."""
    return ",".join([f"{1 << cpu % 32:x}", *["00000000"] * (cpu // 32)])


@contextmanager
def _sysfs() -> Iterator[int]:
    """A descriptor of sysfs as it is in the namespace that this thread is in."""
    context = _call(_FSOPEN, b"sysfs", _CLOEXEC)
    try:
        _call(_FSCONFIG, context, _CMD_CREATE, None, None, 0)
        root = _call(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    try:
        yield root
    finally:
        os.close(root)


def _write(root: int, path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=root)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _call(number: int, *arguments: bytes | int | None) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
