"""What benchmarks share."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """The seconds that the work took, and its result."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result
