"""Daisies with one mistake each in how members agree on a view."""

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar

from typing_extensions import override

from ..base import Effects
from ..groups.agreed import Flushed, Install
from ..groups.flush import Flush
from ..groups.succession import Succession
from ..groups.view import Member
from ..groups.view_change import ViewChange
from .group_layer import OtherPart


class _Eager(ViewChange):
    @override
    def hear(self, number: int, now: int) -> Effects:
        yield from super().hear(number, max(now, self.behind_until))


class Eager(OtherPart):
    """Heeds those who wait for a greater view while it should enter a newer one.

    Broken rule: a coordinator that has missed a view gets that first. Else it proposes greater and
    greater ones, none of which can follow a view that it does not know.
    """

    name: ClassVar[str] = "broken-eager"
    part: ClassVar[str] = "change"
    other: ClassVar[type] = _Eager


class _Mistaking(Succession):
    @override
    def anybody_joins(self, target: Iterable[Member]) -> bool:
        return any(member.process not in self.view.processes for member in target)


class Mistaking(OtherPart):
    """Takes a member that was restarted for what it was before, and not for one that joins.

    Broken rule: it has lost what was kept for those who are away, and must be given that again. The
    others may crash, and it would be the last one that has it.
    """

    name: ClassVar[str] = "broken-mistaking"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Mistaking


class _Amnesiac(ViewChange):
    @override
    def may_enter(self, install: Install) -> bool:
        invited = self.group.me.process in install.invited
        return invited and self.answers.may_enter(install.view.id)


class Amnesiac(OtherPart):
    """Enters a view as the member that it was before it was restarted, which has answered for it.

    Broken rule: who was restarted has lost what it had, and joins the group first.
    """

    name: ClassVar[str] = "broken-amnesiac"
    part: ClassVar[str] = "change"
    other: ClassVar[type] = _Amnesiac


class _Recanting(ViewChange):
    @override
    def on_flush(self, flush: Flush, sender: int, now: int) -> Effects:
        yield from super().on_flush(flush, sender, now)
        self.answers.given &= {self.promised}


class Recanting(OtherPart):
    """Does not enter a view any more once it has answered another proposal.

    Broken rule: others may have entered that view, and this process is its first member. It proposes
    no other one before it is in it, and neither does anybody else.
    """

    name: ClassVar[str] = "broken-recanting"
    part: ClassVar[str] = "change"
    other: ClassVar[type] = _Recanting


class _Bequeathing(Succession):
    @override
    def may_hand_over(self, present: Collection[Member]) -> bool:
        return True


class Bequeathing(OtherPart):
    """Leaves its group to those who join, as the last member, as far as it knows.

    Broken rule: one that left before it may have done so, too, and have admitted others. Then the group
    goes on as two, and neither part has heard of the other.
    """

    name: ClassVar[str] = "broken-bequeathing"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Bequeathing


class _Heedless(Succession):
    @override
    def missing(self, states: Mapping[int, Flushed], now: int) -> set[int]:
        return set()


class Heedless(OtherPart):
    """Goes on without those who are missing, however many they are.

    Broken rule: where not all members get a message, those who have one may be cut off together. The
    others wait for them until they have been away for long.
    """

    name: ClassVar[str] = "broken-heedless"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Heedless


class _Overlooking(Succession):
    @override
    def missing(self, states: Mapping[int, Flushed], now: int) -> set[int]:
        return super().missing(states, now).intersection(self.view.processes)


class Overlooking(OtherPart):
    """Waits for members that are missing, but not if they are cut off one after the other.

    Broken rule: those who are absent already may have what they kept for others. If the rest of those
    who kept it are missing too, one that comes back does not get it.
    """

    name: ClassVar[str] = "broken-overlooking"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Overlooking
