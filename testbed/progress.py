"""How long work tells of itself: stages of (stage, work done, work in all), or one stage's ticks."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
Tick = Callable[[int, int], None]


def silent(stage: str, done: int, of: int) -> None:
    """Tell nobody."""
