"""The failure detector of a group: who was heard, who is suspected, and the way around a bad link.

Members send heartbeats to the server, and the server to all. A member that was silent for ``patience``
is suspected. The *leader*, for each member, is the oldest that it does not suspect: the server, or the
next, which counts the others' silence only from when it could expect to hear them.

A member from which nothing came directly for a few heartbeats may be behind a bad link: what is sent to
it is sent by way of another member as well, and it answers in the same way as long as that lasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .view import Member, View

POOR = 3  # heartbeats without a direct message, after which a link is taken to be bad


class Timing(NamedTuple):
    """In nanoseconds; without ``ack`` deliveries are reported with the heartbeat only."""

    heartbeat: int
    patience: int
    grace: int
    forget: int
    ack: int | None


class Detour(NamedTuple):
    """By way of whom a message goes as well, and whether because its receiver is not heard directly."""

    by_way_of: int
    unheard: bool


class Detector:
    """What one member knows about the others in a view."""

    def __init__(self, me: int, timing: Timing) -> None:
        self.me, self.timing = me, timing
        self.members: tuple[Member, ...] = ()
        self.processes: tuple[int, ...] = ()
        self.others: tuple[int, ...] = ()
        self.heard: dict[int, int] = {}  # when something last came from a member, in any way
        self.direct: dict[int, int] = {}  # when it last came directly
        self.since = 0  # from when on silence counts
        self.gone: set[int] = set()  # members that do not take part any more, heard or not
        self.away_since: dict[int, int] = {}
        self.outside_since: dict[int, int] = {}  # who is away from other groups
        self.ways: dict[int, tuple[int, int]] = {}  # by way of whom, and until when
        self.turn = 0

    def enter(self, view: View, now: int) -> None:
        """Start again with the members of a view."""
        self.members, self.processes = view.members, view.processes
        self.others = tuple(p for p in view.processes if p != self.me)
        self.heard = dict.fromkeys(view.processes, now)
        self.direct = self.heard.copy()
        self.since = now
        self.ways.clear()
        self.away_since = {p: self.away_since.get(p, now) for p in view.away}

    def restart(self, now: int) -> None:
        """Suspect nobody: this process itself was stopped for a while."""
        self.heard = dict.fromkeys(self.heard, now)
        self.direct = self.heard.copy()
        self.since = now

    def forsake(self, now: int) -> None:
        """Suspect everybody."""
        long_ago = now - len(self.members) * self.timing.patience
        self.heard = dict.fromkeys(self.heard, long_ago)
        self.since = long_ago - self.timing.patience

    def hear(
        self, process: int, now: int, by_way_of: int | None = None, unheard: bool = False
    ) -> None:
        """Note that a message has come, perhaps by way of another as this process is not heard."""
        if process in self.heard:
            self.heard[process] = now
            if by_way_of is None:
                self.direct[process] = now
            elif unheard:
                self.ways[process] = by_way_of, now + POOR * self.timing.heartbeat

    def alive(self, now: int) -> list[Member]:
        """The members that are not suspected, oldest first; those after the leader only by it."""
        index, since = self._leader(now)
        alive = [*self.members[index:]]
        if not alive or alive[0].process != self.me:
            return alive
        rest = (m for m in alive[1:] if m.process not in self.gone)
        return [alive[0], *(m for m in rest if not self._silent(m, since, now))]

    def _leader(self, now: int) -> tuple[int, int]:
        """The index of the leader, and from when on the silence of those after it counts."""
        since = self.since
        for index, member in enumerate(self.members):
            if member.process in self.gone:
                continue
            if member.process == self.me or not self._silent(member, since, now):
                return index, since
            since = max(self.heard[member.process], since) + self.timing.patience
        return len(self.members), since

    def _silent(self, member: Member, since: int, now: int) -> bool:
        return now - max(self.heard[member.process], since) >= self.timing.patience

    def leads(self, now: int) -> bool:
        """Whether this process is the leader."""
        index, _ = self._leader(now)
        return index < len(self.members) and self.members[index].process == self.me

    def hubs(self, now: int) -> tuple[int, ...]:
        """To whom heartbeats go: from the leader to all, else to the leader and who is older."""
        index, _ = self._leader(now)
        if self.members[index].process == self.me:
            return self.others
        return self.processes[: index + 1]

    def detour(self, peer: int, now: int, unanswered: Iterable[int]) -> Detour | None:
        """By way of whom a message to a member should go as well, if its link may be bad."""
        if peer not in self.heard:
            return None
        unheard = peer in unanswered or (
            now - self.direct[peer] >= POOR * self.timing.heartbeat and self._exchanges(peer, now)
        )
        by_way_of, until = self.ways.get(peer, (peer, 0))
        if now < until:
            return Detour(by_way_of, unheard)
        others = [p for p in self.others if p != peer] if unheard else ()
        if not others:
            return None
        self.turn += 1
        return Detour(others[self.turn % len(others)], unheard)

    def _exchanges(self, peer: int, now: int) -> bool:
        """Whether heartbeats are exchanged with a member."""
        index, _ = self._leader(now)
        return self.members[index].process in (self.me, peer)

    def learn_outside(self, away: frozenset[int], now: int) -> None:
        """Note who is away from other groups."""
        if away or self.outside_since:
            self.outside_since = {p: self.outside_since.get(p, now) for p in away}

    def away_lately(self, now: int) -> frozenset[int]:
        """The processes that are away from this group, and not taken to have crashed yet."""
        return self._lately(self.away_since, now)

    def outside_lately(self, now: int) -> frozenset[int]:
        """Those that are away from other groups, and not taken to have crashed yet."""
        return self._lately(self.outside_since, now)

    def _lately(self, since: dict[int, int], now: int) -> frozenset[int]:
        return frozenset(p for p, left in since.items() if now - left < self.timing.grace)

    def owed(self, now: int) -> frozenset[int]:
        """The processes that are away, from this group or others, and may be alive."""
        if not (self.outside_since or self.away_since):
            return frozenset()
        since = self.outside_since | self.away_since
        return frozenset([p for p, left in since.items() if now - left < self.timing.forget])
