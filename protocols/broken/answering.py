"""Daisies that make a mistake about who answers for whom, and what follows from that."""

from collections.abc import Iterator
from typing import ClassVar

from typing_extensions import override

from ..daisy import Daisy
from ..daisy.above import AboveLocal, AboveServers
from ..groups.group import Group
from ..groups.messages import Cast
from ..groups.view import Member


class Relying(Daisy):
    """Answers no longer for processes that it has split off if another does who has split them off.

    Broken rule: a process that was split off, and whose new server is not above yet, is answered for by
    those who were its servers before. Each of two relies on the other, and nobody answers for it.
    """

    name: ClassVar[str] = "broken-relying"

    @override
    def _served(self, member: Member, group: Group) -> frozenset[int]:
        return member.roster


class Resigning(Daisy):
    """Stops answering for processes that it has split off before it can say so in the group above.

    Broken rule: their new server may be gone by then. The group above takes them for answered for, and
    forgets what they are owed when it hears that they are not.
    """

    name: ClassVar[str] = "broken-resigning"

    @override
    def _answers_for(self, level: int, now: int, settled: bool) -> frozenset[int]:
        return super()._answers_for(level, now, settled=True)


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


class _Lenient(AboveServers):
    @override
    def may_be_elsewhere(self) -> bool:
        return True


class Lenient(Daisy):
    """Takes nobody for a newcomer that is away below a server, even if groups never change.

    Broken rule: a process that left may have been admitted to a view that does not prevail, and be
    known only by those who come from there. What was sent before is not for it.
    """

    name: ClassVar[str] = "broken-lenient"
    above_servers: ClassVar[type[AboveServers]] = _Lenient


class _Undiscerning(AboveLocal):
    @override
    def kept(self) -> Iterator[Cast]:
        known = self.daisy.groups[self.level].kept
        for above in self.daisy.groups[self.level + 1 :]:
            yield from (cast for cast in above.kept.all() if known.find(cast.id) is None)


class Undiscerning(Daisy):
    """Brings along what it has from above also for those who had just come to its group.

    Broken rule: what was sent before they were known above is not for them. Only who was in that group
    knows that they were not yet.
    """

    name: ClassVar[str] = "broken-undiscerning"
    above_local: ClassVar[type[AboveLocal]] = _Undiscerning


class _Indifferent(AboveLocal):
    @override
    def unheard_of(self) -> frozenset[int]:
        return frozenset()


class Indifferent(Daisy):
    """Takes what others bring along from above for all in its group.

    Broken rule: it is not for those of whom the group above has not heard yet.
    """

    name: ClassVar[str] = "broken-indifferent"
    above_local: ClassVar[type[AboveLocal]] = _Indifferent
