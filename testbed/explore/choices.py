"""Random choices that a search makes in every way: a source of choices that follows a script."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)


class Script:
    """A source of choices that follows a script, and notes how many choices there were."""

    def __init__(self) -> None:
        self.script: tuple[int, ...] = ()
        self.arity: list[int] = []

    def choice(self, options: Sequence[Any]) -> Any:
        """The option that the script names, else the first."""
        at = len(self.arity)
        self.arity.append(len(options))
        return options[self.script[at] if at < len(self.script) else 0]

    def __deepcopy__(self, memo: object) -> Script:
        return Script()

    def __getstate__(self) -> object:
        return None


def all_ways(play: Callable[[tuple[int, ...]], tuple[T, list[int]]]) -> tuple[T, ...]:
    """What comes of following each script; one also tells how many choices there were."""
    found: dict[T, None] = {}
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        script = scripts.pop()
        outcome, arity = play(script)
        found[outcome] = None
        for at in range(len(script), len(arity)):
            rest = (0,) * (at - len(script))
            scripts += [(*script, *rest, option) for option in range(1, arity[at])]
    return tuple(found)
