"""Relaying between the groups of one process: what is relayed, when, and how long it is kept.

The process is a member of the first few of the groups above it, in ``groups``: its local group, the
group of servers above if it is a server, and so on. What a group delivers waits in ``up`` or ``down``
until the next group up or down is not in a view change, and, if ``safe``, every member of the view
where it comes from is known to have it. Both queues are rebuilt after a view change.
"""

from abc import abstractmethod
from collections import deque
from typing import Any

from ..base import Count, Deliver, Effects, Hold, Place, Protocol, Send
from ..wire import MessageId
from .group import Group
from .messages import Cast, Leave
from .view import Member, View, ViewId

BACKING_BITS = 10  # for the times that a server rejoins with the same view below


class Relays(Protocol):
    """A process's groups, from its local group upwards, and what is in transit between them."""

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.path: tuple[int, ...] = ()  # the numbers of all groups above
        self.groups: list[Group] = []
        self.outbox: deque[Cast] = deque()
        self.up: list[deque[Cast]] = []  # from this level
        self.down: list[deque[Cast]] = []  # to this level
        self.noted: list[ViewId] = []
        self.waiting: dict[int, tuple[MessageId, int]] = {}  # of a level, what waits, since when

    @abstractmethod
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        """A new group of this process."""

    @abstractmethod
    def _hand_up(self, cast: Cast) -> Effects:
        """Handle a message that the local group has delivered."""

    @abstractmethod
    def _recorded(self, now: int) -> list[Cast] | None:
        """What the group above keeps for the local group; None if that is not known now."""

    def _stamped(self, cast: Cast) -> Cast:
        """A message of this process with what must be attached to it."""
        return cast

    @property
    def local(self) -> Group:
        """The local group."""
        return self.groups[0]

    def _translate(self, level: int, effects: Effects, now: int) -> Effects:
        """Queue what a group delivers for the next groups; deliver what the local group does."""
        for effect in effects:
            if not isinstance(effect, Deliver):
                if level == 0 or not isinstance(effect, Hold):
                    yield effect
                continue
            cast = effect.message
            assert isinstance(cast, Cast)
            self._note(level, cast)
            if level == 0:
                yield from self._hand_up(cast)

    def _note(self, level: int, cast: Cast) -> None:
        if level + 1 < len(self.groups) and self._leaves(level, cast):
            self.up[level].append(cast)
        if level and cast.is_for(self._roster(level - 1)):
            self.down[level - 1].append(cast)

    def _roster(self, level: int) -> frozenset[int]:
        view = self.groups[level].view
        return frozenset() if view is None else view.roster

    def _leaves(self, level: int, cast: Cast) -> bool:
        """Whether a message has destinations outside a group."""
        view = self.groups[level].view
        if view is None or level + 1 == len(self.path):
            return False
        return cast.dests is None or not cast.dests <= view.present

    def _advance(self, now: int) -> Effects:
        """Do what has become possible: send, relay, join or leave the group above."""
        self.path = (self.local.number, *self.path[1:])
        yield from self._climb(now)
        for level, group in enumerate(self.groups):
            if group.view is not None and group.view.id != self.noted[level]:
                self._renew(level, group.view.id)
        if self.local.waits and (recorded := self._recorded(now)) is not None:
            yield from self._translate(0, self.local.resume(recorded, now), now)
        while self.outbox and self.local.open:
            cast = self._stamped(self.outbox.popleft())
            yield from self._translate(0, self.local.cast(cast, now), now)
        for level in range(len(self.groups) - 1):
            yield from self._relay(self.up[level], level, level + 1, now)
        for level in reversed(range(len(self.groups) - 1)):
            yield from self._relay(self.down[level], level + 1, level, now)

    def _relay(self, queue: deque[Cast], origin: int, target: int, now: int) -> Effects:
        if self.settings.safe and not self.groups[origin].may_relay(now):
            return
        while queue and target < len(self.groups) and self.groups[target].open:
            if self.groups[target].has_seen(queue[0]):
                queue.popleft()
                continue
            if self.settings.safe and not self.groups[origin].is_everywhere(queue[0].id):
                return
            if target > origin and self._must_wait(origin, queue[0], now):
                return
            yield Count("relays")
            casting = self.groups[target].cast(queue.popleft(), now)
            yield from self._translate(target, casting, now)

    def _must_wait(self, level: int, cast: Cast, now: int) -> bool:
        """Whether others should relay a message that once came from above and is not known there.

        They have its causal past. After ``grace`` they are taken to have crashed.
        """
        if cast.source in self._roster(level):
            return False
        name, since = self.waiting.get(level, (None, now))
        self.waiting[level] = cast.id, now if name != cast.id else since
        return now - self.waiting[level][1] < self.local.timing.grace

    def _renew(self, level: int, id: ViewId) -> None:
        """After a view change, queue all that may have to be relayed."""
        self.noted[level] = id
        for lower in (level - 1, level):
            if lower >= 0 and lower + 1 < len(self.groups):
                below, above = self.groups[lower], self.groups[lower + 1]
                self.up[lower] = deque(c for c in below.history.values() if self._leaves(lower, c))
                roster = self._roster(lower)
                self.down[lower] = deque(c for c in above.history.values() if c.is_for(roster))

    def _climb(self, now: int) -> Effects:
        """Join the group above as server; leave it otherwise."""
        for level, group in enumerate(self.groups):
            last = level + 1 == len(self.groups)
            if not group.is_server and not last:
                for above in self.groups[level + 1 :]:
                    yield from self._farewell(above, with_roster=False)
                del self.groups[level + 1 :]
                self.noted[level + 1 :] = [ViewId()] * (len(self.path) - level - 1)
                return
            if not group.is_server or level + 1 == len(self.path) or group.view is None:
                continue
            backing = group.view.id.number << BACKING_BITS
            me = Member(self.me, backing, self._answers_for(level), group.number)
            if not last:
                above = self.groups[level + 1]
                if above.me.backing < backing or above.me.roster != me.roster:
                    above.me = me._replace(backing=max(above.me.backing, backing))
            else:
                above = self._group(level + 1, me, now=now)
                above.contacts = tuple(p for p in group.above if p != self.me)
                self.groups.append(above)
                self.up[level].clear()
                self.down[level].clear()

    def _answers_for(self, level: int) -> frozenset[int]:
        """A group's members, and those split off for which no other member answers yet."""
        group = self.groups[level]
        if group.given and level + 1 < len(self.groups):
            view = self.groups[level + 1].view
            others = () if view is None else (m for m in view.members if m.process != self.me)
            group.given = group.given.difference(*(m.roster for m in others))
        return self._roster(level) | group.given

    def _farewell(self, group: Group, with_roster: bool) -> Effects:
        peers = () if group.view is None else group.view.processes
        peers = tuple(p for p in peers if p != self.me)
        if peers:
            yield Send(peers, Leave(self.me, 0, group=group.number, with_roster=with_roster))

    def _may_release(self, level: int, cast: Cast, now: int) -> bool:
        """Whether a message need not be kept at a level on this process's account."""
        return self._arrived(level, cast, now) and (
            not self.groups[level].is_server
            or not self._leaves(level, cast)
            or (level + 1 < len(self.groups) and self.groups[level + 1].is_stable(cast))
        )

    def _arrived(self, level: int, cast: Cast, now: int) -> bool:
        """Whether all destinations below this process have delivered a message."""
        if level == 0:
            return True
        below = self.groups[level - 1]
        if below.view is None or (below.given and cast.is_for(below.given)):
            return False  # it is about to join another group, or others are
        if not cast.is_for(self._roster(level - 1)):
            return True
        return below.is_settled(cast, now) and self._arrived(level - 1, cast, now)

    def _members_above(self, level: int) -> tuple[int, ...]:
        if level + 1 == len(self.groups):
            return ()
        view = self.groups[level + 1].view
        return () if view is None else view.processes
