"""Phases: messages carry the number of a phase and are delivered phase by phase.

Mostefaoui & Raynal, "Causal Multicasts in Overlapping Groups: Towards a Low Cost Approach", 1993,
section 3.2: one group of all processes. ``protocols.mostefaoui_raynal`` is the general protocol.

State: ``expected[j]``, the least stamp that the next message of j may have; this process stamps
its own messages with ``expected[me]``.
Delivery: a message stamped k is deliverable when expected[j] >= k for all j. Messages that become
deliverable together are delivered in the order of their stamps.
Invariant: with FIFO channels the whole causal past of a deliverable message has arrived.
A process that is behind when a message stamped k arrives goes on to phase k + 1 and says so to all:
``resynch(k + 1)``.
Cost: 32 + 4 + d bytes, n - 1 copies; one round of n - 1 resynchs of 36 bytes for each process that
is behind, none if all processes send once in every phase.
"""

import struct
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, ClassVar

from typing_extensions import override

from .base import Count, Deliver, Discard, Effects, Figure, Hold, Place, Protocol, Send
from .grouped import STAMP
from .wire import Message, WireError


@dataclass(frozen=True, slots=True, eq=False)
class PhaseMessage(Message):
    """A message with its stamp, a few 4-byte integers; the protocol knows how many."""

    stamp: tuple[int, ...] = field(kw_only=True)

    kind: ClassVar[int] = 1

    @property
    @override
    def control_size(self) -> int:
        return 4 * len(self.stamp)

    @override
    def encode_control(self) -> bytes:
        return struct.pack(f"!{len(self.stamp)}I", *self.stamp)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) % 4:
            raise WireError(f"a stamp of {len(control)} bytes, which are not whole integers")
        return {"stamp": struct.unpack(f"!{len(control) // 4}I", control)}


class Resynch(PhaseMessage):
    """Not a message of the application: its source uses no stamp below this one any more."""

    __slots__ = ()
    kind: ClassVar[int] = 2


RESYNCHS = (
    Figure("resynch_copies", "resynchs", "copies"),
    Figure("resynch_bytes", "bytes of resynchs"),
)


def count_resynch(message: Resynch, copies: int) -> Effects:
    """Count the cost of a resynch."""
    yield Count("resynchs")
    yield Count("resynch_copies", copies)
    yield Count("resynch_bytes", message.size * copies)


class Phases(Protocol):
    """Simulates a synchronous execution; a process with nothing to send in a phase says so."""

    name: ClassVar[str] = "phases"
    paper: ClassVar[str] = "Mostefaoui & Raynal 1993, section 3.2"
    wire_id: ClassVar[int] = 8
    messages: ClassVar[tuple[type[Message], ...]] = (PhaseMessage, Resynch)
    figures: ClassVar[tuple[Figure, ...]] = (STAMP, *RESYNCHS)
    needs_everybody: ClassVar[bool] = True

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.others = place.others
        self.sent = place.base
        self.expected = [0] * place.processes
        self.pending: defaultdict[int, list[PhaseMessage]] = defaultdict(list)  # by stamp

    @classmethod
    def needs_fifo(cls, settings: Any) -> bool:
        """Always: a stamp tells what has arrived only if nothing overtakes."""
        return True

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """BS1: stamp the message with this process's phase, and go on to the next one."""
        self.sent += 1
        stamp = self.stamp(self.expected[self.me])
        message = PhaseMessage(self.me, self.sent, payload, now, stamp=stamp)
        self.expected[self.me] += 1
        yield Send(self.others, message)
        yield Count("stamped_copies", len(self.others))
        yield Count("stamp_bytes", message.control_size * len(self.others))
        yield Deliver(message)

    def receive(self, message: PhaseMessage, sender: int, now: int) -> Effects:
        """BS2 and BS3: a message or a resynch."""
        j = message.source
        if j == self.me or len(message.stamp) != len(self.stamp(0)):
            yield Discard(message, "malformed")
            return
        k = self.stamp_of(message)
        if isinstance(message, Resynch):
            self.expected[j] = max(self.expected[j], k)
        elif k < self.expected[j]:
            yield Discard(message, "duplicate")
        else:
            yield from self.arrive(message, k, now)
        yield from self.deliver()

    def arrive(self, message: PhaseMessage, k: int, now: int) -> Effects:
        """BS2: enqueue the message, and catch up with its phase."""
        self.expected[message.source] = k + 1
        self.pending[k].append(message)
        if self.expected[self.me] < k + 1:
            self.expected[self.me] = k + 1
            resynch = Resynch(self.me, 0, sent_at=now, stamp=self.stamp(k + 1))
            yield Send(self.others, resynch)
            yield from count_resynch(resynch, len(self.others))
        if min(self.expected) < k:
            yield Hold(message, None)

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
