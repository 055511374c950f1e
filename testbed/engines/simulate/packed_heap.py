"""The same as ``heap``, compiled: two arrays of machine integers instead of a list of objects."""

from librt.vecs import append, vec
from mypy_extensions import i64


class Heap:
    """A heap of pairs of a time and a number."""

    def __init__(self) -> None:
        self._times = vec[i64]()
        self._numbers = vec[i64]()
        self._size: i64 = 0

    def first(self) -> i64:
        """The number that is due first; -1 if none is."""
        return self._numbers[0] if self._size else -1

    def push(self, time: i64, number: i64) -> None:
        """Add a number."""
        if self._size == len(self._times):
            self._times = append(self._times, time)
            self._numbers = append(self._numbers, number)
        self._size += 1
        self._rise(self._size - 1, time, number)

    def replace(self, time: i64, number: i64) -> None:
        """Remove the first and add a number."""
        self._sink(0, time, number)

    def pop(self) -> None:
        """Remove the first."""
        self._remove_at(0)

    def remove(self, time: i64, number: i64) -> None:
        """Remove a number, wherever it is."""
        times, numbers = self._times, self._numbers
        at: i64 = 0
        while at < self._size:
            if times[at] == time and numbers[at] == number:
                self._remove_at(at)
                return
            at += 1
        raise ValueError(f"{number} is not due at {time}")

    def _remove_at(self, at: i64) -> None:
        self._size -= 1
        last = self._size
        if at < last:
            self._sink(at, self._times[last], self._numbers[last])

    def _sink(self, at: i64, time: i64, number: i64) -> None:
        """Put a pair where a place is free: move that down as far as it goes, then let the pair rise.

        The next packet of a link arrives later than what is on most others, so it rises little.
        """
        times, numbers, size = self._times, self._numbers, self._size
        child: i64 = 2 * at + 1
        while child < size:
            other = child + 1
            if other < size and (
                times[other] < times[child]
                or (times[other] == times[child] and numbers[other] < numbers[child])
            ):
                child = other
            times[at] = times[child]
            numbers[at] = numbers[child]
            at = child
            child = 2 * at + 1
        self._rise(at, time, number)

    def _rise(self, at: i64, time: i64, number: i64) -> None:
        """Put a pair at a place or above it."""
        times, numbers = self._times, self._numbers
        while at > 0:
            parent = (at - 1) >> 1
            if times[parent] < time or (times[parent] == time and numbers[parent] <= number):
                break
            times[at] = times[parent]
            numbers[at] = numbers[parent]
            at = parent
        times[at] = time
        numbers[at] = number
