"""What benchmarks share."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def timed(
    work: Callable[[], Result], clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Result]:
    """The seconds that the work took by a clock, and its result."""
    begun = clock()
    result = work()
    return clock() - begun, result
