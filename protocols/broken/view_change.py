"""Daisies with one mistake each in how members agree on a view."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from typing_extensions import override

from ..base import Effects
from ..groups.agreed import Flushed, Proposal
from ..groups.flush import Flush
from ..groups.messages import Cast
from ..groups.succession import Succession
from ..groups.view import Member, View
from ..groups.view_change import ViewChange
from .group_layer import OtherPart


class _Forsaking(ViewChange):
    @override
    def _due(self, proposal: Proposal, now: int) -> list[Cast] | None:
        states = {process: s._replace(absent=()) for process, s in proposal.states.items()}
        return super()._due(replace(proposal, states=states), now)


class Forsaking(OtherPart):
    """Merges groups without what is on its way to those who are absent.

    Broken rule: who comes from another group brings along those who were absent there. What is only
    for them has been sent in the group above, and to nobody of the group that they now belong to.
    """

    name: ClassVar[str] = "broken-forsaking"
    part: ClassVar[str] = "change"
    other: ClassVar[type] = _Forsaking


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


class _Abdicating(ViewChange):
    @override
    def reset(self) -> None:
        super().reset()
        self.fetching.forget()


class Abdicating(OtherPart):
    """Forgets what it has fetched for a view that it has agreed on and is not in itself.

    Broken rule: the others fetch from it what they lack, and nobody else may have all of that.
    """

    name: ClassVar[str] = "broken-abdicating"
    part: ClassVar[str] = "change"
    other: ClassVar[type] = _Abdicating


class _Assuming(Succession):
    @override
    def enter(self, view: View) -> None:
        admitted = not self.agreed
        super().enter(view)
        self.agreed = view.roster if admitted else self.agreed


class Assuming(OtherPart):
    """Takes it, when it is admitted to a weak view, that all in that are known to everybody.

    Broken rule: others may be in another view, in which some of these were not admitted. Who comes from
    the weak view must name them, or they are owed nothing there.
    """

    name: ClassVar[str] = "broken-assuming"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Assuming


class _Unaware(Succession):
    @override
    def stayed(self, known: frozenset[int], view: View) -> frozenset[int]:
        return known - self.left()


class Unaware(OtherPart):
    """Takes one that it admits again for one that was never gone, unless it has heard that it left.

    Broken rule: others may have heard of that. Who comes from a view that does not prevail names all
    that were admitted there again, or they are owed nothing.
    """

    name: ClassVar[str] = "broken-unaware"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Unaware


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


class _Sweeping(Succession):
    @override
    def admitted_elsewhere(self, states: Iterable[Flushed]) -> Iterator[Member]:
        states = [*states]
        whole = {m.process: m for state in states for m in state.absent}
        yield from (whole[m.process] for m in super().admitted_elsewhere(states))


class Sweeping(OtherPart):
    """Takes all below a server for newcomers if one of them is new.

    Broken rule: the others were known before, and are owed what was sent meanwhile.
    """

    name: ClassVar[str] = "broken-sweeping"
    part: ClassVar[str] = "succession"
    other: ClassVar[type] = _Sweeping


class _Recanting(ViewChange):
    @override
    def on_flush(self, flush: Flush, sender: int, now: int) -> Effects:
        yield from super().on_flush(flush, sender, now)
        self.answered &= {self.promised}


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
