"""What travels in parts, and what is fetched: both are asked for again until they have arrived."""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from ..wire import MessageId
from .flush import Fetch, Missing, Part
from .messages import Cast
from .view import ViewId

AT_ONCE = 64  # messages that are asked for at a time


class Incoming(NamedTuple):
    """The parts of one thing that have arrived, and when the last did."""

    view: ViewId
    parts: dict[int, bytes]
    total: int
    at: int


class Assembly:
    """Puts together what others send in parts."""

    def __init__(self) -> None:
        self.incoming: dict[tuple[int, int], Incoming] = {}  # by sender, and what it is

    def add(self, part: Part, sender: int, now: int) -> bytes | None:
        """The whole, if this was the last part of it that was missing."""
        key = sender, part.what
        known = self.incoming.get(key)
        if known is None or known.view != part.view:
            known = Incoming(part.view, {}, part.count, now)
        if part.index in known.parts:
            return None  # nothing new: the others are asked for as if it had not come
        known.parts[part.index] = part.data
        self.incoming[key] = known._replace(at=now)
        if len(known.parts) < part.count:
            return None
        del self.incoming[key]
        return b"".join(known.parts[index] for index in sorted(known.parts))

    def requests(self, me: int, group: int, now: int, pause: int) -> Iterator[tuple[int, Missing]]:
        """What to ask for again, and whom, where nothing has arrived for a while."""
        for (sender, what), (view, parts, total, at) in self.incoming.items():
            if now - at >= pause:
                lacks = tuple(index for index in range(total) if index not in parts)[:AT_ONCE]
                yield sender, Missing(me, 0, group=group, view=view, what=what, parts=lacks)


class Pace:
    """When what was sent to whom: requests come in several ways, and each is answered once a while.

    Else a busy link would be kept busy by answers to requests that it had delayed.
    """

    def __init__(self) -> None:
        self.sent_at: dict[Hashable, int] = {}

    def may_send(self, what: Hashable, now: int, pause: int) -> bool:
        """Whether something was not sent for a while; it is sent then."""
        if now - self.sent_at.get(what, -pause) < pause:
            return False
        self.sent_at[what] = now
        return True


class Fetching:
    """Messages that are needed to go on, and who has them."""

    def __init__(self) -> None:
        self.holders: dict[MessageId, int] = {}
        self.found: dict[MessageId, Cast] = {}
        self.asked: set[MessageId] = set()
        self.asked_at = 0

    def need(self, holders: dict[MessageId, int]) -> None:
        """From now on these are needed."""
        self.holders = holders
        self.asked &= holders.keys()

    def take(self, cast: Cast, now: int) -> bool:
        """Take a message that has arrived, if it is needed; the others may be on their way."""
        if cast.id not in self.holders:
            return False
        del self.holders[cast.id]
        self.asked_at = now
        self.asked.discard(cast.id)
        self.found[cast.id] = cast
        return True

    def requests(self, me: int, group: int, now: int, pause: int) -> Iterator[tuple[int, Fetch]]:
        """What to ask for, and whom: the next few, or those that have not come for a while."""
        if not self.holders or (self.asked and now - self.asked_at < pause):
            return
        self.asked, self.asked_at = set(list(self.holders)[:AT_ONCE]), now
        for holder in sorted({self.holders[name] for name in self.asked}):
            names = tuple(n for n in self.holders if n in self.asked and self.holders[n] == holder)
            yield holder, Fetch(me, 0, group=group, names=names)

    def forget(self) -> None:
        """Forget what was fetched."""
        self.need({})
        self.found.clear()
