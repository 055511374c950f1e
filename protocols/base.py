"""What a protocol is: a state machine that is told of events and answers with effects.

A protocol touches no socket, clock, file or global randomness. An engine calls ``multicast``,
``receive`` and ``timeout`` with the time in integer nanoseconds, and gives each effect its meaning
at the moment it is yielded: the statement after ``yield Deliver(m)`` runs when the application has
already seen *m* and has perhaps answered it. State must therefore be consistent at every yield.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from .wire import Codec, Message, MessageId

NS_PER_MS = 1_000_000
SEQUENCE_BITS = 20  # of 32: up to a million messages in each of 4096 incarnations


class Send(NamedTuple):
    """Hand the network a copy of a message for each of these processes."""

    peers: tuple[int, ...]
    message: Message


class Multicast(NamedTuple):
    """Hand one copy to the network, which takes it to all these processes along a tree."""

    peers: tuple[int, ...]
    message: Message


class Deliver(NamedTuple):
    """Give a message to the application, which may multicast before this effect is over."""

    message: Message


class Hold(NamedTuple):
    """Keep a message back until another has been delivered; none, if what is missing has no name."""

    message: Message
    waits_for: MessageId | None


class Discard(NamedTuple):
    """Drop a message, for a reason of one word or two."""

    message: Message
    reason: str


class SetTimer(NamedTuple):
    """Ask for a ``timeout`` after so many nanoseconds; a timer of that name starts anew."""

    timer: Hashable
    delay: int


class CancelTimer(NamedTuple):
    """Forget a timer; one that is not set is no matter."""

    timer: Hashable


class Count(NamedTuple):
    """Add to a counter of the protocol's own, which the run's summary shows."""

    name: str
    amount: int = 1


@dataclass(frozen=True)
class Figure:
    """A number of a run's summary, by its key: what people call it, its unit, how it is written.

    Tables show it unless it is not ``shown``, and those of a sweep only if it has a ``short`` heading.
    """

    key: str
    label: str
    unit: str = ""
    form: str = ","  # a format specification; none for words
    short: str = ""
    shown: bool = True

    @property
    def title(self) -> str:
        """The label with the unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def text(self, value: Any) -> str:
        """A value as tables show it; a dash if there is none."""
        return "-" if value is None else format(value, self.form)


@dataclass(frozen=True, kw_only=True)
class Ratio(Figure):
    """One key of a summary divided by another, of which at least one is a protocol's counter."""

    form: str = ",.2f"
    of: str
    per: str
    percent_of_n2: bool = False  # in per cent of the square of the number of processes

    def value(self, summary: Mapping[str, Any]) -> float | None:
        """The ratio, if both have been counted."""
        if self.of not in summary or not summary.get(self.per):
            return None
        of, per, n = summary[self.of], summary[self.per], summary["nodes"]
        return float(100 * of / per / n**2 if self.percent_of_n2 else of / per)


class Note(NamedTuple):
    """Write down in the event log what nobody else can know: an event of this name, with its keys."""

    event: str
    facts: Mapping[str, Any]


Effect = Send | Multicast | Deliver | Hold | Discard | SetTimer | CancelTimer | Count | Note
Effects = Iterator[Effect]


@dataclass(frozen=True)
class Place:
    """Where one protocol instance stands: which process it is, among how many, beside whom.

    ``incarnation`` counts how often the process has been started again after a crash. One that has
    been does not know how much it sent before, so each incarnation has sequence numbers of its own.
    ``groups`` are those of the whole system, each the set of its members; no two are the same.
    """

    me: int
    processes: int
    neighbours: tuple[int, ...] = ()
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    incarnation: int = 0
    groups: tuple[frozenset[int], ...] = ()

    @property
    def base(self) -> int:
        """The k-th multicast of this incarnation has sequence number base + k."""
        return self.incarnation << SEQUENCE_BITS

    @property
    def others(self) -> tuple[int, ...]:
        """All processes but this one."""
        return tuple(p for p in range(self.processes) if p != self.me)


class Protocol(ABC):
    """One process of a causal multicast protocol.

    The k-th message that a process multicasts has sequence number ``place.base`` + k, so that an
    engine knows it by name. A message to everybody is delivered to its sender too, when it is sent.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    wire_id: ClassVar[int]
    messages: ClassVar[tuple[type[Message], ...]] = (Message,)
    needs_overlay: ClassVar[bool] = False
    takes_subsets: ClassVar[bool] = False
    """Whether a message may go to some of the processes only."""
    needs_groups: ClassVar[bool] = False
    """Whether every message goes to one of the system's groups that its sender belongs to."""
    needs_everybody: ClassVar[bool] = False
    """Whether a process that has crashed keeps others from delivering what a live one sends."""
    rests: ClassVar[bool] = True
    """Whether it does nothing more once all is delivered; the run of one that does ends by time."""
    repairs: ClassVar[bool] = False
    """Whether lost packets and crashes of others make no difference, but for some delay."""
    optimistic: ClassVar[bool] = False
    """Whether it may lose messages: what it delivers is in order, and losses are no fault."""
    figures: ClassVar[tuple[Figure, ...]] = ()
    """What is shown of its counters: a ``Ratio``, or a ``Figure`` whose key is that of a counter."""

    @dataclass(frozen=True)
    class Settings:
        """What an experiment may set, with defaults. Derived protocols replace it."""

    def __init__(self, place: Place, settings: Any = None) -> None:
        self.me = place.me
        self.place = place
        self.settings: Any = self.Settings() if settings is None else settings

    @abstractmethod
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends to these processes, or to all."""

    @abstractmethod
    def receive(self, message: Any, sender: int, now: int) -> Effects:
        """The network hands over a message that ``sender`` passed to it."""

    def start(self, now: int) -> Effects:
        """The process begins, before anything else happens to it."""
        yield from ()

    def join(self, now: int) -> Effects:
        """The application wants the process to become a member of what the protocol keeps."""
        raise NotImplementedError(f"{self.name} has no members that could join")

    def leave(self, now: int) -> Effects:
        """The application wants the process to be a member no longer."""
        raise NotImplementedError(f"{self.name} has no members that could leave")

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """A timer that this protocol set has run out."""
        raise NotImplementedError(f"{self.name} sets no timer, yet {timer!r} ran out")

    @classmethod
    def needs_fifo(cls, settings: Any) -> bool:
        """Whether messages of one process to another must not overtake each other."""
        return cls.needs_overlay

    def busy(self) -> bool:
        """Whether the application should wait with its next multicast."""
        return False

    def peers(self) -> tuple[int, ...]:
        """The processes that this one may ``Send`` to; an engine may prepare the ways to them."""
        return self.place.others

    def multicasts(self) -> bool:
        """Whether this process may ask the network to ``Multicast``."""
        return False

    @classmethod
    def local_groups(cls, processes: int, settings: Any) -> tuple[frozenset[int], ...]:
        """The groups that it divides so many processes into at the beginning, if it does."""
        return ()

    @classmethod
    def codec(cls, run: int, processes: int) -> Codec:
        """The encoding of this protocol's messages in a run of so many processes."""
        return Codec(cls.wire_id, cls.messages, run, processes)
