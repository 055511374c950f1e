"""Casts that go to their destinations only, and are kept until all of these have them.

While a destination is away, they go to all members, who keep them for it: others than their sender.
A member numbers its casts in a view. A copy carries two integers: the cast's number, and the number of
its sender's previous cast to the same receiver; so a receiver knows what it lacks. It acknowledges the
number up to which it has all that is for it. When all destinations of a sender's first casts have them,
these are *stable*; the sender tells the destinations soon, and the heartbeats tell everybody.
Delivery: the casts of one sender in order. Causal order is up to who derives from this.
State: copies that are not acknowledged; of each member, how much came from it, and how many of its
casts are stable.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from typing_extensions import override

from ..groups.casting import AT_ONCE, Casting, Copies, Status
from ..groups.messages import Cast, Report
from ..groups.stability import Stability
from ..groups.view import View
from ..wire import MessageId


class PointToPoint(Casting):
    """The casts of one view.

    A report has for each member the number up to which its source has all casts for it, and up to
    which its casts are stable. The source's own entry is the number of its last cast to the
    receiver, if it waits for an acknowledgement, else zero.

    What was carried over from earlier views all members of this one have when they enter it.
    """

    def __init__(
        self, view: View, me: int, carried: Sequence[Cast], kept: Stability | None = None
    ) -> None:
        super().__init__(view, me, carried, kept)
        self.view, size = view, len(view.members)
        self.sent: list[deque[tuple[int, Cast]]] = [deque() for _ in range(size)]  # and when
        self.last = [0] * size  # the number of the own last cast to each
        self.recipients: dict[int, tuple[int, ...]] = {}  # of own casts that are not stable
        self.settled = [0] * size  # up to which number each member's casts are stable
        self.due: set[int] = set()  # who should have a report soon

    @override
    def enter(self, slot: int, cast: Cast, seen: bool = False, now: int = 0) -> None:
        self.at[cast.id] = slot, cast.vector[0] if slot else 0

    def is_unstable(self, name: MessageId) -> bool:
        """Whether a message is a cast of this view, and not known to be stable."""
        slot, number = self.at.get(name, (0, 0))
        return slot > 0 and number > self.settled[slot - 1]

    def unstable(self) -> list[Cast]:
        """All such casts, in causal order."""
        casts = (cast for name, cast in self.kept.history.items() if self.is_unstable(name))
        return sorted(casts, key=lambda cast: (cast.time, cast.id))

    @override
    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        self.T[self.me] += 1
        number = self.T[self.me]
        whole = replace(cast, view=self.id, vector=(number,))
        to = tuple(p for p in self.others if self._goes_to(cast, p))
        packed, copies = self.packed(whole), list[Copies]()
        for process in to:
            j = self.index[process]
            copy = replace(packed, vector=(number, self.last[j]))
            self.last[j] = number
            self.sent[j].append((now, copy))
            copies.append(((process,), copy))
        self.enter(self.me + 1, whole)
        self.recipients[number] = to
        self._settle()
        return whole, copies

    def _goes_to(self, cast: Cast, process: int) -> bool:
        return cast.is_for((process,)) or cast.leaves(self.view.here, self.view.epochs)

    def packed(self, cast: Cast) -> Cast:
        """An own cast with what must travel with it."""
        return cast

    # what comes in

    @override
    def fits(self, message: Cast | Report, sender: int) -> bool:
        if isinstance(message, Report):
            return len(message.delivered) == len(message.released) == len(self.T)
        return len(message.vector) == 2 and self._goes_to(message, self.processes[self.me])

    @override
    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """Nothing to note: a cast's numbers say nothing about what its sender has."""

    @override
    def hold(self, cast: Cast, sender: int) -> bool:
        i = self.index[sender]
        number, previous = cast.vector
        self._tell((sender,))
        if number <= self.T[i] or (i, previous) in self.held:
            return False
        self.held[i, previous] = cast
        return True

    @override
    def next(self, now: int = 0) -> tuple[Cast, bool] | None:
        for i in range(len(self.T)):
            cast = self.held.get((i, self.T[i]))
            if cast is not None and self.deliverable(cast, i):
                del self.held[i, self.T[i]]
                self.T[i] = cast.vector[0]
                return self.taken(i, cast)
        return None

    def taken(self, i: int, cast: Cast) -> tuple[Cast, bool]:
        """A cast of member i as it is kept here, and whether it was seen before."""
        whole, seen = replace(cast, vector=cast.vector[:1]), self.kept.has_seen(cast)
        if not seen:
            self.enter(i + 1, whole)
        return whole, seen

    @override
    def deliverable(self, cast: Cast, i: int) -> bool:
        return True

    @override
    def deliverable_now(self, cast: Cast, sender: int) -> bool:
        i = self.index[sender]
        return cast.vector[1] == self.T[i] and self.deliverable(cast, i)

    # what others have

    @override
    def note(self, sender: int, report: Report) -> None:
        i = self.index[sender]
        super().note_vector(sender, report.delivered)
        self.settled[:] = map(max, self.settled, report.released)
        if report.everywhere is not None:
            self.delivered_by_all = report.everywhere
        if report.delivered[i]:
            self._tell((sender,))
        while self.sent[i] and self.sent[i][0][1].vector[0] <= report.delivered[self.me]:
            self.sent[i].popleft()
        self._settle()

    def _settle(self) -> None:
        """Find out how many of the own casts are stable, and who should know."""
        lacking = (copies[0][1].vector[0] for copies in self.sent if copies)
        stable = min((self.T[self.me] + 1, *lacking)) - 1
        for number in range(self.settled[self.me] + 1, stable + 1):
            self._tell(self.recipients.pop(number))
        self.settled[self.me] = stable

    def _tell(self, processes: Collection[int]) -> None:
        self.due.update(processes)
        self.news = bool(self.due)

    @override
    def waiting_for(self, processes: Collection[int]) -> Collection[int]:
        due, self.due, self.news = self.due, set(), False
        return due

    @override
    def reports(
        self, hubs: tuple[int, ...], leads: bool, waiting: Collection[int] | None
    ) -> Iterator[Status]:
        everywhere = self._vector(0) if leads and self.complete() else None
        asked = {p for p in self.others if waiting is None and self.sent[self.index[p]]}
        for process in sorted(asked):
            vector = self._vector(self.last[self.index[process]])
            yield Status((process,), vector, tuple(self.settled), everywhere)
        peers = hubs if waiting is None else tuple(p for p in self.others if p in waiting)
        if peers := tuple(p for p in peers if p not in asked):
            yield Status(peers, self._vector(0), tuple(self.settled), everywhere)

    def _vector(self, own: int) -> tuple[int, ...]:
        return (*self.T[: self.me], own, *self.T[self.me + 1 :])

    @override
    def missing(
        self, sender: int, now: int, pause: int, leads: bool = False, is_leader: bool = False
    ) -> list[tuple[int, Cast]]:
        i = self.index[sender]
        if now - self.resent_at[i] < pause:
            return []
        late = [copy for at, copy in self.sent[i] if now - at >= pause][:AT_ONCE]
        if late:
            self.resent_at[i] = now
        return [(self.processes[self.me], copy) for copy in late]

    @override
    def forget(self) -> Iterator[MessageId]:
        complete = self.complete()
        for name, (slot, _) in list(self.at.items()):
            if not self.is_unstable(name) and (slot or complete):
                del self.at[name]
                yield name
