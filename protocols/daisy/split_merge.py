"""How a group is split in two, which local groups are merged, and when.

As server of a group whose size is out of bounds, a process silences the group until nothing is in
transit in it, and then has it split, or merged with another, in a view change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..base import Effects
from ..groups.agreed import Reshape
from ..groups.group import Group
from ..groups.messages import Cast
from ..groups.view import Member, View, ViewId
from .tree import LEVEL

if TYPE_CHECKING:
    from .hierarchy import Hierarchy

Talk = Mapping[tuple[int, int], int]
STRIDE, PRIME = (
    61,
    2039,
)  # so that the numbers that a process's groups get are far apart, and differ
PATIENT = 10  # heartbeats after which a silenced group should have nothing in transit


class Attempt(NamedTuple):
    """An attempt to reshape a view of a group, below a view of the group above, and since when."""

    view: ViewId
    above: ViewId
    since: int


class Reshaping:
    """Keeps the sizes of the groups that a process serves in bounds."""

    def __init__(self, daisy: Hierarchy) -> None:
        self.daisy = daisy
        self.talk: dict[int, Counter[tuple[int, int]]] = {}  # messages between two, by level
        self.attempts: dict[int, Attempt] = {}  # by level
        self.rests_until: dict[int, int] = {}  # by level, after an attempt that has failed

    def note(self, level: int, cast: Cast) -> None:
        """Note between whom a message travels, at a level whose groups may be split."""
        if level == 0 or self.daisy.levels is not None:
            talk = self.talk.setdefault(level, Counter())
            talk.update((cast.source, p) for p in cast.dests or ())

    def reshape(self, now: int) -> Effects:
        """As server, keep the sizes of groups in bounds: silence one, then split or merge it."""
        if self.daisy.settings.split_above is None and not self.daisy.settings.merge_below:
            return
        for level, group in enumerate(list(self.daisy.groups)):
            if not group.is_server or group.frozen or group.seeking:
                return
            if level and self.daisy.levels is None:
                return
            if level + 1 < len(self.daisy.groups):
                yield from self._reshape(level, group, now)
            elif self.daisy.levels is not None:
                yield from self._add_level(group, now)

    def _add_level(self, group: Group, now: int) -> Effects:
        daisy, s = self.daisy, self.daisy.settings
        assert group.view is not None
        assert daisy.levels is not None
        is_top = len(daisy.path) == len(daisy.groups) < s.max_levels
        is_due = is_top and len(group.view.members) > s.split_above
        if is_due and group.may_relay(now) and group.is_calm(now):
            yield from daisy.levels.add(now)

    def _reshape(self, level: int, group: Group, now: int) -> Effects:
        above = self.daisy.groups[level + 1]
        is_due = group.may_relay(now) and now >= self.rests_until.get(level, 0)
        if not (is_due and _is_settled(above, now)):
            self.attempts.pop(level, None)
            return
        plan = self._plan(level, group, above, now)
        if plan is None:
            self.attempts.pop(level, None)
            yield from self._remove_level(level, group, above)
            return
        assert group.view is not None
        assert above.view is not None
        attempt, views = self.attempts.get(level), (group.view.id, above.view.id)
        if attempt is None or attempt[:2] != views:
            self.attempts.pop(level, None)
            if self._lags(level, group):
                return
            attempt = self.attempts[level] = Attempt(*views, now)
        yield from group.hush(now)
        group.change.reshape = None if group.history else plan
        heartbeat = group.timing.heartbeat
        if now - attempt.since >= PATIENT * heartbeat:  # another group tries too
            pause = self.daisy.place.rng.uniform(PATIENT, 4 * PATIENT)
            self.rests_until[level] = now + round(pause * heartbeat)

    def _lags(self, level: int, group: Group) -> bool:
        """Whether something from above is not relayed to a group yet.

        As long as the group is silent it would wait, and what was sent after it in the group above
        would not become stable there.
        """
        return any(not group.has_seen(cast) for cast in self.daisy.down[level])

    def _plan(self, level: int, group: Group, above: Group, now: int) -> Reshape | None:
        view, s = group.view, self.daisy.settings
        assert view is not None
        assert above.view is not None
        if s.split_above is not None and len(view.members) > s.split_above:
            if level == 0 and not _is_largest(group, above.view):
                return None
            return split(level, view, above.view, self.talk.get(level, {}))
        if level or len(view.members) >= s.merge_below:
            return None
        since = above.detector.away_since
        absent = [since.get(p, now) for m in above.view.absent for p in m.roster]
        if any(now - left < group.timing.grace for left in absent):
            return None  # a group of unknown size will soon have a new server, unless it crashed
        if group.above.needs_this_process():
            return None
        return merge(group.number, view, above.view, s.split_above or 2 * s.group_size)

    def _remove_level(self, level: int, group: Group, above: Group) -> Effects:
        """Give up a level that was added, if only this process is left there."""
        daisy = self.daisy
        if daisy.levels is None or level + 2 < len(daisy.path) or group.given:
            return
        alone = above.view is not None and len(above.view.members) == 1 and not above.view.absent
        if alone and len(daisy.path) > daisy.tree.levels and not above.kept.size():
            yield from daisy.levels.remove()


def _is_settled(above: Group, now: int) -> bool:
    """Whether the group above is at rest and knows for whom this process answers."""
    if above.view is None or not above.open or above.me not in above.view.members:
        return False
    return above.may_relay(now) and above.is_calm(now)


def _is_largest(group: Group, above: View) -> bool:
    """Whether no other local group should be split first.

    Two that are silent at a time would wait for each other to take what is in transit between them.
    """
    size = {m.of: len(m.roster - m.away) for m in above.members if m.of < LEVEL}
    return group.number == min(size, key=lambda number: (-size[number], number))


def split(level: int, view: View, above: View, talk: Talk) -> Reshape:
    """Make half of the members a group with a number that the group above does not know."""
    go = parting(view.members, talk)
    used = {m.of for m in (*above.members, *above.absent)}
    half, first = LEVEL // 2, own_number(go[0])
    free = (LEVEL * level + half + (first + i) % half for i in range(half))
    return Reshape(next(number for number in free if number not in used), go)


def own_number(member: Member) -> int:
    """A number for a group that is made for a member; another one each time that it has joined.

    A group that was made for it before may go on without it, below another group of servers.
    """
    return member.process + STRIDE * (member.backing % PRIME)


def parting(members: tuple[Member, ...], talk: Talk) -> tuple[Member, ...]:
    """The half that is split off: those with the fewest messages to and from the rest."""
    stay, go = [members[0]], list(members[1:])

    def heard(member: Member) -> int:
        pairs = [(p, q) for s in stay for p in member.roster for q in s.roster]
        return sum(talk.get((p, q), 0) + talk.get((q, p), 0) for p, q in pairs)

    while len(stay) < len(members) - len(members) // 2:
        best = max(go, key=heard)
        go.remove(best)
        stay.append(best)
    return tuple(go)


def merge(number: int, local: View, above: View, most: int) -> Reshape | None:
    """Make all members of the smallest group join the next one, one group at a time."""
    beside = sorted((len(m.roster), m.of, m) for m in above.members if m.of < LEVEL)
    if len(beside) < 2 or beside[0][1] != number:
        return None
    other = beside[1][2]
    if len(local.members) + len(other.roster) > most:
        return None
    contacts = (other.process, *sorted(other.roster - {other.process}))
    return Reshape(other.of, local.members, contacts)
