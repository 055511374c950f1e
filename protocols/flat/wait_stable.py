"""Wait until all earlier messages are stable before sending to others: alternative a of section 2.3.

"Wait for the stability of all previously sent and received messages whenever the subset of recipients
changes. This is the solution currently used by ISIS, but it requires delaying such messages for
arbitrary long periods of time before sending them."
Delivery: as it comes from its sender. A message to the same recipients as all unstable ones of its
causal past need not wait; it names these, and is held back until they are delivered.
Invariant: when a message is sent, its causal past is stable or named by it; so no live process lacks a
message that another one has answered, or a live process that has it passes it on in the next view.
State: of each message that waits, the names of those that it waits for.
Cost: a copy to each destination of 32 + 24 + 4|Dests| + d bytes, and 4 + 8 for each message named, if
any; an acknowledgement and the word that it is stable, of 56 + 8n each, for one or more messages.
"""

from dataclasses import fields
from typing import Any, ClassVar

from typing_extensions import override

from ..base import Effects, Place
from ..groups.casting import Way
from ..groups.messages import Cast
from ..groups.stamped_cast import StampedCast
from ..wire import MessageId
from .flat import Flat
from .point_to_point import PointToPoint


class InOrder(PointToPoint):
    """The casts of one view, held back until those that they name are delivered."""

    @override
    def deliverable(self, cast: Cast, i: int) -> bool:
        return not isinstance(cast, StampedCast) or all(map(self.kept.has_seen, cast.after))


class WaitStable(Flat):
    """A message waits until its causal past is stable, unless that went to the same recipients."""

    name: ClassVar[str] = "wait-stable"
    wire_id: ClassVar[int] = 12
    way: ClassVar[Way] = InOrder

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.past: dict[MessageId, tuple[MessageId, ...]] = {}

    @override
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        casting = self.group.casting
        assert isinstance(casting, InOrder)
        unstable = (*casting.unstable(), *self.outbox)
        self.past[MessageId(self.me, self.clock + 1)] = tuple(cast.id for cast in unstable)
        yield from super().multicast(payload, destinations, now)

    @override
    def prepared(self, cast: Cast) -> Cast | None:
        casting = self.group.casting
        assert isinstance(casting, InOrder)
        past = tuple(sorted(filter(casting.is_unstable, self.past[cast.id])))
        if any(self.group.history[name].dests != cast.dests for name in past):
            return None
        del self.past[cast.id]
        values = {field.name: getattr(cast, field.name) for field in fields(cast)}
        return StampedCast(**values, after=past) if past else cast
