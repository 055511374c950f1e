"""How long one call of a protocol may take: one that does not end is ended, where it is stuck.

Where time passes, a timer looks twice a second whether the same call is still going on: ``time_limit``.
In a guest's virtual time, which stands still while anything computes, steps count: ``step_limit``.
A loop inside C code, such as ``sum(itertools.count())``, is out of reach of both.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar

from testbed.plugins.calls import calls

TICK_S = 0.5
COMPUTING_S = 3.0  # of processor time; a call usually takes less than a millisecond
TICKS = 40  # also of waiting; while the process is stopped, as by Ctrl-Z, there are none
STEPS = 20_000_000  # of the interpreter
P = ParamSpec("P")
R = TypeVar("R")
Line = tuple[FrameType, int]


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
    signal.signal(signal.SIGALRM, _Ticks())
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.settrace(traced)


class _Ticks:
    """The handler of the timer: it remembers the call that was going on at the last tick."""

    def __init__(self) -> None:
        self.call = 0
        self.ticks = 0
        self.began_s = 0.0

    def __call__(self, _: int, frame: FrameType | None) -> None:
        call = calls.current()
        if not call or call != self.call:
            self.call, self.ticks, self.began_s = call, 0, time.process_time()
            return
        self.ticks += 1
        if time.process_time() - self.began_s >= COMPUTING_S:
            _end(frame, f"{COMPUTING_S:g} s of processor time")
        if self.ticks >= TICKS:
            _end(frame, f"{TICK_S * TICKS:g} s")


def _end(frame: FrameType | None, after: str) -> NoReturn:
    """Raise an exception where a call is now, and again in the handler of a bare ``except``."""
    error = _stuck(after)
    at = []
    while frame is not None and not _is_caller(frame):
        at.append((frame, frame.f_lineno))
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
        frame.f_trace = again
    sys.settrace(again)
    raise error


def _is_caller(frame: FrameType) -> bool:
    """Whether this is the testbed, which called the protocol."""
    module = str(frame.f_globals.get("__name__"))
    return module.startswith("testbed.") and not module.startswith("testbed.protocols.")


@contextmanager
def step_limit(file: str) -> Iterator[None]:
    """End a limited call in this context once the code of a file has taken too many steps in it."""
    left, seen = STEPS, 0

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _stuck(f"{STEPS:,} steps of the interpreter")
        return step

    def call(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left, seen
        if (now := calls.current()) != seen:
            left, seen = STEPS, now
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes = True  # a loop in one line has no new lines
        return step

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)


def _stuck(after: str) -> StuckError:
    return StuckError(f"it does not come to an end, and was stopped after {after}")
