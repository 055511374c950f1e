"""Any state as a hashable value, and as a number: states with equal values behave the same.

If in doubt, two states are distinguished, which costs time but misses nothing: the order of a
dictionary's keys counts, because a protocol may iterate over them in that order.
"""

import pickle
import random
from collections import deque
from collections.abc import Hashable
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
_PLAIN = (int, str, bytes, type(None))


def freeze(value: Any, above: tuple[int, ...] = ()) -> Hashable:
    """A hashable value that stands for a value; ``above`` are the ids of the values around it."""
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if kind in (bool, float):
        return kind.__name__, value
    if id(value) in above:
        return "above", above.index(id(value))
    above = (*above, id(value))
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        items = tuple((freeze(k, above), freeze(v, above)) for k, v in value.items())
        return kind.__qualname__, items
    if isinstance(value, list | tuple | deque):
        return kind.__qualname__, tuple(freeze(item, above) for item in value)
    if isinstance(value, set | frozenset):
        return kind.__qualname__, frozenset(freeze(item, above) for item in value)
    if isinstance(value, random.Random):
        return "random", sha256(pickle.dumps(value.getstate())).digest()
    if callable(value):
        return value  # type: ignore[no-any-return]
    return kind, freeze(value.__getstate__(), above)


class Numbered(list[T]):
    """Values in the order in which they were first met; the number of one is its index."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: T, key: Hashable) -> int:
        """The number of a value, the next one if no value with that key was met before."""
        number = self._numbers.setdefault(key, len(self))
        if number == len(self):
            self.append(value)
        return number
