"""BSS: a message to a group carries a vector for every group of the system.

Birman, Schiper & Stephenson, "Lightweight Causal and Atomic Group Multicast", 1991, as in
Mostefaoui & Raynal 1993, section 2.3, which compares its own protocol with this one.

State: ``VT[x][k]``, the last message of k to group x that this process knows of; a hold-back queue.
The paper counts messages where this names the last one by its sequence number, so that a missing
message has a name. A message carries the vectors from before it was sent, so that its sender's
entry names the message that it must follow. The order is the same.
Delivery: m is deliverable when m.VT[x] <= VT[x] for all groups x of the receiver. No message waits
unless part of its causal past is missing; channels need not be FIFO.
If the graph of groups has no cycle, the vectors of the sender's groups are enough: what counts is
delivery, not arrival, so that a process that links two groups has what it passes on.
Cost: 32 + 4·Σ|x| + d bytes a copy, over all groups x or over the sender's.
"""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .base import Deliver, Discard, Effects, Place
from .grouped import Grouped
from .holdback import HoldBack
from .wire import Message, MessageId, WireError

Vector = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors(Message):
    """A message with its sender's vectors in a row: 4 bytes an entry; the protocol knows how many."""

    VT: Vector = field(kw_only=True)

    kind: ClassVar[int] = 1

    @property
    @override
    def control_size(self) -> int:
        return 4 * len(self.VT)

    def encode_control(self) -> bytes:
        """The groups in the order of their numbers, the members of each in theirs."""
        return self.VT.astype(">u4").tobytes()

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) % 4:
            raise WireError(f"vectors of {len(control)} bytes, which are not whole integers")
        return {"VT": np.frombuffer(control, ">u4").astype(np.int64)}


class BSS(Grouped, HoldBack):
    """A vector timestamp for each group."""

    name: ClassVar[str] = "bss"
    paper: ClassVar[str] = (
        "Birman, Schiper & Stephenson 1991; Mostefaoui & Raynal 1993, section 2.3"
    )
    wire_id: ClassVar[int] = 7
    messages: ClassVar[tuple[type[Message], ...]] = (Vectors,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.last = [0] * place.processes
        sizes = [len(group) for group in place.groups]
        self.starts = [0, *accumulate(sizes)]  # of each group's vector among all entries
        self.members = [k for group in place.groups for k in sorted(group)]  # of each entry
        self.VT: Vector = np.zeros(len(self.members), np.int64)
        self.own = self.entries_of(self.me)
        every = np.arange(len(self.members))
        reduced = self.reduced()
        self.told = {
            j: self.entries_of(j) if reduced else every for j in (self.me, *self.companions())
        }  # the entries that messages of a process carry

    @override
    def integers_kept(self) -> int:
        return len(self.told[self.me])

    def entries_of(self, process: int) -> NDArray[np.intp]:
        """The indices of the vectors of a process's groups."""
        parts = [
            np.arange(self.starts[x], self.starts[x + 1])
            for x, group in enumerate(self.place.groups)
            if process in group
        ]
        return np.concatenate(parts) if parts else np.arange(0)

    def entry(self, x: int, process: int) -> int:
        """The index of a member's entry in the vector of a group."""
        return self.members.index(process, self.starts[x])

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Attach the vectors as they are, then count the message in its group's."""
        x = self.group_of(destinations)
        self.sent += 1
        message = Vectors(self.me, self.sent, payload, now, x, VT=self.VT[self.told[self.me]])
        self.VT[self.entry(x, self.me)] = self.sent
        yield from self.send(message)
        yield Deliver(message)

    @override
    def receive(self, message: Vectors, sender: int, now: int) -> Effects:
        if self.belongs(message) and len(message.VT) == len(self.told[message.source]):
            yield from super().receive(message, sender, now)
        else:
            yield Discard(message, "malformed")

    def missing(self, message: Vectors) -> MessageId | None:
        """A message to a group of this process that must be delivered before this one, or none."""
        before = self.whole(message)[self.own]
        late = before > self.VT[self.own]
        at = int(late.argmax())
        return MessageId(self.members[self.own[at]], int(before[at])) if late[at] else None

    def learn(self, message: Vectors) -> None:
        """Merge the sender's vectors, also for groups of others, and count this message."""
        np.maximum(self.VT, self.whole(message), out=self.VT)
        self.VT[self.entry(message.group, message.source)] = message.seq

    def whole(self, message: Vectors) -> Vector:
        """The vectors of all groups, with zeros for those that the message does not carry."""
        VT = np.zeros_like(self.VT)  # noqa: N806
        VT[self.told[message.source]] = message.VT
        return VT
