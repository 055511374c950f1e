"""Timestamp: every message carries its sender's vector clock and waits for its causal past.

Friedman & Manor, "Causal Ordering in Deterministic Overlay Networks", 2004, Fig. 1, after Birman,
Schiper & Stephenson, "Lightweight Causal and Atomic Group Multicast", 1991.

State: ``T[k]``, the sequence number of the last message of process k that was delivered here; a
hold-back queue, which ``holdback`` drains in place of lines 1-8 and 20-31 of the figure.
Delivery: m of process s is deliverable when m.T[s] = T[s] + 1 and m.T[k] <= T[k] for all other k.
Invariant: T is the causal past of this process, message by message; m.T is that of m's sender.
Cost: 32 + 4n + d bytes; n - 1 point-to-point copies, or one copy along the source's tree.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .base import Deliver, Effects, Multicast, Place, Protocol, Send
from .holdback import HoldBack
from .wire import Message, MessageId, WireError, of_kind

Vector = NDArray[np.int64]


@of_kind(1)
class VectorMessage(Message):
    """A message with its sender's vector: 4 bytes for every process."""

    vector: Vector

    @property
    @override
    def control_size(self) -> int:
        return 4 * len(self.vector)

    @override
    def encode_control(self) -> bytes:
        return self.vector.astype(">u4").tobytes()

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) != 4 * processes:
            raise WireError(f"a vector of {len(control)} bytes for {processes} processes")
        return {"vector": np.frombuffer(control, ">u4").astype(np.int64)}


class Timestamp(HoldBack):
    """Vector timestamps and a hold-back queue."""

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
        self.last = self.T

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Lines 9-13: count the message, attach the vector, multicast."""
        vector = self.stamp()
        seq = int(vector[self.me])
        message = VectorMessage(self.me, seq, payload, sent_at=now, vector=vector)
        yield (Multicast if self.multicasts() else Send)(self.others, message)
        yield Deliver(message)

    def stamp(self) -> Vector:
        """Count one more message; the vector to attach to it."""
        self.T[self.me] += 1
        return self.T.copy()

    def missing(self, message: VectorMessage) -> MessageId | None:
        """Lines 14-19: a message that must be delivered before this one, or none."""
        source = message.source
        late = message.vector > self.T
        late[source] = message.seq > self.T[source] + 1
        k = int(late.argmax())
        if not late[k]:
            return None
        return MessageId(k, message.seq - 1 if k == source else int(message.vector[k]))

    @override
    def peers(self) -> tuple[int, ...]:
        return () if self.multicasts() else self.others

    @override
    def multicasts(self) -> bool:
        return bool(self.settings.multicast == "network")
