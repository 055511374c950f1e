"""Lab 9: causal order by gossip. Nobody sends to everybody, and packets get lost.

As it is, a process tells one other process, drawn at random, about its own messages, once.
"""

import struct
from collections.abc import Hashable
from typing import Any, ClassVar

from testbed.protocols import (
    NS_PER_MS,
    Deliver,
    Discard,
    Effects,
    Message,
    Place,
    Protocol,
    Send,
    SetTimer,
)
from testbed.protocols.wire import of_kind

ROUND = 20 * NS_PER_MS


@of_kind(1)
class Rumour(Message):
    """A message of an application, with its causal past: the last message before it of each process."""

    past: tuple[int, ...]

    @property
    def control_size(self) -> int:
        """Four bytes for each number."""
        return 4 * len(self.past)

    def encode_control(self) -> bytes:
        """The numbers in a row."""
        return struct.pack(f"!{len(self.past)}I", *self.past)

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """The same, read."""
        return {"past": struct.unpack(f"!{processes}I", control)}


@of_kind(2)
class Digest(Message):
    """What a process has: the last message of each process that it has delivered."""

    clock: tuple[int, ...]

    @property
    def control_size(self) -> int:
        """Four bytes for each number."""
        return 4 * len(self.clock)

    def encode_control(self) -> bytes:
        """The numbers in a row."""
        return struct.pack(f"!{len(self.clock)}I", *self.clock)

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """The same, read."""
        return {"clock": struct.unpack(f"!{processes}I", control)}


class Gossip(Protocol):
    """One process."""

    name: ClassVar[str] = "my-gossip"
    messages: ClassVar[tuple[type[Message], ...]] = (Rumour, Digest)
    rests: ClassVar[bool] = False  # rounds never end: a run ends some time after the last message
    optimistic: ClassVar[bool] = True  # it may lose messages; what it delivers is in causal order

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.clock = [0] * place.processes
        self.clock[self.me] = place.base
        self.store: list[Rumour] = []  # all messages delivered here, in the order of delivery

    def start(self, now: int) -> Effects:
        """The process begins: set the clock for its first round."""
        yield SetTimer("round", self.place.rng.randrange(1, ROUND))

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """A round: what should be sent, and to whom? (self.place.rng is the source of randomness.)"""
        yield SetTimer("round", ROUND)

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends a message to everybody."""
        past = tuple(self.clock)
        self.clock[self.me] += 1
        message = Rumour(self.me, self.clock[self.me], payload, now, past=past)
        self.store.append(message)
        yield Send((self.place.rng.choice(self.place.others),), message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """The network brings a rumour or a digest from ``sender``."""
        if isinstance(message, Rumour):
            yield Deliver(message)
