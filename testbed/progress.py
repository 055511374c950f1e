"""How long work tells of itself: stages of (stage, work done, work in all), or one stage's ticks.

What moves but is no work, such as a run's clock or the number of hops so far, is told in the same way,
with ``LEVEL`` in place of the work in all.
"""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
Tick = Callable[[int, int], None]

LEVEL = 0


def silent(stage: str, done: int, of: int) -> None:
    """Tell nobody."""
