"""What the groups of the daisy learn from those above them: who answers for whom, and what is due."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import override

from ..groups.above import Above
from ..groups.messages import OUTSIDE, RETURNED, Cast
from ..groups.view import Member
from ..wire import MessageId

if TYPE_CHECKING:
    from ..groups.group import Group
    from .hierarchy import Hierarchy


class AboveServers(Above):
    """The groups of one process around its group at some level."""

    def __init__(self, daisy: Hierarchy, level: int) -> None:
        self.daisy, self.level = daisy, level

    @override
    def admits(self, joiner: Member, how: int) -> bool:
        levels = self.daisy.levels
        return levels is None or levels.belongs(self.level, joiner, how)

    @override
    def may_be_elsewhere(self) -> bool:
        s = self.daisy.settings
        return s.split_above is not None or bool(s.merge_below)

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
        unknown = roster - daisy.roster(level + 1) | daisy.parted(level)
        casts = (cast.without(unknown) for cast in above.kept.all())
        return [c for c in casts if c.is_for(roster) and above.is_everywhere(c.id)]

    @override
    def answers_for(self, process: int) -> bool:
        """By what this process says there now, not by what the view has of it."""
        above = self._next()
        if above is None or above.view is None:
            return False
        others = (m for m in above.view.members if m.process != self.daisy.me)
        return process in above.me.roster.union(*(m.roster for m in (*others, *above.view.absent)))

    @override
    def unheard_of(self) -> frozenset[int]:
        above = self._next()
        if above is None or above.view is None:
            return frozenset()
        return self.daisy.roster(self.level) - above.view.roster

    @override
    def may_be_known(self, how: int) -> bool:
        """Who takes a server's place, too, may answer for some who are known above only."""
        return how == RETURNED or (how == OUTSIDE and self.level > 0 and self._asks_above())

    @override
    def can_tell(self) -> bool:
        return not self._asks_above() or self.daisy.is_member(self.level + 1)

    @override
    def is_done(self, name: MessageId) -> bool:
        above = self._next()
        return above is not None and above.kept.is_done(name)

    def _asks_above(self) -> bool:
        """Whether the group above can tell who is new; it may not where groups of servers split."""
        last = self.level + 1 == len(self.daisy.path)
        return not last and (self.level == 0 or self.daisy.levels is None)

    def _next(self) -> Group | None:
        """The group above, if this process is in it and it can tell who is new."""
        groups = self.daisy.groups[self.level + 1 :]
        return groups[0] if groups and self._asks_above() else None

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
            new = daisy.roster(level) - daisy.roster(above)  # and not known there yet
            casts = (cast for cast in daisy.groups[above].kept.all() if not known.find(cast.id))
            yield from (cast.without(new) for cast in casts)


class AboveLocal(AboveServers):
    """The groups of one process above its local group."""

    @override
    def may_keep_for(self, process: int) -> bool:
        """By what the view has, also of this process: what is kept there is relayed by that."""
        return len(self.daisy.path) > 1 and (
            not self.daisy.is_member(1) or process in self.daisy.roster(1)
        )

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
