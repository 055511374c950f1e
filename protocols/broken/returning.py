"""Daisies that make a mistake when they leave, or come back."""

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from ..base import Effects
from ..daisy import Daisy
from ..groups.detector import Detector
from ..groups.group import Group
from ..groups.messages import Cast
from ..groups.succession import Succession
from ..groups.view import Member, View
from ..wire import MessageId
from .group_layer import OtherPart


class Homing(Daisy):
    """Comes back to the group in which it first was, although others wait for its messages elsewhere.

    Broken rule: those who were absent there may be the ones who admit it now.
    """

    name: ClassVar[str] = "broken-homing"

    @override
    def is_awaited(self) -> bool:
        return False


class ShortSighted(Daisy):
    """Comes back without what it had delivered and those who were absent then lack.

    Broken rule: who comes back may be admitted by just these, and what it sends next follows that.
    """

    name: ClassVar[str] = "broken-short-sighted"

    @override
    def recent(self, former: Group) -> dict[MessageId, Cast]:
        return former.kept.history


class Nostalgic(Daisy):
    """Looks for all groups among those of the beginning, also for one to which it comes back.

    Broken rule: that group may have been split off since.
    """

    name: ClassVar[str] = "broken-nostalgic"

    @override
    def _known_members(self, number: int) -> tuple[Member, ...]:
        return self._first_view(number).members


class Wavering(Daisy):
    """Stays after all, although it has said that it leaves, if it is sent to another group meanwhile.

    Broken rule: a member that has not heard of that takes it to have left, and tells all. Then nothing
    is for it any more.
    """

    name: ClassVar[str] = "broken-wavering"

    @override
    def join(self, now: int) -> Effects:
        self.local.admission.said_goodbye = self.me in self.local.succession.leavers
        yield from super().join(now)


class _Claiming(Detector):
    claimed: Mapping[int, int] = {}  # who is away by anybody's account, and since when

    @override
    def enter(self, view: View, now: int) -> None:
        super().enter(view, now)
        claims = frozenset().union(
            *(m.away for m in view.members), *(m.roster for m in view.absent)
        )
        self.claimed = {p: self.claimed.get(p, now) for p in claims}
        self.away_since = {p: self.claimed[p] for p in self.away_since}


class Claiming(OtherPart):
    """Takes a process to be away since one group has missed it, although it is in another one.

    Broken rule: two groups may count one process among theirs. When it is cut off from the one in which
    it is, it counts as away since the other has missed it, and nothing is kept for it after ``forget``.
    """

    name: ClassVar[str] = "broken-claiming"
    part: ClassVar[str] = "detector"
    other: ClassVar[type] = _Claiming


class _Abandoning(Succession):
    @override
    def come(self, now: int) -> frozenset[int]:
        return frozenset()


class Abandoning(OtherPart):
    """Leaves although some who lack its messages ask to be admitted.

    Broken rule: they were away for less than ``grace``, but those who were to admit them have crashed.
    """

    name: ClassVar[str] = "broken-abandoning"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Abandoning


class _Departing(Detector):
    @override
    def away_lately(self, now: int) -> frozenset[int]:
        return frozenset()


class Departing(OtherPart):
    """Leaves although some who are away, and may soon be back, lack its messages.

    Broken rule: those who have them may crash, or leave, too. The sender answers for its messages.
    """

    name: ClassVar[str] = "broken-departing"
    part: ClassVar[str] = "detector"
    other: ClassVar[type] = _Departing
