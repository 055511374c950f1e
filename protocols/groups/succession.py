"""Who should be in the next view: members that are alive, joiners and leavers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .agreed import Flushed, Proposal
from .epochs import Pairs, greatest
from .epochs import of as epoch_of
from .messages import INSIDE, MOVED, NO_VIEW, Cast, Leave
from .view import Member, View, ViewId

if TYPE_CHECKING:
    from .group import Group


class Joiner(NamedTuple):
    """A process that wants to be a member, or a member with a new roster or backing."""

    member: Member
    how: int
    asked_at: int

    def is_new(self, known: Pairs, processes: Iterable[int] | None = None) -> bool:
        """Whether nobody who knows these epochs has heard of those below it, or of some of them."""
        told = dict(self.member.epochs)
        below = self.member.roster if processes is None else processes
        return all(told.get(p, 0) > epoch_of(known, p) for p in below)


class Succession:
    """Who wants to be in a group, and who wants to leave it, as far as this process has heard."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.joiners: dict[int, Joiner] = {}
        self.leavers: dict[int, Leave] = {}
        self.asked: dict[int, int] = {}  # when somebody who is no member asked last

    @property
    def view(self) -> View:
        """The view that is to be followed by another."""
        assert self.group.view is not None
        return self.group.view

    def enter(self, view: View) -> None:
        """Forget whose wish was granted in a new view."""
        self.leavers = {
            process: leave
            for process, leave in self.leavers.items()
            if process in view.processes and self.is_recent(leave, view)
        }
        self.asked = {p: at for p, at in self.asked.items() if p not in view.processes}
        told = {m.process: m.age for m in view.members}  # as they answered Flush
        self.joiners = {
            process: joiner
            for process, joiner in self.joiners.items()
            if joiner.member not in view.members
            and (joiner.how != INSIDE or joiner.member.age > told.get(process, (-1, 0)))
        }

    def is_recent(self, leave: Leave, view: View) -> bool:
        """Whether a member of a view has not come back since it wanted to leave."""
        members = (m for m in view.members if m.process == leave.source)
        return all(m.age[0] <= leave.epoch and m.backing <= leave.backing for m in members)

    def is_outside(self, process: int) -> bool:
        """Whether a process wants to be admitted, and so is no member, or not any more."""
        return process in self.joiners and self.joiners[process].how != INSIDE

    def come(self, now: int) -> frozenset[int]:
        """All processes that have asked to be admitted lately, and are not yet."""
        asked, patience = self.asked.items(), self.group.timing.patience
        return frozenset(p for p, at in asked if now - at < patience)

    def anybody_joins(self, target: Iterable[Member]) -> bool:
        """Whether some of these were not in the view, or have lost what they had of it.

        One that was restarted is still in the view as what it was before.
        """
        return any(self.is_outside(member.process) for member in target)

    def leaders(self, alive: list[Member], now: int) -> list[Member]:
        """Those of these members whom no joiner replaces, if there are any."""
        if self.joiners:
            self._forget_wishes(now)
        if not self.joiners:
            return alive
        replaced = self.replaced([j.member for j in self.joiners.values() if j.how != INSIDE])
        return [m for m in alive if m.process not in replaced] or alive

    def gone(self) -> set[int]:
        """The members that have said that they do not take part any more."""
        return {process for process, leave in self.leavers.items() if leave.gone}

    def left(self) -> frozenset[int]:
        """The processes that leave for good."""
        return frozenset().union(*(leave.roster for leave in self.leavers.values()))

    def missing(self, states: Mapping[int, Flushed], now: int) -> set[int]:
        """The members that may be alive, without those who have answered with what they have.

        Also those that are absent: they may have what they kept for others.
        """
        away = self.group.detector.away_lately(now).difference(states)
        here = {process for process, state in states.items() if state.view == self.view.id}
        absent = {m.process for m in self.view.absent if m.process in away}
        return absent.union(self.view.processes) - here

    def newest(self, states: Mapping[int, Flushed]) -> ViewId:
        """The newest view of those who have answered, without who has given its view up."""
        heard = self.group.detector.heard
        return max(s.view for process, s in states.items() if process in heard and s.member)

    def replaced(self, target: Sequence[Member]) -> set[int]:
        """The members whose place others take."""
        return {m.process for m in self.view.members if any(t.replaces(m) for t in target)}

    def renewed(self) -> set[int]:
        """The members that stay, and answer for others than before."""
        return {process for process, joiner in self.joiners.items() if joiner.how == INSIDE}

    def up_to_date(self, target: Sequence[Member], states: Iterable[Flushed]) -> tuple[Member, ...]:
        """These members, each that stays with the roster that it has told last.

        What it asked for before may not be true any more. If a view were without somebody who has
        come back, and whose messages may have been relayed since, answers to these would not be for
        it.
        """
        told = {(m.process, m.of): m for s in states if s.view == self.view.id for m in s.member}
        return tuple(told.get((m.process, m.of), m) for m in target)

    def may_move(self, joiner: Joiner, now: int) -> bool:
        """Whether one that comes from another group may get what was delivered here.

        What may not be relayed out of a weak view may not be given to such a joiner either.
        """
        return joiner.how != MOVED or self.group.may_relay(now)

    def is_unknown(self, joiner: Joiner, states: Mapping[int, Flushed]) -> bool:
        """Whether this group may not have what was sent to a joiner, but the one above has.

        It comes from another group; or it was admitted elsewhere, to a view that did not prevail, and
        others have heard of that, or it brings along what it got there. Else nothing was sent to it.
        """
        state = states.get(joiner.member.process)
        brings = state.labels if state is not None and state.view == NO_VIEW else ()
        if joiner.how == MOVED or not all(self.group.kept.has_seen(label.id) for label in brings):
            return True
        come = joiner.member.roster - self.view.roster
        return not joiner.is_new(self.heard_of(states, joiner.member.process), come)

    def due(self, proposal: Proposal, now: int) -> list[Cast] | None:
        """What is in transit to joiners that were unknown here, and to those who were absent where
        they come from; None if that is not known now.

        Where they come from, all may have been delivered that was sent above by the time that they
        answer Flush. So that is waited for, and not what is sent there later.
        """
        above = self.group.above
        casts: list[Cast] = []
        for joiner in proposal.joiners.values():
            if self.is_unknown(joiner, proposal.states) and joiner.member in proposal.target:
                state = proposal.states[joiner.member.process]
                brought = state.absent if state.view == NO_VIEW else ()
                come = joiner.member.roster.union(*(m.roster for m in brought))
                gathered, awaited = above.gather(come, now), above.awaited(come)
                if gathered is None:
                    return None
                before = proposal.awaited.setdefault(joiner.member.process, awaited)
                if not before.isdisjoint(awaited):
                    return None
                casts += gathered
        return casts

    def heard_of(self, states: Mapping[int, Flushed], joiner: int) -> Pairs:
        """The epochs that others than a joiner know."""
        told = (state.epochs for process, state in states.items() if process != joiner)
        return greatest(self.group.epochs.pairs, *told)

    def epochs(self, states: Iterable[Flushed]) -> Pairs:
        """The epochs that all will know in the next view: also of those who come and go."""
        leave = ((process, wish.epoch) for process, wish in self.leavers.items())
        join = (joiner.member.epochs for joiner in self.joiners.values())
        told = (state.epochs for state in states)
        return greatest(self.group.epochs.pairs, tuple(leave), *join, *told)

    def target(
        self, alive: list[Member], proposed: Sequence[Member], now: int
    ) -> tuple[tuple[Member, ...], frozenset[int]]:
        """The members of the next view, and whom to ask for what they have."""
        if not (self.joiners or self.leavers):
            return tuple(alive), frozenset([m.process for m in alive])
        joiners = self._admissible(proposed, now) if self.joiners else []
        inside = {j.process: j for j in joiners if self.joiners[j.process].how == INSIDE}
        come = self.replaced(joiners) | {j.process for j in joiners}
        gone = (come | set(self.leavers)) - set(inside)
        stay = [inside.get(m.process, m) for m in alive if m.process not in gone]
        if not stay and not self.may_hand_over([m for m in alive if m.process not in come]):
            return (), frozenset()
        target = (*stay, *(j for j in joiners if j not in stay))
        return target, frozenset(m.process for m in (*alive, *joiners))

    def may_hand_over(self, present: Collection[Member]) -> bool:
        """Whether those who join may be a view by themselves, if all who are present leave.

        Members that are not present may have agreed on such a view before. Nobody in that would know
        of this process, or of those whom it admits.
        """
        leaves = self.group.me.process in self.leavers
        return not leaves or len(present) == len(self.view.members)

    def _admissible(self, proposed: Sequence[Member], now: int) -> list[Member]:
        """The joiners, without those whom another joiner replaces.

        One that is unknown here needs what is in transit to it from above. Once proposed it stays so:
        a view without it would cause a view change above, during which that is not known.
        """
        self._forget_wishes(now)
        wanting = [
            j.member
            for _, j in sorted(self.joiners.items())
            if self.group.above.admits(j)
            and self.may_move(j, now)
            and (
                not self.is_unknown(j, {})
                or j.member in proposed
                or self.group.above.gather(j.member.roster, now) is not None
            )
        ]
        wanting = [j for j in wanting if j not in self.view.members]
        return [j for j in wanting if not any(other.replaces(j) for other in wanting)]

    def recall(self, proposal: Proposal) -> None:
        """Remember who was asked to take part in a view; meanwhile some may have stood still."""
        self.joiners = {**proposal.joiners, **self.joiners}

    def _forget_wishes(self, now: int) -> None:
        """Forget who has not asked again for a while: it does not wait for an answer any more."""
        patience = self.group.timing.patience
        self.joiners = {p: j for p, j in self.joiners.items() if now - j.asked_at < patience}
