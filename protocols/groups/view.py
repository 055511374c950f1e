"""Views: who is in a group, and who may decide the next view.

A view's members are ordered by age; the first is the group's server. A member answers for its
*roster*: itself in a local group, all processes below it in a group of servers. Members that were
expelled are *absent*. Their rosters, and who is absent in the groups below, are *away*: the group
keeps what is addressed to them until they are back.

A view that more than half of the previous members agreed to, or half of them with the eldest, is the
only one that follows; members that were replaced do not count. If fewer are left, the others may have
crashed, or be partitioned and go on as well: such a view is *weak*. Of two views of a group, the
members of the lesser one rejoin the other as soon as they learn of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .epochs import Pairs, greatest, of

FIRST = 1 << 16  # the number of the views at the beginning


class ViewId(NamedTuple):
    """A view's number and its coordinator; of two views of a group the greater prevails."""

    number: int = 0
    coordinator: int = 0


class Member(NamedTuple):
    """A process in a group, and the processes that it answers for.

    ``of`` is the group that it serves below, or in a local group the process. ``backing`` grows
    whenever a member joins for the same ``of``: the greater one prevails, but for one that was
    restarted. Who of the roster is absent below is ``away``; it is in these ``epochs`` that they are
    below the member.
    """

    process: int
    backing: int
    roster: frozenset[int]
    of: int
    away: frozenset[int] = frozenset()
    epochs: Pairs = ()

    @property
    def age(self) -> tuple[int, int]:
        """What grows whenever the process joins, also if it has forgotten its backing."""
        return of(self.epochs, self.process), self.backing

    def replaces(self, other: Member) -> bool:
        """Whether it replaces another member."""
        if self.process == other.process:
            return self.age > other.age
        mine, others = (self.backing, -self.process), (other.backing, -other.process)
        return self.of == other.of and mine > others

    def succeeds(self, members: Iterable[Member]) -> bool:
        """Whether one of these is what it was before it joined last."""
        return any(m.process == self.process and self.age > m.age for m in members)


@dataclass(frozen=True)
class View:
    """A group's membership at one time."""

    id: ViewId
    members: tuple[Member, ...]
    absent: tuple[Member, ...] = ()
    weak: bool = False

    @cached_property
    def processes(self) -> tuple[int, ...]:
        """The members' processes, oldest first."""
        return tuple(member.process for member in self.members)

    @property
    def server(self) -> int:
        """The first of the view."""
        return self.members[0].process

    @cached_property
    def present(self) -> frozenset[int]:
        """All processes that the members answer for."""
        return frozenset().union(*(m.roster for m in self.members))

    @cached_property
    def roster(self) -> frozenset[int]:
        """All processes that the group answers for, absent or not."""
        return frozenset().union(*(m.roster for m in (*self.members, *self.absent)))

    @cached_property
    def away(self) -> frozenset[int]:
        """The processes that are absent, here or in a group below, and that no other member reaches.

        After a split or a merge two groups may count one process among theirs.
        """
        absent = (m.roster for m in self.absent)
        return frozenset().union(*(m.away for m in self.members), *absent) - self.here

    @cached_property
    def here(self) -> frozenset[int]:
        """The processes that some member answers for, and that are not away from its group."""
        return frozenset().union(*(m.roster - m.away for m in self.members))

    @cached_property
    def epochs(self) -> Pairs:
        """In which epochs all these processes are below the group."""
        known = (m for m in (*self.members, *self.absent) if m.epochs)
        return greatest(*([pair for pair in m.epochs if pair[0] in m.roster] for m in known))

    def is_majority(self, agreed: Collection[int], replaced: Collection[int]) -> bool:
        """Whether those who agreed are a majority of the members that were not replaced."""
        left = [p for p in self.processes if p not in replaced] or self.processes
        votes = sum(p in agreed for p in left)
        return 2 * votes > len(left) or (2 * votes == len(left) and left[0] in agreed)


def following(
    view: View, id: ViewId, members: Iterable[Member], left: frozenset[int], weak: bool
) -> View:
    """The next view; of previous members that are not in it, those who have not left are absent.

    A member that stays says itself whom it answers for no longer. One that takes another's place may
    not know of all for whom that one did: they are absent, until somebody answers for them. A member
    that has split some off counts them as away, and does not answer for their server if that is gone.
    """
    members = tuple(members)
    stay = {(m.process, m.of) for m in members}
    before = (*(m for m in view.members if (m.process, m.of) not in stay), *view.absent)
    here = {m: m.roster - m.away for m in members}

    def answered(gone: Member) -> frozenset[int]:
        """For whom others answer; also for the absent, if they serve its group or one it has joined."""
        same = (m.roster for m in members if m.of == gone.of or gone.process in here[m])
        return left.union(*here.values(), *same)

    gone = (m._replace(roster=m.roster - answered(m)) for m in before)
    return View(id, members, tuple(m for m in gone if m.roster), weak)
