"""Daisies with one mistake each in the group layer, all of which were made once.

A mistake is made by one part of the layer, which takes the place of the right one. Some show only if
much meets, as those in ``daisy``.
"""

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from ..daisy import Daisy
from ..groups.agreed import Flushed
from ..groups.detector import Detector
from ..groups.group import Group
from ..groups.messages import Cast, Expelled, Report
from ..groups.reporting import Reporting
from ..groups.stability import Stability
from ..groups.succession import Succession
from ..groups.view import Member, View, ViewId
from ..wire import Message


class OtherPart(Daisy):
    """A daisy in whose groups one part is another."""

    part: ClassVar[str]
    other: ClassVar[type]

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        getattr(group, self.part).__class__ = self.other
        return group


class _Idle(Group):
    @property
    @override
    def open(self) -> bool:
        return not self.leaving and super().open


class Idle(Daisy):
    """Broadcasts nothing more in a local group that it wants to leave.

    Broken rule: until a server has left, it relays what comes from above.
    """

    name: ClassVar[str] = "broken-idle"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.__class__ = _Idle
        return group


class _Trusting(Detector):
    @override
    def _silent(self, member: Member, since: int, now: int) -> bool:
        return self.heard[member.process] > self.since and super()._silent(member, since, now)


class Trusting(OtherPart):
    """Suspects only those that it has heard in the view.

    Broken rule: who has said nothing at all for ``patience`` is suspected too.
    """

    name: ClassVar[str] = "broken-trusting"
    part: ClassVar[str] = "detector"
    other: ClassVar[type] = _Trusting


class _Reassured(Group):
    @override
    def is_outsiders(self, message: Message, sender: int) -> bool:
        return isinstance(message, Expelled)


class Reassured(Daisy):
    """Does not suspect a member that asks to be admitted.

    Broken rule: who asks is in the view no longer, and does not lead it. The member that would lead
    instead may have crashed, and nobody notices.
    """

    name: ClassVar[str] = "broken-reassured"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.__class__ = _Reassured
        return group


class _Discarding(Stability):
    @override
    def all(self) -> list[Cast]:
        return [*self.history.values()]


class Discarding(OtherPart):
    """Starts a group again without what it has kept for those who were away.

    Broken rule: they are below other groups then, and it may be the only one that can relay it there.
    """

    name: ClassVar[str] = "broken-discarding"
    part: ClassVar[str] = "kept"
    other: ClassVar[type] = _Discarding


class _Deaf(Reporting):
    @override
    def refuses(self, report: Report, sender: int) -> bool:
        return False


class Deaf(OtherPart):
    """Waits for a member to enter a view that it cannot accept.

    Broken rule: who has promised to accept only a greater view, while the coordinator stood still,
    must be asked for a greater one. Else both wait for ever, and so does who was split off.
    """

    name: ClassVar[str] = "broken-deaf"
    part: ClassVar[str] = "reporting"
    other: ClassVar[type] = _Deaf


class _Awaiting(Succession):
    @override
    def newest(self, states: Mapping[int, Flushed]) -> ViewId:
        return max(s.view for p, s in states.items() if p in self.group.detector.heard)


class Awaiting(OtherPart):
    """Waits for the view of one that has given it up.

    Broken rule: who was expelled and asks to be admitted does not hand on the view that it was in.
    """

    name: ClassVar[str] = "broken-awaiting"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Awaiting
