"""The randomness of explored processes: drawn from a seed, or every choice in turn."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)


class SeededChoices(random.Random):
    """The numbers of one seed, with a fast copy: ``deepcopy`` would walk through 625 integers."""

    def __deepcopy__(self, memo: object) -> SeededChoices:
        copied = SeededChoices(0)
        copied.setstate(self.getstate())
        return copied


class ScriptedChoices:
    """Choices that follow a script of indices, and record how many options each had."""

    def __init__(self) -> None:
        self.script: tuple[int, ...] = ()
        self.arity: list[int] = []

    def choice(self, options: Sequence[Any]) -> Any:
        """The option that the script names, or the first one after its end."""
        at = len(self.arity)
        self.arity.append(len(options))
        return options[self.script[at] if at < len(self.script) else 0]

    def __deepcopy__(self, memo: object) -> ScriptedChoices:
        return ScriptedChoices()

    def __getstate__(self) -> object:
        return None


def all_ways(play: Callable[[tuple[int, ...]], tuple[T, list[int]]]) -> tuple[T, ...]:
    """The outcomes of all scripts; ``play`` returns that of one, and the arity of its choices."""
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
