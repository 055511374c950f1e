"""Daisies with one mistake each, all of which were made once.

A mistake in the group layer is made by one part of it, which takes the place of the right one. Some
show only if heartbeats meet in a certain way, or after certain departures; tests/fuzz/test_bank.py has
a small experiment for each.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from typing_extensions import override

from ..base import Effects, Place
from ..daisy import Daisy
from ..daisy.levels import Levels
from ..daisy.matrices import Matrices
from ..daisy.relay import Relaying
from ..daisy.server_group import ByOrigin
from ..groups.agreed import Flushed, Proposal
from ..groups.detector import Detector
from ..groups.group import Group
from ..groups.messages import Cast, Expelled, Leave, Report
from ..groups.reporting import Reporting
from ..groups.stability import Stability
from ..groups.succession import Succession
from ..groups.view import Member, View
from ..groups.view_change import ViewChange
from ..wire import Message


class Reentrant(Daisy):
    """Relays while a message is being handed up to the application.

    Broken rule: state is consistent at every ``yield``. What was delivered together with the message
    comes after what an answer makes the server relay, and is then dropped as a duplicate.
    """

    name: ClassVar[str] = "broken-reentrant"

    @property
    def handing_up(self) -> bool:
        """Never."""
        return False

    @handing_up.setter
    def handing_up(self, value: bool) -> None:
        """Forget it."""


class _NoNewcomers(Succession):
    @override
    def newcomers(self, target: Sequence[Member]) -> frozenset[int]:
        return frozenset()


class Hospitable(Daisy):
    """Gives a newcomer all that its group keeps.

    Broken rule: what was cast before a process was known in a group is not for it. What the group
    above still keeps comes down later, in the wrong order.
    """

    name: ClassVar[str] = "broken-hospitable"

    @override
    def known_above(self, level: int, cast: Cast) -> Cast:
        return cast

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.succession.__class__ = _NoNewcomers
        return group


class Undecided(Daisy):
    """Comes back only if it has left already.

    Broken rule: who joins before the group has let it go stays. It is let go later, for good.
    """

    name: ClassVar[str] = "broken-undecided"

    @override
    def join(self, now: int) -> Effects:
        self.returning = self.local.out
        self._return(now)
        yield from ()


class Stubborn(Daisy):
    """Leaves before it comes back, whatever has happened meanwhile.

    Broken rule: who joins before the group knows that it leaves stays. It waits to be let go, and so
    for those whose messages only it keeps.
    """

    name: ClassVar[str] = "broken-stubborn"

    @override
    def join(self, now: int) -> Effects:
        self.returning = self.local.leaving or self.local.out
        self._return(now)
        yield from ()


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


class EmptyHanded(Daisy):
    """Lets members of other groups join without what is on its way to them.

    Broken rule: the group above has sent it to the group that they were in, where nobody is left.
    """

    name: ClassVar[str] = "broken-empty-handed"

    @override
    def gather(self, processes: frozenset[int], now: int) -> list[Cast] | None:
        return None if super().gather(processes, now) is None else []


class Releasing(Daisy):
    """Releases what is for its group while it is on its way to another group.

    Broken rule: a process between two groups answers for nobody, and knows nothing of who has what.
    """

    name: ClassVar[str] = "broken-releasing"

    @override
    def arrived(self, level: int, cast: Cast, now: int) -> bool:
        moving = level > 0 and self.groups[level - 1].view is None
        return moving or super().arrived(level, cast, now)


class _Trusting(Detector):
    @override
    def _silent(self, member: Member, since: int, now: int) -> bool:
        return self.heard[member.process] > self.since and super()._silent(member, since, now)


class Trusting(Daisy):
    """Suspects only those that it has heard in the view.

    Broken rule: who has said nothing at all for ``patience`` is suspected too.
    """

    name: ClassVar[str] = "broken-trusting"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.detector.__class__ = _Trusting
        return group


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


class _Copied(Matrices):
    @override
    def is_firm(self, cast: Cast, i: int) -> bool:
        return self._holders(cast, i) + 1 >= self.k


class Copied(Daisy):
    """Delivers what k members hold besides its sender (section 3.4 of the paper, the second).

    Broken rule: everything that its sender sent before it is held by as many, too. If the sender
    crashes, an earlier message to another process may be lost, and what is answered depends on it.
    """

    name: ClassVar[str] = "broken-copied"
    to_recipients: ClassVar[type[Matrices]] = _Copied


class _InServersOrder(ByOrigin):
    @override
    def deliverable(self, cast: Cast, i: int) -> bool:
        return self.done[i] + 1 == cast.vector[i] and super().deliverable(cast, i)


class ServersVector(Daisy):
    """Relays early, with the vector of the server that relays (section 3.4 of the paper, the first).

    Broken rule: a vector says what the *sender* knew. A server that relays a message before another
    that precedes it says the opposite of what their senders say, and both wait for ever.
    """

    name: ClassVar[str] = "broken-servers-vector"
    among_servers: ClassVar[type[ByOrigin]] = _InServersOrder


class Absentminded(Daisy):
    """Comes back without what it had delivered last.

    Broken rule: it may have been the only one of its group that had it, and what it sends next
    follows it.
    """

    name: ClassVar[str] = "broken-absentminded"

    @override
    def _return(self, now: int) -> None:
        before = self.local
        super()._return(now)
        if self.local is not before:
            self.local.kept.history = {}


class Deserting(Daisy):
    """Leaves a group of servers, itself or as its group is merged, although it is needed there.

    Broken rule: it may be the only one that has a message, which another has yet to fetch.
    """

    name: ClassVar[str] = "broken-deserting"

    @override
    def is_needed_above(self) -> bool:
        return False


class _Outdated(Group):
    @override
    def flushed(self, joins: bool) -> Flushed:
        return super().flushed(joins)._replace(member=())


class Outdated(Daisy):
    """Enters views of servers that are without somebody who left, and has come back since.

    Broken rule: a view says for whom its members answer as they enter it, not as they asked for it.
    Answers to what was sent meanwhile are not for the one that has come back.
    """

    name: ClassVar[str] = "broken-outdated"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.__class__ = _Outdated
        return group


class _Forsaking(ViewChange):
    @override
    def _due(self, proposal: Proposal, now: int) -> list[Cast] | None:
        states = {process: s._replace(absent=()) for process, s in proposal.states.items()}
        return super()._due(replace(proposal, states=states), now)


class Forsaking(Daisy):
    """Merges groups without what is on its way to those who are absent.

    Broken rule: who comes from another group brings along those who were absent there. What is only
    for them has been sent in the group above, and to nobody of the group that they now belong to.
    """

    name: ClassVar[str] = "broken-forsaking"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.change.__class__ = _Forsaking
        return group


class _Unforgiving(Succession):
    @override
    def is_recent(self, leave: Leave, view: View) -> bool:
        return True


class Unforgiving(Daisy):
    """Lets a member go that once wanted to leave, and has come back since.

    Broken rule: a wish counts for the membership that it was said in. Somebody who stood still may
    pass it on much later, and what is sent then is not kept for the member.
    """

    name: ClassVar[str] = "broken-unforgiving"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.succession.__class__ = _Unforgiving
        return group


class _Discarding(Stability):
    @override
    def all(self) -> list[Cast]:
        return [*self.history.values()]


class Discarding(Daisy):
    """Starts a group again without what it has kept for those who were away.

    Broken rule: they are below other groups then, and it may be the only one that can relay it there.
    """

    name: ClassVar[str] = "broken-discarding"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.kept.__class__ = _Discarding
        return group


class _Dismissive(Succession):
    @override
    def admitted_elsewhere(self, states: Iterable[Flushed]) -> Iterator[Member]:
        return iter(())


class Dismissive(Daisy):
    """Does not care who was admitted to a view that does not prevail.

    Broken rule: others who come from that view may answer what such a process has sent, and it is
    owed the answers, even if they are back before it.
    """

    name: ClassVar[str] = "broken-dismissive"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.succession.__class__ = _Dismissive
        return group


class _Misguiding(Levels):
    @override
    def is_known(self, level: int, home: Member) -> bool:
        return True


class Misguiding(Daisy):
    """Sends a joiner on to the group that it was in before, even if nobody knows which that is.

    Broken rule: who starts a group of servers again does not know below which groups the absent are.
    Such a joiner is asked to look for a group that does not exist, and is never admitted.
    """

    name: ClassVar[str] = "broken-misguiding"

    @override
    def _levels(self) -> Levels | None:
        levels = super()._levels()
        if levels is not None:
            levels.__class__ = _Misguiding
        return levels


class _Overtaking(Relaying):
    @override
    def must_wait_below(self, level: int, cast: Cast, now: int) -> bool:
        return False


class Overtaking(Daisy):
    """Relays at once what its own group has sent and comes back from above.

    Broken rule: those through whom it left were in a view that did not prevail, and bring its causal
    past along when they are back.
    """

    name: ClassVar[str] = "broken-overtaking"

    @override
    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        if type(self.relaying) is Relaying:  # not early
            self.relaying.__class__ = _Overtaking


class _Halting(Relaying):
    @override
    def must_wait_below(self, level: int, cast: Cast, now: int) -> bool:
        view, grace = self.daisy.groups[level].view, self.daisy.local.timing.grace
        absent = view is not None and cast.source in view.roster - view.present
        if absent and now - self.returning.setdefault(level, now) < grace:
            return True
        self.returning.pop(level, None)
        return False


class Halting(Daisy):
    """Waits for those through whom a message once left, also in a local group, and with each again.

    Broken rule: one waits once for a queue, not once for a message. Who is waited for may have moved
    to another group, and all that it has sent is late by ``grace``, one after the other.
    """

    name: ClassVar[str] = "broken-halting"

    @override
    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        if type(self.relaying) is Relaying:  # not early
            self.relaying.__class__ = _Halting


class _Deaf(Reporting):
    @override
    def refuses(self, report: Report, sender: int) -> bool:
        return False


class Deaf(Daisy):
    """Waits for a member to enter a view that it cannot accept.

    Broken rule: who has promised to accept only a greater view, while the coordinator stood still,
    must be asked for a greater one. Else both wait for ever, and so does who was split off.
    """

    name: ClassVar[str] = "broken-deaf"

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.reporting.__class__ = _Deaf
        return group
