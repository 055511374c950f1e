"""Cluster with one mistake at a time."""

from typing import ClassVar

from typing_extensions import override

from ..base import Count, Deliver, Effects
from ..cluster import Cluster
from ..cluster.events import Event


class TooLate(Cluster):
    """Delivers a recovered event, however late it comes.

    Broken rule: nothing is delivered after an event that it precedes. When an answer comes after
    ``time_to_recover``, the event that waited for it has been delivered.
    """

    name: ClassVar[str] = "broken-too-late"

    @override
    def recovered(self, event: Event) -> Effects:
        if self.clock.obsolete(event) and self.keep(event.eid, event):
            yield Deliver(event)
        else:
            yield from super().recovered(event)


class Unsorted(Cluster):
    """Delivers an event that has waited long enough, and its past, in the order of arrival.

    Broken rule: the past of an event is delivered in causal order.
    """

    name: ClassVar[str] = "broken-unsorted"

    @override
    def late(self, event: Event) -> Effects:
        for held in [h for h in self.held.values() if (h.event.t <= event.t).all()]:
            yield Count("skipped", self.clock.lacks(held.event))
            yield from self.deliver(held.event)
        yield from self.drain()


class Reset(Cluster):
    """Restarts the numbers of a ticket that it got from another process.

    Broken rule: a ticket's clock entry only ever grows. Events of the previous owner then seem to
    happen after those of the new one, and may be delivered after them.
    """

    name: ClassVar[str] = "broken-reset"

    @override
    def own(self, ticket: int, epoch: int = 0, last: int = 0) -> None:
        super().own(ticket)
        self.clock.T[ticket] = 0
