"""Daisies that make a mistake about who is to get what, after somebody was away or has come back."""

from typing import ClassVar

from typing_extensions import override

from ..daisy import Daisy
from ..groups.epochs import Agreed, Pairs
from ..groups.group import Group
from ..groups.messages import Cast
from ..groups.places import NOBODY, Places
from ..groups.view import Member, View
from .group_layer import OtherPart


class Hospitable(Daisy):
    """Delivers all that is addressed to it, whenever it was sent.

    Broken rule: what was sent to a process before it left, or crashed, is not for it when it is back.
    It may lack what that follows.
    """

    name: ClassVar[str] = "broken-hospitable"

    @override
    def is_due(self, cast: Cast) -> bool:
        return cast.is_for((self.me,))


class Homebound(Daisy):
    """Relays down to a group only what is for those below it.

    Broken rule: who is away may be found next by any group, which must have what was sent to it.
    """

    name: ClassVar[str] = "broken-homebound"

    @override
    def due(self, level: int) -> frozenset[int]:
        return self.roster(level)


class _NoPlaces(Places):
    @override
    def unknown(self) -> frozenset[int]:
        return NOBODY


class Dismissive(OtherPart):
    """Does not care about those who are known to be members, but not where.

    Broken rule: one may have been admitted to a view that does not prevail. Others may have heard of it
    and send it answers, which are kept for it.
    """

    name: ClassVar[str] = "broken-dismissive"
    part: ClassVar[str] = "places"
    other: ClassVar[type] = _NoPlaces


class _Timeless(Places):
    @override
    def unknown(self) -> frozenset[int]:
        view, epochs = self.group.view, self.group.epochs
        if view is None or not self.group.above.is_top():
            return super().unknown()
        return epochs.members - view.roster


class Timeless(OtherPart):
    """Takes a process to be below the group that answers for it, although that knew it before it left.

    Broken rule: a place counts for the epoch in which a process has it. It may be below another group
    since, and what is for it is not relayed there.
    """

    name: ClassVar[str] = "broken-timeless"
    part: ClassVar[str] = "places"
    other: ClassVar[type] = _Timeless


class Ageless(Daisy):
    """Does not say in which epoch it is when it asks to be admitted.

    Broken rule: the epoch tells what it is from what it was before it was restarted, when the numbers
    of its views were greater.
    """

    name: ClassVar[str] = "broken-ageless"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.me = group.me._replace(epochs=())
        return group


class _Mute(Agreed):
    @override
    def without(self, pairs: Pairs) -> Pairs:
        return ()


class Mute(OtherPart):
    """Says of epochs only what a view agrees on.

    Broken rule: messages and heartbeats tell the epochs that not all in the view know. What others send
    to one that is back is for what it was before.
    """

    name: ClassVar[str] = "broken-mute"
    part: ClassVar[str] = "agreed"
    other: ClassVar[type] = _Mute
