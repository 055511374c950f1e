"""RST: every message carries a matrix, its sender's knowledge of who has sent to whom.

Raynal, Schiper & Toueg, "The Causal Ordering Abstraction and a Simple Way to Implement It", 1991,
as in Chandra, Gambhire & Kshemkalyani, "Performance of the Optimal Causal Multicast Algorithm", 2004,
section 2.1.

State: ``SENT[i, j]``, the last message that i is known to have sent to j; ``DELIV[k]``, the last
message of k that was delivered here; a hold-back queue. The papers count messages where this names
the last one by its sequence number, so that a missing message has a name; the order is the same.
Delivery: m is deliverable at j when DELIV[k] >= m.SENT[k, j] for all k. Channels need not be FIFO.
Invariant: SENT[i, j] names the last message from i to j in the causal past of this process.
Cost: 32 + 4n² + 4|Dests| + d bytes a copy. The papers leave out the destinations and the line that
needs them: a process that delivers m must know where else m went, or its next message overtakes m.
"""

import struct
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .base import Count, Deliver, Effects, Figure, Place, Ratio, Sample, Send
from .holdback import HoldBack
from .wire import Message, MessageId, WireError, of_kind

Matrix = NDArray[np.int64]


@of_kind(1)
class MatrixMessage(Message):
    """A message with its sender's matrix from before it was sent, and all its destinations."""

    SENT: Matrix
    dests: tuple[int, ...]  # without the sender

    @property
    @override
    def control_size(self) -> int:
        return 4 * (self.SENT.size + len(self.dests))

    def encode_control(self) -> bytes:
        """The matrix row by row, then the destinations."""
        return self.SENT.astype(">u4").tobytes() + struct.pack(f"!{len(self.dests)}I", *self.dests)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        matrix_size = 4 * processes**2
        if len(control) < matrix_size or len(control) % 4:
            raise WireError(f"{len(control)} bytes for a matrix of {processes} × {processes}")
        SENT = np.frombuffer(control, ">u4", processes**2).astype(np.int64)  # noqa: N806
        dests = tuple(np.frombuffer(control, ">u4", offset=matrix_size).tolist())
        if list(dests) != sorted(set(dests)) or any(d >= processes for d in dests):
            raise WireError(f"destinations {dests[:5]}… of {processes} processes")
        return {"SENT": SENT.reshape(processes, processes), "dests": dests}


# The overhead of Chandra et al.: what a copy carries and what a process keeps, in integers.
CONTROL = partial(Ratio, of="control_integers", per="control_copies")
LOG = partial(Ratio, of="log_integers_mean", shown=False)
PERCENT: dict[str, Any] = {"unit": "% of n²", "shown": False, "percent_of_n2": True}
OVERHEAD = (
    CONTROL("control_integers_per_message", "control integers per copy", form=",.1f"),
    CONTROL("control_percent_of_n2", "control information per copy", **PERCENT),
    LOG("log_integers_mean", "log, mean", "integers"),
    LOG("log_percent_of_n2", "log, mean", **PERCENT),
)


class RST(HoldBack):
    """A matrix of messages sent, for any set of destinations.

    A sender that is among the destinations delivers its message as it sends it.
    """

    name: ClassVar[str] = "rst"
    paper: ClassVar[str] = "Raynal, Schiper & Toueg 1991; Chandra et al. 2004, section 2.1"
    wire_id: ClassVar[int] = 3
    takes_subsets: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (MatrixMessage,)
    figures: ClassVar[tuple[Figure, ...]] = OVERHEAD

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.everybody = frozenset(range(place.processes))
        self.clock = place.base
        self.SENT: Matrix = np.zeros((place.processes, place.processes), np.int64)
        self.DELIV: NDArray[np.int64] = np.zeros(place.processes, np.int64)
        self.last = self.DELIV

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Attach the matrix as it is, then note the message in it."""
        if destinations is None:
            destinations = self.everybody
        dests = tuple(sorted(destinations - {self.me}))
        self.clock += 1
        SENT = self.SENT.copy()  # noqa: N806
        message = MatrixMessage(self.me, self.clock, payload, now, SENT=SENT, dests=dests)
        self.SENT[self.me, list(dests)] = self.clock
        yield Send(dests, message)
        yield Count("control_copies", len(dests))
        yield Count("control_integers", SENT.size * len(dests))
        yield from self.count_log()
        if self.me in destinations:
            yield Deliver(message)

    def missing(self, message: MatrixMessage) -> MessageId | None:
        """A message to this process that must be delivered before this one, or none."""
        sent_to_me = message.SENT[:, self.me]
        late = sent_to_me > self.DELIV
        k = int(late.argmax())
        return MessageId(k, int(sent_to_me[k])) if late[k] else None

    def learn(self, message: MatrixMessage) -> None:
        """Merge the sender's knowledge, and that it has sent this message to its destinations."""
        np.maximum(self.SENT, message.SENT, out=self.SENT)
        sent = self.SENT[message.source]
        dests = list(message.dests)
        sent[dests] = np.maximum(sent[dests], message.seq)

    def count_log(self) -> Effects:
        """The log is the whole matrix."""
        yield Sample({"log_integers": self.SENT.size})
