"""View change: how the members agree on a view by Flush, State and Install.

The coordinator proposes a view (Flush). Members stop, promise to accept no lesser one, and answer with
their messages that are not stable (State). The coordinator sends all of them the view and the union of
these messages (Install), in the order of their logical times; members deliver what they lack before
they go on. A joiner answers Flush as well: one that returns brings along what only it has. If the
coordinator crashes, the next one proposes a greater view, and so does one that hears that a member
waits for one.

If no message is kept any more, a view may be *reshaped*: some members become a group of their own, or
join another group, and ask there for what is in transit to them.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from typing_extensions import override

from ..base import SEQUENCE_BITS, Count, Deliver, Effects, Send
from ..wire import Message, MessageId, WireError
from .casting import Casting
from .membership import Membership, Proposal
from .messages import INSTALL, MOVED, STATE, Cast, Flush, Part
from .view import View, ViewId, following
from .view_change import Install, Reshape, State, parts_of

Way = Callable[[View, int, Sequence[Cast]], Casting]


class Agreement(Membership):
    """The agreement on views, and what is carried over from one view to the next."""

    def __init__(self, *args: Any, way: Way = Casting, **named: Any) -> None:
        super().__init__(*args, **named)
        self.way = way  # the kind of broadcast within a view
        self.casting = None if self.view is None else way(self.view, self.me.process, ())
        self.history: dict[MessageId, Cast] = {}  # delivered and not stable, in that order
        self.seen: dict[tuple[int, int], int] = {}  # the last number of each incarnation
        self.short_since: int | None = None  # when too few were left to go on
        self.collected: dict[tuple[int, int], tuple[ViewId, dict[int, bytes]]] = {}

    @abstractmethod
    def _report(self, above: tuple[int, ...], urgent: bool = False) -> Effects:
        """Report to the other members what was delivered and released."""

    def has_seen(self, message: Message) -> bool:
        """Whether a message, or a later one of its sender, was delivered in the group."""
        return message.seq <= self.seen.get(_stream(message), -1)

    def _on_flush(self, flush: Flush, sender: int, now: int) -> Effects:
        known = self.view is not None and sender in self.view.processes
        if not (known or self.joining):
            return
        if self.view is not None and (flush.view <= self.view.id or flush.view < self.promised):
            return  # a process without a view has nothing to lose, and joins any that asks
        self.promised = flush.view
        self.proposal = None
        self.asking_since = now
        state = self._state().encode()
        for part in parts_of(state, flush.view, STATE, self.me.process, self.number):
            yield Send((sender,), part)
        yield Count("flushes")

    def _state(self) -> State:
        if self.casting is None:
            return State(ViewId(), tuple(self._kept()))
        names = (MessageId(source, seq) for (source, _), seq in self.seen.items())
        return self.casting.state(self._kept(), names)

    def _on_part(self, part: Part, sender: int, now: int) -> Effects:
        wanted = self.proposal.id if part.what == STATE and self.proposal else self.promised
        if part.view != wanted or (self.view is not None and part.view <= self.view.id):
            return
        id, have = self.collected.get((sender, part.what), (part.view, {}))
        if id != part.view:
            have = {}
        have[part.index] = part.data
        self.collected[sender, part.what] = part.view, have
        if len(have) < part.count:
            return
        del self.collected[sender, part.what]
        data = b"".join(have[index] for index in sorted(have))
        try:
            if part.what == STATE:
                yield from self._on_state(State.decode(data), sender, now)
            else:
                yield from self._on_install(Install.decode(data), now)
        except WireError:
            yield Count("malformed")

    def _on_state(self, state: State, sender: int, now: int) -> Effects:
        if self.proposal is not None:
            self.proposal.states[sender] = state
            yield from self._decide(now)

    def _on_install(self, install: Install, now: int) -> Effects:
        if install.view.id == self.promised and self.me.process in install.invited:
            yield from self._adopt(install, now)

    @override
    def _decide(self, now: int) -> Effects:
        proposal, view = self.proposal, self.view
        assert proposal is not None
        assert view is not None
        if any(p not in proposal.states for p in proposal.asked):
            return
        newest = max(state.view for p, state in proposal.states.items() if p in self.heard)
        if newest > view.id:  # others are in a newer view, and will say so
            self.proposal = None
            self.promised, self.behind_until = newest, now + self.timing.patience
            return
        due = self._due(proposal, now)
        if due is None or self._waits_for_others(proposal, now):
            return
        install = self._conclude(proposal, view, due, now)
        self.reshape = None
        parts = parts_of(install.encode(), proposal.id, INSTALL, self.me.process, self.number)
        peers = tuple(m.process for m in proposal.target if m.process != self.me.process)
        if peers:
            for part in parts:
                yield Send(peers, part)
        if self.me.process in install.invited:
            yield from self._adopt(install, now)
        elif self.leavers.get(self.me.process):
            self.out = True
        else:
            yield from self._go_away(now)

    def _waits_for_others(self, proposal: Proposal, now: int) -> bool:
        """Whether too many members are missing, whose messages may be needed."""
        assert self.casting is not None
        if not self.casting.is_short(proposal.states):
            return False
        if self.short_since is None:
            self.short_since = now
        return now - self.short_since < self.timing.grace

    def _conclude(self, proposal: Proposal, view: View, due: list[Cast], now: int) -> Install:
        """The new view, and what is carried over into it."""
        assert self.casting is not None
        casts = (*self._kept(), *self.casting.union(proposal.states.values()), *due)
        ordered = sorted(casts, key=lambda c: (c.time, c.id))
        union = self._closed({cast.id: cast for cast in ordered}.values())
        seen = self.seen.copy()
        known = (state.seen for state in proposal.states.values() if state.view == view.id)
        for name in (*(cast.id for cast in union), *chain(*known)):
            seen[_stream(name)] = max(seen.get(_stream(name), -1), name.seq)
        stay, left = proposal.target, {p for p, wholly in self.leavers.items() if wholly}
        reshape = None if union or stay != view.members else self.reshape
        if reshape is not None and not reshape.contacts:
            stay = tuple(m for m in stay if m not in reshape.members)
            left |= {m.process for m in reshape.members}
        names = tuple(MessageId(source, seq) for (source, _), seq in seen.items())
        weak = self._weakens(proposal, now)
        return Install(following(view, proposal.id, stay, left, weak), names, union, reshape)

    def _closed(self, union: Iterable[Cast]) -> tuple[Cast, ...]:
        """The messages that all will deliver, of those that some member has."""
        return tuple(union)

    def _due(self, proposal: Proposal, now: int) -> list[Cast] | None:
        """What is in transit to joiners from other groups; None if that is not known now."""
        casts: list[Cast] = []
        for joiner in self.joiners.values():
            if joiner.how == MOVED and joiner.member in proposal.target:
                gathered = self.gather(joiner.member.process, now)
                if gathered is None:
                    return None
                casts += gathered
        return casts

    def _adopt(self, install: Install, now: int) -> Effects:
        """Enter a new view: deliver what was carried over, then go on."""
        view, reshape = install.view, install.reshape
        self.silent = self.moved = False
        if reshape is not None and self.me.process in reshape.processes:
            yield Count("moves")
            self.number, self.others = reshape.number, ()
            if reshape.contacts:
                self._move(reshape)
                return
            view = View(view.id, reshape.members, (), view.weak)
            self.candidates = tuple(p for p in view.processes if p != self.me.process)
        elif reshape is not None:
            self.given |= reshape.processes
        self._enter(view, now)
        self.casting = self.way(view, self.me.process, install.casts)
        self.invited = install.invited
        self.install_parts = parts_of(
            install.encode(), view.id, INSTALL, self.me.process, self.number
        )
        fresh = self._take_over(install)
        yield Count("view_changes")
        yield from self._report(())
        for cast in fresh:
            yield Deliver(cast)

    def _take_over(self, install: Install) -> list[Cast]:
        """Keep what was carried over, and mark it as seen; the part of it that is new here."""
        fresh = [cast for cast in install.casts if not self.has_seen(cast)]
        self.history = {cast.id: cast for cast in install.casts}
        for name in (*(cast.id for cast in fresh), *install.seen):
            self.seen[_stream(name)] = max(self.seen.get(_stream(name), -1), name.seq)
        return fresh

    def _enter(self, view: View, now: int) -> None:
        self.view, self.promised = view, view.id
        if not view.weak:
            self.weak_until = 0
        elif now >= self.weak_until:
            self.weak_until = now + self.timing.grace
        self.joining, self.proposal, self.short_since = False, None, None
        self.collected.clear()
        self.leavers = {p: w for p, w in self.leavers.items() if p in view.processes}
        self.joiners = {p: j for p, j in self.joiners.items() if j.member not in view.members}
        self.heard = dict.fromkeys(view.processes, now)
        absent = {member.process for member in view.absent}
        self.absent_since = {p: self.absent_since.get(p, now) for p in absent}

    def _move(self, reshape: Reshape) -> None:
        """Become a joiner of another group, of the new number."""
        self.view = self.casting = self.asking_since = None
        self.joining = self.moved = True
        self.candidates = (*reshape.contacts, *sorted(reshape.processes - {self.me.process}))
        self.promised, self.weak_until = ViewId(), 0
        self.heard, self.joiners, self.leavers = {}, {}, {}
        self.proposal, self.install_parts = None, ()
        self.collected.clear()
        self.me = self.me._replace(backing=self.me.backing + 1)

    def _seek(self, now: int) -> Effects:
        """Ask to be admitted; without an answer for long, go on alone."""
        yield from self._ask(now)
        if self.asking_since is None:
            self.asking_since = now
        if now - self.asking_since >= self.timing.grace * (3 if self.moved else 1):
            yield from self._go_on_alone(now)

    def _go_on_alone(self, now: int) -> Effects:
        """Go on in the old view without the others, or start the group again."""
        self.joining = False
        self.ticked_at = now
        if self.view is None:
            id = ViewId(1 + self.promised.number, self.me.process)
            view = View(id, (self.me,), self.others, weak=True)
            yield from self._adopt(Install(view, (), ()), now)
        else:
            self.heard = dict.fromkeys(self.heard, 0)


def _stream(message: Message | MessageId) -> tuple[int, int]:
    return message.source, message.seq >> SEQUENCE_BITS
