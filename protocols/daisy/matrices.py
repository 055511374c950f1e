"""Causal multicast within one view: a message goes to its recipients only.

Baldoni, Friedman & van Renesse 1996, section 3.4, the second optimisation. A cast goes to the members
that answer for some of its destinations, and to the server if it leaves the group. If these are fewer
than k, the next members in the view's order get it as well, as witnesses: they only hold it.

State: ``SENT[i][j]``, the casts of member i to j that are known here; T[i], those of i that were
delivered here; firm counts, and the reports of every other member; all are reset in each view.
Delivery is that of Raynal, Schiper & Toueg 1991: a cast of member i carries its sender's matrix, itself
counted, and is deliverable at j when T[i] + 1 = SENT[i][j], T[l] >= SENT[l][j] for others, and it is
*firm*: k members hold it besides its sender, and all earlier casts of its sender are firm.
Invariant: the causal past of what any member acted upon is held by k + 1 members. (k copies of each
cast would not do: a sender that casts m1 to one, m2 to another and crashes may leave m2 alone.)
Cost: 32 + 16 + 4(m² + 1) + 4|Dests| + d bytes a copy in a group of m. With k = 1 a cast waits only for
those that its sender made just before it; with more, for the reports of other recipients.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from typing_extensions import override

from ..groups.agreed import Flushed, HeldCast, Label
from ..groups.casting import AT_ONCE, Casting, Copies, Status
from ..groups.messages import Cast, Report
from ..groups.stability import Stability
from ..groups.view import View
from ..wire import MessageId


class Matrices(Casting):
    """The casts of one view; at the ``top`` none leaves the group.

    Reports say how many of each member's casts were *received*, from the first on, so that there
    is no circular wait. The diagonal of the matrix says how many of each member's first casts are
    known to be firm, the last entry is the cast's own number; a report says it of its sender, in
    the sender's entry. A cast is kept by its sender and all recipients until all of them have
    released it. In a view change members also bring what they received, and casts after a lost
    one of the same member are dropped: they were not firm, so not delivered. If more than k members
    are missing, or were a short time ago, the others wait for ``grace``: some may only be cut off.

    Limits. If more than k members of a view crash, or are cut off for longer than ``grace``,
    before the next is complete, messages may be lost that others have answered. A silent member
    delays all later casts of those who sent to it, until it is suspected.
    """

    def __init__(
        self,
        view: View,
        me: int,
        carried: Sequence[Cast],
        kept: Stability | None = None,
        k: int = 1,
        top: bool = True,
    ) -> None:
        super().__init__(view, me, carried, kept)
        self.view, self.top = view, top
        self.size = len(view.members)
        self.resilience, self.k = k, min(k, self.size - 1)
        self.SENT = [[0] * self.size for _ in range(self.size)]
        self.received = [0] * self.size
        self.firm = [0] * self.size

    def recipients(self, cast: Cast, i: int) -> list[int]:
        """The members that a cast of member i goes to."""
        lost = (
            self.top and cast.dests is not None and cast.leaves(self.view.roster, self.view.epochs)
        )
        to = [
            j
            for j, member in enumerate(self.view.members)
            if j != i and (lost or cast.is_for(member.roster) or (j == 0 and self._leaves(cast)))
        ]
        witnesses = ((i + n) % self.size for n in range(1, self.size))
        return to + [j for j in witnesses if j not in to][: max(0, self.k - len(to))]

    def _leaves(self, cast: Cast) -> bool:
        return not self.top and cast.leaves(self.view.here, self.view.epochs)

    def _count(self, cast: Cast, i: int, j: int) -> int:
        """The number of a cast of member i among those to j; or among all its casts, if j is i."""
        return cast.vector[-1 if i == j else i * self.size + j]

    @override
    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        to = self.recipients(cast, self.me)
        for j in to:
            self.SENT[self.me][j] += 1
        self.T[self.me] += 1
        rows = [[*row[:i], self.firm[i], *row[i + 1 :]] for i, row in enumerate(self.SENT)]
        vector = (*(entry for row in rows for entry in row), self.T[self.me])
        cast = replace(cast, view=self.id, vector=vector)
        self.enter(self.me + 1, cast, now=now)
        self._firm_up()
        return cast, [(tuple(self.processes[j] for j in sorted(to)), cast)] if to else []

    def fits(self, message: Cast | Report, sender: int) -> bool:
        """Whether a cast has a matrix of this view's size, and this process is a recipient."""
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

    def next(self, now: int = 0) -> tuple[Cast, bool] | None:
        """Take a deliverable cast out of the hold-back queue, and merge its matrix."""
        before = self.T.copy()
        ready = super().next(now)
        if ready is not None:
            cast = ready[0]
            i = next(k for k, (t, was) in enumerate(zip(self.T, before, strict=True)) if t > was)
            self.firm[i] = max(self.firm[i], cast.vector[-1])
            for j, row in enumerate(self.SENT):
                row[:] = map(max, row, cast.vector[j * self.size :])
        return ready

    def deliverable(self, cast: Cast, i: int) -> bool:
        """Whether this cast of member i is firm, and its causal past here is delivered."""
        in_order = all(
            cast.vector[j * self.size + self.me] <= t
            for j, t in enumerate(self.T)
            if j not in (i, self.me)
        )
        return in_order and self.is_firm(cast, i)

    def is_firm(self, cast: Cast, i: int) -> bool:
        """Whether k members besides member i hold its cast, and all its earlier casts."""
        number = cast.vector[-1]
        if self.firm[i] >= number - 1:
            return self.firm[i] >= number or 1 + self._holders(cast, i) >= self.k
        return False

    def _holders(self, cast: Cast, i: int) -> int:
        """The number of recipients known to hold a cast of member i, without this process."""
        return sum(self._has(j, cast, i) for j in self.recipients(cast, i) if j != self.me)

    def _has(self, j: int, cast: Cast, i: int) -> bool:
        received = self.delivered[j]
        return received is not None and received[i] >= self._count(cast, i, j)

    def _firm_up(self) -> None:
        """Update the count of this process's own firm casts, and report it if others wait for it."""
        me, waiting = self.me, self.firm[self.me] + 1 < self.T[self.me]
        for cast in list(self.slots[me + 1])[self.firm[me] - self.stable[me + 1] :]:
            if cast is None or self._holders(cast, me) < self.k:
                break
            self.firm[me] += 1
            self.news |= waiting

    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """Note what a member has delivered, by the matrix of its cast."""
        super().note_vector(sender, vector[self.index[sender] : -1 : self.size])
        self.firm[:] = map(max, self.firm, vector[: -1 : self.size + 1])

    def note(self, sender: int, report: Report) -> None:
        """Note what a member has received and released, and how many of its casts are firm."""
        i = self.index[sender]
        super().note_vector(sender, report.delivered)
        self.firm[i] = max(self.firm[i], report.delivered[i])
        self.released[i][:] = map(max, self.released[i], report.released)
        self._firm_up()

    def reports(
        self, hubs: tuple[int, ...], leads: bool, waiting: Collection[int] | None
    ) -> Iterator[Status]:
        """A report to all: every holder of a cast decides by itself when it is stable."""
        if self.others:
            yield Status(self.others, self.progress(), tuple(self.released[self.me]))

    def waiting_for(self, processes: Collection[int]) -> Collection[int]:
        """All others: a recipient may wait for what another has received."""
        return self.others

    def progress(self) -> tuple[int, ...]:
        """What was received from the others, and how many of its own casts are firm."""
        self.news = False
        self.received[self.me] = self.firm[self.me]
        return tuple(self.received)

    def flushed(self, casts: Iterable[Cast]) -> Flushed:
        """What was delivered and is not stable, and what was only received."""
        held = tuple(
            HeldCast(i, cast.vector[-1], Label.of(cast)) for (i, _), cast in self.held.items()
        )
        labels = tuple(map(Label.of, casts))
        return Flushed(self.id, labels, tuple(self.firm), held, self.kept.names())

    @override
    def find(self, name: MessageId) -> Cast | None:
        return next((cast for cast in self.held.values() if cast.id == name), None)

    @override
    def depends_on(self, missing: Collection[int]) -> bool:
        return len(missing) > self.resilience

    def union(self, states: Collection[Flushed]) -> Iterator[Label]:
        """All that the members have, except casts after a lost one of the same member.

        The numbers of what was only received tell: its sender's earlier casts are firm, and some
        member has brought them unless more than k are missing, or they were received as well.
        """
        yield from super().union(states)
        for view in {state.view for state in states}:
            firm = [state.firm for state in states if state.view == view and state.firm]
            held = [held for state in states if state.view == view for held in state.held]
            if firm and len(firm[0]) - len(firm) <= self.resilience:
                yield from _whole(held, [max(counts) for counts in zip(*firm, strict=False)])

    def everywhere(self, name: MessageId) -> bool:
        """Whether a message is firm; if it was carried over, whether k others are in the view."""
        slot, which = self.at[name]
        if slot == 0:
            return sum(d is not None for d in self.delivered) >= self.k
        return slot != self.me + 1 or self.firm[self.me] >= which

    def released_by_others(self, name: MessageId) -> bool:
        """Whether all other holders of a message have released it."""
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
        """Whether all holders of the first cast of a slot have released it."""
        if slot == 0:
            return super().first_is_stable(slot)
        mine = self.released[self.me][slot] > self.stable[slot]
        return mine and self._released(self.slots[slot][0], slot - 1)

    @override
    def missing(
        self, sender: int, now: int, pause: int, leads: bool = False, is_leader: bool = False
    ) -> list[tuple[int, Cast]]:
        i = self.index[sender]
        received = self.delivered[i]
        if received is None or now - self.resent_at[i] < pause:
            return []
        own = [c for c in self.slots[self.me + 1] if c and i in self.recipients(c, self.me)]
        lacks = [c for c in own if self._count(c, self.me, i) > received[self.me]][:AT_ONCE]
        slot = self.me + 1
        late = [c for c in lacks if now - self.entered_at[slot, c.vector[-1]] >= pause]
        if late:
            self.resent_at[i] = now
        return [(self.processes[self.me], cast) for cast in late]


def _whole(held: Collection[HeldCast], firm: list[int]) -> Iterator[Label]:
    """The received casts all of whose sender's earlier casts are firm or received."""
    for member, number, label in sorted(held, key=lambda h: h.number):
        if number <= firm[member] + 1:
            firm[member] = max(firm[member], number)
            yield label
