"""View change: how the members agree on a view by Flush, Flushed and Install.

The coordinator proposes a view (Flush). Members stop, promise to accept no lesser one, and say which
processes they answer for, and the labels of their messages that are not stable (Flushed). The
coordinator fetches what it lacks of them, and sends all the view and the labels of the union (Install),
in the order of their logical times; members fetch what they lack, and deliver it before they go on. A
joiner answers Flush as well: one that returns brings along what only it has. If the coordinator
crashes, the next one proposes a greater view, and so does one that hears that a member waits for one.

What is kept for processes that are away is named only when somebody joins. It need not be known who
of the joiners is to deliver what: a message tells its ``epochs``.

If no message is kept any more, a view may be *reshaped*: some members become a group of their own, or
join another group, and ask there for what is in transit to them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from ..base import Count, Effects, Send
from ..wire import MessageId, WireError
from .agreed import (
    Flushed,
    Install,
    Label,
    Proposal,
    Reshape,
    holders_of,
    merged,
    parts_of,
)
from .answers import Answers
from .casting import Casting
from .epochs import Agreed, Pairs, is_member
from .epochs import of as epoch_of
from .flush import FLUSHED, INSTALL, Fetch, Flush, Missing, Part
from .messages import NO_VIEW, Cast
from .stability import stream_of
from .states import PROPOSING
from .transfer import Assembly, Fetching, Pace
from .view import Member, View, ViewId, following

if TYPE_CHECKING:
    from .group import Group

STRONG = 256  # what a majority adds to a view's number, so that its view prevails


class ViewChange:
    """One process's part in the changes of a group's views."""

    def __init__(self, group: Group, view: View | None, answers: Answers | None = None) -> None:
        self.group = group
        self.promised = ViewId() if view is None else view.id
        self.proposal: Proposal | None = None
        self.pending: Install | None = None  # agreed on, but some messages are not here yet
        self.reshape: Reshape | None = None  # what this process wants as coordinator
        self.weak_until = self.behind_until = 0
        self.short_since: int | None = None  # when too little was known to go on
        self.invited = frozenset(() if view is None else view.processes)
        self.parts: dict[int, tuple[Part, ...]] = {}  # the last Flushed and Install that were sent
        self.answers = answers or Answers()
        self.assembly, self.fetching, self.pace = Assembly(), Fetching(), Pace()

    @property
    def view(self) -> View:
        """The view that is to be followed by another."""
        assert self.group.view is not None
        return self.group.view

    @property
    def _casting(self) -> Casting:
        """The broadcasts of that view."""
        assert self.group.casting is not None
        return self.group.casting

    def lead(self, now: int) -> Effects:
        """As coordinator, propose a view if the current one has not exactly the right members."""
        group, next = self.group, self.group.succession
        alive = group.detector.alive(now)
        leads = bool(alive) and next.leaders(alive, now)[0].process == group.me.process
        if not leads or now < self.behind_until:
            yield from self._defer("defer")
            return
        proposed = () if self.proposal is None else self.proposal.target
        target, asked = next.target(alive, proposed, now)
        if not target:
            yield group.go("left")
        elif target != self.view.members or group.frozen or self.reshape:
            yield from self._propose(target, asked, now)

    def _defer(self, event: str) -> Effects:
        """Give up the own proposal, if there is one."""
        self.proposal = None
        if self.group.state == PROPOSING:
            yield self.group.go(event)

    def hear(self, number: int, now: int) -> Effects:
        """Learn that a member waits for a view of this number; who is behind enters a newer one."""
        if number > self.promised.number and now >= self.behind_until:
            self.promised = ViewId(number)
            yield from self._defer("hear")
            if not self.group.frozen:
                yield self.group.go("hear")

    # the coordinator's part

    def _propose(self, target: tuple[Member, ...], asked: frozenset[int], now: int) -> Effects:
        group, proposal = self.group, self.proposal
        late = proposal is not None and now - proposal.since >= group.timing.grace
        if proposal is not None and late and proposal.waiting():
            proposal = None  # some are alive, but have promised another view of that number
        if proposal is None or (proposal.target, proposal.asked) != (target, asked):
            joins = group.succession.anybody_joins(target)
            joiners = group.succession.joiners.copy()
            proposal = self.proposal = Proposal(self.promised, target, asked, joins, joiners, now)
            grows = 1 if self._weakens(proposal, now) else STRONG
            self.promised = proposal.id = ViewId(self.promised.number + grows, group.me.process)
            self.pending = None
            self.fetching.need({})
            yield group.go("propose")
            proposal.states[group.me.process] = group.flushed(joins)
        if waiting := proposal.waiting():
            yield group.send(waiting, Flush, view=proposal.id, joins=proposal.joins)
        yield from self._decide(now)

    def _weakens(self, proposal: Proposal, now: int) -> bool:
        next = self.group.succession
        replaced = (next.replaced(proposal.target) - next.renewed()) | next.gone()
        return now < self.weak_until or not self.view.is_majority(proposal.asked, replaced)

    def _decide(self, now: int) -> Effects:
        """Install the proposed view if all who were asked have answered, and all they have is here."""
        group, proposal = self.group, self.proposal
        if proposal is None or proposal.waiting():
            return
        group.succession.recall(proposal)
        states = proposal.states
        newest = group.succession.newest(states)
        if newest > self.view.id:  # others are in a newer view, and will say so
            self.promised, self.behind_until = newest, now + group.timing.patience
            yield from self._defer("defer")
            for process in (p for p, s in states.items() if s.view == newest):
                yield from group.reporting.say_view(process)
            return
        due = group.succession.due(proposal, now)
        if due is None or self._waits_for_others(proposal, now):
            return
        self.fetching.found |= {cast.id: cast for cast in due}
        labels = merged((*self._casting.union(states.values()), *map(Label.of, due)))
        self.fetching.need(holders_of(self._lacking(labels), states))
        if self.fetching.holders:
            yield from self._fetch(now)
            return
        install = self._conclude(proposal, labels, now)
        self.reshape = None
        parts = self._in_parts(install.encode(), proposal.id, INSTALL)
        peers = tuple(m.process for m in proposal.target if m.process != group.me.process)
        for part in parts if peers else ():
            yield Send(peers, part)
        if group.me.process in install.invited:
            yield from self._adopt(install, now)
        elif group.me.process in group.succession.leavers:
            yield group.go("left")
        else:
            yield from group.admission.be_expelled(now)

    def _waits_for_others(self, proposal: Proposal, now: int) -> bool:
        """Whether too many members are missing, whose messages may be needed."""
        if not self._casting.depends_on(self.group.succession.missing(proposal.states, now)):
            return False
        since = self.short_since = now if self.short_since is None else self.short_since
        return now - since < self.group.timing.grace

    def _conclude(self, proposal: Proposal, labels: Sequence[Label], now: int) -> Install:
        """The new view, and what is carried over into it."""
        group, view = self.group, self.view
        states = proposal.states.values()
        next = group.succession
        stay, left = next.up_to_date(proposal.target, states), next.left()
        union = tuple(self._casting.closed(labels, self.find))
        epochs = next.epochs(states)
        left |= {p for m in view.absent for p in m.roster if not is_member(epoch_of(epochs, p))}
        seen = group.kept.seen.copy()
        late = () if self._casting.all_seen_counts else (view.id, NO_VIEW)
        told = (s.seen for s in states if not late or s.view in late)
        for name in (*(label.id for label in union), *chain(*told)):
            seen[stream_of(name)] = max(seen.get(stream_of(name), -1), name.seq)
        reshape = None if union or stay != view.members else self.reshape
        if reshape is not None and reshape.contacts and group.above.needs_this_process():
            reshape = None
        if reshape is not None and not reshape.contacts:
            stay = tuple(m for m in stay if m not in reshape.members)
            left |= reshape.roster
        names = tuple(MessageId(source, seq) for (source, _), seq in seen.items())
        weak = self._weakens(proposal, now)
        brought = chain(*(s.absent for s in states if s.view == NO_VIEW))
        absent = (*view.absent, *(m for m in brought if m.process not in left))
        old = replace(view, absent=tuple(dict.fromkeys(absent)))
        next_view = following(old, proposal.id, stay, left, weak)
        return Install(next_view, names, union, reshape, epochs)

    # a member's part

    def on_flush(self, flush: Flush, sender: int, now: int) -> Effects:
        """Answer a proposal with what this process has; once more, with the first part only."""
        group = self.group
        known = group.view is not None and sender in group.view.processes
        if not (known or group.seeking):
            return
        if group.view is not None and (flush.view <= group.view.id or flush.view < self.promised):
            if group.seeking and flush.view > group.view.id:  # the proposal must be greater
                yield from group.reporting.say_view(sender, self.promised.number)
            return  # a process without a view has nothing to lose, and joins any that asks
        if self.answers.is_spent(flush.view):
            if group.view is not None:
                yield from group.reporting.say_view(sender, flush.view.number + 1)
            return
        parts = self.parts.get(FLUSHED, ())
        if flush.view == self.promised and parts and parts[0].view == flush.view:
            yield from self.send_again(FLUSHED, sender, now)
            return
        self.promised = flush.view
        self.answers.give(flush.view)
        self.proposal = self.pending = None
        self.fetching.need({})
        group.admission.asking_since = now
        group.admission.contacts = group.admission.contacts or (sender,)
        yield group.go("flush")
        answer = group.flushed(flush.joins).encode()
        for part in self._in_parts(answer, flush.view, FLUSHED):
            yield Send((sender,), part)
        self.pace.sent_at[sender, FLUSHED, 0] = now
        yield Count("flushes")

    def on_part(self, part: Part, sender: int, now: int) -> Effects:
        """Put together what a member answers, or the view that the coordinator installs."""
        own = self.proposal.id if part.what == FLUSHED and self.proposal else self.promised
        view = self.group.view
        if part.view != own or (view is not None and part.view <= view.id):
            return
        if self.pending is not None:  # whoever sends it again has what is still missing
            self.fetching.need(dict.fromkeys(self.fetching.holders, sender))
            return
        data = self.assembly.add(part, sender, now)
        if data is None:
            return
        try:
            if part.what == INSTALL:
                yield from self._on_install(Install.decode(data), sender, now)
            elif self.proposal is not None and self.counts(answer := Flushed.decode(data), sender):
                self.proposal.states[sender] = answer
                yield from self._decide(now)
        except WireError:
            yield Count("malformed")

    def counts(self, answer: Flushed, sender: int) -> bool:
        """Whether an answer counts: who was restarted is not the member that it was, and joins."""
        asked = () if self.proposal is None else self.proposal.target
        return answer.view != NO_VIEW or not any(m.succeeds(asked) for m in answer.member)

    def _in_parts(self, data: bytes, view: ViewId, what: int) -> tuple[Part, ...]:
        group = self.group
        self.parts[what] = parts_of(data, view, what, group.me.process, group.number)
        return self.parts[what]

    def send_again(
        self, what: int, peer: int, now: int, indices: Collection[int] = (0,)
    ) -> Effects:
        """Send a process parts of the last Flushed or Install again, each once a while."""
        parts, pause = self.parts.get(what, ()), self.group.timing.heartbeat // 2
        for index in indices:
            if index < len(parts) and self.pace.may_send((peer, what, index), now, pause):
                yield Send((peer,), parts[index])

    def on_missing(self, missing: Missing, sender: int, now: int) -> Effects:
        """Send some parts again."""
        parts = self.parts.get(missing.what, ())
        if parts and parts[0].view == missing.view:
            yield from self.send_again(missing.what, sender, now, missing.parts)

    def on_fetch(self, fetch: Fetch, sender: int, now: int) -> Effects:
        """Send messages that another needs; they are of no view, so that nobody else acts on them."""
        pause = self.group.timing.heartbeat // 2
        for name in fetch.names:
            cast = self.find(name)
            if cast is not None and self.pace.may_send((sender, name), now, pause):
                yield Send((sender,), replace(cast, group=self.group.number, view=NO_VIEW))
                yield Count("fetched")

    def on_body(self, cast: Cast, now: int) -> Effects:
        """Take a message that is needed; go on, if it was the last one."""
        if not self.fetching.take(cast, now):
            return
        self.group.admission.go_on(now)
        if self.fetching.holders:
            yield from self._fetch(now)
        elif self.pending is not None:
            yield from self._adopt(self.pending, now)
        else:
            yield from self._decide(now)

    def again(self, now: int) -> Effects:
        """Ask again for what should have arrived."""
        group, pause = self.group, self.group.timing.heartbeat
        if self.assembly.incoming:
            for peer, missing in self.assembly.requests(group.me.process, group.number, now, pause):
                yield Send((peer,), missing)
        if self.fetching.holders:
            yield from self._fetch(now)

    def _fetch(self, now: int) -> Effects:
        group, pause = self.group, self.group.timing.heartbeat
        for peer, fetch in self.fetching.requests(group.me.process, group.number, now, pause):
            yield Send((peer,), fetch)

    def _on_install(self, install: Install, sender: int, now: int) -> Effects:
        if not self.may_enter(install):
            return
        self.fetching.need(dict.fromkeys(self._lacking(install.labels), sender))
        if not self.fetching.holders:
            yield from self._adopt(install, now)
            return
        self.pending = install
        yield from self._fetch(now)

    def may_enter(self, install: Install) -> bool:
        """Whether a view follows from a true answer of this process, as the member that it is."""
        me, answered = self.group.me, self.answers.may_enter(install.view.id)
        restarted = self.group.view is None and me.succeeds(install.members)
        return answered and me.process in install.invited and not restarted

    def _lacking(self, labels: Collection[Label]) -> list[MessageId]:
        """The messages that are not here; the others are kept until the change is over."""
        found = {label.id: self.find(label.id) for label in labels}
        self.fetching.found |= {name: cast for name, cast in found.items() if cast is not None}
        return [name for name, cast in found.items() if cast is None]

    def find(self, name: MessageId) -> Cast | None:
        """A message that is kept at this process, for whatever reason."""
        group = self.group
        held = None if group.casting is None else group.casting.find(name)
        kept = group.kept.find(name) or held or self.fetching.found.get(name)
        return kept or group.above.find(name)

    def body(self, label: Label) -> Cast:
        """The message of a label, which is here."""
        cast = self.find(label.id)
        assert cast is not None
        return cast

    def _adopt(self, install: Install, now: int) -> Effects:
        """Enter a new view, or leave for another group."""
        group, view, reshape = self.group, install.view, install.reshape
        casts = [self.body(label) for label in install.labels]
        event = "install"
        if reshape is not None and group.me.process in reshape.processes:
            yield Count("moves")
            group.number, group.admission.others = reshape.number, ()
            if reshape.contacts:
                yield from group.admission.move(reshape)
                return
            event, view = "split", View(view.id, reshape.members, (), view.weak)
            below = (*view.processes, *sorted(view.roster.difference(view.processes)))
            group.admission.candidates = tuple(p for p in below if p != group.me.process)
        elif reshape is not None:
            group.given |= reshape.given(view.id, now) if group.is_server else {}
        self.invited = install.invited
        casts = [c if c.group == group.number else replace(c, group=group.number) for c in casts]
        yield group.go(event)
        yield from self.enter(view, install.epochs, now)
        self._in_parts(install.encode(), view.id, INSTALL)
        yield from group.begin(casts, install.seen, now)

    def enter(self, view: View, epochs: Pairs, now: int) -> Effects:
        """Start again in a new view."""
        self.group.epochs.learn(epochs)
        self.group.agreed = Agreed(epochs)
        self.group.succession.enter(view)
        self.group.view, self.promised, self.behind_until = view, view.id, 0
        if not view.weak:
            self.weak_until = 0
        elif now >= self.weak_until:
            self.weak_until = now + self.group.timing.grace
        self.reset()
        self.fetching.forget()
        yield Count("view_changes")

    def reset(self) -> None:
        """Forget the change that is over, but for the messages that others may fetch for their view."""
        self.proposal = self.pending = self.short_since = self.reshape = None
        self.assembly.incoming.clear()
        self.fetching.need({})
        self.pace.sent_at.clear()
        self.parts.pop(FLUSHED, None)
        self.answers.spend(ViewId() if self.group.view is None else self.group.view.id)
