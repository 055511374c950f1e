"""Faults of one message on its way: it is dropped, comes late, or comes twice.

    [[fault]]
    kind = "drop"          # also delay and duplicate
    sender = 0             # of the messages that process 2 gets from process 0, the third
    receiver = 2
    count = 3
    late_ms = 5.0          # for delay, and for the second of duplicate: by how much

What is counted is what arrives: messages of every kind, acknowledgements and retransmissions included,
and a message whose fragments are lost is not among them. The network has carried the message and the
receiver's own host does the rest, so that it is the same message on every engine.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from typing_extensions import override

from testbed.faults.kinds import Fault
from testbed.protocols import NS_PER_MS


@dataclass(frozen=True, kw_only=True)
class MessageFault(Fault):
    """A fault of one message: the one that is the ``count``-th of a sender to reach a receiver.

    A receiver that was restarted counts anew; ``incarnation`` is the number of its restarts.
    """

    sender: int
    receiver: int
    count: int = 1
    incarnation: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at_ms or self.for_ms or self.per_s or self.when:
            raise ValueError(f"a {self.kind} is of one message; it has no time")
        if self.sender == self.receiver:
            raise ValueError(f"node {self.sender} sends no messages to itself")
        if self.count < 1 or self.incarnation < 0:
            raise ValueError("count must be at least 1, and incarnation must not be negative")

    @override
    def begins(self, duration: int, rng: object) -> Iterator[int]:
        return iter(())  # it is up to the receiver

    def delays(self) -> tuple[int, ...]:
        """By how many nanoseconds each copy that the process gets is late."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Drop(MessageFault, kind="drop"):
    """The process never gets it."""

    @override
    def delays(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class _LateMessage(MessageFault):
    late_ms: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.late_ms < 0:
            raise ValueError(f"late_ms must not be negative, but is {self.late_ms}")

    @property
    def late(self) -> int:
        """In nanoseconds."""
        return round(self.late_ms * NS_PER_MS)


@dataclass(frozen=True, kw_only=True)
class Delay(_LateMessage, kind="delay"):
    """The process gets it later, and others before it."""

    @override
    def delays(self) -> tuple[int, ...]:
        return (self.late,)


@dataclass(frozen=True, kw_only=True)
class Duplicate(_LateMessage, kind="duplicate"):
    """The process gets it twice."""

    late_ms: float = 0.0

    @override
    def delays(self) -> tuple[int, ...]:
        return 0, self.late


class Fate(NamedTuple):
    """What becomes of a message that has arrived."""

    delays: tuple[int, ...]  # of each copy that the process gets, in nanoseconds
    kind: str = ""  # of the fault, if there is one
    facts: Mapping[str, Any] = {}  # for the log


AS_USUAL = Fate((0,))


class Arrivals:
    """Counts the messages that reach one process, and knows what becomes of each."""

    def __init__(self, faults: Iterable[Fault], receiver: int, incarnation: int) -> None:
        self._faults = {
            (fault.sender, fault.count): fault
            for fault in faults
            if isinstance(fault, MessageFault)
            and (fault.receiver, fault.incarnation) == (receiver, incarnation)
        }
        self._counts: Counter[int] = Counter()

    def next(self, sender: int) -> Fate:
        """What becomes of the message of this sender that has just arrived."""
        if not self._faults:
            return AS_USUAL
        self._counts[sender] += 1
        fault = self._faults.get((sender, self._counts[sender]))
        if fault is None:
            return AS_USUAL
        return Fate(fault.delays(), fault.kind, {"sender": sender, "count": fault.count})
