"""What a protocol is: a state machine that takes events and yields effects.

A protocol touches no socket, clock, file or global randomness. An engine calls ``multicast``,
``receive`` and ``timeout`` with the time in integer nanoseconds, and gives each effect its meaning
at the moment it is yielded: the statement after ``yield Deliver(m)`` runs when the application has
already seen *m* and may have answered it. State must therefore be consistent at every ``yield``.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

from .wire import Codec, Message, MessageId

NS_PER_MS = 1_000_000
SEQUENCE_BITS = 20  # of 32: up to a million messages in each of 4096 incarnations


class Send(NamedTuple):
    """Hand the network a copy of a message for each of these processes."""

    peers: tuple[int, ...]
    message: Message


class Multicast(NamedTuple):
    """Hand one copy to the network, which carries it to all these processes along a tree."""

    peers: tuple[int, ...]
    message: Message


class Deliver(NamedTuple):
    """Deliver a message to the application, which may multicast before this effect is over."""

    message: Message


class Hold(NamedTuple):
    """Hold a message back until another is delivered; None if what is missing has no name."""

    message: Message
    waits_for: MessageId | None


class Discard(NamedTuple):
    """Drop a message, for a reason given in one or two words."""

    message: Message
    reason: str


class SetTimer(NamedTuple):
    """Ask for a ``timeout`` after ``delay`` nanoseconds; a running timer of that name is reset."""

    timer: Hashable
    delay: int


class CancelTimer(NamedTuple):
    """Cancel a timer, if it is set."""

    timer: Hashable


class Count(NamedTuple):
    """Add to one of the protocol's own counters, which the run's summary shows."""

    name: str
    amount: int = 1


class Sample(NamedTuple):
    """Measure something once more: the run's summary shows its mean.

    For each name that is ``NAME_mean``, over all samples, and ``NAME_mean_of_processes``, the mean of
    the means of all processes.
    """

    values: Mapping[str, float]


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
    """One key of a summary, at least one a protocol's own, divided by another if that is given."""

    form: str = ",.2f"
    of: str
    per: str = ""
    percent_of_n2: bool = False  # in per cent of the square of the number of processes

    def value(self, summary: Mapping[str, Any]) -> float | None:
        """The ratio, if both have been counted."""
        per = summary.get(self.per) if self.per else 1
        if self.of not in summary or not per:
            return None
        of, n = summary[self.of], summary["nodes"]
        return float(100 * of / per / n**2 if self.percent_of_n2 else of / per)


class Instant(int):
    """A time by the process's own clock, in the facts of a note: logs tell the time of the run."""


class Note(NamedTuple):
    """Write an event to the event log that only the protocol knows of, with these facts."""

    event: str
    facts: Mapping[str, Any]


class Transition(NamedTuple):
    """A row of a protocol's table of states: in ``state``, ``event`` leads to ``next``.

    A protocol that has such a table says so in ``Protocol.transitions`` and yields ``note()`` at each,
    so that logs show it, faults can be aimed at it, and fuzzing knows how much of it was reached.
    """

    state: str
    event: str
    next: str

    def note(self, **facts: Any) -> Note:
        """The event for the log, with further facts."""
        return Note(self.event, {"state": self.state, "next": self.next, **facts})


Effect = (
    Send | Multicast | Deliver | Hold | Discard | SetTimer | CancelTimer | Count | Sample | Note
)
Effects = Iterator[Effect]


@dataclass(frozen=True)
class Place:
    """The place of one protocol instance: which process it is, among how many, and its neighbours.

    ``incarnation`` counts the restarts after a crash. A restarted process does not know how much it
    sent before the crash, so each incarnation has its own range of sequence numbers.
    ``groups`` are all groups of the system, each the set of its members; no two are equal.
    ``domains`` are, for each process, the names of the communication domains that it is in, from the
    innermost outwards; there are none if the network is not divided into domains.
    """

    me: int
    processes: int
    neighbours: tuple[int, ...] = ()
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    incarnation: int = 0
    groups: tuple[frozenset[int], ...] = ()
    domains: tuple[tuple[str, ...], ...] = ()

    @property
    def base(self) -> int:
        """The k-th multicast of this incarnation has sequence number base + k."""
        return self.incarnation << SEQUENCE_BITS

    @property
    def others(self) -> tuple[int, ...]:
        """All processes but this one."""
        everybody = _first(self.processes)
        return everybody[: self.me] + everybody[self.me + 1 :]


