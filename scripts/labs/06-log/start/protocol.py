"""Lab 6: causal order for messages to some of the processes, with a log of what matters.

As it is, every log is empty, and whatever arrives is delivered. How a log becomes bytes is done.
"""

import struct
from typing import Any, ClassVar

from testbed.protocols import (
    Deliver,
    Discard,
    Effects,
    Hold,
    Message,
    MessageId,
    Place,
    Protocol,
    Send,
)
from testbed.protocols.wire import of_kind

Log = dict[MessageId, frozenset[int]]  # messages, and where each may still be undelivered


@of_kind(1)
class Logged(Message):
    """A message with its destinations and a log."""

    to: frozenset[int]
    log: Log

    @property
    def control_size(self) -> int:
        """Two bytes for a process and for a number of processes, four for a sequence number."""
        sets = (self.to, *self.log.values())
        return 2 + 6 * len(self.log) + sum(2 + 2 * len(processes) for processes in sets)

    def encode_control(self) -> bytes:
        """The destinations, the number of entries, and each entry: source, number, destinations."""
        parts = [_packed(self.to), struct.pack("!H", len(self.log))]
        for (source, seq), processes in sorted(self.log.items()):
            parts += [struct.pack("!HI", source, seq), _packed(processes)]
        return b"".join(parts)

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """The same, read."""
        to, at = _unpacked(control, 0)
        (entries,), at, log = struct.unpack_from("!H", control, at), at + 2, {}
        for _ in range(entries):
            source, seq = struct.unpack_from("!HI", control, at)
            log[MessageId(source, seq)], at = _unpacked(control, at + 6)
        return {"to": to, "log": log}


def _packed(processes: frozenset[int]) -> bytes:
    return struct.pack(f"!{1 + len(processes)}H", len(processes), *sorted(processes))


def _unpacked(control: bytes, at: int) -> tuple[frozenset[int], int]:
    (number,) = struct.unpack_from("!H", control, at)
    end = at + 2 + 2 * number
    return frozenset(struct.unpack_from(f"!{number}H", control, at + 2)), end


class Causal(Protocol):
    """One process."""

    name: ClassVar[str] = "my-log"
    takes_subsets: ClassVar[bool] = True  # a message may go to some processes only
    messages: ClassVar[tuple[type[Message], ...]] = (Logged,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.last = [0] * place.processes  # the last message of each process delivered here
        self.log: Log = {}

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends a message to these processes, or to all, itself included, if None."""
        if destinations is None:
            destinations = frozenset(range(self.place.processes))
        self.sent += 1
        others = destinations - {self.me}
        for peer in sorted(others):  # a copy for each: they need not carry the same log
            yield Send((peer,), Logged(self.me, self.sent, payload, now, to=others, log={}))
        if self.me in destinations:
            yield Deliver(Logged(self.me, self.sent, payload, now, to=others, log={}))

    def receive(self, message: Logged, sender: int, now: int) -> Effects:
        """The network brings a message."""
        yield Deliver(message)
