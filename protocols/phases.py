"""Phases: messages carry the number of a phase and are delivered phase by phase.

Mostefaoui & Raynal, "Causal Multicasts in Overlapping Groups: Towards a Low Cost Approach", 1993,
section 3.2: one group of all processes. ``protocols.mostefaoui_raynal`` is the general protocol.

State: ``expected[j]``, the least stamp that the next message of j may have; this process stamps
its own messages with ``expected[me]``.
Delivery: a message stamped k is deliverable when expected[j] >= k for all j. Messages that become
deliverable together are delivered in the order of their stamps.
Invariant: with FIFO channels, or messages put in order by their numbers (``protocols.resynching``),
the whole causal past of a deliverable message has arrived.
A process that is behind when a message stamped k arrives goes on to phase k + 1 and says so to all:
``resynch(k + 1)``.
Cost: 32 + 4 + d bytes, n - 1 copies; one round of n - 1 resynchs of 36 bytes for each process that
is behind, none if all processes send once in every phase.
"""

from collections import defaultdict
from typing import Any, ClassVar

from typing_extensions import override

from .base import Count, Deliver, Discard, Effects, Hold, Place
from .resynching import PhaseMessage, Resynch, Resynching

ALL = 0  # the number of the only group


class Phases(Resynching):
    """Simulates a synchronous execution; a process with nothing to send in a phase says so."""

    name: ClassVar[str] = "phases"
    paper: ClassVar[str] = "Mostefaoui & Raynal 1993, section 3.2"
    wire_id: ClassVar[int] = 8

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.others = place.others
        self.sent = place.base
        self.expected = [0] * place.processes
        self.pending: defaultdict[int, list[PhaseMessage]] = defaultdict(list)  # by stamp

    @override
    def integers_kept(self) -> int:
        return len(self.expected)

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """BS1: stamp the message with this process's phase, and go on to the next one."""
        self.sent += 1
        stamp = (*self.stamp(self.expected[self.me]), *self.number(ALL))
        message = PhaseMessage(self.me, self.sent, payload, now, stamp=stamp)
        self.expected[self.me] += 1
        yield from self.resynch_no_more(ALL)
        yield self.carry(self.others, message)
        yield Count("stamped_copies", len(self.others))
        yield Count("stamp_bytes", message.control_size * len(self.others))
        yield Deliver(message)

    def receive(self, message: PhaseMessage, sender: int, now: int) -> Effects:
        """Take a message or a resynch, in the order of its numbers if it has one."""
        width = len(self.stamp(0)) + bool(self.settings.numbered)
        if message.source == self.me or len(message.stamp) != width or message.group != ALL:
            yield Discard(message, "malformed")
        else:
            yield from self.receive_in_order(message, now)

    @override
    def arrive(self, message: PhaseMessage, now: int) -> Effects:
        """BS2 and BS3: a message or a resynch."""
        j, k = message.source, self.stamp_of(message)
        if isinstance(message, Resynch):
            self.expected[j] = max(self.expected[j], k)
        elif k < self.expected[j]:
            yield Discard(message, "duplicate")
        else:
            yield from self.enqueue(message, k, now)
        yield from self.deliver()

    def enqueue(self, message: PhaseMessage, k: int, now: int) -> Effects:
        """BS2: enqueue the message, and catch up with its phase."""
        self.expected[message.source] = k + 1
        self.pending[k].append(message)
        if self.expected[self.me] < k + 1:
            self.expected[self.me] = k + 1
            yield from self.resynch_soon(ALL, now)
        if min(self.expected) < k:
            yield Hold(message, None)

    @override
    def resynch(self, x: int, now: int) -> Effects:
        yield from self.send_resynch(x, self.others, self.stamp(self.expected[self.me]), now)

    def deliver(self) -> Effects:
        """BS4: deliver, phase by phase, the messages whose phase all processes have reached.

        BS1 need not do so: a process that has received a message stamped k has reached phase k.
        """
        while self.pending and (k := min(self.pending)) <= min(self.expected):
            yield from map(Deliver, self.pending.pop(k))

    def stamp(self, k: int) -> tuple[int, ...]:
        """The stamp that stands for a phase."""
        return (k,)

    def stamp_of(self, message: PhaseMessage) -> int:
        """The phase of a message or a resynch that has arrived."""
        return message.stamp[0]
