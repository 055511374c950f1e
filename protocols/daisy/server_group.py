"""The group of servers under early relaying: it delivers by the causal past that senders attached.

The causal past of a broadcast is its vector, of which only its own number is the relaying server's, and
the messages that it names; see ``early_relay``. What was received is held back, and goes into the next
view's union, unless something that it names does not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..base import SEQUENCE_BITS, Count, Deliver, Discard, Effects
from ..wire import MessageId
from .casting import Casting, Copies
from .group import Group
from .messages import Cast
from .stamped_cast import StampedCast
from .view import View


class ByOrigin(Casting):
    """The servers' broadcasts of one view; a vector is the sender's, but for the broadcast's number.

    ``T`` counts what was received without a gap; all that was received is in ``held`` until it is
    delivered, in any order that the vectors allow.
    """

    def __init__(self, view: View, me: int, carried: Sequence[Cast]) -> None:
        super().__init__(view, me, carried)
        self.done = [0] * len(self.T)  # how many were delivered without a gap
        self.done_beyond: set[tuple[int, int]] = set()
        self.apart: dict[tuple[int, int], Cast | None] = {}  # received after a gap

    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        """Make this process's next broadcast, with its sender's vector; it is held back like others."""
        number = self.T[self.me] + 1
        vector = list(beyond_of(cast, self))
        vector[self.me] = number
        cast = StampedCast(
            cast.source, cast.seq, cast.payload, cast.sent_at, cast.group, view=self.id,
            time=cast.time, vector=tuple(vector), dests=cast.dests,
            after=after_of(cast),
        )  # fmt: skip
        self.T[self.me] = number
        self.cast_at[number] = now
        self.held[self.me, number] = cast
        self.enter(self.me + 1, cast)
        return cast, [(self.others, cast)] if self.others else []

    def is_new(self, cast: Cast, sender: int) -> bool:
        """Whether a broadcast of this number has not been received."""
        i = self.index[sender]
        return cast.vector[i] > self.T[i] and (i, cast.vector[i]) not in self.apart

    def take(self, cast: Cast, sender: int, seen: bool) -> None:
        """Keep a broadcast until it is deliverable, and until it is stable unless seen before."""
        i = self.index[sender]
        key = i, cast.vector[i]
        self.apart[key] = None if seen else cast
        if seen:
            self.finish(key)
        else:
            self.held[key] = cast
        while (i, self.T[i] + 1) in self.apart:
            self.T[i] += 1
            self.enter(i + 1, self.apart.pop((i, self.T[i])))

    def deliverable(self, cast: Cast, i: int) -> bool:
        """Whether the other servers' broadcasts up to the numbers in its vector were delivered."""
        return all(
            v <= d for k, (v, d) in enumerate(zip(cast.vector, self.done, strict=True)) if k != i
        )

    def finish(self, key: tuple[int, int]) -> None:
        """Count one as delivered."""
        self.held.pop(key, None)
        self.done_beyond.add(key)
        i = key[0]
        while (i, self.done[i] + 1) in self.done_beyond:
            self.done[i] += 1
            self.done_beyond.remove((i, self.done[i]))


class ServerGroup(Group):
    """The group of servers, which delivers by the causal past that senders attached."""

    casting: ByOrigin | None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, way=ByOrigin, **named)

    def knows(self, cast: Cast) -> bool:
        """Whether it was delivered here, or is held back."""
        return self.has_seen(cast) or cast.id in self._waiting()

    def _waiting(self) -> dict[MessageId, Cast]:
        casts = () if self.casting is None else self.casting.held.values()
        return {cast.id: cast for cast in casts}

    def cast(self, message: Cast, now: int) -> Effects:
        """Broadcast a message in the view; it is delivered here no sooner than elsewhere."""
        assert self.casting is not None
        _, copies = self.casting.send(replace(message, group=self.number), now)
        yield Count("broadcasts")
        yield from self._send_copies(copies)
        yield from self._deliver_ready()

    def _on_cast(self, cast: Cast, sender: int, now: int) -> Effects:
        casting = self.casting
        if casting is None or not self._current(cast.view, sender):
            yield Discard(cast, "other view")
        elif len(cast.vector) != len(casting.T) or not isinstance(cast, StampedCast):
            yield Discard(cast, "malformed")
        elif not casting.is_new(cast, sender):
            yield Discard(cast, "duplicate")
        else:
            casting.take(cast, sender, self.has_seen(cast))
            yield from self._deliver_ready()

    def _deliver_ready(self) -> Effects:
        """Deliver all that is deliverable, with its position in the view attached."""
        casting = self.casting
        assert casting is not None
        while ready := self._ready(casting):
            cast = casting.held[ready]
            casting.finish(ready)
            if self.has_seen(cast):
                yield Count("duplicates_suppressed")
                continue
            assert isinstance(cast, StampedCast)
            placed = replace(cast, above=casting.id, beyond=cast.vector, after=())
            self._record(placed)
            yield Deliver(placed)

    def _ready(self, casting: ByOrigin) -> tuple[int, int] | None:
        for (i, number), cast in casting.held.items():
            if casting.deliverable(cast, i) and follows(after_of(cast), self.seen):
                return i, number
        return None

    def _kept(self) -> Iterable[Cast]:
        return (*self.history.values(), *self._waiting().values())

    def _closed(self, union: Iterable[Cast]) -> tuple[Cast, ...]:
        """Drop what lacks something in its causal past."""
        seen, kept = self.seen.copy(), []
        for cast in union:
            if follows(after_of(cast), seen):
                kept.append(cast)
                seen[stream_of(cast.id)] = max(seen.get(stream_of(cast.id), -1), cast.seq)
        return tuple(kept)


def beyond_of(cast: Cast, casting: Casting) -> tuple[int, ...]:
    """The servers' broadcasts in a message's causal past; none, if they are of an old view."""
    size = len(casting.T)
    if isinstance(cast, StampedCast) and cast.above == casting.id and len(cast.beyond) == size:
        return cast.beyond
    return (0,) * size


def after_of(cast: Cast) -> tuple[MessageId, ...]:
    """The messages that it names."""
    return cast.after if isinstance(cast, StampedCast) else ()


def follows(names: Iterable[MessageId], seen: dict[tuple[int, int], int]) -> bool:
    """Whether all named messages were seen."""
    return all(name.seq <= seen.get(stream_of(name), -1) for name in names)


def stream_of(name: MessageId) -> tuple[int, int]:
    """The process and its incarnation."""
    return name.source, name.seq >> SEQUENCE_BITS
