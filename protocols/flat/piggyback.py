"""Piggyback on every message all unstable ones: alternative c of section 2.3.

"Piggyback on every message all previously unstable messages. This solution was used by early versions
of ISIS. However, it may generate extremely large messages."
Delivery: at once, after what is attached, in the order of logical times.
Invariant: whoever has a message has its causal past, or that is stable: all live destinations have it.
State: the unstable messages that were sent, received or attached to others.
Cost: a copy to each destination of 32 + 28 + 4|Dests| + d bytes, and for each unstable message
24 + 20 + 4|Dests| + d; an acknowledgement and the word that it is stable, of 56 + 8n each.
Limits. A message with all that is attached must fit a datagram: if there is too much, it waits.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from typing_extensions import override

from ..groups.casting import Way
from ..groups.laden_cast import LadenCast
from ..groups.messages import Cast, Report
from ..groups.stability import Stability
from ..groups.view import View
from .flat import Flat
from .point_to_point import PointToPoint


def _as(kind: type[Cast], cast: Cast, **more: Any) -> Cast:
    return kind(**{field.name: getattr(cast, field.name) for field in fields(Cast)}, **more)


class Laden(PointToPoint):
    """The casts of one view, each of which brings its unstable past along."""

    def __init__(
        self, view: View, me: int, carried: Sequence[Cast], kept: Stability | None = None
    ) -> None:
        super().__init__(view, me, carried, kept)
        self.ready: deque[Cast] = deque()

    @override
    def packed(self, cast: Cast) -> Cast:
        return _as(LadenCast, cast, attached=tuple(self.unstable()))

    @override
    def fits(self, message: Cast | Report, sender: int) -> bool:
        if isinstance(message, LadenCast):
            known = all(c.source in self.index and len(c.vector) == 1 for c in message.attached)
            return known and super().fits(message, sender)
        return isinstance(message, Report) and super().fits(message, sender)

    @override
    def hold(self, cast: Cast, sender: int) -> bool:
        i = self.index[sender]
        if not super().hold(cast, sender):
            return False
        while first := self.held.pop((i, self.T[i]), None):
            self.T[i] = first.vector[0]
        assert isinstance(cast, LadenCast)
        self.ready.extend((*cast.attached, _as(Cast, cast)))
        return True

    @override
    def next(self, now: int = 0) -> tuple[Cast, bool] | None:
        me = self.processes[self.me]
        while self.ready:
            cast = self.ready.popleft()
            i = self.index[cast.source]
            if cast.is_for((me,)) or cast.vector[0] > self.settled[i]:
                return self.taken(i, cast)
        return None

    @override
    def deliverable_now(self, cast: Cast, sender: int) -> bool:
        return True


class Piggyback(Flat):
    """Every message carries all messages that are not known to be stable."""

    name: ClassVar[str] = "piggyback"
    wire_id: ClassVar[int] = 13
    way: ClassVar[Way] = Laden

    @dataclass(frozen=True)
    class Settings(Flat.Settings):
        """As of all on the group layer; a message with what is attached has ``most_bytes``."""

        most_bytes: int = 60_000  # a datagram has room for 65,507

    @override
    def prepared(self, cast: Cast) -> Cast | None:
        assert isinstance(self.group.casting, Laden)
        attached = self.group.casting.unstable()
        size = sum(other.size for other in attached)
        return None if attached and size + cast.size > self.settings.most_bytes else cast
