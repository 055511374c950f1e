"""Network namespaces without names: one lives as long as a process is in it or holds its descriptor.

So it needs no clean-up. When the last process of a run ends, however it ends, the kernel removes the
run's namespaces and with them every interface, address, route, queue and datapath in them.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def current() -> int:
    """A descriptor of the network namespace that this thread is in."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter(namespace: int) -> None:
    """Move this thread into a network namespace; what it starts from now on starts there."""
    _check(_libc.setns(namespace, _CLONE_NEWNET), "enter")


def enter_fresh() -> int:
    """Move this thread into a new, empty network namespace, and return its descriptor."""
    _check(_libc.unshare(_CLONE_NEWNET), "make")
    return current()


@contextmanager
def returning() -> Iterator[int]:
    """Come back, when this is over, to the namespace that this thread is in; yield it."""
    home = current()
    try:
        yield home
    finally:
        enter(home)
        os.close(home)


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot {what} a network namespace: {os.strerror(error)}")
