"""Daisies with one mistake each in what is above the group layer, all of which were made once.

Some show only if heartbeats meet in a certain way, or after certain departures; tests/fuzz/test_bank.py
has a small experiment for each.
"""

from collections import deque
from typing import Any, ClassVar

from typing_extensions import override

from ..base import Effects, Place, Send
from ..daisy import Daisy
from ..daisy.hierarchy import Hierarchy
from ..daisy.levels import Levels
from ..daisy.matrices import Matrices
from ..daisy.relay import Relaying
from ..daisy.server_group import ByOrigin
from ..groups.messages import Cast, Join
from ..groups.view import Member


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


class Releasing(Daisy):
    """Releases what is for its group while it is on its way to another group.

    Broken rule: a process between two groups answers for nobody, and knows nothing of who has what.
    """

    name: ClassVar[str] = "broken-releasing"

    @override
    def arrived(self, level: int, cast: Cast, now: int) -> bool:
        moving = level > 0 and self.groups[level - 1].view is None
        return moving or super().arrived(level, cast, now)


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


class Careless(Daisy):
    """Takes one that was away to have what was kept for it as soon as that is broadcast above.

    Broken rule: its group keeps that until it is stable above. The broadcast may be lost, and the
    server crash.
    """

    name: ClassVar[str] = "broken-careless"

    @override
    def coming_back(self, level: int) -> frozenset[int]:
        archive = self.groups[level].kept.archive
        relayed = [c for c in self.groups[level + 1].history.values() if c.id in archive]
        back = frozenset(p for p in super().coming_back(level) for c in relayed if c.is_for({p}))
        return super().coming_back(level) - back


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


class _Overtaking(Relaying):
    @override
    def leaves(self, level: int, cast: Cast) -> bool:
        view = self.daisy.groups[level].view
        last = level + 1 == len(self.daisy.path)
        return view is not None and not last and cast.leaves(view.present)


class Overtaking(Daisy):
    """Keeps what is for a process that is away below a group of servers in that group.

    Broken rule: the process may be in another part of the group, which has taken its place above. There
    it gets from above what follows that.
    """

    name: ClassVar[str] = "broken-overtaking"

    @override
    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        if type(self.relaying) is Relaying:  # not early
            self.relaying.__class__ = _Overtaking


class _Halting(Relaying):
    def __init__(self, daisy: Hierarchy) -> None:
        super().__init__(daisy)
        self.halted: dict[int, int] = {}  # since when a message from above waits, by level

    @override
    def relay(self, queue: deque[Cast], origin: int, target: int, now: int) -> Effects:
        if target > origin:
            yield from super().relay(queue, origin, target, now)
        while target < origin and queue and not self._must_wait(target, queue[0], now):
            head = deque([queue[0]])
            yield from super().relay(head, origin, target, now)
            if head:
                return
            queue.popleft()

    def _must_wait(self, level: int, cast: Cast, now: int) -> bool:
        view, grace = self.daisy.groups[level].view, self.daisy.local.timing.grace
        absent = view is not None and cast.source in view.roster - view.present
        if absent and now - self.halted.setdefault(level, now) < grace:
            return True
        self.halted.pop(level, None)
        return False


class Halting(Daisy):
    """Has what comes back from above wait until those are back through whom it once left.

    Broken rule: nothing waits on its way down. Who is waited for may have moved to another group, and
    all that it has sent is late by ``grace``, one after the other.
    """

    name: ClassVar[str] = "broken-halting"

    @override
    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        if type(self.relaying) is Relaying:  # not early
            self.relaying = _Halting(self)


class Ignoring(Daisy):
    """Ignores one that asks for its own place in the group of servers.

    Broken rule: that one serves another part of the same group, and has not heard of this one. Nobody
    else tells it, and it stays outside for ever.
    """

    name: ClassVar[str] = "broken-ignoring"

    @override
    def guide(self, level: int, join: Join, sender: int, now: int) -> Effects:
        if self.levels is not None:
            yield from self.levels.guide(level, join, sender)


class Lingering(Daisy):
    """Passes wishes to join on after it has left.

    Broken rule: who has left does nothing any more for a group. As its last server, it passes them on
    to itself.
    """

    name: ClassVar[str] = "broken-lingering"

    @override
    def guide(self, level: int, join: Join, sender: int, now: int) -> Effects:
        yield from super().guide(level, join, sender, now)
        group = self.groups[level]
        if (
            self.levels is not None
            and group.out
            and group.view is not None
            and sender == join.source
        ):
            yield Send((group.view.server,), join)


class Prompt(Daisy):
    """Lets a group forget what is for one that is being admitted again above, or just was.

    Broken rule: it may be cut off once more before it has that, and then whoever could take the
    server's place must have it too. In a weak view it takes a while until it is relayed.
    """

    name: ClassVar[str] = "broken-prompt"

    @override
    def coming_back(self, level: int) -> frozenset[int]:
        return frozenset()


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
