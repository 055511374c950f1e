"""Timestamp: every message carries its sender's vector clock and waits for what it depends on.

Friedman & Manor 2004, Fig. 1, after Birman, Schiper & Stephenson, "Lightweight Causal and Atomic
Group Multicast", 1991.

State: ``T[k]``, the sequence number of the last message delivered from process k.
Message m of process s is deliverable when m.T[s] = T[s] + 1 and m.T[k] <= T[k] for all other k.
A message that is not is kept under the name of one message that it lacks, and looked at again when
that one is delivered: this is the fixpoint of the paper's repeated scan, without the scan.
Cost: 32 + 4n + d bytes; n - 1 point-to-point copies, or one copy along the source's tree.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .base import Deliver, Discard, Effects, Hold, Multicast, Place, Protocol, Send
from .wire import Message, MessageId, WireError

Vector = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class VectorMessage(Message):
    """A message with its sender's vector: 4 bytes for every process."""

    vector: Vector = field(kw_only=True)

    kind: ClassVar[int] = 1

    @property
    def control_size(self) -> int:
        """Four bytes for each entry."""
        return 4 * len(self.vector)

    def encode_control(self) -> bytes:
        """The entries in the order of the processes."""
        return self.vector.astype(">u4").tobytes()

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """The vector, which must have an entry for every process."""
        if len(control) != 4 * processes:
            raise WireError(f"a vector of {len(control)} bytes for {processes} processes")
        return {"vector": np.frombuffer(control, ">u4").astype(np.int64)}


class Timestamp(Protocol):
    """Vector timestamps and a delivery buffer."""

    name: ClassVar[str] = "timestamp"
    paper: ClassVar[str] = "Friedman & Manor 2004, Fig. 1 (Birman, Schiper & Stephenson 1991)"
    wire_id: ClassVar[int] = 2
    messages: ClassVar[tuple[type[Message], ...]] = (VectorMessage,)

    @dataclass(frozen=True)
    class Settings(Protocol.Settings):
        """How a multicast leaves its sender: one copy along a tree, or one for each receiver."""

        multicast: Literal["network", "unicast"] = "network"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.others = place.others
        self.T: Vector = np.zeros(place.processes, np.int64)
        self.T[self.me] = place.base
        self.buffer: defaultdict[MessageId, list[VectorMessage]] = defaultdict(list)

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Lines 9-13: count the message, attach the vector, multicast."""
        self.T[self.me] += 1
        seq = int(self.T[self.me])
        message = VectorMessage(self.me, seq, payload, sent_at=now, vector=self.T.copy())
        if self.settings.multicast == "network":
            yield Multicast(self.others, message)
        else:
            yield Send(self.others, message)
        yield Deliver(message)

    def receive(self, message: VectorMessage, sender: int, now: int) -> Effects:
        """Lines 1-8: deliver what is deliverable, keep the rest."""
        if message.seq <= self.T[message.source]:
            yield Discard(message, "duplicate")
        elif missing := self.missing(message):
            self.buffer[missing].append(message)
            yield Hold(message, missing)
        else:
            yield from self.deliver(message)

    def missing(self, message: VectorMessage) -> MessageId | None:
        """Lines 14-19: a message that must be delivered before this one, or none."""
        source = message.source
        late = message.vector > self.T
        late[source] = message.seq > self.T[source] + 1
        k = int(late.argmax())
        if not late[k]:
            return None
        return MessageId(k, message.seq - 1 if k == source else int(message.vector[k]))

    def deliver(self, message: VectorMessage) -> Effects:
        """Lines 20-31: deliver the message, and then all that waited for nothing else."""
        ready = [message]
        while ready:
            message = ready.pop()
            if message.seq <= self.T[message.source]:
                yield Discard(message, "duplicate")  # a second copy waited beside the first
                continue
            self.T[message.source] = message.seq
            yield Deliver(message)
            for waiting in self.buffer.pop(message.id, ()):
                if missing := self.missing(waiting):
                    self.buffer[missing].append(waiting)
                else:
                    ready.append(waiting)

    def peers(self) -> tuple[int, ...]:
        """Nobody in particular, if the network multicasts."""
        return () if self.multicasts() else self.others

    def multicasts(self) -> bool:
        """As the experiment says."""
        return bool(self.settings.multicast == "network")
