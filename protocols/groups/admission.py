"""How a process becomes a member, stays one, and leaves.

A process that starts, comes from another group, or has become a server asks around, at every heartbeat,
until it is admitted; so does a member that was expelled and yet is alive. Members forward that to the
leader. Without an answer for ``grace`` it goes on alone: in its old view, or it starts the group again;
of several who seek a group that is gone, the first does so and admits the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..base import Count, Effects, Send
from .agreed import Reshape
from .epochs import left
from .flush import INSTALL
from .messages import INSIDE, MOVED, OUTSIDE, Expelled, Join, Leave
from .succession import Joiner
from .view import Member, View, ViewId

if TYPE_CHECKING:
    from .group import Group


class Admission:
    """One process's way into a group and out of it, and what it does for others who seek it."""

    def __init__(self, group: Group, candidates: Iterable[int], others: Iterable[Member]) -> None:
        self.group, self.timing = group, group.timing
        me = group.me.process
        self.candidates = tuple(p for p in candidates if p != me)  # who might be members
        self.contacts: tuple[int, ...] = ()  # who are
        self.others = tuple(others)  # the absent, if this process has to start the group again
        self.hasty = False  # whether a group that it starts again may relay at once
        self.moved = False  # whether it comes from another group
        self.brought: tuple[Member, ...] = ()  # who was absent there
        self.asking_since: int | None = None
        self.said_goodbye = False  # so that somebody may take it to have left
        self.seekers: dict[int, int] = {}  # who seeks the group as well, and when that was heard
        self.turn = 0

    # to be admitted

    def seek(self, now: int) -> Effects:
        """Ask to be admitted; without an answer for long, go on alone."""
        yield from self.ask(now)
        if self.asking_since is None:
            self.asking_since = now
        most = self.timing.grace * (3 if self.moved else 1)
        if min(self._seekers(now), default=self.group.me.process) < self.group.me.process:
            most += self.timing.patience
        if now - self.asking_since >= most:
            yield from self._go_on_alone(now)

    def ask(self, now: int) -> Effects:
        """Ask known members, who else seeks the group, and one by one all who might be members.

        A member announces its new roster to the leader.
        """
        group = self.group
        if group.seeking:
            how = MOVED if self.moved else OUTSIDE
            asked = {*self.contacts, *self._seekers(now), *self._candidate()}
            peers = tuple(sorted(asked - {group.me.process}))
        else:
            how, peers = INSIDE, group.detector.hubs(now)
        if peers:
            fields = group.me._asdict()
            del fields["process"]
            yield group.send(peers, Join, how=how, **fields)

    def go_on(self, now: int) -> None:
        """Wait as long again, and let others wait: what is needed for the next view is arriving."""
        joiners = self.group.succession.joiners
        joiners.update({p: joiner._replace(asked_at=now) for p, joiner in joiners.items()})
        if self.asking_since is not None:
            self.asking_since = now

    def _seekers(self, now: int) -> list[int]:
        return [p for p, heard in self.seekers.items() if now - heard < self.timing.patience]

    def _candidate(self) -> tuple[int, ...]:
        self.turn += 1
        return self.candidates[self.turn % len(self.candidates) :][:1] if self.candidates else ()

    def turns(self) -> int:
        """How long it takes to ask all who might be members."""
        return len(self.candidates) * self.timing.heartbeat

    def _go_on_alone(self, now: int) -> Effects:
        group = self.group
        group.ticked_at = now
        if group.view is not None:
            yield group.go("go-on")
            group.detector.forsake(now)
            return
        yield from self.found(now)

    def found(self, now: int) -> Effects:
        """Start the group, or start it again, with all that is kept of it.

        What was kept for those who were away may now have to be relayed to them.
        """
        group = self.group
        id = ViewId(1 + group.change.promised.number, group.me.process)
        yield group.go("found")
        if self.hasty:
            group.change.weak_until = now + 1  # nobody was heard of for long enough already
        view = View(id, (group.me,), self.others, weak=True)
        yield from group.change.enter(view, group.epochs.pairs, now)
        yield from group.begin(group.kept.all(), (), now)

    def move(self, reshape: Reshape) -> Effects:
        """Become a joiner of another group, of the new number.

        It brings along what it delivered and keeps only above: a part of that group may lack it, and
        must not get what this process sends next without it.
        """
        group = self.group
        group.kept.history |= {c.id: c for c in group.above.kept() if group.has_seen(c)}
        yield group.go("move")
        self.brought = () if group.view is None else group.view.absent
        self.contacts, self.moved, self.asking_since = (), True, None
        beside = reshape.processes - {group.me.process}
        self.candidates = (*reshape.contacts, *sorted(beside))
        group.give_up_view()

    def astray(self) -> bool:
        """Whether nobody of the group that it seeks has answered, and it was not sent there.

        Two groups may take it for one of theirs, if one of them was merged while another part of it
        was cut off. It stays with the first, or they would take it from each other for ever.
        """
        return not (self.moved or self.contacts)

    def redirect(self, number: int, contact: int, now: int) -> Effects:
        """Seek the group that the former members have joined; they keep what is owed to this one."""
        if self.group.out:
            return
        if not self.group.seeking:
            yield self.group.go("expel")
        self.group.number, self.contacts, self.asking_since = number, (contact,), now
        self.group.give_up_view()
        yield from self.ask(now)

    def be_expelled(self, now: int) -> Effects:
        """There is a view without this process: ask to be admitted as a new member."""
        yield Count("expelled")
        yield self.group.go("expel")
        self.group.change.reset()
        self.asking_since = now
        self.group.me = self.group.me._replace(backing=self.group.me.backing + 1)
        yield from self.ask(now)

    def on_expelled(self, message: Expelled, sender: int, now: int) -> Effects:
        """Learn of a view that this process is not in."""
        group = self.group
        if group.view is None or group.seeking:
            self.contacts = (sender,)
            if self.moved:
                self.asking_since = now
        elif message.view > group.view.id and group.me.process in group.succession.leavers:
            yield group.go("left")
        elif message.view > group.view.id:
            self.contacts = (sender,)
            yield from self.be_expelled(now)
        elif message.view < group.view.id:
            yield group.send((sender,), Expelled, view=group.view.id)

    # as a member

    def on_join(self, join: Join, sender: int, now: int) -> Effects:
        """Note who wants to be a member, for the next view, and tell the leader."""
        group, change = self.group, self.group.change
        if join.source == group.me.process:
            return
        if group.view is None or group.seeking:
            self.seekers[join.source] = now
        elif join.member in group.view.members:
            group.detector.hear(
                join.source, now
            )  # it still fetches what it needs to enter the view
            yield from change.send_again(INSTALL, join.source, now)
            yield from self._forward(join, sender, now)
        elif not any(m.replaces(join.member) for m in group.view.members):
            how = self.how_it_joins(join)
            group.succession.joiners[join.source] = Joiner(join.member, how, now)
            group.succession.asked[join.source] = now
            group.succession.leavers.pop(join.source, None)
            group.detector.gone.discard(join.source)
            yield from self._forward(join, sender, now)
            if join.how == MOVED:  # it may take a while, but the group exists
                yield group.send((join.source,), Expelled, view=group.view.id)

    def _forward(self, join: Join, sender: int, now: int) -> Effects:
        """Tell the leader of somebody who asks, if nobody else has."""
        leader = self.group.succession.leaders(self.group.detector.alive(now), now)[0].process
        if sender == join.source and leader != self.group.me.process:
            yield Send((leader,), join)

    def how_it_joins(self, join: Join) -> int:
        """How one joins: who is inside another view of the group comes from outside of this one."""
        assert self.group.view is not None
        inside = join.how == INSIDE and join.source in self.group.view.processes
        return join.how if inside or join.how != INSIDE else OUTSIDE

    def on_leave(self, leave: Leave) -> Effects:
        """Note who wants to be a member no longer, unless it has come back since it said so."""
        group = self.group
        if group.view is None or group.seeking or leave.source == group.me.process:
            return
        if leave.source not in group.view.processes:
            yield group.send((leave.source,), Expelled, view=group.view.id)
        elif group.succession.is_recent(leave, group.view):
            group.succession.leavers[leave.source] = leave
            group.detector.gone |= group.succession.gone()

    def correct(self, sender: int, now: int) -> Effects:
        """Answer a report from an older view."""
        group = self.group
        assert group.view is not None
        if sender not in group.change.invited:
            yield group.send((sender,), Expelled, view=group.view.id)
        else:
            yield from group.change.send_again(INSTALL, sender, now)

    def mind_own_place(self, now: int) -> Effects:
        """Leave, once nothing of its own is in transit; or announce a new roster."""
        group, me = self.group, self.group.me.process
        assert group.view is not None
        if group.leaving and not self.is_needed(now):
            _, backing, roster, *_ = group.me
            peers = group.peers()
            epoch = left(group.epochs.of(me))
            leave = Leave(me, 0, group=group.number, backing=backing, epoch=epoch, roster=roster)
            group.succession.leavers[me] = leave
            self.said_goodbye = True
            if peers:
                yield Send(peers, leave)
        if group.me not in group.view.members:
            group.succession.joiners[me] = Joiner(group.me, INSIDE, now)
            yield from self.ask(now)

    def is_needed(self, now: int) -> bool:
        """Whether messages of this process, or for others who are away, would be lost with it.

        The others may crash before those are back who lack a message, or admitted; its sender answers
        for it.
        """
        group, archive = self.group, self.group.kept.archive
        late = self._late(now)
        mine = any(name.source == group.me.process for name in group.history) or any(
            cast.source == group.me.process and cast.is_for(late) for cast in archive.values()
        )
        last = group.is_last(now) and self._is_awaited(now)
        return mine or last or group.above.needs_this_process()

    def _late(self, now: int) -> frozenset[int]:
        """Who has been away for a short time, or asks to be admitted: each process in turn."""
        turns = self.turns()
        return self.group.detector.away_lately(now - turns) | self.group.succession.come(
            now - turns
        )

    def _is_awaited(self, now: int) -> bool:
        """Whether some of these, or somebody who is away from another group, lack what is kept here."""
        late = self._late(now) | self.group.detector.outside_lately(now - self.turns())
        return bool(late) and any(cast.is_for(late) for cast in self.group.kept.all())

    def probe(self, now: int) -> Effects:
        """As server, look for absent members that are alive, and for unknown views.

        One that never was a member, and is only owed what is sent here, is not looked for: it would
        take this group for its own.
        """
        group = self.group
        assert group.view is not None
        if not group.is_server:
            return
        owed = group.detector.owed(now)
        absent = (m for m in group.view.absent if m.process not in m.away)
        peers = {m.process for m in absent if m.roster & owed}
        if peers:
            peers |= {*self._candidate()}
        if peers := peers.difference(group.view.processes):
            yield group.send(tuple(sorted(peers)), Expelled, view=group.view.id)
