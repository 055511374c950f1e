"""The hierarchical daisy: local groups, causal servers that relay between them, hyper-servers above.

Baldoni, Friedman & van Renesse, "The Hierarchical Daisy Architecture for Causal Delivery", 1996.

    3.1    local groups and groups of servers (Fig. 3)    ``tree``, ``hierarchy``, ``above``
           what the group communication system does       ``groups``: views, causal broadcast, stability
           relaying between groups                        ``relay``
           groups that split and merge (Fig. 4)           ``split_merge``
    3.1.1  stability within and across groups             ``groups.stability``, ``Relaying.may_release``
    3.1.2  a server fails                                 ``Hierarchy.climb``, ``groups.view_change``
    3.2    more levels (Fig. 5)                           ``tree``, ``hierarchy``
           another daisy, hyper-servers at run time       ``levels``, ``split_merge.Reshaping``
    3.3    packing of messages                            ``groups.packing``
    3.4    1. early relaying                              ``early_relay``, ``server_group``
           2. to the recipients only                      ``matrices``
           3. by way of the server                        ``star``

A message is causally broadcast in its sender's local group. The group's server, the first of its
view, broadcasts it in the group of servers above if it has destinations elsewhere, and so on up; a
member of a group of servers broadcasts it in its group below if it has destinations there. Duplicates
are dropped by source, incarnation and sequence number.
Delivery: within a group by one vector of the group's size (``groups.casting``).
Invariant: a server relays what a group has *delivered*, in that order, and, if ``safe``, once every
member of the view is known to have delivered it. So the survivors of a view have all that ever left
the group, and its causal past. The paper relays at once; then a sender and its server that crash
together take messages with them that have already been answered elsewhere, which leaves holes.
State: one ``Group`` for each level at which this process is a member; what waits to be relayed.
Cost: 32 + 16 + 4m + 4|Dests| + d bytes a copy in a group of m; every heartbeat a report of 60 + 8m
bytes from each member to the server and of 60 + 12m back; if ``safe``, one after a delivery to who
relays the message.

Limits. Without ``safe``: as above. A process that is cut off from most of its view for longer than
``grace_ms``, goes on, and crashes before it is back may leave a hole. One that was away for longer
than ``forget_ms`` lacks what was sent meanwhile; one that leaves is not owed what was in transit. If a
whole view of servers crashes together with a local group, messages that others had from that group may
be delivered without their causal past. So may what follows a message for some processes only, if all
who have that are cut off for longer than ``grace_ms``; what the last member of a local group sends, if
it leaves just when another group merges with its own, and comes back; and, where groups are split,
what a process sends that leaves one and soon comes back to another, before that has what it delivered
last. Where levels grow, those who were cut off for longer than ``grace_ms`` may lose messages.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal

from typing_extensions import override

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
    Transition,
)
from ..groups.casting import Casting, Way
from ..groups.detector import Timing
from ..groups.group import Group
from ..groups.messages import Cast, Expelled, Join
from ..groups.packing import MESSAGES
from ..groups.states import EXPECTED
from ..groups.view import FIRST, Member, View, ViewId
from ..wire import Message
from .above import AboveLocal, AboveServers
from .early_relay import EarlyRelaying
from .hierarchy import BACKING_BITS, Hierarchy
from .levels import ADDED, REMOVED, Levels
from .matrices import Matrices
from .path import Path
from .server_group import ByOrigin
from .star import StarCasting
from .tree import LEVEL, first_groups

TICK = "tick"
SAMPLED = Count("buffer_samples")


class Daisy(Hierarchy):
    """Local groups joined by servers, on any number of levels."""

    name: ClassVar[str] = "daisy"
    paper: ClassVar[str] = "Baldoni, Friedman & van Renesse 1996"
    wire_id: ClassVar[int] = 9
    takes_subsets: ClassVar[bool] = True
    rests: ClassVar[bool] = False
    transitions: ClassVar[tuple[Transition, ...]] = (*EXPECTED, ADDED, REMOVED)
    messages: ClassVar[tuple[type[Message], ...]] = (*MESSAGES, Path)
    to_recipients: ClassVar[type[Matrices]] = Matrices  # the broadcast with inside = "recipients",
    among_servers: ClassVar[type[ByOrigin]] = ByOrigin  # and that of servers who relay early
    above_local: ClassVar[type[AboveLocal]] = AboveLocal
    above_servers: ClassVar[type[AboveServers]] = AboveServers
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
        Ratio(
            "buffered_bytes_mean",
            "bytes buffered per process, mean",
            form=",.0f",
            of="buffered_bytes",
            per="buffer_samples",
        ),
        Ratio(
            "datagrams_per_message",
            "datagrams per message, until the last delivery",
            form=",.1f",
            of="datagrams",
            per="multicasts",
        ),
    )

    @dataclass(frozen=True)
    class Settings(Protocol.Settings):
        """Local groups of about ``group_size``; a process silent for ``patience_ms`` is suspected.

        Processes are grouped by number, or by stub domain, and servers by transit domain (``groups``).
        A local group with more members than ``split_above`` is split; one with fewer than
        ``merge_below`` is merged with another, if that does not make it too large. With
        ``max_levels``, groups of servers are split too, and levels added, as many as that.

        The paper's optimisations: servers relay ``early``, before a message is deliverable to them;
        ``inside`` a group messages go to "all", or to "recipients" only, where they survive
        ``resilience`` simultaneous crashes, or, in local groups, by way of the "server".
        """

        group_size: int = 4
        groups: Literal["numbers", "domains"] = "numbers"
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
        max_levels: int = 0

        def __post_init__(self) -> None:
            if self.group_size < 1 or not 1 <= self.levels <= 8:
                raise ValueError("group_size is at least 1, and there are 1 to 8 levels")
            reshapes = self.split_above is not None or self.merge_below
            if reshapes and (self.levels < 2 or not self.safe or (self.split_above or 2) < 2):
                raise ValueError("to split above 2 or more, or to merge, takes levels and safe")
            if reshapes and self.inside != "all":
                raise ValueError(
                    "groups are split or merged only with inside = 'all': else the server of a new "
                    "group may lack messages that it has to relay (3.1.2)"
                )
            if self.max_levels and not (self.split_above and self.levels <= self.max_levels <= 8):
                raise ValueError(
                    "max_levels is at least levels and at most 8, and takes split_above"
                )
            if self.early and (self.levels != 2 or self.safe or self.inside != "all"):
                raise ValueError(
                    "early takes two levels, safe = false, and inside = 'all': a message carries a "
                    "vector for each group on its way (3.4), of which its sender knows only these"
                )
            if self.inside == "recipients" and (not self.safe or self.resilience < 0):
                raise ValueError("inside = 'recipients' takes safe, and a resilience of 0 or more")
            times = (0, self.heartbeat_ms, self.patience_ms, self.grace_ms, self.forget_ms)
            if any(a >= b for a, b in pairwise(times)) or self.ack_ms < 0:
                raise ValueError("heartbeat, patience, grace and forget_ms rise in this order")

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        s = self.settings
        self.clock = place.base
        self.tree = first_groups(place, s)
        self.path = self.tree.path(self.me)
        self.timing = Timing(
            round(s.heartbeat_ms * NS_PER_MS),
            round(s.patience_ms * NS_PER_MS),
            round(s.grace_ms * NS_PER_MS),
            round(s.forget_ms * NS_PER_MS),
            round(s.ack_ms * NS_PER_MS) if s.safe else None,
        )
        if s.early:
            self.relaying = EarlyRelaying(self)
        self.seen: dict[tuple[int, int], int] = {}  # delivered to the application
        self.returning = False
        most = max(len(self.path), s.max_levels)
        self.up = [deque() for _ in range(most)]
        self.down = [deque() for _ in range(most)]
        self.noted = [ViewId()] * most
        self.levels = self._levels()
        self._begin()

    def _levels(self) -> Levels | None:
        """What this process knows of the levels above at the beginning, if they may change."""
        rosters = (self.tree.rosters[number] for number in self.path)
        return Levels(self, rosters) if self.settings.max_levels else None

    def _begin(self) -> None:
        """Create the groups that this process is a member of at the beginning; none after a crash."""
        if backing := self.place.incarnation << BACKING_BITS:
            me = Member(self.me, backing, frozenset({self.me}), self.me)
            self.groups.append(self._group(0, me))
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

    def _known_members(self, number: int) -> tuple[Member, ...]:
        """Who was in a group at the beginning; if it was split off since, when this process left it."""
        if number in self.tree.members or self.local.view is None:
            return self._first_view(number).members
        return (*self.local.view.members, *self.local.view.absent)

    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        number = self.path[level]
        me = me if level else me._replace(epochs=self.epochs.only({self.me}))
        if self.levels is not None and (level or number not in self.tree.rosters):
            others = self.levels.others(level, me.roster)
            candidates = sorted(self.levels.rosters[level])
        else:
            known = self._known_members(number)
            rest = (m._replace(backing=0, roster=m.roster - me.roster) for m in known)
            others = tuple(m for m in rest if m.roster)
            candidates = sorted(frozenset().union(*(m.roster for m in known)))
        way: Way = Casting
        if self.settings.inside == "recipients":
            k, top = self.settings.resilience, level + 1 == len(self.path)
            way = partial(self.to_recipients, k=k, top=top)
        elif self.settings.inside == "server" and level == 0:
            way = StarCasting
        elif self.settings.early and level == 1:
            way = self.among_servers
        above = self.above_servers(self, level) if level else self.above_local(self, level)
        group = Group(
            number, me, self.timing, candidates, way, view, now, others, above, self.epochs
        )
        group.admission.hasty = level > 0  # others have had ``grace`` to take their servers' place
        return group

    @classmethod
    @override
    def local_groups(cls, place: Place, settings: Any) -> tuple[frozenset[int], ...]:
        tree = first_groups(place, settings)
        return tuple(roster for number, roster in tree.rosters.items() if number < LEVEL)

    @override
    def _follow(self) -> None:
        if self.path[0] != self.local.number:
            self.path = (self.local.number, *self.path[1:])
        if self.levels is not None:
            self.levels.follow()

    @override
    def busy(self) -> bool:
        return not self.local.open or self.local.leaving or bool(self.outbox)

    def start(self, now: int) -> Effects:
        """Start the heartbeat at a random time, so that not all beat at once."""
        yield SetTimer(TICK, round(self.place.rng.random() * self.timing.heartbeat))

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Broadcast in the local group, from where servers relay it."""
        self.clock += 1
        self.outbox.append(Cast(self.me, self.clock, payload, now, dests=destinations))
        yield from self._counted(self._advance(now))

    @override
    def _receive(self, message: Message, sender: int, now: int) -> Effects:
        for level, group in enumerate(self.groups):
            if group.number == message.group:
                if self.levels is not None and isinstance(message, Path):
                    yield from self.levels.on_path(message, sender, now)
                else:
                    yield from self.translate(level, group.receive(message, sender, now), now)
                if isinstance(message, Join):
                    yield from self.guide(level, message, sender, now)
                yield from self._advance(now)
                return
        if self.levels is not None:
            yield from self.levels.on_stray(message)
        yield from self._of_another_group(message, sender, now)
        yield from self._advance(now)

    def _of_another_group(self, message: Message, sender: int, now: int) -> Effects:
        """Handle what is for a group that this process has left, or that was merged with its own."""
        local, about = self.local, self.local.view
        if isinstance(message, Expelled):
            self.goodbyes.pop(message.group, None)
            astray = local.admission.astray() if about is None else sender in about.processes
            if message.group < LEVEL and astray:
                yield from local.admission.redirect(message.group, sender, now)
        elif message.group < LEVEL and not local.seeking and about and sender in about.away:
            # its group was merged with this one while it was away
            yield local.send((sender,), Expelled, view=about.id)
        yield Discard(message, "no member")

    @override
    def _timeout(self, timer: Hashable, now: int) -> Effects:
        if timer == TICK:
            self._return(now)
            if self.goodbyes:
                yield from self._repeat_goodbyes(now)
            yield from self.reshaping.reshape(now)
            for level, group in enumerate(list(self.groups)):
                if group not in self.groups:
                    continue
                self.look_around(level, now)
                ticks = group.tick(now, self._may_release(level, now))
                yield from self.translate(level, ticks, now)
            if self.levels is not None:
                yield from self.levels.tell(now)
            kept = [group.kept for group in self.groups]
            yield Count("buffered_messages", sum([len(k.history) + len(k.archive) for k in kept]))
            yield Count("buffered_bytes", sum([k.size() for k in kept]))
            yield SAMPLED
            yield SetTimer(TICK, self.timing.heartbeat)
        else:
            for level, group in enumerate(self.groups):
                if timer == ("ack", group.number):
                    yield from self.translate(level, group.reporting.acknowledge(now), now)
        yield from self._advance(now)

    def _may_release(self, level: int, now: int) -> Callable[[Cast], bool]:
        return lambda cast: self.relaying.may_release(level, cast, now)

    @override
    def leave(self, now: int) -> Effects:
        self.local.leaving, self.returning = True, False
        yield from ()

    def join(self, now: int) -> Effects:
        """Stay, if nobody can know yet that this process leaves; else leave and come back."""
        local = self.local
        local.leaving = local.out or local.admission.said_goodbye
        self.returning = local.leaving
        self._return(now)
        yield from ()

    def _return(self, now: int) -> None:
        """Ask to be admitted to the group in which this process first was, with what it delivered last.

        If others may not have that yet, to the one in which it last was: what it sends next must not
        come to them by a shorter way.
        """
        if self.returning and self.local.out:
            self.returning = False
            if not self.is_awaited():
                self.path = self.tree.path(self.me)
                self.levels = self._levels()
            self.epochs.come_back()
            former, me = self.local, self.local.me
            self.groups = [self._group(0, me._replace(backing=me.backing + 1), now=now)]
            if self.local.number == former.number:
                self.local.kept.history = self.recent(former)

    def _hand_up(self, cast: Cast) -> Effects:
        """Deliver to the application what is for this process and has not been here before."""
        self.time = max(self.time, cast.time)
        stream = cast.source, cast.seq >> SEQUENCE_BITS
        if self.is_due(cast) and cast.seq > self.seen.get(stream, -1):
            self.seen[stream] = cast.seq
            yield Count("datagrams", self.datagrams)
            self.datagrams = 0
            yield Deliver(cast)
