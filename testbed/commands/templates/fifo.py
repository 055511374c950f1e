"""Fifo: the messages of one process are delivered in the order in which they were sent.

This is a start, to be changed into a protocol of your own. FIFO order is not causal order, and
``testbed explore --protocol ./fifo.py`` draws the shortest execution that shows it.
"""

from typing import Any, ClassVar

from testbed.protocols import (
    Deliver,
    Effects,
    Hold,
    Message,
    MessageId,
    Place,
    Protocol,
    Send,
)


class Fifo(Protocol):
    """Counts each sender's messages."""

    name: ClassVar[str] = "fifo"

    # Say what the protocol needs and promises, where it differs from these:
    # needs_overlay = False    it sends to its neighbours in an overlay (place.neighbours) only
    # takes_subsets = False    a message may be addressed to some of the processes
    # rests = True             it falls silent once all is delivered

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)  # sets self.me, self.place and self.settings
        # All state belongs into self: every process has its own.
        self.delivered = [0] * place.processes  # the last message of each process
        self.delivered[self.me] = place.base
        self.waiting: dict[MessageId, Message] = {}

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends. The k-th message of a process has sequence number place.base + k."""
        self.delivered[self.me] += 1
        # Whatever a message says beyond this is control information, in a class of its own with
        # control_size, encode_control and decode_control that ``messages`` of the protocol names:
        # `testbed protocols timestamp` says where to see one.
        message = Message(self.me, self.delivered[self.me], payload, sent_at=now)
        yield Send(self.place.others, message)
        yield Deliver(message)  # last: the application may answer at once

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """The network brings a message. ``sender`` put it there; ``message.source`` multicast it."""
        source = message.source
        if message.seq > self.delivered[source] + 1:  # another message of the source is missing
            self.waiting[message.id] = message
            yield Hold(message, MessageId(source, message.seq - 1))
            return
        found: Message | None = message
        while found and found.seq == self.delivered[source] + 1:  # and what has waited for it
            self.delivered[source] += 1
            yield Deliver(found)
            found = self.waiting.pop(MessageId(source, self.delivered[source] + 1), None)

    # A timer that `yield SetTimer("again", delay)` sets calls `timeout("again", now)`; times are
    # whole nanoseconds. `yield Count("resent")` counts something, which a run's summary then shows.
