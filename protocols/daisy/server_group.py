"""The group of servers under early relaying: it delivers by the causal past that senders attached.

The causal past of a broadcast is its vector, of which only its own number is the relaying server's, and
the messages that it names; see ``early_relay``. What was received is held back, and goes into the next
view's union, unless something that it names does not.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from typing_extensions import override

from ..groups.agreed import Flushed, Label
from ..groups.casting import Casting, Copies
from ..groups.messages import Cast, Report
from ..groups.stability import Stability
from ..groups.stamped_cast import StampedCast
from ..groups.view import View
from ..wire import MessageId


class ByOrigin(Casting):
    """The servers' broadcasts of one view; a vector is the sender's, but for the broadcast's number.

    ``T`` counts what was received without a gap; all that was received is in ``held`` until it is
    delivered, in any order that the vectors allow. One that was cut off may lack a message that all
    others have forgotten, and hold back what names it; so in a view change all say what they have
    seen, also those of an older view.
    """

    all_seen_counts = True
    own_at_once = False

    def __init__(
        self, view: View, me: int, carried: Sequence[Cast], kept: Stability | None = None
    ) -> None:
        super().__init__(view, me, carried, kept)
        self.done = [0] * len(self.T)  # how many were delivered without a gap
        self.done_beyond: set[tuple[int, int]] = set()
        self.apart: dict[tuple[int, int], tuple[Cast, bool]] = {}  # after a gap; seen before?

    def knows(self, cast: Cast) -> bool:
        """Whether it was delivered here, or is held back."""
        return self.kept.has_seen(cast) or self.find(cast.id) is not None

    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        """Make this process's next broadcast, with its sender's vector; it is held back like others."""
        number = self.T[self.me] + 1
        vector = list(beyond_of(cast, self))
        vector[self.me] = number
        cast = StampedCast(
            cast.source, cast.seq, cast.payload, cast.sent_at, cast.group, view=self.id,
            time=cast.time, vector=tuple(vector), dests=cast.dests,
            epochs=cast.epochs, after=after_of(cast),
        )  # fmt: skip
        self.T[self.me] = number
        self.held[self.me, number] = cast
        self.enter(self.me + 1, cast, now=now)
        return cast, [(self.others, cast)] if self.others else []

    @override
    def fits(self, message: Cast | Report, sender: int) -> bool:
        stamped = isinstance(message, Report | StampedCast)
        return stamped and super().fits(message, sender)

    def hold(self, cast: Cast, sender: int) -> bool:
        """Keep a broadcast until it is deliverable, and until it is stable; whether it is new."""
        i = self.index[sender]
        key = i, cast.vector[i]
        if key[1] <= self.T[i] or key in self.apart:
            return False
        seen = self.kept.has_seen(cast)
        self.apart[key] = cast, seen
        if seen:
            self.finish(key)
        else:
            self.held[key] = cast
        while (i, self.T[i] + 1) in self.apart:
            self.T[i] += 1
            self.enter(i + 1, *self.apart.pop((i, self.T[i])))
        return True

    def next(self, now: int = 0) -> tuple[Cast, bool] | None:
        """Take out what is deliverable, with its position in the view attached."""
        for (i, number), cast in self.held.items():
            if self.deliverable(cast, i) and follows(after_of(cast), self.kept):
                self.finish((i, number))
                assert isinstance(cast, StampedCast)
                placed = replace(cast, above=self.id, beyond=cast.vector, after=())
                return placed, self.kept.has_seen(cast)
        return None

    @override
    def deliverable_now(self, cast: Cast, sender: int) -> bool:
        return self.deliverable(cast, self.index[sender])

    def deliverable(self, cast: Cast, i: int) -> bool:
        """Whether the other servers' broadcasts up to the numbers in its vector were delivered."""
        return all(
            v <= d for k, (v, d) in enumerate(zip(cast.vector, self.done, strict=True)) if k != i
        )

    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """Nothing to note: a vector says what the sender of the message knew, not the server."""

    @override
    def note(self, sender: int, report: Report) -> None:
        super().note_vector(sender, report.delivered)
        super().note(sender, report)

    def finish(self, key: tuple[int, int]) -> None:
        """Count one as delivered."""
        self.held.pop(key, None)
        self.done_beyond.add(key)
        i = key[0]
        while (i, self.done[i] + 1) in self.done_beyond:
            self.done[i] += 1
            self.done_beyond.remove((i, self.done[i]))

    @override
    def flushed(self, casts: Iterable[Cast]) -> Flushed:
        labels = tuple(map(Label.of, (*casts, *self.held.values())))
        return Flushed(self.id, labels, seen=self.kept.names())

    @override
    def find(self, name: MessageId) -> Cast | None:
        return next((cast for cast in self.held.values() if cast.id == name), None)

    def closed(
        self, labels: Iterable[Label], find: Callable[[MessageId], Cast | None]
    ) -> list[Label]:
        """Drop what lacks something in its causal past."""
        kept, passed = Stability(), []
        kept.seen = self.kept.seen.copy()
        for label in labels:
            cast = find(label.id)
            assert cast is not None
            if follows(after_of(cast), kept):
                passed.append(label)
                kept.see([label.id])
        return passed


def beyond_of(cast: Cast, casting: Casting) -> tuple[int, ...]:
    """The servers' broadcasts in a message's causal past; none, if they are of an old view."""
    size = len(casting.T)
    if isinstance(cast, StampedCast) and cast.above == casting.id and len(cast.beyond) == size:
        return cast.beyond
    return (0,) * size


def after_of(cast: Cast) -> tuple[MessageId, ...]:
    """The messages that it names."""
    return cast.after if isinstance(cast, StampedCast) else ()


def follows(names: Iterable[MessageId], kept: Stability) -> bool:
    """Whether all named messages were seen."""
    return all(kept.has_seen(name) for name in names)
