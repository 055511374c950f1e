"""Who should be in the next view: members that are alive, joiners and leavers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ..wire import MessageId
from .agreed import Flushed, Label, Proposal
from .messages import INSIDE, MOVED, NO_VIEW, OUTSIDE, RETURNED, Leave
from .view import Member, View, ViewId

if TYPE_CHECKING:
    from .group import Group


class Joiner(NamedTuple):
    """A process that wants to be a member, or a member with a new roster or backing."""

    member: Member
    how: int
    asked_at: int


class Succession:
    """Who wants to be in a group, and who wants to leave it, as far as this process has heard."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.joiners: dict[int, Joiner] = {}
        self.leavers: dict[int, Leave] = {}
        self.split_off: frozenset[int] = frozenset()  # from this group, and not back since
        self.departed: frozenset[int] = frozenset()  # whom members have let go
        # who was known when nobody could be in another view, as this one was entered
        self.agreed = frozenset(() if group.view is None else group.view.roster)

    @property
    def view(self) -> View:
        """The view that is to be followed by another."""
        assert self.group.view is not None
        return self.group.view

    def enter(self, view: View) -> None:
        """Forget whose wish was granted in a new view."""
        self.agreed = self.stayed(self.known_to_all(), view) & view.roster
        self.split_off -= view.roster
        self.departed |= self._let_go(view)
        self.leavers = {
            process: leave
            for process, leave in self.leavers.items()
            if process in view.processes and self.is_recent(leave, view)
        }
        told = {m.process: m.backing for m in view.members}  # as they answered Flush
        self.joiners = {
            process: joiner
            for process, joiner in self.joiners.items()
            if joiner.member not in view.members
            and (joiner.how != INSIDE or joiner.member.backing > told.get(process, -1))
        }

    def _let_go(self, view: View) -> frozenset[int]:
        """Who has left since the view before: who answered for them does so no longer."""
        before, told = self.group.view, {(m.process, m.of): m for m in view.members}
        left = set[int]()
        for member in () if before is None else before.members:
            now = told.get((member.process, member.of))
            if now is None:
                left.add(member.process)
            elif now.backing > member.backing:
                left |= member.roster - now.roster
        return frozenset(left - view.roster)

    def known_to_all(self) -> frozenset[int]:
        """Who is known in whatever view prevails: all, unless others may be in another one.

        They may as long as some were not heard of in this one: who has not entered it may go on
        without it.
        """
        view, casting = self.group.view, self.group.casting
        if view is None or casting is None or view.weak or view.absent or not casting.complete():
            return self.agreed
        return view.roster

    def is_recent(self, leave: Leave, view: View) -> bool:
        """Whether a member of a view has not come back since it wanted to leave."""
        return all(m.backing <= leave.backing for m in view.members if m.process == leave.source)

    def is_outside(self, process: int) -> bool:
        """Whether a process wants to be admitted, and so is no member, or not any more."""
        return process in self.joiners and self.joiners[process].how != INSIDE

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

    def stayed(self, known: frozenset[int], view: View) -> frozenset[int]:
        """Those of these who have not been admitted again to a view.

        Who has may have left before, as somebody new; others may have heard of that, and this process
        not.
        """
        if self.group.view is None:
            return known
        before = {m.of: m.backing for m in (*self.view.absent, *self.view.members)}
        again = (m.roster for m in view.members if m.backing > before.get(m.of, -1))
        return known.difference(*again)

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

    def newcomers(self, target: Sequence[Member]) -> frozenset[int]:
        """The processes that nobody answered for, in the view or, if they were in others, above.

        One that is away below a joiner may be below another group by now: then it has not just come.
        Nor has who was split off, and returns because it has not heard of that.
        """
        moved = {process for process, joiner in self.joiners.items() if joiner.how == MOVED}
        others = (m for m in target if m not in self.view.members and m.process not in moved)
        elsewhere = self.group.above.may_be_elsewhere()
        come = frozenset().union(*(m.roster - m.away if elsewhere else m.roster for m in others))
        may_be_known = self.group.above.may_be_known
        returned = [j.member for j in self.joiners.values() if may_be_known(j.how)]
        back = frozenset().union(*(m.roster for m in returned))
        known = {p for p in back if self.group.above.answers_for(p)} | (self.split_off & back)
        known |= {process for process, joiner in self.joiners.items() if self.is_kept_for(joiner)}
        return come - self.view.roster - known

    def admitted_elsewhere(self, states: Iterable[Flushed]) -> Iterator[Member]:
        """Who was admitted to a view that does not prevail, if others who come from it say so.

        It is owed what may be sent here in answer to its messages, which they bring along, even if it
        is not back yet; unless somebody above answers for it, to whom that goes.
        """
        for member in chain(*(state.absent for state in states if state.view != NO_VIEW)):
            unknown = member.roster - self.view.roster
            known = {p for p in unknown if self.group.above.answers_for(p)} | self.split_off
            if unknown - known:
                yield member._replace(roster=unknown - known)

    def may_return(self, joiner: Joiner) -> bool:
        """Whether one that returns may be admitted, whomever it brings along.

        A coordinator that is about to become the server cannot tell who these are. It goes on with the
        other members first.
        """
        return joiner.how != RETURNED or self.group.is_server or self.group.above.can_tell()

    def may_move(self, joiner: Joiner, now: int) -> bool:
        """Whether one that comes from another group may get what was delivered here.

        What may not be relayed out of a weak view may not be given to such a joiner either.
        """
        return joiner.how != MOVED or self.group.may_relay(now)

    def can_tell(self, states: Iterable[Flushed]) -> bool:
        """Whether it is known if somebody above answers for those who were admitted elsewhere."""
        return self.group.above.can_tell() or not any(self.admitted_elsewhere(states))

    def known_elsewhere(self, states: Iterable[Flushed]) -> dict[MessageId, frozenset[int]]:
        """Messages of views that do not prevail, and who was admitted there and is to get them."""
        known: dict[MessageId, frozenset[int]] = {}
        for state in states:
            admitted = frozenset().union(*(m.roster for m in state.absent))
            for label in state.labels if admitted and state.view != NO_VIEW else ():
                known[label.id] = known.get(label.id, admitted) | admitted
        return known

    def not_for(
        self, labels: Iterable[Label], new: frozenset[int], states: Collection[Flushed]
    ) -> dict[MessageId, frozenset[int]]:
        """For whom the messages that are carried over are not: newcomers, and who is spared.

        What is brought along from above is not for those either who are new, and not known there yet.
        """
        known, above = self.known_elsewhere(states), {n for state in states for n in state.above}
        fresh = new | (self.group.above.unheard_of() - self.known_to_all())
        return {
            n: ((fresh if n in above else new) - known.get(n, frozenset())) | self.spared(n)
            for n, *_ in labels
        }

    def carried(self, states: Collection[Flushed]) -> list[Label]:
        """What is carried over into the next view, of what those have who have answered.

        What only those bring along who come back, although it was seen here and nobody keeps it, is
        not: all to whom it was sent have it, and others, who came later, must not get it.
        """
        casting, view = self.group.casting, self.view.id
        assert casting is not None
        kept = {label.id for state in states if state.view == view for label in state.labels}
        kept.update(*(state.above for state in states))
        labels = casting.union(states)
        if not casting.all_get_all:
            return [*labels]
        return [c for c in labels if c.id in kept or not self.group.kept.is_done(c.id)]

    def is_unknown(self, joiner: Joiner) -> bool:
        """Whether this group may not have what is in transit to a joiner, but the one above has.

        It comes from another group; or it was in views of this one that did not prevail, and there
        are others, which it has not heard of, that it is not in.
        """
        unknown = not joiner.member.roster <= self.view.roster
        known = self.group.above.may_be_known(joiner.how) or self.is_kept_for(joiner)
        return joiner.how == MOVED or (known and unknown)

    def is_kept_for(self, joiner: Joiner) -> bool:
        """Whether one that comes from outside may get something from above that was sent before.

        It has left, and the group above has not heard of that, or another one there answers for it. It
        gets that when it joins: those who are here may have delivered what follows it.
        """
        return joiner.how == OUTSIDE and self.group.above.may_keep_for(joiner.member.process)

    def unknown(self, joiner: Joiner) -> frozenset[int]:
        """Those below a joiner for whom the view does not answer; all, if it comes from elsewhere."""
        known = frozenset() if joiner.how == MOVED else self.view.roster
        return joiner.member.roster - known

    def spared(self, name: MessageId) -> frozenset[int]:
        """Who comes from another group and is not to get a message, since nobody above keeps it.

        All to whom it was sent there have it, and others came after it was sent.
        """
        if not self.group.above.is_done(name):
            return frozenset()
        return frozenset().union(
            *(self.unknown(j) for j in self.joiners.values() if self.is_unknown(j))
        )

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
            if self.group.above.admits(j.member, j.how)
            and self.may_return(j)
            and self.may_move(j, now)
            and (
                not self.is_unknown(j)
                or j.member in proposed
                or self.group.above.gather(j.member.roster, now) is not None
            )
        ]
        wanting = [j for j in wanting if j not in self.view.members]
        return [j for j in wanting if not any(other.replaces(j) for other in wanting)]

    def recall(self, proposal: Proposal, now: int) -> None:
        """Remember who was asked to take part in a view; meanwhile some may have stood still.

        And who was known above where they come from, unless this process knows that itself.
        """
        self.joiners = {**proposal.joiners, **self.joiners}
        knows, view = self.group.above.can_tell(), self.view.id
        told = (s.little_known for s in proposal.states.values() if not knows or s.view != view)
        self.group.vouch(frozenset(chain(*told)), now)

    def _forget_wishes(self, now: int) -> None:
        """Forget who has not asked again for a while: it does not wait for an answer any more."""
        patience = self.group.timing.patience
        self.joiners = {p: j for p, j in self.joiners.items() if now - j.asked_at < patience}
