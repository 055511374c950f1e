"""Epochs: for which membership of a process a message is.

A process that leaves and comes back, or is restarted, is not owed what others sent before they knew of
that. Who knew it is told by numbers that only grow, as version vectors tell who knew of an update
(Parker et al. 1983): the *epoch* of a process is even while it is a member and odd after it has left.
It grows by one each time that the process leaves or comes back, and a restarted process begins with a
greater one. Only the process itself makes a new one.

A message carries the epochs that its sender knew, and who delivers it knows them from then on. So if a
message is of a process's present epoch, all that follow it are, too; and the process delivers just
these. Nobody else has to judge what is for it, whatever views there were.

All epochs are 0 at the beginning; only others are noted.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache

Pairs = tuple[tuple[int, int], ...]  # processes, in order, and their epochs

INCARNATION_BITS = 20  # for the times that a process leaves or comes back between two crashes


class Epochs:
    """The epochs of all processes, as far as one process knows."""

    def __init__(self, me: int, processes: int, incarnation: int = 0) -> None:
        self.me, self.processes = me, processes
        self.pairs: Pairs = ()
        if incarnation:
            self.pairs = ((me, incarnation << INCARNATION_BITS),)

    @property
    def members(self) -> frozenset[int]:
        """All processes that have not left, as far as this one knows."""
        return _members(self.processes, self.pairs)

    def of(self, process: int) -> int:
        """The epoch of a process."""
        return of(self.pairs, process) if self.pairs else 0

    def learn(self, pairs: Pairs) -> None:
        """Note the greater epochs, but for this process, which knows best."""
        if pairs and pairs != self.pairs:
            self.pairs = greatest(self.pairs, [pair for pair in pairs if pair[0] != self.me])

    def come_back(self) -> None:
        """Begin a new membership of this process."""
        self.pairs = greatest(self.pairs, [(self.me, left(self.of(self.me)) + 1)])

    def only(self, processes: Iterable[int]) -> Pairs:
        """The epochs of these."""
        here = set(processes)
        return tuple([pair for pair in self.pairs if pair[0] in here])


class Agreed:
    """The epochs that all members of a view know, with which others are told apart."""

    def __init__(self, pairs: Pairs = ()) -> None:
        self.pairs = pairs

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return dict(self.pairs)

    def without(self, pairs: Pairs) -> Pairs:
        """Those of these epochs that differ from what was agreed on."""
        if pairs == self.pairs:
            return ()
        numbers, agreed = dict(pairs), self._numbers
        differ = sorted(p for p in {*numbers, *agreed} if numbers.get(p, 0) != agreed.get(p, 0))
        return tuple([(p, numbers.get(p, 0)) for p in differ])

    def complete(self, differ: Pairs) -> Pairs:
        """All epochs, given those that differ from what was agreed on."""
        if not differ:
            return self.pairs
        numbers = {**self._numbers, **dict(differ)}
        return tuple(sorted((p, number) for p, number in numbers.items() if number))


@lru_cache
def _members(processes: int, pairs: Pairs) -> frozenset[int]:
    return frozenset(range(processes)).difference([p for p, e in pairs if not is_member(e)])


def of(pairs: Pairs, process: int) -> int:
    """The epoch of a process in a list."""
    for known, epoch in pairs:
        if known == process:
            return epoch
    return 0


def greatest(*several: Iterable[tuple[int, int]]) -> Pairs:
    """The greatest epoch of each process in these lists."""
    numbers: dict[int, int] = {}
    for pairs in several:
        for process, epoch in pairs:
            if epoch > numbers.get(process, 0):
                numbers[process] = epoch
    return tuple(sorted(numbers.items()))


def left(epoch: int) -> int:
    """The epoch of a process after it has left."""
    return epoch | 1


def is_member(epoch: int) -> bool:
    """Whether a process in this epoch has not left."""
    return not epoch % 2
