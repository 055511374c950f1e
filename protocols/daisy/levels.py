"""Levels that are added and removed while the system runs, and how processes learn of them.

Section 3.2 of the paper. If the group at the top has become too large, its server adds a level: a group
above, of which it is the only member at first, so that it is a *hyper-server*. Then the group is split
like any other, and the server of the other half joins the new level. A top group that has one member
again is given up. The group at the top has the first number of its level, so that all can find it.

Every server tells its group, with a Path, which groups are above. Who becomes a server and has not
heard of the last split asks the wrong group. Since every group knows for whom its members answer, and
the group above for whom the others do, it is not admitted but told where to ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..base import Effects, Send, Transition
from ..groups.messages import OUTSIDE, Expelled, Join
from ..groups.succession import Joiner
from ..groups.view import Member, View, ViewId
from ..wire import Message
from .path import Path, Steps
from .tree import LEVEL

if TYPE_CHECKING:
    from .hierarchy import Hierarchy

ADDED = Transition("server", "level-added", "hyper-server")
REMOVED = Transition("hyper-server", "level-removed", "server")
AGAIN = 10  # heartbeats after which the path is told again


def here(joiner: Member) -> frozenset[int]:
    """Those below a joiner by whom its place is told; who is away may be below another group now."""
    return joiner.roster - joiner.away


def knows(view: View, joiner: Member) -> bool:
    """Whether somebody in a view answers, or did, for a joiner's group or some of its processes."""
    members = (*view.members, *view.absent)
    return any(m.of == joiner.of or not m.roster.isdisjoint(here(joiner)) for m in members)


