"""Causal multicast within one view: a message goes only to the members that are to have it.

Baldoni, Friedman & van Renesse 1996, section 3.4, the second optimisation. A cast goes to the members
that answer for some of its destinations, and to the server if it leaves the group. If these are fewer
than k, the next members in the view's order get it as well, as witnesses: they only hold it.

Order is that of Raynal, Schiper & Toueg 1991, within the view: ``SENT[i][j]`` counts the casts of
member i to j that are known here, T[i] those of i that were delivered here. A cast carries its
sender's matrix, with itself counted, and is deliverable at j when T[i] + 1 is SENT[i][j] of its sender
i and T[l] >= SENT[l][j] of all others.

A cast is *firm* when k members hold it besides its sender, and all casts of its sender before it are
firm. Only what is firm is handed on, and relayed: so the past of what anybody acted upon is held by
k + 1 members, whoever sent it. k copies of the cast alone would not do: a sender that casts m1 to one,
m2 to another and crashes may leave m2 with the past lost. That a member holds a cast is known from its
reports: they say how many of each member's casts to it were *received*, from the first on, so that
nobody waits in a circle. The diagonal of the matrix, where a count would be of no use, says how many
of each member's first casts are known to be firm; the cast's own number comes last. A report says it of
its sender, in the place of the sender's own casts.

A cast is kept by all who got it, and its sender, until all of them have released it. Slots and what
was carried over are as in ``casting``; the which-th of a slot is what its member sent to this process.
When the view changes members bring what they received as well, and what comes after a lost cast of the
same member is dropped: it was not firm, so nobody has delivered it. If more than k members have not
brought what they have, the others wait for ``grace`` before they go on: some may only be cut off.

State: SENT, T, the firm counts, and of every other member what it reported; all are reset in each view.
Cost: 32 + 16 + 4(m² + 1) + 4|Dests| + d bytes a copy in a group of m. With k = 1 a cast waits only for
those that its sender made just before it; with more, for the reports of other recipients.

Limits. If more than k members of a view crash, or are cut off for longer than ``grace``, before the
next is complete, messages may be lost that others have answered. A member that is silent holds up the
firmness, and so all later casts, of those who sent to it, until it is suspected. With more than two
levels, a process that has left and joins again may lack what is sent to it before all groups above have
learnt of that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from typing_extensions import override

from ..wire import MessageId
from .casting import AT_ONCE, Casting, Copies
from .messages import Cast, Report
from .view import View
from .view_change import HeldCast, State


class Matrices(Casting):
    """The casts of one view; at the ``top`` none leaves the group."""

    def __init__(
        self, view: View, me: int, carried: Sequence[Cast], k: int = 1, top: bool = True
    ) -> None:
        super().__init__(view, me, carried)
        self.view, self.top = view, top
        self.size = len(view.members)
        self.resilience, self.k = k, min(k, self.size - 1)
        self.SENT = [[0] * self.size for _ in range(self.size)]
        self.received = [0] * self.size
        self.firm = [0] * self.size

    def recipients(self, cast: Cast, i: int) -> list[int]:
        """The members that a cast of member i goes to."""
        lost = self.top and cast.dests is not None and not cast.dests <= self.view.roster
        to = [
            j
            for j, member in enumerate(self.view.members)
            if j != i and (lost or cast.is_for(member.roster) or (j == 0 and self._leaves(cast)))
        ]
        witnesses = ((i + n) % self.size for n in range(1, self.size))
        return to + [j for j in witnesses if j not in to][: max(0, self.k - len(to))]

    def _leaves(self, cast: Cast) -> bool:
        return not self.top and (cast.dests is None or not cast.dests <= self.view.present)

    def _count(self, cast: Cast, i: int, j: int) -> int:
        """Of all that member i sent to j, which a cast of i is; or if j is i, of all its casts."""
        return cast.vector[-1 if i == j else i * self.size + j]

    @override
    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        to = self.recipients(cast, self.me)
        for j in to:
            self.SENT[self.me][j] += 1
        self.T[self.me] += 1
        self.cast_at[self.T[self.me]] = now
        rows = [[*row[:i], self.firm[i], *row[i + 1 :]] for i, row in enumerate(self.SENT)]
        vector = (*(entry for row in rows for entry in row), self.T[self.me])
        cast = replace(cast, view=self.id, vector=vector)
        self.enter(self.me + 1, cast)
        self._firm_up()
        processes = self.view.processes
        return cast, [(tuple(processes[j] for j in sorted(to)), cast)] if to else []

    def fits(self, message: Cast | Report, sender: int) -> bool:
        """Whether a cast has a matrix of this view, and is for this process to hold."""
        if isinstance(message, Report):
            return super().fits(message, sender)
        i = self.index[sender]
        return len(message.vector) == self.size**2 + 1 and self.me in self.recipients(message, i)

    @override
    def number(self, cast: Cast, i: int) -> int:
        return self._count(cast, i, self.me)

    @override
    def hold(self, cast: Cast, sender: int) -> bool:
        if not super().hold(cast, sender):
            return False
        i = self.index[sender]
        while (i, self.received[i] + 1) in self.held:
            self.received[i] += 1
            self.news = True
        return True

    def next(self) -> tuple[int, Cast] | None:
        """Take a cast out of those that wait that may be handed on, and learn from it."""
        ready = super().next()
        if ready is not None:
            i, cast = ready
            self.firm[i] = max(self.firm[i], cast.vector[-1])
            for j, row in enumerate(self.SENT):
                row[:] = map(max, row, cast.vector[j * self.size :])
        return ready

    def deliverable(self, cast: Cast, i: int) -> bool:
        """Whether all that was sent here before this cast of member i is delivered, and it is firm."""
        in_order = all(
            cast.vector[j * self.size + self.me] <= t
            for j, t in enumerate(self.T)
            if j not in (i, self.me)
        )
        return in_order and self.is_firm(cast, i)

    def is_firm(self, cast: Cast, i: int) -> bool:
        """Whether k members hold a cast of member i beside this one, and all that i sent before it."""
        number = cast.vector[-1]
        if self.firm[i] >= number - 1:
            return self.firm[i] >= number or 1 + self._holders(cast, i) >= self.k
        return False

    def _holders(self, cast: Cast, i: int) -> int:
        """How many recipients are known to hold a cast of member i, but for this one."""
        return sum(self._has(j, cast, i) for j in self.recipients(cast, i) if j != self.me)

    def _has(self, j: int, cast: Cast, i: int) -> bool:
        received = self.delivered[j]
        return received is not None and received[i] >= self._count(cast, i, j)

    def _firm_up(self) -> None:
        """See how many of this process's own casts are firm; what waits for that should be told."""
        me, waiting = self.me, self.firm[self.me] + 1 < self.T[self.me]
        for cast in list(self.slots[me + 1])[self.firm[me] - self.stable[me + 1] :]:
            if cast is None or self._holders(cast, me) < self.k:
                break
            self.firm[me] += 1
            self.news |= waiting

    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """A member has delivered what, by the matrix of its cast, was sent to it."""
        super().note_vector(sender, vector[self.index[sender] : -1 : self.size])
        self.firm[:] = map(max, self.firm, vector[: -1 : self.size + 1])

    def note(self, sender: int, report: Report) -> None:
        """A member has received and released this much, and so much of its own is firm."""
        i = self.index[sender]
        super().note_vector(sender, report.delivered)
        self.firm[i] = max(self.firm[i], report.delivered[i])
        self.released[i][:] = map(max, self.released[i], report.released)
        self._firm_up()

    def progress(self) -> tuple[int, ...]:
        """What was received of the others, and what is firm of one's own."""
        self.news = False
        self.received[self.me] = self.firm[self.me]
        return tuple(self.received)

    def state(self, history: Iterable[Cast], seen: Iterable[MessageId]) -> State:
        """What was delivered and is not stable, and what was only received."""
        held = tuple(HeldCast(i, cast.vector[-1], cast) for (i, _), cast in self.held.items())
        return State(self.id, tuple(history), tuple(self.firm), held, tuple(seen))

    def is_short(self, states: Mapping[int, State]) -> bool:
        """Whether the states of more than k members are missing."""
        here = [p for p in self.view.processes if p in states and states[p].view == self.id]
        return self.size - len(here) > self.k

    def union(self, states: Collection[State]) -> Iterator[Cast]:
        """All that the members have, but for what comes after a cast that is lost.

        Of what was only received the numbers tell: its sender's casts before it are firm, and somebody
        has brought them unless more than k are missing, or they were received as well.
        """
        yield from super().union(states)
        for view in {state.view for state in states}:
            firm = [state.firm for state in states if state.view == view and state.firm]
            held = [held for state in states if state.view == view for held in state.held]
            if firm and len(firm[0]) - len(firm) <= self.resilience:
                yield from _whole(held, [max(counts) for counts in zip(*firm, strict=False)])

    def everywhere(self, name: MessageId) -> bool:
        """Whether a message is firm; of what was carried over, whether k others have that."""
        slot, which = self.at[name]
        if slot == 0:
            return sum(d is not None for d in self.delivered) >= self.k
        return slot != self.me + 1 or self.firm[self.me] >= which

    def released_by_others(self, name: MessageId) -> bool:
        """Whether all others who have a message have released it."""
        slot, which = self.at[name]
        cast = self.slots[slot][which - self.stable[slot] - 1]
        return super().released_by_others(name) if slot == 0 else self._released(cast, slot - 1)

    def _released(self, cast: Cast | None, i: int) -> bool:
        return cast is None or all(
            self.released[j][i + 1] >= self._count(cast, i, j)
            for j in (i, *self.recipients(cast, i))
            if j != self.me
        )

    def first_is_stable(self, slot: int) -> bool:
        """Whether all who have the first of a slot have released it."""
        if slot == 0:
            return super().first_is_stable(slot)
        mine = self.released[self.me][slot] > self.stable[slot]
        return mine and self._released(self.slots[slot][0], slot - 1)

    @override
    def missing(self, sender: int, now: int, pause: int) -> list[Cast]:
        i = self.index[sender]
        received = self.delivered[i]
        if received is None or now - self.resent_at[i] < pause:
            return []
        own = [c for c in self.slots[self.me + 1] if c and i in self.recipients(c, self.me)]
        lacks = [c for c in own if self._count(c, self.me, i) > received[self.me]][:AT_ONCE]
        late = [c for c in lacks if now - self.cast_at[c.vector[-1]] >= pause]
        if late:
            self.resent_at[i] = now
        return late


def _whole(held: Collection[HeldCast], firm: list[int]) -> Iterator[Cast]:
    """Of what was received, what comes after nothing of its sender that is neither firm nor here."""
    for member, number, cast in sorted(held, key=lambda h: h.number):
        if number <= firm[member] + 1:
            firm[member] = max(firm[member], number)
            yield cast
