"""Daisies with one mistake each in the group layer, all of which were made once.

A mistake is made by one part of the layer, which takes the place of the right one. Some show only if
much meets, as those in ``daisy``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from ..daisy import Daisy
from ..groups.admission import Admission
from ..groups.agreed import Flushed
from ..groups.detector import Detector
from ..groups.group import Group
from ..groups.messages import Cast, Expelled, Join, Leave, Report
from ..groups.reporting import Reporting
from ..groups.stability import Stability
from ..groups.succession import Joiner, Succession
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


class _Unforgiving(Succession):
    @override
    def is_recent(self, leave: Leave, view: View) -> bool:
        return True


class Unforgiving(OtherPart):
    """Lets a member go that once wanted to leave, and has come back since.

    Broken rule: a wish counts for the membership that it was said in. Somebody who stood still may
    pass it on much later, and what is sent then is not kept for the member.
    """

    name: ClassVar[str] = "broken-unforgiving"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Unforgiving


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


class _Dismissive(Succession):
    @override
    def admitted_elsewhere(self, states: Iterable[Flushed]) -> Iterator[Member]:
        return iter(())


class Dismissive(OtherPart):
    """Does not care who was admitted to a view that does not prevail.

    Broken rule: others who come from that view may answer what such a process has sent, and it is
    owed the answers, even if they are back before it.
    """

    name: ClassVar[str] = "broken-dismissive"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Dismissive


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


class _Generous(Group):
    @override
    def brings_somebody(self) -> bool:
        return self.seeking


class Generous(Daisy):
    """Gives those who come what was stable before, and is kept for others who are away.

    Broken rule: what was sent before a process was known in a group of servers is not for it, also if
    it has come to a member's group below and nobody joins the group of servers itself.
    """

    name: ClassVar[str] = "broken-generous"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.__class__ = _Generous
        return group


class _Presuming(Succession):
    @override
    def stayed(self, known: frozenset[int], view: View) -> frozenset[int]:
        return known


class Presuming(OtherPart):
    """Takes one that left and soon came back, to a view that does not prevail, for one that stayed.

    Broken rule: those who come from that view say whom the others may not know. It may be without who
    has left, to whom answers to its messages are then not sent.
    """

    name: ClassVar[str] = "broken-presuming"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Presuming


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


class _Estranged(Succession):
    @override
    def newcomers(self, target: Sequence[Member]) -> frozenset[int]:
        self.split_off = frozenset()
        return super().newcomers(target)


class Estranged(OtherPart):
    """Takes one for a newcomer that was split off while it was away.

    Broken rule: it comes back to the group that it knows, and is owed what that group still keeps. Who
    split it off may have crashed, and nobody else have it.
    """

    name: ClassVar[str] = "broken-estranged"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Estranged


class _Guessing(Succession):
    @override
    def can_tell(self, states: Iterable[Flushed]) -> bool:
        return True


class Guessing(OtherPart):
    """Takes those for newcomers who came to a part of the group from another group.

    Broken rule: whether somebody above answers for them is known only to a member there. A server that
    is not yet admitted there waits.
    """

    name: ClassVar[str] = "broken-guessing"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Guessing


class _Welcoming(Succession):
    @override
    def may_return(self, joiner: Joiner) -> bool:
        return True

    @override
    def can_tell(self, states: Iterable[Flushed]) -> bool:
        return not self.group.is_server or super().can_tell(states)


class Welcoming(OtherPart):
    """Admits those who return while it takes the server's place.

    Broken rule: they may bring others along, and only the server can tell whether these are new.
    """

    name: ClassVar[str] = "broken-welcoming"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Welcoming


class _Literal(Admission):
    @override
    def how_it_joins(self, join: Join) -> int:
        return join.how


class Literal(OtherPart):
    """Takes one for a newcomer that is inside another view of the group, and says so.

    Broken rule: it returns to this one, and is owed what somebody above keeps for it.
    """

    name: ClassVar[str] = "broken-literal"
    part: ClassVar[str] = "admission"
    other: ClassVar[type] = _Literal


class _NoNewcomers(Succession):
    @override
    def newcomers(self, target: Sequence[Member]) -> frozenset[int]:
        return frozenset()


class Hospitable(OtherPart):
    """Gives a newcomer all that its group keeps.

    Broken rule: what was cast before a process was known in a group is not for it. What the group
    above still keeps comes down later, in the wrong order.
    """

    name: ClassVar[str] = "broken-hospitable"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _NoNewcomers

    @override
    def known_above(self, level: int, cast: Cast) -> Cast:
        return cast
