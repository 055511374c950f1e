"""Every message carries its whole causal past."""

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
    """``log``: what this process knows to be in its causal past."""

    name: ClassVar[str] = "my-log"
    takes_subsets: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (Logged,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.last = [0] * place.processes
        self.log: Log = {}
        self.waiting: list[Logged] = []

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Tell each destination what it must wait for, and from then on nobody else."""
        if destinations is None:
            destinations = frozenset(range(self.place.processes))
        self.sent += 1
        others = destinations - {self.me}
        before = self.log
        self.log = before | {MessageId(self.me, self.sent): others}
        for peer in sorted(others):
            message = Logged(self.me, self.sent, payload, now, to=others, log=before)
            yield Send((peer,), message)
        if self.me in destinations:
            yield Deliver(Logged(self.me, self.sent, payload, now, to=others, log={}))

    def receive(self, message: Logged, sender: int, now: int) -> Effects:
        """Keep the message, then deliver whatever can be delivered, until nothing more can."""
        known = any(message.id == other.id for other in self.waiting)
        if known or message.seq <= self.last[message.source]:
            yield Discard(message, "duplicate")
            return
        self.waiting.append(message)
        if missing := self.missing(message):
            yield Hold(message, missing)
        while ready := next((m for m in self.waiting if not self.missing(m)), None):
            self.waiting.remove(ready)
            self.last[ready.source] = ready.seq
            self.learn(ready)
            yield Deliver(ready)

    def missing(self, message: Logged) -> MessageId | None:
        """A message for this process that must be delivered before, if there is one."""
        for name, processes in message.log.items():
            if self.me in processes and name.seq > self.last[name.source]:
                return name
        return None

    def learn(self, message: Logged) -> None:
        """Take over the log of a message that is being delivered; here, all of it is delivered."""
        self.log = self.log | message.log | {message.id: message.to}
