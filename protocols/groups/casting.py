"""Causal broadcast within one view, and what its members are known to have.

Birman, Schiper & Stephenson 1991: ``T[i]`` counts the broadcasts of member i that were delivered
here; a broadcast b of member i is deliverable when b.T[i] = T[i] + 1 and b.T[k] <= T[k] for others.

For stability broadcasts are kept in *slots*: slot 0 has those carried over from earlier views, in an
order that all members share, slot i + 1 those of member i. A member reports to the leader how many of
each slot it has delivered, and how many, from the first on, it has *released*: they need not be kept on
its account. The leader tells all what all have delivered, and what all have released, which is stable.
Whoever has a broadcast that another lacks sends it again: the leader to all, others to the leader.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ..wire import MessageId
from .agreed import Flushed, Label
from .messages import Cast, Report
from .stability import Stability
from .view import View

Copies = tuple[tuple[int, ...], Cast]  # and the processes that get it
AT_ONCE = 32  # broadcasts that are retransmitted in answer to one report


class Status(NamedTuple):
    """A report to some members."""

    peers: tuple[int, ...]
    delivered: tuple[int, ...]
    released: tuple[int, ...]
    everywhere: tuple[int, ...] | None = None


class Casting:
    """The broadcasts of one view."""

    news = False  # whether others wait for a report of what this process has received
    all_seen_counts = False  # whether what members of older views have seen counts as seen
    own_at_once = True  # whether a process delivers its own broadcasts as it makes them
    waits = False  # whether, as server, it must first learn what the group above keeps for it

    def __init__(
        self, view: View, me: int, carried: Sequence[Cast], kept: Stability | None = None
    ) -> None:
        size = len(view.members)
        self.id, self.processes = view.id, view.processes
        self.kept = kept or Stability()
        self.index = {process: i for i, process in enumerate(view.processes)}
        self.me = self.index[me]
        self.others = tuple(process for process in view.processes if process != me)
        self.T = [0] * size
        self.delivered: list[tuple[int, ...] | None] = [None] * size  # None: not in this view yet
        self.delivered_by_all: tuple[int, ...] | None = None  # as the leader says
        self.all_are_here = False  # whether this is known; it remains so
        self.released = [[0] * (size + 1) for _ in range(size)]
        self.released_by_all = [0] * (size + 1)  # as the leader says
        self.slots: list[deque[Cast | None]] = [deque() for _ in range(size + 1)]
        self.stable = [0] * (size + 1)  # how many of a slot are forgotten
        self.at: dict[MessageId, tuple[int, int]] = {}  # slot, and index from 1
        self.twice: set[tuple[int, int]] = set()  # seen before, in another slot or view
        self.held: dict[tuple[int, int], Cast] = {}
        self.entered_at: dict[tuple[int, int], int] = {}
        self.resent_at = [0] * size
        for cast in carried:
            self.enter(0, cast)

    def enter(self, slot: int, cast: Cast, seen: bool = False, now: int = 0) -> None:
        """Put a broadcast into its slot, which may have been seen before."""
        self.slots[slot].append(cast)
        place = slot, self.stable[slot] + len(self.slots[slot])
        self.entered_at[place] = now
        if seen:
            self.twice.add(place)
        else:
            self.at[cast.id] = place

    def take_over(self, casts: Sequence[Cast], seen: Iterable[MessageId]) -> list[Cast]:
        """Keep what was carried over; the messages of it that can be delivered at once."""
        return self.kept.take_over(casts, seen)

    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        """Make this process's next broadcast: as it is kept here, and the copies to send."""
        self.T[self.me] += 1
        cast = replace(cast, view=self.id, vector=tuple(self.T))
        self.enter(self.me + 1, cast, now=now)
        return cast, [(self.others, cast)] if self.others else []

    def onward(self, cast: Cast, now: int) -> list[Copies]:
        """The copies of a delivered broadcast to forward; none, since all members get it."""
        return []

    def fits(self, message: Cast | Report, sender: int) -> bool:
        """Whether its vectors are as long as the view."""
        size = len(self.T)
        if isinstance(message, Cast):
            return len(message.vector) == size
        return len(message.delivered) == size and len(message.released) == size + 1

    def number(self, cast: Cast, i: int) -> int:
        """The number of a broadcast among those of member i."""
        return cast.vector[i]

    def hold(self, cast: Cast, sender: int) -> bool:
        """Put a broadcast into the hold-back queue; whether it is new."""
        i = self.index[sender]
        key = i, self.number(cast, i)
        if key[1] <= self.T[i] or key in self.held:
            return False
        self.held[key] = cast
        return True

    def next(self, now: int = 0) -> tuple[Cast, bool] | None:
        """Take a deliverable broadcast out of the hold-back queue; and whether it was seen before."""
        for i in range(len(self.T)) if self.held else ():
            cast = self.held.get((i, self.T[i] + 1))
            if cast is not None and self.deliverable(cast, i):
                del self.held[i, self.T[i] + 1]
                self.T[i] += 1
                seen = self.kept.has_seen(cast)
                self.enter(i + 1, cast, seen, now)
                return cast, seen
        return None

    def deliverable_now(self, cast: Cast, sender: int) -> bool:
        """Whether a broadcast of a process is deliverable at once."""
        i = self.index[sender]
        return self.number(cast, i) == self.T[i] + 1 and self.deliverable(cast, i)

    def deliverable(self, cast: Cast, i: int) -> bool:
        """Whether the causal past of this broadcast of member i has been delivered."""
        return all(
            v <= t for k, (v, t) in enumerate(zip(cast.vector, self.T, strict=True)) if k != i
        )

    # what others have

    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """Note what a member has delivered."""
        i = self.index[sender]
        known = self.delivered[i] or (0,) * len(vector)
        self.delivered[i] = vector if known == vector else tuple(map(max, known, vector))

    def note(self, sender: int, report: Report) -> None:
        """Note what a member has delivered and released; from the leader, what all have."""
        self.note_vector(sender, report.delivered)
        mine = self.released_by_all if report.leads else self.released[self.index[sender]]
        if tuple(mine) != report.released:
            mine[:] = map(max, mine, report.released)
        if report.everywhere is not None:
            known = self.delivered_by_all or report.everywhere
            same = known == report.everywhere
            self.delivered_by_all = known if same else tuple(map(max, known, report.everywhere))

    def reports(
        self, hubs: tuple[int, ...], leads: bool, waiting: Collection[int] | None
    ) -> Iterator[Status]:
        """The heartbeat's reports to the leader, or from it; or a report to those who wait for it."""
        peers = hubs if waiting is None else tuple(p for p in self.others if p in waiting)
        if not peers:
            return
        if not leads:
            yield Status(peers, self.progress(), tuple(self.released[self.me]))
            return
        rows = [d for i, d in enumerate(self.delivered) if i != self.me]
        known = [tuple(self.T), *(row for row in rows if row is not None)]
        everywhere = tuple(map(min, zip(*known, strict=True))) if self.complete() else None
        stable = tuple(map(min, zip(*self.released, strict=True)))
        yield Status(peers, self.progress(), stable, everywhere)

    def waiting_for(self, processes: Collection[int]) -> Collection[int]:
        """Who must be told soon of a delivery, if these wait for it."""
        return processes

    def progress(self) -> tuple[int, ...]:
        """What this process reports to have delivered."""
        return tuple(self.T)

    def everywhere(self, name: MessageId) -> bool:
        """Whether all members are known to have delivered a message."""
        slot, which = self.at[name]
        by_all = self.delivered_by_all
        if by_all is not None and (slot == 0 or by_all[slot - 1] >= which):
            return True
        others = [d for i, d in enumerate(self.delivered) if i != self.me]
        return all(d is not None and (slot == 0 or d[slot - 1] >= which) for d in others)

    def complete(self) -> bool:
        """Whether all members are known to be in the view."""
        if not self.all_are_here:
            self.all_are_here = all(map(self.is_here, self.others))
        return self.all_are_here

    def is_here(self, process: int) -> bool:
        """Whether a member is known to be in the view."""
        i = self.index[process]
        known = self.delivered[i] is not None or self.delivered_by_all is not None
        return known or i == self.me

    def missing(
        self, sender: int, now: int, pause: int, leads: bool = False, is_leader: bool = False
    ) -> list[tuple[int, Cast]]:
        """Broadcasts that a member should have by now, and has not; and who made them.

        Who made a broadcast sends it again, and so does the one who ``leads``; to one who
        ``is_leader`` also the others, by turns.
        """
        i, size = self.index[sender], len(self.T)
        row = self.delivered[i]
        if row is None or not any(self.slots) or now - self.resent_at[i] < pause:
            return []
        late: list[tuple[int, Cast]] = []
        for k in range(size):
            if k == i or row[k] >= self.T[k]:
                continue
            turn = is_leader and (k + 1 + now // pause) % size == self.me
            if k == self.me or leads or turn:
                first = max(row[k] - self.stable[k + 1], 0)
                lacks = islice(self.slots[k + 1], first, None)
                late += [
                    (self.processes[k], cast)
                    for number, cast in enumerate(lacks, self.stable[k + 1] + first + 1)
                    if cast and now - self.entered_at[k + 1, number] >= pause
                ]
        if not late:
            return []
        self.resent_at[i] = now
        late.sort(key=lambda lacking: sum(lacking[1].vector))  # first what others follow
        return late[:AT_ONCE]

    def carried(self) -> Iterator[Cast]:
        """What was carried over into the view and is not stable."""
        return (cast for cast in self.slots[0] if cast is not None)

    # view changes

    def flushed(self, casts: Iterable[Cast]) -> Flushed:
        """What the next view needs: what this process delivered and is not stable."""
        return Flushed(self.id, tuple(map(Label.of, casts)))

    def find(self, name: MessageId) -> Cast | None:
        """A message that was received and not delivered, if the next view may need it."""
        return None

    def depends_on(self, missing: Collection[int]) -> bool:
        """Whether these may be the only ones that have some message."""
        return False

    def union(self, states: Collection[Flushed]) -> Iterator[Label]:
        """All that is carried over into the next view."""
        return (label for state in states for label in state.labels)

    def closed(
        self, labels: Iterable[Label], find: Callable[[MessageId], Cast | None]
    ) -> list[Label]:
        """The messages that all will deliver, of those that some member has."""
        return list(labels)

    # stability

    def released_by_others(self, name: MessageId) -> bool:
        """Whether all other members have released a message."""
        slot, which = self.at[name]
        return all(r[slot] >= which for i, r in enumerate(self.released) if i != self.me)

    def release(self, may: Callable[[Cast], bool]) -> None:
        """Release what may be released of each slot, from the first on."""
        mine = self.released[self.me]
        for slot, casts in enumerate(self.slots):
            if not casts:
                continue
            for cast in list(casts)[mine[slot] - self.stable[slot] :]:
                place = slot, mine[slot] + 1
                if cast is not None and place not in self.twice and not may(cast):
                    break
                mine[slot] += 1

    def forget(self) -> Iterator[MessageId]:
        """Forget the messages that are stable; their names."""
        for slot, casts in enumerate(self.slots):
            while casts and self.first_is_stable(slot):
                cast = casts.popleft()
                self.stable[slot] += 1
                place = slot, self.stable[slot]
                del self.entered_at[place]
                self.twice.discard(place)
                if cast is not None and self.at.get(name := cast.id) == place:
                    del self.at[name]
                    yield name

    def first_is_stable(self, slot: int) -> bool:
        """Whether all members have released the first broadcast of a slot that is not empty."""
        stable = self.stable[slot]
        if self.released_by_all[slot] > stable:
            return True
        return all(row[slot] > stable for row in self.released)


Way = Callable[[View, int, Sequence[Cast], Stability], Casting]
