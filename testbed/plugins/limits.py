"""How long one call of a protocol may take: one that does not end is ended, where it is stuck.

Where time passes, a timer looks twice a second whether the same call is still going on: ``time_limit``.
In a guest's virtual time, which stands still while anything computes, no timer goes off: there steps of
the interpreter are counted, and at each of them the host's clock is looked at (``step_limit``).
A loop inside C code, such as ``sum(itertools.count())``, is out of reach of both.
"""

import ctypes
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar

from testbed.plugins.calls import calls

TICK_S = 0.5
COMPUTING_S = 3.0  # of processor time; a call usually takes less than a millisecond
TICKS = 40  # also of waiting; while the process is stopped, as by Ctrl-Z, there are none
STEPS = 20_000_000  # of the interpreter, where they are counted; usually some 2 s
STEPPING_S = 5.0  # of processor time there
P = ParamSpec("P")
R = TypeVar("R")
Line = tuple[FrameType, int]
Trace = Callable[[FrameType, str, Any], Any]
Handler = Callable[[int, FrameType | None], None]
# A trace function in C that only asks for the handler of SIGALRM. So what that raises is raised by the
# code that is traced; when a trace function itself raises something, Python gives up tracing.
_interrupt_at = ctypes.PYFUNCTYPE(None, ctypes.c_int, *[ctypes.py_object] * 3)
_interrupt = partial(_interrupt_at(("PyErr_SetInterruptEx", ctypes.pythonapi)), int(signal.SIGALRM))


class StuckError(BaseException):
    """A call of a protocol did not end; not for ``except Exception`` in the protocol to swallow."""

    at: Sequence[Line] = ()  # where it was then, the innermost last; empty if the traceback says it


def limited(function: Callable[P, R]) -> Callable[P, R]:
    """A function that calls a protocol, and must return in time."""

    @wraps(function)
    def counted(*args: P.args, **kwargs: P.kwargs) -> R:
        calls.begin()
        try:
            return function(*args, **kwargs)
        finally:
            calls.end()

    return counted


@contextmanager
def time_limit() -> Iterator[None]:
    """Watch all ``limited`` calls in this context, which may lie in another of its kind."""
    watched = signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    if watched or current_thread() is not main_thread():  # others cannot be interrupted
        yield
        return
    traced = sys.gettrace()
    signal.signal(signal.SIGALRM, _Ticks(time.process_time, COMPUTING_S))
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.settrace(traced)


class _Ticks:
    """The handler of the timer: it remembers the call that was going on at the last tick."""

    def __init__(self, clock: Callable[[], float], computing_s: float) -> None:
        self.clock = clock  # in seconds of processor time
        self.computing_s = computing_s
        self.line: Line | None = (
            None  # where the time went, if the signal is handled later than that
        )
        self.call = 0
        self.ticks = 0
        self.began_s = 0.0

    def __call__(self, _: int, frame: FrameType | None) -> None:
        call = calls.current()
        if not call or call != self.call:
            self.call, self.ticks, self.began_s = call, 0, self.clock()
            return
        self.ticks += 1
        if self.clock() - self.began_s >= self.computing_s:
            _end(frame, f"{self.computing_s:g} s of processor time", self.line)
        if self.ticks >= TICKS:
            _end(frame, f"{TICK_S * TICKS:g} s", self.line)


def _end(frame: FrameType | None, after: str, line: Line | None) -> NoReturn:
    """Raise an exception where a call is now, and again in the handler of a bare ``except``."""
    error = _stuck(after)
    at = []
    while frame is not None and not _is_caller(frame):
        at.append(line if line and line[0] is frame else (frame, frame.f_lineno))
        frame = frame.f_back
    error.at = at[::-1]
    inner = {frame for frame, _ in at}

    def again(frame: FrameType, event: str, _: Any) -> Any:
        if frame not in inner:
            return None
        if event in {"exception", "return"}:  # on its way out
            return again
        raise error

    for frame in inner:
        frame.f_trace, frame.f_trace_opcodes = again, False
    sys.settrace(again)
    raise error


def _is_caller(frame: FrameType) -> bool:
    """Whether this is the testbed, which called the protocol."""
    module = str(frame.f_globals.get("__name__"))
    return module.startswith("testbed.") and not module.startswith("testbed.protocols.")


@contextmanager
def step_limit(file: str) -> Iterator[None]:
    """End a limited call in this context once the code of a file has taken too long in it."""
    from testbed.host_clock import host_clock  # whose modules sealed processes are without

    with host_clock() as clock:
        trace, look = _stepping(file, clock)
        signal.signal(signal.SIGALRM, look)
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(None)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _stepping(file: str, clock: memoryview) -> tuple[Trace, Handler]:
    """Trace the code of a file, and have it handle SIGALRM when there is something to look at."""
    call, left, looked = 0, STEPS, clock[0]  # of which call; steps; at what the clock showed
    ticks = _Ticks(lambda: clock[0] / 1000, STEPPING_S)

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0 and clock[0] == looked:
            return step
        ticks.line = frame, frame.f_lineno
        return _interrupt

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal call, left
        if (now := calls.current()) != call:
            call, left = now, STEPS
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes = True  # a loop in one line has no new lines
        return step

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal looked
        if frame is None or frame.f_globals is globals():
            return  # a trace function was interrupted, which will ask again
        if frame.f_trace is _interrupt:
            frame.f_trace = step
        if left < 0 and calls.current() == call:
            _end(frame, f"{STEPS:,} steps of the interpreter", ticks.line)
        if clock[0] != looked:
            looked = clock[0]
            ticks(number, frame)

    return trace, look


def _stuck(after: str) -> StuckError:
    return StuckError(f"it does not come to an end, and was stopped after {after}")
