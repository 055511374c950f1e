"""Causal broadcast within one view, and what its members are known to have.

Birman, Schiper & Stephenson 1991: ``T[i]`` counts the broadcasts of member i that were delivered
here; a broadcast b of member i is deliverable when b.T[i] = T[i] + 1 and b.T[k] <= T[k] for others.

For stability broadcasts are kept in *slots*: slot 0 has those carried over from earlier views, in an
order that all members share, slot i + 1 those of member i. A member reports how many of each slot it
has delivered, and how many, from the first on, it has *released*: they need not be kept on its
account. What all members have released is stable and is forgotten.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..wire import MessageId
from .messages import Cast, Report
from .view import View
from .view_change import State

Copies = tuple[tuple[int, ...], Cast]  # and the processes that get it
Status = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # receivers; delivered, released
AT_ONCE = 32  # broadcasts that are retransmitted in answer to one report


class Casting:
    """The broadcasts of one view."""

    news = False  # whether others wait for a report of what this process has received

    def __init__(self, view: View, me: int, carried: Sequence[Cast]) -> None:
        size = len(view.members)
        self.id = view.id
        self.index = {process: i for i, process in enumerate(view.processes)}
        self.me = self.index[me]
        self.others = tuple(process for process in view.processes if process != me)
        self.T = [0] * size
        self.delivered: list[tuple[int, ...] | None] = [None] * size  # None: not in this view yet
        self.released = [[0] * (size + 1) for _ in range(size)]
        self.slots: list[deque[Cast | None]] = [deque() for _ in range(size + 1)]
        self.stable = [0] * (size + 1)  # how many of a slot are forgotten
        self.at: dict[MessageId, tuple[int, int]] = {}  # slot, and index from 1
        self.held: dict[tuple[int, int], Cast] = {}
        self.cast_at: dict[int, int] = {}  # when this process made each of its broadcasts
        self.resent_at = [0] * size
        for cast in carried:
            self.enter(0, cast)

    def enter(self, slot: int, cast: Cast | None) -> None:
        """Put a broadcast into its slot; None stands for one that was seen before."""
        self.slots[slot].append(cast)
        if cast is not None:
            self.at[cast.id] = slot, self.stable[slot] + len(self.slots[slot])

    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        """Make this process's next broadcast: as it is kept here, and the copies to send."""
        self.T[self.me] += 1
        self.cast_at[self.T[self.me]] = now
        cast = replace(cast, view=self.id, vector=tuple(self.T))
        self.enter(self.me + 1, cast)
        return cast, [(self.others, cast)] if self.others else []

    def onward(self, cast: Cast, now: int) -> list[Copies]:
        """The copies of a delivered broadcast to forward; none, since all members get it."""
        return []

    def fits(self, message: Cast | Report, sender: int) -> bool:
        """Whether its vectors are as long as the view."""
        vector = message.vector if isinstance(message, Cast) else message.delivered
        return len(vector) == len(self.T)

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

    def next(self) -> tuple[int, Cast] | None:
        """Take a deliverable broadcast out of the hold-back queue, and count it as delivered."""
        for i in range(len(self.T)):
            cast = self.held.get((i, self.T[i] + 1))
            if cast is not None and self.deliverable(cast, i):
                del self.held[i, self.T[i] + 1]
                self.T[i] += 1
                return i, cast
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

    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """Note what a member has delivered."""
        i = self.index[sender]
        known = self.delivered[i] or (0,) * len(vector)
        self.delivered[i] = tuple(map(max, known, vector))

    def note(self, sender: int, report: Report) -> None:
        """Note what a member has delivered and released."""
        self.note_vector(sender, report.delivered)
        released = self.released[self.index[sender]]
        released[:] = map(max, released, report.released)

    def reports(self, urgent: bool) -> Iterator[Status]:
        """The reports for other members; ``urgent`` are those that they wait for."""
        if self.others:
            yield self.others, self.progress(), tuple(self.released[self.me])

    def progress(self) -> tuple[int, ...]:
        """What this process reports to have delivered."""
        return tuple(self.T)

    def state(self, history: Iterable[Cast], seen: Iterable[MessageId]) -> State:
        """What the next view needs: what this process delivered and is not stable."""
        return State(self.id, tuple(history))

    def is_short(self, states: Mapping[int, State]) -> bool:
        """Whether too few members have sent their State, if the others may be alive."""
        return False

    def union(self, states: Collection[State]) -> Iterator[Cast]:
        """All that is carried over into the next view."""
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
        """Release what may be released of each slot, from the first on."""
        mine = self.released[self.me]
        for slot, casts in enumerate(self.slots):
            for cast in list(casts)[mine[slot] - self.stable[slot] :]:
                if cast is not None and not may(cast):
                    break
                mine[slot] += 1

    def forget(self, needed: Callable[[Cast], bool]) -> Iterator[MessageId]:
        """Forget the messages that are stable; their names."""
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
        """Whether all members have released the first broadcast of a slot."""
        return self.stable[slot] < min(released[slot] for released in self.released)

    def missing(self, sender: int, now: int, pause: int) -> list[Cast]:
        """Broadcasts of this process that a member should have by now, and has not."""
        i, slot = self.index[sender], self.me + 1
        has = (self.delivered[i] or self.T)[self.me]
        if has >= self.T[self.me] or now - self.resent_at[i] < pause:
            return []
        own = list(self.slots[slot])[has - self.stable[slot] :][:AT_ONCE]
        late = [c for c in own if c and now - self.cast_at[c.vector[self.me]] >= pause]
        if late:
            self.resent_at[i] = now
        return late
