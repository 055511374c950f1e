"""A timerfd: a timer exact to the nanosecond that can be polled together with a socket.

The time-outs of select() and poll() are rounded, and the kernel may be late by a thousandth of them.
"""

import ctypes
import os

_CLOCK_MONOTONIC = 1
_NONBLOCK = os.O_NONBLOCK
_TFD_TIMER_ABSTIME = 1
_NS_PER_S = 1_000_000_000
_libc = ctypes.CDLL(None, use_errno=True)


class _Specification(ctypes.Structure):
    """struct itimerspec: an interval, here none, and the time of the first expiry."""

    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "at_s", "at_ns")]


class TimerFd:
    """A timer whose descriptor is readable from the time on to which it was set last."""

    def __init__(self) -> None:
        self._file = _libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "cannot make a timer")
        self._set_to = 0

    def fileno(self) -> int:
        """For select() and poll()."""
        return int(self._file)

    def set(self, at_ns: int) -> None:
        """Expire at that time of the monotonic clock; 0 disarms the timer."""
        if at_ns != self._set_to:
            specification = _Specification(0, 0, at_ns // _NS_PER_S, at_ns % _NS_PER_S)
            time = ctypes.byref(specification)
            if _libc.timerfd_settime(self._file, _TFD_TIMER_ABSTIME, time, None) != 0:
                raise OSError(ctypes.get_errno(), "cannot set a timer")
            self._set_to = at_ns

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._file)
