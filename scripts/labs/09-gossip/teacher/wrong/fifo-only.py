"""Looks at the sender's own messages only."""

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
    """``clock[k]`` is the number of the last message of process k that was delivered here."""

    name: ClassVar[str] = "my-gossip"
    messages: ClassVar[tuple[type[Message], ...]] = (Rumour, Digest)
    rests: ClassVar[bool] = False
    optimistic: ClassVar[bool] = True

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.clock = [0] * place.processes
        self.clock[self.me] = place.base
        self.store: list[Rumour] = []

    def start(self, now: int) -> Effects:
        """Begin at a time of its own, so that rounds are not in step."""
        yield SetTimer("round", self.place.rng.randrange(1, ROUND))

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """Tell one process, drawn at random, what is here."""
        yield SetTimer("round", ROUND)
        yield Send((self.place.rng.choice(self.place.others),), self.digest(now))

    def digest(self, now: int) -> Digest:
        """What this process has."""
        return Digest(self.me, 0, sent_at=now, clock=tuple(self.clock))

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Keep the message: the rounds spread it."""
        past = tuple(self.clock)
        self.clock[self.me] += 1
        message = Rumour(self.me, self.clock[self.me], payload, now, past=past)
        self.store.append(message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Deliver a rumour that is new and in order; answer a digest with what it lacks."""
        if isinstance(message, Digest):
            for rumour in self.store:  # in the order of delivery, so that all are in order there
                if rumour.seq > message.clock[rumour.source]:
                    yield Send((sender,), rumour)
            if any(theirs > ours for theirs, ours in zip(message.clock, self.clock, strict=True)):
                yield Send((sender,), self.digest(now))
        elif isinstance(message, Rumour):
            yield from self.hear(message)

    def hear(self, rumour: Rumour) -> Effects:
        """Deliver it if all of its past is here. If not, it will be told again."""
        late = rumour.seq <= self.clock[rumour.source]
        if late or rumour.past[rumour.source] > self.clock[rumour.source]:
            yield Discard(rumour, "duplicate" if late else "early")
            return
        self.clock[rumour.source] = rumour.seq
        self.store.append(rumour)
        yield Deliver(rumour)
