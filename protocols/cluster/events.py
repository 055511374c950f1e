"""Events, which the cluster protocol orders, the messages that carry them, and the clock.

A clock entry is one integer: a ticket's epoch above SEQUENCE_BITS bits of sequence number from 1 on.
On the wire it has 4 bytes, or 8 if an entry of the vector needs them; a bit of the ticket says so.
"""

import struct
from collections.abc import Iterator
from dataclasses import field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..base import SEQUENCE_BITS
from ..wire import Message, WireError, of_kind
from .gossip import Gossip

NUMBERS = (1 << SEQUENCE_BITS) - 1  # the bits of a clock entry that are not its epoch
EID, WIDE_EID = struct.Struct("!II"), struct.Struct("!IQ")
WIDE = 1 << 31

Vector = NDArray[np.int64]


class EventId(NamedTuple):
    """The paper's name of an event: a ticket, and the ticket's clock entry."""

    ticket: int
    clock: int


@of_kind(2)
class Event(Message):
    """A message of the application with its timestamp; sent by itself it is ACKRECOVER."""

    ticket: int
    t: Vector
    eid: EventId = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eid", EventId(self.ticket, int(self.t[self.ticket])))

    @property
    @override
    def control_size(self) -> int:
        return 4 + (8 if self.wide else 4) * len(self.t)

    @property
    def wide(self) -> bool:
        """Whether an entry needs more than 4 bytes."""
        return bool(self.t.max() >> 32)

    def encode_control(self) -> bytes:
        """The ticket, then the entries in the order of the tickets."""
        ticket, entries = (self.ticket | WIDE, ">u8") if self.wide else (self.ticket, ">u4")
        return ticket.to_bytes(4, "big") + self.t.astype(entries).tobytes()

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """A ticket, and a vector in which that ticket has sent something."""
        ticket = int.from_bytes(control[:4], "big")
        width = 8 if ticket & WIDE else 4
        if len(control) < 4 + width or (len(control) - 4) % width:
            raise WireError(f"{len(control)} bytes for a ticket and a vector")
        t = np.frombuffer(control, f">u{width}", offset=4).astype(np.int64)
        ticket &= WIDE - 1
        if ticket >= len(t) or t.min() < 0 or not t[ticket] & NUMBERS:
            raise WireError(f"ticket {ticket} has no event in a vector of {len(t)} entries")
        return {"ticket": ticket, "t": t}


class EventGossip(Gossip):
    """A gossip message of events."""

    __slots__ = ()
    carries: ClassVar[type[Message]] = Event


@of_kind(3)
class Recover(Message):
    """RECOVER: requests these events; encoded as ticket and clock entry of each."""

    eids: tuple[EventId, ...]

    @property
    @override
    def control_size(self) -> int:
        return sum((WIDE_EID if eid.clock >> 32 else EID).size for eid in self.eids)

    @override
    def encode_control(self) -> bytes:
        return b"".join(
            WIDE_EID.pack(ticket | WIDE, clock) if clock >> 32 else EID.pack(ticket, clock)
            for ticket, clock in self.eids
        )

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        eids, at = [], 0
        while at < len(control):
            form = WIDE_EID if control[at] >> 7 else EID
            if at + form.size > len(control):
                raise WireError(f"{len(control)} bytes for names of events")
            ticket, clock = form.unpack_from(control, at)
            if form is WIDE_EID and not clock >> 32:
                raise WireError(f"clock entry {clock} in more bytes than it takes")
            eids.append(EventId(ticket & (WIDE - 1), clock))
            at += form.size
        return {"eids": tuple(eids)}


class Clock:
    """The paper's CCT-vector clock: T, the causal present of a process."""

    def __init__(self, tickets: int) -> None:
        self.T: Vector = np.zeros(tickets, np.int64)

    def advance(self, event: Event) -> None:
        """Count an event as delivered."""
        np.maximum(self.T, event.t, out=self.T)

    def begin(self, event: Event) -> None:
        """Start a late-comer with this event, as if its causal past had been delivered."""
        t = event.t.copy()
        t[event.ticket] -= 1
        np.maximum(self.T, t, out=self.T)

    def has_passed(self, eid: EventId) -> bool:
        """Whether an event is delivered, or precedes one that is."""
        return bool(self.T[eid.ticket] >= eid.clock)

    def obsolete(self, event: Event) -> bool:
        """Whether an event that has arrived is delivered, or precedes one that is."""
        return self.has_passed(event.eid)

    def first_missing(self, event: Event) -> EventId | None:
        """The last missing event of one ticket; None is the paper's "e can be delivered"."""
        if self.T[event.ticket] + 1 == event.eid.clock and np.count_nonzero(event.t > self.T) == 1:
            return None  # as nearly always
        gaps = self._gaps(event)
        ticket = int(gaps.argmax())
        if gaps[ticket] <= 0:
            return None
        return EventId(ticket, int(event.t[ticket]) - (ticket == event.ticket))

    def missing(self, event: Event) -> Iterator[EventId]:
        """The paper's to_deliver_before_ids(e)."""
        gaps = self._gaps(event)
        for ticket in np.flatnonzero(gaps > 0).tolist():
            last = int(event.t[ticket]) - (ticket == event.ticket)
            for clock in range(last - int(gaps[ticket]) + 1, last + 1):
                yield EventId(ticket, clock)

    def lacks(self, event: Event) -> int:
        """The number of events that are missing before this one."""
        return int(self._gaps(event).clip(0).sum())

    def _gaps(self, event: Event) -> Vector:
        """For each ticket the number of events after T and before this one; none if negative."""
        t = event.t
        gaps: Vector = t - np.maximum(self.T, t & ~NUMBERS)  # older epochs are not waited for
        gaps[event.ticket] -= 1
        return gaps