@cache
def _first(processes: int) -> tuple[int, ...]:
    """So many processes; ten thousand of them share the numbers, which would take gigabytes."""
    return tuple(range(processes))


def given_wire_id(name: str) -> int:
    """The number of a protocol in the header of its messages, the same for a name at all times.

    Two names may share one: what distinguishes packets is the run that they belong to.
    """
    return 128 | crc32(str(name).encode()) & 127


class Protocol(ABC):
    """One process of a causal multicast protocol.

    The k-th message that a process multicasts has sequence number ``place.base`` + k, so that an
    engine knows its name. A message to all processes is delivered to its sender as it is sent.
    """

    name: ClassVar[str]
    paper: ClassVar[str] = "unpublished"
    wire_id: ClassVar[int]  # given out by name, unless the protocol is older than that rule
    messages: ClassVar[tuple[type[Message], ...]] = (Message,)
    needs_overlay: ClassVar[bool] = False
    takes_subsets: ClassVar[bool] = False  # a message may be addressed to some processes only
    needs_groups: ClassVar[bool] = False  # every message is addressed to a group of its sender
    needs_everybody: ClassVar[bool] = False  # a crashed process keeps the others from delivering
    rests: ClassVar[bool] = True  # it falls silent once all is delivered; else a run ends by time
    optimistic: ClassVar[bool] = False  # it may lose messages; what it delivers is in order
    figures: ClassVar[tuple[Figure, ...]] = ()  # its counters, or ``Ratio``s of them, for tables
    transitions: ClassVar[tuple[Transition, ...]] = ()  # its table of states, if it has one

    @dataclass(frozen=True)
    class Settings:
        """The settings that an experiment file may give, with defaults; protocols derive their own."""

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "wire_id") and "name" in vars(cls):
            cls.wire_id = given_wire_id(cls.name)

    def __init__(self, place: Place, settings: Any = None) -> None:
        self.me = place.me
        self.place = place
        self.settings: Any = self.Settings() if settings is None else settings

    @abstractmethod
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Handle a multicast of the application to these processes, or to all if None."""

    @abstractmethod
    def receive(self, message: Any, sender: int, now: int) -> Effects:
        """Handle a message that arrives from the network, where ``sender`` put it."""

    def start(self, now: int) -> Effects:
        """Handle the start of the process, before any other event."""
        yield from ()

    def join(self, now: int) -> Effects:
        """Handle the application's request to become a member."""
        raise NotImplementedError(f"{self.name} has no members that could join")

    def leave(self, now: int) -> Effects:
        """Handle the application's request to be a member no longer."""
        raise NotImplementedError(f"{self.name} has no members that could leave")

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """Handle the expiry of a timer that this protocol set."""
        raise NotImplementedError(f"{self.name} sets no timer, yet {timer!r} ran out")

    @classmethod
    def needs_fifo(cls, settings: Any) -> bool:
        """Whether it needs FIFO channels: messages between two processes never overtake."""
        return cls.needs_overlay

    def busy(self) -> bool:
        """Whether the application should wait before its next multicast."""
        return False

    def peers(self) -> tuple[int, ...]:
        """The processes that this one may ``Send`` to; an engine may prepare the routes to them."""
        return self.place.others

    def multicasts(self) -> bool:
        """Whether this process may yield ``Multicast``."""
        return False

    @classmethod
    def local_groups(cls, place: Place, settings: Any) -> tuple[frozenset[int], ...]:
        """The local groups that it divides all processes into at the beginning, if any."""
        return ()

    @classmethod
    def ring_failures(cls, settings: Any) -> int:
        """How many of any 2k+1 neighbours in a ring of coordinators may fail; 0 without a ring."""
        return 0

    @classmethod
    def codec(cls, run: int, processes: int) -> Codec:
        """The encoding of this protocol's messages in a run with this number of processes."""
        return Codec(cls.wire_id, cls.messages, run, processes)
