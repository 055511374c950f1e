"""Daisies that make a mistake about who answers for whom, and what follows from that."""

from typing import ClassVar

from typing_extensions import override

from ..daisy import Daisy
from ..daisy.above import AboveLocal
from ..wire import MessageId


class _Impetuous(AboveLocal):
    @override
    def awaited(self, processes: frozenset[int]) -> frozenset[MessageId]:
        return frozenset()


class Impetuous(Daisy):
    """Admits those who come from another group although something is on its way that they may know of.

    Broken rule: a message is not relayed down before all servers have it. Others may know that sooner,
    and their groups have delivered it.
    """

    name: ClassVar[str] = "broken-impetuous"
    above_local: ClassVar[type[AboveLocal]] = _Impetuous


class Confusing(Daisy):
    """Takes all processes that it has split off for members of the group that it has split off last.

    Broken rule: one that comes back and has not heard of the split is sent to its own group. Another
    one would send it back, until nobody answers for it any more.
    """

    name: ClassVar[str] = "broken-confusing"

    @override
    def _answers_for(self, level: int, now: int, settled: bool) -> frozenset[int]:
        given = self.groups[level].given
        last = max(given.values(), key=lambda g: g.at, default=None)
        if last is not None:
            given.update(dict.fromkeys(given, last))
        return super()._answers_for(level, now, settled)
