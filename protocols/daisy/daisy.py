"""The hierarchical daisy: local groups, servers that relay between them, servers of servers.

Baldoni, Friedman & van Renesse, "The Hierarchical Daisy Architecture for Causal Delivery", 1996.

A message is causally broadcast in its sender's local group. The group's server, the first of its
view, broadcasts it in the group of servers above if it has destinations elsewhere, and so on up;
every member of a group of servers broadcasts it in its group below if some are there. Within a group
a message carries one vector of the group's size; what was seen before, by source, incarnation and
sequence number, is dropped.

The rule for all hops: a server relays what the group it comes from has *delivered*, in that order,
and, if ``safe``, once every member of the view is known to have delivered it. The paper relays at
once; then a sender and its server that crash together take messages with them that others, elsewhere,
have already answered, which leaves holes. With the rule, whoever is left of a view has all that ever
left the group, and what it comes after.

Stability (section 3.1.1): a member of a group of servers releases m when all destinations below it
have delivered m; a server releases m in its group when m is stable in the group above. So m is kept
wherever it passed until it has arrived everywhere. A new server (section 3.1.2) joins the group
above, gets what is not stable there, relays down what its group has not seen, and up what the group
above has not.

A group that has become too large or too small is silenced until nothing of it is under way; then it
is split, or its members join the next group, which gives them what is on its way to them.

The paper's optimisations (section 3.4) are modules of their own: relaying before a message is
deliverable in ``early``, and inside a group messages to recipients only, with a matrix instead of a
vector, in ``matrices``, or by way of the server in ``star``.

State: one ``Group`` for each level at which this process is a member; what waits to be relayed.
Cost: 32 + 16 + 4m + 4|Dests| + d bytes a copy in a group of m; a report of 52 + 8m bytes to each member
every heartbeat, and one after deliveries if ``safe``.

Limits. Without ``safe``: as above. Who is cut off from most of its view for longer than ``grace_ms``,
goes on, and crashes before it is back may leave a hole. Who was away for longer than ``forget_ms``
lacks what was sent meanwhile. If a view of servers crashes as a whole, and with it a local group, what
had only come to others from that group may be delivered without what it comes after. Who leaves is
not owed what was under way to it. If the last of a local group leaves just when another group is
merged with it, and comes back, then what it sends may be delivered there without what that comes after.
Whoever starts again looks for the group in which it first was.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal

from ..base import (
    NS_PER_MS,
    SEQUENCE_BITS,
    Count,
    Deliver,
    Discard,
    Effects,
    Figure,
    Place,
    Protocol,
    Ratio,
    SetTimer,
)
from ..wire import Message
from .early import EarlyRelays
from .group import Group
from .matrices import Matrices
from .membership import FIRST, Timing
from .messages import MESSAGES, Cast
from .relay import BACKING_BITS
from .servers import Servers
from .shape import merge, split
from .stamped import Stamped
from .star import Star
from .states import Reshape
from .tree import LEVEL, daisy
from .view import Member, View, ViewId

TICK = "tick"
PATIENT = 10  # heartbeats in which a group that was silenced should have nothing left


class Daisy(EarlyRelays):
    """Local groups joined by servers, on any number of levels."""

    name: ClassVar[str] = "daisy"
    paper: ClassVar[str] = "Baldoni, Friedman & van Renesse 1996"
    wire_id: ClassVar[int] = 9
    takes_subsets: ClassVar[bool] = True
    rests: ClassVar[bool] = False
    repairs: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (*MESSAGES, Stamped)
    figures: ClassVar[tuple[Figure, ...]] = (
        Ratio(
            "broadcasts_per_message", "broadcasts per message", of="broadcasts", per="multicasts"
        ),
        Ratio(
            "broadcast_control_bytes_per_copy",
            "control bytes per broadcast copy",
            form=",.1f",
            of="broadcast_control_bytes",
            per="broadcast_copies",
        ),
        Ratio(
            "copies_per_broadcast", "copies per broadcast", of="broadcast_copies", per="broadcasts"
        ),
        Ratio(
            "buffered_messages_mean",
            "messages buffered per process, mean",
            of="buffered_messages",
            per="buffer_samples",
        ),
    )

    @dataclass(frozen=True)
    class Settings(Protocol.Settings):
        """Local groups of about ``group_size``; who is silent for ``patience_ms`` is suspected.

        A local group with more members than ``split_above`` is split; one with fewer than
        ``merge_below`` is merged with another, if that does not make it too large.

        The paper's optimisations: servers relay ``early``, what is not deliverable to them yet. And
        ``inside`` a group messages go to "all", or to "recipients" only, where they survive the crash
        of ``resilience`` members at once, or in local groups by way of the "server".
        """

        group_size: int = 4
        levels: int = 2
        heartbeat_ms: float = 50
        patience_ms: float = 500
        grace_ms: float = 2000
        forget_ms: float = 60_000
        ack_ms: float = 2
        safe: bool = True
        early: bool = False
        inside: Literal["all", "recipients", "server"] = "all"
        resilience: int = 1
        split_above: int | None = None
        merge_below: int = 0

        def __post_init__(self) -> None:
            if self.group_size < 1 or not 1 <= self.levels <= 8:
                raise ValueError("group_size is at least 1, and there are 1 to 8 levels")
            reshapes = self.split_above is not None or self.merge_below
            if reshapes and (self.levels < 2 or not self.safe or (self.split_above or 2) < 2):
                raise ValueError("to split above 2 or more, or to merge, takes levels and safe")
            if reshapes and self.inside != "all":
                raise ValueError("only groups in which all get every message are split or merged")
            if self.early and (self.levels != 2 or self.safe or self.inside != "all"):
                raise ValueError("early takes two levels, safe = false, and inside = 'all'")
            if self.inside == "recipients" and (not self.safe or self.resilience < 0):
                raise ValueError("inside = 'recipients' takes safe, and a resilience of 0 or more")
            times = (0, self.heartbeat_ms, self.patience_ms, self.grace_ms, self.forget_ms)
            if any(a >= b for a, b in pairwise(times)) or self.ack_ms < 0:
                raise ValueError("heartbeat, patience, grace and forget_ms rise in this order")

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        s = self.settings
        self.clock = place.base
        self.time = 0
        self.tree = daisy(place.processes, s.group_size, s.levels, s.split_above is not None)
        self.path = self.tree.path(self.me)
        self.timing = Timing(
            round(s.heartbeat_ms * NS_PER_MS),
            round(s.patience_ms * NS_PER_MS),
            round(s.grace_ms * NS_PER_MS),
            round(s.forget_ms * NS_PER_MS),
            round(s.ack_ms * NS_PER_MS) if s.safe else None,
        )
        self.seen: dict[tuple[int, int], int] = {}  # by the application
        self.reshape_from = 0
        self.returning = False
        self.talk: Counter[tuple[int, int]] = Counter()  # messages between two of the local group
        self.up = [deque() for _ in self.path]
        self.down = [deque() for _ in self.path]
        self.noted = [ViewId()] * len(self.path)
        self._begin()

    def _begin(self) -> None:
        """The groups of which this process is a member at the beginning; none after a crash."""
        backing = self.place.incarnation << BACKING_BITS
        if self.place.incarnation:
            self.groups.append(
                self._group(0, Member(self.me, backing, frozenset({self.me}), self.me))
            )
            return
        for level, number in enumerate(self.path):
            view = self._first_view(number)
            if self.me not in view.processes:
                break
            me = view.members[view.processes.index(self.me)]
            self.groups.append(self._group(level, me, view))

    def _first_view(self, number: int) -> View:
        backing = 0 if number == self.path[0] else FIRST << BACKING_BITS
        members = self.tree.members[number]
        return View(
            ViewId(FIRST, members[0]),
            tuple(Member(p, backing, *self.tree.below(number, p)) for p in members),
        )

    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        number = self.path[level]
        others = [
            m._replace(backing=0, roster=m.roster - me.roster)
            for m in self._first_view(number).members
            if m.roster - me.roster
        ]
        candidates = sorted(self.tree.rosters[number])
        kind: Callable[..., Group] = Group
        if self.settings.inside == "recipients":
            top = level + 1 == len(self.path)
            kind = partial(Group, way=partial(Matrices, k=self.settings.resilience, top=top))
        elif self.settings.inside == "server" and level == 0:
            kind = Star
        elif self.settings.early and level == 1:
            kind = Servers
        group = kind(number, me, self.timing, candidates, view=view, now=now, others=others)
        if level == 0:
            group.gather = self._gather
        return group

    @classmethod
    def local_groups(cls, processes: int, settings: Any) -> tuple[frozenset[int], ...]:
        """The groups of the lowest level at the beginning."""
        tree = daisy(processes, settings.group_size, settings.levels)
        return tuple(roster for number, roster in tree.rosters.items() if number < LEVEL)

    def busy(self) -> bool:
        """While it is no member, or wants to be none, and during a view change."""
        return not self.local.open or self.local.leaving or bool(self.outbox)

    def start(self, now: int) -> Effects:
        """Heartbeats begin, not all at the same moment."""
        yield SetTimer(TICK, round(self.place.rng.random() * self.timing.heartbeat))

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Broadcast in the local group; others take it further."""
        self.clock += 1
        self.time += 1
        cast = Cast(self.me, self.clock, payload, now, time=self.time, dests=destinations)
        self.outbox.append(cast)
        yield from self._advance(now)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """A message of one of the groups."""
        for level, group in enumerate(self.groups):
            if group.number == message.group:
                yield from self._translate(level, group.receive(message, sender, now), now)
                yield from self._advance(now)
                return
        yield Discard(message, "no member")

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """The heartbeat of all groups, or an acknowledgement that is due in one."""
        if timer == TICK:
            self._return(now)
            yield from self._reshape(now)
            for level, group in enumerate(list(self.groups)):
                if group not in self.groups:
                    continue
                above = self._members_above(level)
                ticks = group.tick(now, lambda c, k=level: self._may_release(k, c, now), above)  # type: ignore[misc]
                yield from self._translate(level, ticks, now)
            yield Count("buffered_messages", sum(len(group.history) for group in self.groups))
            yield Count("buffer_samples")
            yield SetTimer(TICK, self.timing.heartbeat)
        else:
            for level, group in enumerate(self.groups):
                if timer == ("ack", group.number):
                    yield from group.acknowledge(self._members_above(level))
        yield from self._advance(now)

    def leave(self, now: int) -> Effects:
        """Be a member no longer."""
        self.local.leaving, self.returning = True, False
        yield from ()

    def join(self, now: int) -> Effects:
        """Stay, if nobody knows yet that this process leaves; else be a member again after that."""
        local = self.local
        local.leaving = local.out or self.me in local.leavers
        self.returning = local.leaving
        self._return(now)
        yield from ()

    def _return(self, now: int) -> None:
        """Ask to be admitted to the group in which this process first was."""
        if self.returning and self.local.out:
            self.returning = False
            self.path = self.tree.path(self.me)
            backing = self.local.me.backing + 1
            self.groups = [self._group(0, self.local.me._replace(backing=backing), now=now)]

    def _hand_up(self, cast: Cast) -> Effects:
        """To the application, if it is for this process and has not been here before."""
        self.time = max(self.time, cast.time)
        self.talk.update((cast.source, p) for p in cast.dests or ())
        stream = cast.source, cast.seq >> SEQUENCE_BITS
        if cast.is_for((self.me,)) and cast.seq > self.seen.get(stream, -1):
            self.seen[stream] = cast.seq
            yield Deliver(cast)

    def _reshape(self, now: int) -> Effects:
        """As a server, see to the size of the local group: silence it, and then split or merge."""
        local = self.local
        if not local.is_server or local.frozen or local.joining or len(self.groups) < 2:
            return
        above = self.groups[1].view
        if above is None or not self.groups[1].open or self.groups[1].me not in above.members:
            return
        if not (self.groups[1].may_relay(now) and self.groups[1].is_calm(now)):
            return
        plan = self._plan(above, now) if now >= self.reshape_from else None
        if plan is not None:
            yield from local.hush(now)
            local.reshape = None if local.history else plan
            if (
                now - self.reshape_from > PATIENT * self.timing.heartbeat
            ):  # a group beside it as well
                self.reshape_from = now + round(self._pause() * self.timing.heartbeat)
        elif now >= self.reshape_from:
            self.reshape_from = now

    def _plan(self, above: View, now: int) -> Reshape | None:
        view, s = self.local.view, self.settings
        assert view is not None
        absent = self.groups[1].absent_since.values()
        if s.split_above is not None and len(view.members) > s.split_above:
            return split(view, above, self.talk)
        if any(now - since < self.timing.grace for since in absent):
            return None  # a group of unknown size will soon have a new server, unless it is dead
        if len(view.members) < s.merge_below:
            most = s.split_above or 2 * s.group_size
            return merge(self.local.number, view, above, most)
        return None

    def _pause(self) -> float:
        return self.place.rng.uniform(PATIENT, 4 * PATIENT)

    def _recorded(self, now: int) -> list[Cast] | None:
        """What is on its way from above to the local group; nothing, if it is the only one."""
        return [] if len(self.path) == 1 else self._gather(self.me, now)

    def _gather(self, process: int, now: int) -> list[Cast] | None:
        """What is on its way from above to the local group, or to one who joins it."""
        if not self.local.is_server or len(self.groups) < 2:
            return None
        above, roster = self.groups[1], self._roster(0) | {process}
        if above.joining or not above.may_relay(now) or not above.is_complete:
            return None
        casts = above.history.values()
        return [c for c in casts if c.is_for(roster) and above.is_everywhere(c.id)]
