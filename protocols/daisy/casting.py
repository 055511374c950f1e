"""Causal broadcast within one view, and what its members are known to have of it.

Birman, Schiper & Stephenson 1991: ``T[i]`` counts the broadcasts of member i that were delivered
here; one of member i is deliverable when its vector is T, but for one more at i, or less.

For stability the broadcasts stand in *slots*: slot 0 holds what was carried over from earlier views,
in an order that all members share, slot i + 1 the broadcasts of member i. A member reports how many
of each slot it has delivered, and how many, from the first on, it has *released*: need not be kept
on its account. What all have released is stable and is forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..wire import MessageId
from .messages import Cast, Report
from .view import View
from .view_change import State

Copies = tuple[tuple[int, ...], Cast]  # the processes that get it
Status = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # to whom; delivered, released
AT_ONCE = 32  # broadcasts that are sent again in answer to one report


class Casting:
    """The broadcasts of one view."""

    news = False  # whether others wait to hear what this process has received

    def __init__(self, view: View, me: int, carried: Sequence[Cast]) -> None:
        size = len(view.members)
        self.id = view.id
        self.index = {process: i for i, process in enumerate(view.processes)}
        self.me = self.index[me]
        self.others = tuple(process for process in view.processes if process != me)
        self.T = [0] * size
        self.delivered: list[tuple[int, ...] | None] = [None] * size  # none: not in this view yet
        self.released = [[0] * (size + 1) for _ in range(size)]
        self.slots: list[deque[Cast | None]] = [deque() for _ in range(size + 1)]
        self.stable = [0] * (size + 1)  # how many of a slot are forgotten
        self.at: dict[MessageId, tuple[int, int]] = {}  # slot, and which of it
        self.held: dict[tuple[int, int], Cast] = {}
        self.cast_at: dict[int, int] = {}  # when this process made which of its broadcasts
        self.resent_at = [0] * size
        for cast in carried:
            self.enter(0, cast)

    def enter(self, slot: int, cast: Cast | None) -> None:
        """Put a broadcast into its slot; none stands for one that was seen before."""
        self.slots[slot].append(cast)
        if cast is not None:
            self.at[cast.id] = slot, self.stable[slot] + len(self.slots[slot])

    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        """Make this process's next broadcast: as it is kept here, and as it goes to whom."""
        self.T[self.me] += 1
        self.cast_at[self.T[self.me]] = now
        cast = replace(cast, view=self.id, vector=tuple(self.T))
        self.enter(self.me + 1, cast)
        return cast, [(self.others, cast)] if self.others else []

    def onward(self, cast: Cast, now: int) -> list[Copies]:
        """To whom a broadcast that was delivered goes from here; all have got it already."""
        return []

    def fits(self, message: Cast | Report, sender: int) -> bool:
        """Whether it speaks of as many members as there are."""
        vector = message.vector if isinstance(message, Cast) else message.delivered
        return len(vector) == len(self.T)

    def number(self, cast: Cast, i: int) -> int:
        """Which one of member i's broadcasts it is."""
        return cast.vector[i]

    def hold(self, cast: Cast, sender: int) -> bool:
        """Keep a broadcast until it is deliverable; whether it is new."""
        i = self.index[sender]
        key = i, self.number(cast, i)
        if key[1] <= self.T[i] or key in self.held:
            return False
        self.held[key] = cast
        return True

    def next(self) -> tuple[int, Cast] | None:
        """Take a deliverable broadcast out of those that wait, and count it as delivered."""
        for i in range(len(self.T)):
            cast = self.held.get((i, self.T[i] + 1))
            if cast is not None and self.deliverable(cast, i):
                del self.held[i, self.T[i] + 1]
                self.T[i] += 1
                return i, cast
        return None

    def deliverable_now(self, cast: Cast, sender: int) -> bool:
        """Whether a broadcast waits for nothing."""
        i = self.index[sender]
        return self.number(cast, i) == self.T[i] + 1 and self.deliverable(cast, i)

    def deliverable(self, cast: Cast, i: int) -> bool:
        """Whether all that this broadcast of member i comes after has been delivered."""
        return all(
            v <= t for k, (v, t) in enumerate(zip(cast.vector, self.T, strict=True)) if k != i
        )

    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """A member has delivered this much."""
        i = self.index[sender]
        known = self.delivered[i] or (0,) * len(vector)
        self.delivered[i] = tuple(map(max, known, vector))

    def note(self, sender: int, report: Report) -> None:
        """A member has delivered and released this much."""
        self.note_vector(sender, report.delivered)
        released = self.released[self.index[sender]]
        released[:] = map(max, released, report.released)

    def reports(self, urgent: bool) -> Iterator[Status]:
        """What the others should know; ``urgent`` is what they wait for."""
        if self.others:
            yield self.others, self.progress(), tuple(self.released[self.me])

    def progress(self) -> tuple[int, ...]:
        """What this process tells the others that it has."""
        return tuple(self.T)

    def state(self, history: Iterable[Cast], seen: Iterable[MessageId]) -> State:
        """What the next view needs of this one: what this process delivered that is not stable."""
        return State(self.id, tuple(history))

    def is_short(self, states: Mapping[int, State]) -> bool:
        """Whether too few members brought their states, as long as the others may be alive."""
        return False

    def union(self, states: Collection[State]) -> Iterator[Cast]:
        """All that is carried into the next view."""
        return (cast for state in states for cast in state.casts)

    def everywhere(self, name: MessageId) -> bool:
        """Whether all members are known to have delivered a message."""
        slot, which = self.at[name]
        others = [d for i, d in enumerate(self.delivered) if i != self.me]
        return all(d is not None and (slot == 0 or d[slot - 1] >= which) for d in others)

    def complete(self) -> bool:
        """Whether all members are known to be in the view."""
        return all(d is not None for i, d in enumerate(self.delivered) if i != self.me)

    def released_by_others(self, name: MessageId) -> bool:
        """Whether all other members have released a message."""
        slot, which = self.at[name]
        return all(r[slot] >= which for i, r in enumerate(self.released) if i != self.me)

    def release(self, may: Callable[[Cast], bool]) -> None:
        """Release of each slot what may be, from the first on."""
        mine = self.released[self.me]
        for slot, casts in enumerate(self.slots):
            for cast in list(casts)[mine[slot] - self.stable[slot] :]:
                if cast is not None and not may(cast):
                    break
                mine[slot] += 1

    def forget(self, needed: Callable[[Cast], bool]) -> Iterator[MessageId]:
        """The messages that are stable; they are kept no longer."""
        for slot, casts in enumerate(self.slots):
            while self.first_is_stable(slot) and not ((cast := casts[0]) and needed(cast)):
                casts.popleft()
                self.stable[slot] += 1
                if slot == self.me + 1:
                    self.cast_at.pop(self.stable[slot], None)
                if cast is not None and self.at.get(cast.id) == (slot, self.stable[slot]):
                    del self.at[cast.id]
                    yield cast.id

    def first_is_stable(self, slot: int) -> bool:
        """Whether all have released the first of a slot."""
        return self.stable[slot] < min(released[slot] for released in self.released)

    def missing(self, sender: int, now: int, pause: int) -> list[Cast]:
        """Broadcasts of this process that a member should have by now."""
        i, slot = self.index[sender], self.me + 1
        has = (self.delivered[i] or self.T)[self.me]
        if has >= self.T[self.me] or now - self.resent_at[i] < pause:
            return []
        own = list(self.slots[slot])[has - self.stable[slot] :][:AT_ONCE]
        late = [c for c in own if c and now - self.cast_at[c.vector[self.me]] >= pause]
        if late:
            self.resent_at[i] = now
        return late
