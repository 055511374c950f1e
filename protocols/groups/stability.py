"""What a process keeps of a group's messages: until they are stable, and longer for who is away.

Section 3.1.1 of Baldoni, Friedman & van Renesse 1996: a message is stable when all members have it and
nobody above or below waits for it. Then it is forgotten, unless it is for a process that is away; such
messages are kept apart, in the *archive*, until that process is back or is taken to have crashed.
"""

from collections.abc import Iterable

from ..base import SEQUENCE_BITS
from ..wire import Message, MessageId
from .messages import Cast


def stream_of(message: Message | MessageId) -> tuple[int, int]:
    """The process that sent a message, and its incarnation then."""
    return message.source, message.seq >> SEQUENCE_BITS


class Stability:
    """The messages of one group at one process."""

    def __init__(self) -> None:
        self.history: dict[MessageId, Cast] = {}  # delivered and not stable, in that order
        self.archive: dict[MessageId, Cast] = {}  # stable, and for somebody who is away
        self.seen: dict[tuple[int, int], int] = {}  # the last number of each incarnation
        self.owed: frozenset[int] = frozenset()  # whom the archive is for
        self.measured: list[Cast] = []  # what was kept when its size was last summed up,
        self.bytes = 0  # and the sum

    def size(self) -> int:
        """The bytes of all that is kept."""
        kept = [*self.history.values(), *self.archive.values()]
        if kept != self.measured:  # by identity: messages do not change
            self.measured, self.bytes = kept, sum([cast.size for cast in kept])
        return self.bytes

    def has_seen(self, message: Message | MessageId) -> bool:
        """Whether a message, or a later one of its sender, was delivered in the group."""
        return message.seq <= self.seen.get(stream_of(message), -1)

    def see(self, names: Iterable[MessageId]) -> None:
        """Note that these have been delivered, and all that their senders sent before."""
        for name in names:
            stream = stream_of(name)
            self.seen[stream] = max(self.seen.get(stream, -1), name.seq)

    def record(self, cast: Cast) -> None:
        """Keep a message that is being delivered."""
        name = cast.id
        self.seen[stream_of(name)] = name.seq
        self.history[name] = cast

    def names(self) -> tuple[MessageId, ...]:
        """The last message of each incarnation that was seen."""
        return tuple(MessageId(source, seq) for (source, _), seq in self.seen.items())

    def find(self, name: MessageId) -> Cast | None:
        """A message that is kept."""
        return self.history.get(name) or self.archive.get(name)

    def all(self) -> list[Cast]:
        """All that is kept, in causal order."""
        kept = (*self.archive.values(), *self.history.values())
        return sorted(kept, key=lambda cast: (cast.time, cast.id))

    def is_stable(self, cast: Cast) -> bool:
        """Whether a message was seen, and nobody who is present lacks it."""
        return self.has_seen(cast) and cast.id not in self.history

    def settle(self, names: Iterable[MessageId], owed: frozenset[int]) -> None:
        """Forget what has become stable, except what is for those who are away."""
        if owed != self.owed:
            self.owed = owed
            self.archive = {n: c for n, c in self.archive.items() if c.is_for(owed)}
        for name in names:
            cast = self.history.pop(name, None)
            if cast is not None and owed and cast.is_for(owed):
                self.archive[name] = cast

    def take_over(self, casts: Iterable[Cast], seen: Iterable[MessageId]) -> list[Cast]:
        """Keep what was carried over into a view; the part of it that is new here."""
        self.history = {cast.id: cast for cast in casts}
        for name in self.history:
            self.archive.pop(name, None)
        fresh = [cast for cast in self.history.values() if not self.has_seen(cast)]
        self.see(cast.id for cast in fresh)
        self.see(seen)
        return fresh