class Levels:
    """One process's knowledge of the groups above, which may change."""

    def __init__(self, daisy: Hierarchy, rosters: Iterable[frozenset[int]]) -> None:
        self.daisy = daisy
        self.rosters = list(rosters)  # the processes below each group of the path
        self.told: dict[int, tuple[ViewId, Steps, int]] = {}

    def follow(self) -> None:
        """Go by the groups of this process, which may have been split."""
        daisy = self.daisy
        numbers = tuple([group.number for group in daisy.groups])
        if len(numbers) == len(daisy.path) and numbers[-1] != daisy.path[-1]:
            self._extend()  # the top group was split, so there is one above
        daisy.path = (*numbers, *daisy.path[len(numbers) :])
        for level, group in enumerate(daisy.groups):
            if group.view is not None:
                roster = group.view.roster
                self.rosters[level] = roster.union(group.given) if group.given else roster

    def others(self, level: int, mine: frozenset[int]) -> tuple[Member, ...]:
        """Who is absent, if this process has to start a group again, below whichever groups."""
        rest = self.rosters[level] - mine
        return (Member(min(rest), 0, rest, self.daisy.path[level]),) if rest else ()

    # levels

    def _extend(self) -> None:
        daisy = self.daisy
        daisy.path = (*daisy.path, LEVEL * len(daisy.path))
        self.rosters.append(self.rosters[-1])

    def add(self, now: int) -> Effects:
        """As server of the group at the top, become a hyper-server."""
        daisy, below = self.daisy, self.daisy.groups[-1]
        assert below.view is not None
        self._extend()
        yield ADDED.note(level=len(daisy.groups), group=daisy.path[-1])
        yield from daisy.climb(now)
        top = daisy.groups[-1]
        top.change.promised = ViewId(below.view.id.number)
        yield from daisy.translate(len(daisy.groups) - 1, top.admission.found(now), now)

    def remove(self) -> Effects:
        """Give up the group at the top, of which this process is the only member."""
        daisy = self.daisy
        yield REMOVED.note(level=len(daisy.path) - 1, group=daisy.path[-1])
        daisy.cut(len(daisy.path) - 1)
        daisy.path, self.rosters = daisy.path[:-1], self.rosters[: len(daisy.path) - 1]

    # what others are told

    def _steps(self, level: int) -> Steps:
        return tuple(zip(self.daisy.path, self.rosters, strict=True))[level:]

    def tell(self, now: int) -> Effects:
        """As server, tell the other members which groups are above, now and then or if that is new."""
        daisy = self.daisy
        for level, group in enumerate(daisy.groups):
            if not group.is_server or group.view is None or not (peers := group.peers()):
                continue
            if level + 1 < len(daisy.path) and not daisy.is_member(level + 1):
                continue
            news = group.view.id, self._steps(level + 1)
            *old, at = self.told.get(group.number, (None, None, 0))
            if tuple(old) != news or now - at >= AGAIN * group.timing.heartbeat:
                self.told[group.number] = *news, now
                yield group.send(peers, Path, contact=daisy.me, steps=news[1])

    def on_path(self, path: Path, sender: int, now: int) -> Effects:
        """Believe the server; and as one who seeks a group, or knows of none above, anybody."""
        daisy, steps = self.daisy, path.steps
        found = [k for k, group in enumerate(daisy.groups) if group.number == path.group]
        if not found or len(steps) + found[0] > daisy.settings.max_levels:
            return
        level, group = found[0], daisy.groups[found[0]]
        if steps and steps[0][0] // LEVEL == level:  # it is another group that this one should seek
            if group.seeking and steps[0][0] != group.number:
                self._believe(level, steps)
                yield from group.admission.redirect(steps[0][0], path.contact, now)
                group.admission.candidates = tuple(sorted(steps[0][1] - {daisy.me}))
                group.admission.others = self.others(level, group.me.roster)
        elif level + 1 == len(daisy.path) or (
            group.view is not None and sender == group.view.server != daisy.me
        ):
            self._believe(level + 1, steps)

    def _believe(self, level: int, steps: Steps) -> None:
        daisy = self.daisy
        daisy.path = (*daisy.path[:level], *(number for number, _ in steps))
        self.rosters = [*self.rosters[:level], *(roster for _, roster in steps)]

    # those who ask the wrong group

    def belongs(self, level: int, asks: Joiner) -> bool:
        """Whether a joiner is to be admitted at a level, as far as this process can say."""
        home = self._home(level, asks)
        inside = asks.how != OUTSIDE
        return inside or (home is not None and home.of == self.daisy.groups[level].number)

    def _home(self, level: int, asks: Joiner) -> Member | None:
        """Who serves the group that a joiner belongs to, and for whom; None if that is not known."""
        daisy, group, joiner = self.daisy, self.daisy.groups[level], asks.member
        own = Member(daisy.me, 0, self.rosters[level], group.number)
        if group.view is None or knows(group.view, joiner):
            return own
        if not group.is_server:
            return None
        if to := {group.given[p].group for p in here(joiner) & group.given.keys()}:
            below = frozenset(p for p, given in group.given.items() if given.group in to)
            return Member(daisy.me, 0, below, min(to))
        if level + 1 == len(daisy.path):
            return own
        above = daisy.groups[level + 1].view if daisy.is_member(level + 1) else None
        if above is None:
            return None
        others = (m for m in (*above.members, *above.absent) if m.of != group.number)
        home = next((m for m in others if m.roster & here(joiner)), own)
        if self.is_known(level, home):
            return home
        is_new = level == 0 and asks.is_new(daisy.epochs.pairs)  # nothing is in transit to it
        return own if is_new or self._is_unclaimed(level, joiner) else None

    def is_known(self, level: int, home: Member) -> bool:
        """Whether a member above is of a group of this level, not of ``others``."""
        return home.of // LEVEL == level

    def _is_unclaimed(self, level: int, joiner: Member) -> bool:
        """Whether those who may answer for a joiner above have had ``grace`` to say so."""
        group, above = self.daisy.groups[level], self.daisy.groups[level + 1]
        since = above.detector.away_since
        asked = (group.ticked_at - since[p] for p in here(joiner) & since.keys())
        return min(asked, default=0) >= group.timing.grace

    def guide(self, level: int, join: Join, sender: int) -> Effects:
        """Tell a joiner that belongs to another group so, or pass it on to who knows."""
        group = self.daisy.groups[level]
        if join.how != OUTSIDE or not self.daisy.is_member(level):
            return
        assert group.view is not None
        home = self._home(level, Joiner(join.member, join.how, 0))
        if home is None and sender == join.source and not group.is_server:
            yield Send((group.view.server,), join)
        elif home is not None and home.of != group.number:
            steps = ((home.of, home.roster), *self._steps(level + 1))
            yield self._answer(join, home.process, steps)

    def _answer(self, message: Message, contact: int, steps: Steps) -> Send:
        path = Path(self.daisy.me, 0, group=message.group, contact=contact, steps=steps)
        return Send((message.source,), path)

    def on_stray(self, message: Message) -> Effects:
        """Answer one who asks for, or is in, another group of a level, if this process knows more."""
        daisy, level = self.daisy, message.group // LEVEL
        if not isinstance(message, Join | Expelled) or not level:
            return
        if level == len(daisy.path) and message.group == LEVEL * level:
            at_top = len(daisy.groups) == level and daisy.groups[-1].is_server
            if at_top and level < daisy.settings.max_levels:
                self._extend()  # a level was added and this process has not heard of it
        elif level < len(daisy.groups) and daisy.is_member(level):
            view = daisy.groups[level].view
            assert view is not None
            belongs = isinstance(message, Join) and knows(view, message.member)
            if steps := self._steps(level if belongs else level + 1):
                yield self._answer(message, daisy.me, steps)
