"""Daisies that make a mistake about who answers for whom, and what follows from that."""

from typing import ClassVar

from typing_extensions import override

from ..daisy import Daisy


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
