"""The groups of one process: its local group, and those above in which it is a causal server.

The process is a member of the first few of the groups above it, in ``groups``: its local group, the
group of servers above if it is a server, and so on; the server of a group of servers is a hyper-server.
What a group delivers waits in ``up`` or ``down`` until it is relayed, see ``relay``. Both queues are
rebuilt after a view change.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from typing_extensions import override

from ..base import Deliver, Effects, Hold, Place, Protocol, Send
from ..groups.epochs import Epochs
from ..groups.epochs import left as left_epoch
from ..groups.group import Group
from ..groups.messages import Cast, Join, Leave
from ..groups.packing import Pack, packed
from ..groups.states import OUT, SEEKING
from ..groups.view import Member, View, ViewId
from ..wire import Message, MessageId
from .levels import Levels
from .relay import Relaying
from .split_merge import Reshaping
from .tree import GroupTree

BACKING_BITS = 20  # for the times that a server rejoins with the same view below


class Hierarchy(Protocol):
    """A process's groups, from its local group upwards, and what is in transit between them."""

    tree: GroupTree
    levels: Levels | None = None  # if they are added and removed

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.path: tuple[int, ...] = ()  # the numbers of all groups above
        self.groups: list[Group] = []
        self.epochs = Epochs(place.me, place.processes, place.incarnation)
        self.time = 0  # Lamport's clock
        self.outbox: deque[Cast] = deque()
        self.up: list[deque[Cast]] = []  # from this level
        self.down: list[deque[Cast]] = []  # to this level
        self.noted: list[ViewId] = []
        self.relaying, self.reshaping = Relaying(self), Reshaping(self)
        self.goodbyes: dict[int, tuple[Send, int]] = {}  # by group, and until when to repeat it
        self.datagrams = 0  # that were sent and not counted yet
        self.handing_up = False  # whether the application is being given a message

    @abstractmethod
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        """A new group of this process."""

    @abstractmethod
    def _follow(self) -> None:
        """Note that a group of this process has become, or joined, another."""

    @abstractmethod
    def _hand_up(self, cast: Cast) -> Effects:
        """Handle a message that the local group has delivered."""

    @abstractmethod
    def _receive(self, message: Message, sender: int, now: int) -> Effects:
        """Handle one message."""

    @abstractmethod
    def _timeout(self, timer: Hashable, now: int) -> Effects:
        """Handle the expiry of a timer."""

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        effects: Effects
        if isinstance(message, Pack):
            parts = message.messages()
            effects = chain.from_iterable(self._receive(part, sender, now) for part in parts)
        else:
            effects = self._receive(message, sender, now)
        return packed(self.me, effects, self._count)

    @override
    def timeout(self, timer: Hashable, now: int) -> Effects:
        return packed(self.me, self._timeout(timer, now), self._count)

    def _count(self, datagrams: int) -> None:
        self.datagrams += datagrams

    def _counted(self, effects: Effects) -> Effects:
        for effect in effects:
            if isinstance(effect, Send):
                self._count(len(effect.peers))
            yield effect

    @property
    def local(self) -> Group:
        """The local group."""
        return self.groups[0]

    def translate(self, level: int, effects: Effects, now: int) -> Effects:
        """Queue what a group delivers for the next groups; deliver what the local group does."""
        for effect in effects:
            if not isinstance(effect, Deliver):
                if level == 0 or not isinstance(effect, Hold):
                    yield effect
                continue
            cast = effect.message
            assert isinstance(cast, Cast)
            self.epochs.learn(cast.epochs)
            self.relaying.note(level, cast)
            self.reshaping.note(level, cast)
            if level == 0:
                self.handing_up = True
                yield from self._hand_up(cast)
                self.handing_up = False

    def guide(self, level: int, join: Join, sender: int, now: int) -> Effects:
        """Tell a joiner that belongs to another group so, or that its own group goes on without it.

        Two parts of a group that have not heard of each other meet in the group above, where only one
        of them can have a member.
        """
        if self.levels is not None:
            yield from self.levels.guide(level, join, sender)
        below = self.groups[level - 1] if level else None
        if below is None or below.view is None or not below.is_server or below.seeking:
            return
        if join.member.of == below.number and join.source not in below.view.processes:
            yield from below.admission.correct(join.source, now)

    def roster(self, level: int) -> frozenset[int]:
        """All processes that a group answers for."""
        view = self.groups[level].view
        return frozenset() if view is None else view.roster

    def _advance(self, now: int) -> Effects:
        """Do what has become possible: send, relay, join or leave the group above.

        What the application answers while it is given a message waits in the outbox until all that
        was delivered together has been handed up; so this ends when nothing is left to be sent.
        """
        if self.handing_up:
            return
        while True:
            yield from self._advance_once(now)
            if not (self.outbox and self.local.open):
                return

    def _advance_once(self, now: int) -> Effects:
        self._follow()
        local = self.groups[0]
        if len(self.groups) > 1 or local.is_server:
            yield from self.climb(now)
        for level, group in enumerate(self.groups):
            view = group.view
            if view is not None and view.id != self.noted[level]:
                self._renew(level, view.id)
        if local.waits and (recorded := local.above.gather(frozenset(), now)) is not None:
            yield from self.translate(0, local.resume(recorded, now), now)
        while self.outbox and local.open:
            self.time += 1
            cast, known = self.outbox.popleft(), self.epochs.pairs
            cast = replace(cast, time=self.time, epochs=known, group=local.number)
            yield from self.translate(0, local.cast(self.relaying.stamped(cast), now), now)
        if len(self.groups) == 1:
            return
        for level in range(len(self.groups) - 1):
            yield from self.relaying.relay(self.up[level], level, level + 1, now)
        for level in reversed(range(len(self.groups) - 1)):
            yield from self.relaying.relay(self.down[level], level + 1, level, now)

    def due(self, level: int) -> frozenset[int]:
        """For whom a group gets messages from above: those below it, and all who are away elsewhere.

        One of its members may be the next to find those who were away, without any other server. What
        it has for all would come to them before what was for them only.
        """
        above = self.groups[level + 1]
        outside = above.places.unknown().union(self.away(level + 1), above.detector.outside_since)
        return self.roster(level) | outside if outside else self.roster(level)

    def _renew(self, level: int, id: ViewId) -> None:
        """After a view change, queue all that may have to be relayed."""
        self.noted[level] = id
        for lower in (level - 1, level):
            if lower >= 0 and lower + 1 < len(self.groups):
                below, above = self.groups[lower], self.groups[lower + 1]
                leaves, due = partial(self.relaying.leaves, lower), self.due(lower)
                self.up[lower] = deque(filter(leaves, below.kept.all()))
                self.down[lower] = deque(c for c in self.due_below(above) if c.is_for(due))

    def due_below(self, above: Group) -> Iterable[Cast]:
        """What may have to be relayed down: all that is kept, since those who were away may be back."""
        return above.kept.all()

    def climb(self, now: int) -> Effects:
        """Join the group above as server; leave it otherwise."""
        for level, group in enumerate(self.groups):
            last, serves, view = level + 1 == len(self.groups), group.is_server, group.view
            if not serves and not last:
                left = frozenset({self.me}) if group.out else frozenset()
                for above in self.groups[level + 1 :]:
                    yield from self._farewell(above, left, now)
                self.cut(level + 1)
                group.given = {}
                return
            if not serves or level + 1 == len(self.path) or view is None:
                continue
            backing, missing = view.id.number << BACKING_BITS, group.missing()
            settled = missing == view.away
            roster = self._answers_for(level, now, settled)
            below = roster, group.number, roster & missing.union(group.given), view.epochs
            if not last:
                above = self.groups[level + 1]
                changed = above.me.backing < backing or above.me[2:] != below
                if changed and settled:
                    above.me = Member(self.me, max(above.me.backing, backing), *below)
            else:
                above = self._group(level + 1, Member(self.me, backing, *below), now=now)
                above.admission.contacts = tuple(p for p in group.reporting.above if p != self.me)
                self.groups.append(above)
                self.up[level].clear()
                self.down[level].clear()
                self.relaying.waiting[level] = now

    def cut(self, level: int) -> None:
        """Forget the groups from a level on."""
        del self.groups[level:]
        self.noted[level:] = [ViewId()] * len(self.noted[level:])

    def is_answered_for(self, level: int) -> bool:
        """Whether the group above knows that this process answers for all in its group."""
        above = self.groups[level + 1]
        known = above.view is not None and above.me in above.view.members
        return known and self.roster(level) <= above.me.roster

    def is_member(self, level: int) -> bool:
        """Whether this process is a member at a level now."""
        return level < len(self.groups) and self.groups[level].state not in (SEEKING, OUT)

    def _answers_for(self, level: int, now: int, settled: bool) -> frozenset[int]:
        """A group's members, and those split off for which no other member answers yet.

        If the group above was split too, this process may not see there that another answers. Until it
        can say there that it does so no longer, it answers for them: the other may be gone by then.
        """
        group = self.groups[level]
        if not group.given:
            return self.roster(level)
        if level + 1 < len(self.groups):
            above = self.groups[level + 1]
            left = above.succession.left()  # nobody answers for these any more
            members = () if above.view is None or not settled else above.view.members
            others = (m for m in members if m.process != self.me)
            served = left.union(self.roster(level), *(self._served(m, group) for m in others))
            group.given = {p: given for p, given in group.given.items() if p not in served}
        if settled:
            timing = group.timing
            since = now - (timing.forget if self.levels is None else 3 * timing.grace)
            group.given = {p: given for p, given in group.given.items() if given.at >= since}
        return self.roster(level).union(group.given)

    def _served(self, member: Member, group: Group) -> frozenset[int]:
        """Those below a member whom a group of this process has split off, if it can know that.

        Else it may have split them off as well, and rely on this process. Only who serves the group to
        which they were split off is relied upon for those who are away from there, too.
        """
        view = member.backing >> BACKING_BITS
        here = member.roster - member.away
        return frozenset(
            p
            for p, given in group.given.items()
            if p in (member.roster if member.of == given.group else here) and view >= given.view
        )

    def _farewell(self, group: Group, left: frozenset[int], now: int) -> Effects:
        peers = () if group.view is None else group.view.processes
        peers = tuple(p for p in peers if p != self.me)
        if peers:
            of, backing = group.number, group.me.backing
            epoch = self.epochs.of(self.me)
            epoch = left_epoch(epoch) if left else epoch
            leave = Leave(
                self.me, 0, group=of, backing=backing, epoch=epoch, roster=left, gone=True
            )
            goodbye = Send(peers, leave)
            self.goodbyes[of] = goodbye, now + self.local.timing.grace
            yield goodbye

    def _repeat_goodbyes(self, now: int) -> Effects:
        """Say again that this process has left a group, until somebody answers that it is out."""
        mine = {group.number for group in self.groups}
        self.goodbyes = {
            number: (goodbye, until)
            for number, (goodbye, until) in self.goodbyes.items()
            if number not in mine and now < until
        }
        for goodbye, _ in self.goodbyes.values():
            yield goodbye

    def arrived(self, level: int, cast: Cast, now: int) -> bool:
        """Whether all destinations below this process have delivered a message."""
        if level == 0:
            return True
        below = self.groups[level - 1]
        if below.view is None:
            return False  # it is about to join another group
        if cast.is_for(below.view.away.union(below.given) - self._known_away(level)):
            return False  # it would be forgotten here, and the group below might crash
        if not cast.is_for(self.roster(level - 1)):
            return True
        return below.is_settled(cast) and self.arrived(level - 1, cast, now)

    def away(self, level: int) -> frozenset[int]:
        """The processes that are away from a group."""
        view = self.groups[level].view
        return frozenset() if view is None else view.away

    def _known_away(self, level: int) -> frozenset[int]:
        """Those of whom a group knows that they are away, or away from below this process."""
        view = self.groups[level].view
        members = () if view is None else view.members
        mine = (member.away for member in members if member.process == self.me)
        return self.away(level).union(*mine)

    def is_due(self, cast: Cast) -> bool:
        """Whether a message is for this process, as a member since it came last."""
        return cast.is_due(self.me, self.epochs.of(self.me))

    def is_awaited(self) -> bool:
        """Whether others may lack what this process delivered before it left; absent ones, too."""
        return bool(self.local.kept.all())

    def recent(self, former: Group) -> dict[MessageId, Cast]:
        """What others may lack of what this process delivered before it left, in causal order."""
        return {cast.id: cast for cast in former.kept.all()}

    def look_around(self, level: int, now: int) -> None:
        """As server, tell a group who is in the group above, and who is away from other groups.

        Who was away is so until it is known to have what was kept for it.
        """
        if level + 1 < len(self.groups) and (view := self.groups[level + 1].view) is not None:
            group, above = self.groups[level], self.groups[level + 1]
            unknown, above_it = above.places.unknown(), above.detector.outside_since
            outside = view.away.union(unknown, above_it, self.coming_back(level))
            group.reporting.learn_above(view.processes, now)
            group.detector.learn_outside(outside - self.roster(level), now)
            group.places.learn(self.epochs.pairs, unknown)

    def coming_back(self, level: int) -> frozenset[int]:
        """Who was away from other groups, and may lack what was kept for it.

        That is still to be relayed up, or is not stable above since it was, or was carried over there.
        """
        group, above = self.groups[level], self.groups[level + 1]
        before = group.detector.outside_since
        if not before or above.casting is None:
            return frozenset(before)
        relayed = [c for name, c in above.history.items() if name in group.kept.archive]
        kept = (*self.up[level], *above.casting.carried(), *relayed)
        return frozenset(p for p in before for cast in kept if cast.is_for({p}))
