"""A call that does not end is ended where it is, also where no clock of the guest's own goes on."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testbed.host_clock import host_clock, set_host_clock
from testbed.plugins import limits
from testbed.plugins.blame import last_line, lines_of
from testbed.plugins.limits import StuckError, limited, step_limit
from testbed.plugins.source import SOURCE

__source__ = None  # so that this file counts as a protocol's
assert SOURCE in globals()


@limited
def swallow() -> None:
    while True:
        try:  # noqa: SIM105
            sum(range(99_999))  # HERE
        except:  # noqa: E722
            pass


@limited
def compute() -> None:
    while True:
        pass


def call_itself() -> Iterator[None]:
    yield from call_itself()  # THERE


def line_of(word: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if line.endswith(f"# {word}\n"))


@contextmanager
def a_host(every_s: float) -> Iterator[None]:
    """A process that sets this one's clock from outside: half a second goes by at each look."""
    me, pid = os.getpid(), os.fork()
    if not pid:
        for half_seconds in range(1, 1000):
            time.sleep(every_s)
            set_host_clock(me, half_seconds / 2)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_the_clock_of_the_host_ends_what_computes_in_c_and_swallows_everything() -> None:
    with a_host(0.02), step_limit(__file__), pytest.raises(StuckError, match="5 s of pro") as stuck:
        swallow()
    line = last_line(lines_of(stuck.value))
    assert line is not None
    assert line[1] == line_of("HERE")


def test_without_a_clock_steps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STEPS", 2000)
    for stuck in (compute, swallow):
        with step_limit(__file__), pytest.raises(StuckError, match="2,000 steps of the interp"):
            stuck()


def test_many_short_calls_are_not_taken_for_one_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "STEPS", 2000)
    short = limited(lambda: sum(n for n in range(100)))
    with a_host(0.02), step_limit(__file__):  # which is more than 5 s of its clock
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            assert short() == 4950


def test_a_call_that_has_only_begun_is_not_to_blame_for_a_recursion() -> None:
    with step_limit(__file__), pytest.raises(RecursionError) as error:
        next(call_itself())
    line = last_line(lines_of(error.value))
    assert line is not None
    assert line[1] == line_of("THERE")


def test_only_who_has_a_clock_is_told() -> None:
    set_host_clock(os.getpid(), 1.0)
    set_host_clock(1 << 30, 1.0)  # there is no such process
    with host_clock() as clock:
        assert clock[0] == 0
        set_host_clock(os.getpid(), 1.5)
        assert clock[0] == 1500
        with pytest.raises(OSError, match="something else in memory"), host_clock():
            pass
