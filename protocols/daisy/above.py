"""What the groups of the daisy learn from those above them: who answers for whom, and what is due."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import override

from ..groups.above import Above
from ..groups.messages import Cast
from ..groups.succession import Joiner
from ..wire import MessageId

if TYPE_CHECKING:
    from .hierarchy import Hierarchy


class AboveServers(Above):
    """The groups of one process around its group at some level."""

    def __init__(self, daisy: Hierarchy, level: int) -> None:
        self.daisy, self.level = daisy, level

    @override
    def admits(self, joiner: Joiner) -> bool:
        levels = self.daisy.levels
        return levels is None or levels.belongs(self.level, joiner)

    @override
    def is_top(self) -> bool:
        return self.level + 1 == len(self.daisy.path)

    @override
    def gather(self, processes: frozenset[int], now: int) -> list[Cast] | None:
        daisy, level = self.daisy, self.level
        if not self._asks_above():
            return []
        if not daisy.groups[level].is_server or level + 1 == len(daisy.groups):
            return None
        above, roster = daisy.groups[level + 1], daisy.roster(level) | processes
        if above.seeking or above.casting is None or not above.may_relay(now):
            return None
        if not above.casting.complete():
            return None
        return [c for c in above.kept.all() if c.is_for(roster) and above.is_everywhere(c.id)]

    @override
    def awaited(self, processes: frozenset[int]) -> frozenset[MessageId]:
        daisy, level = self.daisy, self.level
        if not self._asks_above() or level + 1 >= len(daisy.groups):
            return frozenset()
        above, roster = daisy.groups[level + 1], daisy.roster(level) | processes
        due = (c.id for c in above.kept.all() if c.is_for(roster))
        return frozenset([name for name in due if not above.is_everywhere(name)])

    def _asks_above(self) -> bool:
        """Whether the group above can tell who is new; it may not where groups of servers split."""
        last = self.level + 1 == len(self.daisy.path)
        return not last and (self.level == 0 or self.daisy.levels is None)

    @override
    def relayers(self, cast: Cast) -> set[int]:
        daisy, level = self.daisy, self.level
        view = daisy.groups[level].view
        if view is None or not daisy.settings.safe:
            return set()
        up = {view.server} if daisy.relaying.leaves(level, cast) else set()
        down = {m.process for m in view.members if cast.is_for(m.roster)} if level else set()
        return (up | down) - {daisy.me}

    @override
    def find(self, name: MessageId) -> Cast | None:
        if self.daisy.settings.early:
            return None
        return next((cast for g in self.daisy.groups if (cast := g.kept.find(name))), None)

    @override
    def kept(self) -> Iterator[Cast]:
        """What a server brings along that returns to a group in which another has taken its place.

        It leaves the groups above, and may be the last one that has what was sent there meanwhile.
        """
        daisy, level = self.daisy, self.level
        known, last = daisy.groups[level].kept, 0 if daisy.settings.early else len(daisy.groups)
        for above in range(level + 1, last):
            yield from (c for c in daisy.groups[above].kept.all() if not known.find(c.id))


class AboveLocal(AboveServers):
    """The groups of one process above its local group."""

    @override
    def needs_this_process(self) -> bool:
        """Whether a group above would lose messages if this process left: nobody else is there."""
        for above in self.daisy.groups[1:]:
            if above.view is None or not (above.history or above.kept.archive):
                continue
            last = above.is_last(above.ticked_at) and bool(above.view.absent)
            if last or above.frozen or above.casting is None or not above.casting.complete():
                return True
        return False
