"""The times at which links and calls are due, the earliest first, and of equal ones the lowest number.

Plain integers, ``time << BITS | number``, compare several times faster than tuples.
"""

from heapq import heapify, heappop, heappush, heapreplace

BITS = 24
MASK = (1 << BITS) - 1


class Heap:
    """A heap of pairs of a time and a number."""

    def __init__(self) -> None:
        self._keys: list[int] = []

    def first(self) -> int:
        """The number that is due first; -1 if none is."""
        keys = self._keys
        return keys[0] & MASK if keys else -1

    def push(self, time: int, number: int) -> None:
        """Add a number."""
        heappush(self._keys, time << BITS | number)

    def replace(self, time: int, number: int) -> None:
        """Remove the first and add a number."""
        heapreplace(self._keys, time << BITS | number)

    def pop(self) -> None:
        """Remove the first."""
        heappop(self._keys)

    def remove(self, time: int, number: int) -> None:
        """Remove a number, wherever it is."""
        self._keys.remove(time << BITS | number)
        heapify(self._keys)
