"""What protocols of phases share: stamps, resynchs, timers for these, and numbers for channels that
are not FIFO.

Mostefaoui & Raynal 1993, sections 3.4 and 3.5. A process that has fallen behind in a group says so in
a *resynch* to the group: at once, or after a while unless a message of its own, which says the same,
goes there before. If messages and resynchs are numbered for each group, what arrives early waits for
all that its sender sent to the group before: the stamps alone do not tell how many are missing.
"""

import struct
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

from typing_extensions import override

from .base import NS_PER_MS, CancelTimer, Count, Discard, Effects, Figure, Hold, Place, SetTimer
from .grouped import MEMORY, STAMP, Carrying
from .wire import Message, WireError

GroupNumber = int


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


class Resynching(Carrying):
    """A protocol whose processes say in resynchs which phase of a group they have reached."""

    messages: ClassVar[tuple[type[Message], ...]] = (PhaseMessage, Resynch)
    figures: ClassVar[tuple[Figure, ...]] = (
        STAMP,
        MEMORY,
        Figure("resynch_copies", "resynchs", "copies"),
        Figure("resynch_bytes", "bytes of resynchs"),
    )
    needs_everybody: ClassVar[bool] = True

    @dataclass(frozen=True)
    class Settings(Carrying.Settings):
        """When a process that is behind says so, and whether messages are numbered.

        For ``resynch_after_ms`` it waits for a message of its own, which would say the same.
        With ``numbered`` channels need not be FIFO.
        """

        resynch_after_ms: float = 0.0
        numbered: bool = False

        def __post_init__(self) -> None:
            if not 0 <= self.resynch_after_ms < inf:
                raise ValueError(f"resynch_after_ms must be 0 or more, not {self.resynch_after_ms}")

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.armed: set[GroupNumber] = set()  # the groups for which a timer is set
        self.numbers: defaultdict[GroupNumber, int] = defaultdict(int)  # the last one given
        # by group and source, the last number whose turn has come; and what waits for its turn
        self.arrived: defaultdict[tuple[GroupNumber, int], int] = defaultdict(int)
        self.early: dict[tuple[GroupNumber, int, int], PhaseMessage] = {}

    @classmethod
    @override
    def needs_fifo(cls, settings: Any) -> bool:
        return not settings.numbered

    @abstractmethod
    def arrive(self, message: PhaseMessage, now: int) -> Effects:
        """Take a message or a resynch whose turn has come."""

    @abstractmethod
    def resynch(self, x: GroupNumber, now: int) -> Effects:
        """Say to a group which of its phases this process has reached."""

    def receive_in_order(self, message: PhaseMessage, now: int) -> Effects:
        """Section 3.4: what arrives early waits for all that its sender sent before it."""
        if not self.settings.numbered:
            yield from self.arrive(message, now)
            return
        channel, number = (message.group, message.source), message.stamp[-1]
        if number <= self.arrived[channel] or (*channel, number) in self.early:
            yield Discard(message, "duplicate")
            return
        self.early[*channel, number] = message
        if number > self.arrived[channel] + 1 and not isinstance(message, Resynch):
            yield Hold(message, None)
        while following := self.early.pop((*channel, self.arrived[channel] + 1), None):
            self.arrived[channel] += 1
            yield from self.arrive(following, now)

    def number(self, x: GroupNumber) -> tuple[int, ...]:
        """The number of the next message or resynch to a group, if they are numbered."""
        if not self.settings.numbered:
            return ()
        self.numbers[x] += 1
        return (self.numbers[x],)

    def resynch_soon(self, x: GroupNumber, now: int) -> Effects:
        """Send a resynch to the group at once, or later unless a message does in time."""
        if not self.settings.resynch_after_ms:
            yield from self.resynch(x, now)
        elif x not in self.armed:
            self.armed.add(x)
            yield SetTimer(x, round(self.settings.resynch_after_ms * NS_PER_MS))

    def resynch_no_more(self, x: GroupNumber) -> Effects:
        """A message to the group says what the resynch would say."""
        if x in self.armed:
            self.armed.remove(x)
            yield CancelTimer(x)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """No message was sent in time: send a resynch."""
        for x in self.armed & {timer}:
            self.armed.remove(x)
            yield from self.resynch(x, now)

    def send_resynch(
        self, x: GroupNumber, peers: tuple[int, ...], stamp: tuple[int, ...], now: int
    ) -> Effects:
        """Send a resynch to the others of a group, and count what it costs."""
        message = Resynch(self.me, 0, sent_at=now, group=x, stamp=(*stamp, *self.number(x)))
        copies = 1 if self.multicasts() else len(peers)
        yield self.carry(peers, message)
        yield Count("resynchs")
        yield Count("resynch_copies", copies)
        yield Count("resynch_bytes", message.size * copies)
