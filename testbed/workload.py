"""Workloads: when which process multicasts how much, and who answers what it has delivered.

A workload is drawn from the seed alone, so that every engine runs the same one. ``sends`` gives what
the application sends of its own accord; ``answer`` what it sends in answer to a delivery, at once.
Every workload has an end: the paper's saturates its links, so that its delays mean nothing without
the length of the run.

If an experiment has groups, a message goes to one of them that its sender is a member of, drawn at
random, or with ``each_group`` one message to each. Else it goes to everybody, unless a workload says
to whom it sends.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

from protocols import Message
from topologies import Groups

NS_PER_MS = 1_000_000
NO_GROUPS: Groups = {}
TOO_MANY = 10  # times as many deliveries as can be due: such a run would never end
LONGEST_PAYLOAD = 60_000  # a datagram holds 65,507 bytes, header and control information included


class Sending(NamedTuple):
    """The application of a node sends at this time."""

    at: int
    node: int
    payload: bytes
    to: frozenset[int] | None = None  # all, if None


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What all workloads have in common: so many senders, drawn at random, for so long."""

    senders: int = 10  # 0 is all
    payload_bytes: int = 0
    duration_ms: float = 10.0
    warm_up_messages: int = 0  # multicasts before the protocols' own counters begin
    each_group: bool = False  # whether a sender sends to each of its groups whenever it sends
    settle_ms: float = 1000.0  # a run of a protocol that never rests goes on for so long

    model: ClassVar[str]
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        at_least("senders", self.senders, 0)
        at_least("warm_up_messages", self.warm_up_messages, 0)
        if not 0 <= self.payload_bytes <= LONGEST_PAYLOAD:
            raise ValueError(
                f"payload_bytes must be from 0 to {LONGEST_PAYLOAD}, not {self.payload_bytes}"
            )
        above_zero("duration_ms", self.duration_ms)
        above_zero("settle_ms", self.settle_ms)

    @property
    def duration(self) -> int:
        """Nanoseconds after which no process sends of its own accord."""
        return round(self.duration_ms * NS_PER_MS)

    @property
    def settling(self) -> int:
        """Nanoseconds for which a protocol that never rests goes on when nothing more is planned."""
        return round(self.settle_ms * NS_PER_MS)

    def sends(
        self, processes: int, rng: random.Random, groups: Groups = NO_GROUPS
    ) -> Iterator[Sending]:
        """All that is sent unasked, in order of time."""
        payload = self.payload()
        members = frozenset().union(*groups.values()) if groups else range(processes)
        if self.senders > len(members):
            raise ValueError(
                f"senders = {self.senders}, and only {len(members)} processes are in a group"
            )
        senders = self.chosen(sorted(members), self.senders or len(members), rng)
        for at, node in merge(
            *([(t, s) for t in self.times(random.Random(rng.random()))] for s in senders)
        ):
            for to in self._audiences(node, rng, groups):
                yield Sending(at, node, payload, to)

    def chosen(self, members: list[int], count: int, rng: random.Random) -> list[int]:
        """Those of the members that send."""
        return sorted(rng.sample(members, count))

    def _audiences(
        self, node: int, rng: random.Random, groups: Groups
    ) -> Sequence[frozenset[int] | None]:
        own = own_groups(node, groups)
        if not own or self.each_group:
            return own or [None]
        return [rng.choice(own)]

    def times(self, rng: random.Random) -> Iterator[int]:
        """When one sender sends."""
        raise NotImplementedError

    def warm_at(self, sends: Sequence[Sending]) -> int:
        """When the protocols' own counters begin, given all that is sent unasked."""
        if not self.warm_up_messages:
            return 0
        if self.warm_up_messages >= len(sends):
            raise ValueError(
                f"warm_up_messages = {self.warm_up_messages} leaves nothing to count of "
                f"{len(sends)} messages"
            )
        return sends[self.warm_up_messages].at

    def most_deliveries(self, sends: Sequence[Sending], processes: int) -> int:
        """More than a run can have that comes to an end."""
        return TOO_MANY * len(sends) * (1 + self.answers_per_message()) * processes

    def broadcasts(self) -> bool:
        """Whether every message goes to everybody, or to a group if there are groups."""
        return True

    def payload(self) -> bytes:
        """What a message carries."""
        return bytes(self.payload_bytes)

    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        """What a node sends at once, having delivered this message."""
        return None

    def audience(self, node: int, message: Message, groups: Groups) -> frozenset[int] | None:
        """To whom it sends that: one of its groups, drawn from the message's name, or everybody."""
        own = own_groups(node, groups)
        return own[_draw(message) % len(own)] if own else None

    def answers_per_message(self) -> int:
        """How many messages one that is sent unasked brings about in all."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Bursts(Workload):
    """Friedman & Manor's: every sender sends a burst at the beginning of each interval."""

    burst: int = 10
    interval_ms: float = 1.0

    model: ClassVar[str] = "bursts"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("burst", self.burst, 1)
        above_zero("interval_ms", self.interval_ms)

    def times(self, rng: random.Random) -> Iterator[int]:
        """All messages of a burst at one instant."""
        interval = max(1, round(self.interval_ms * NS_PER_MS))
        for start in range(0, self.duration, interval):
            yield from [start] * self.burst


@dataclass(frozen=True, kw_only=True)
class Steady(Workload):
    """Every sender sends one message each interval, all out of step."""

    interval_ms: float = 1.0

    model: ClassVar[str] = "steady"

    def __post_init__(self) -> None:
        super().__post_init__()
        above_zero("interval_ms", self.interval_ms)

    def times(self, rng: random.Random) -> Iterator[int]:
        """An interval apart, from a random phase on."""
        interval = max(1, round(self.interval_ms * NS_PER_MS))
        yield from range(rng.randrange(interval), self.duration, interval)


@dataclass(frozen=True, kw_only=True)
class Poisson(Workload):
    """Every sender sends at random, so many messages a second on average."""

    rate_per_s: float = 100.0

    model: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        super().__post_init__()
        above_zero("rate_per_s", self.rate_per_s)

    def times(self, rng: random.Random) -> Iterator[int]:
        """Exponential gaps."""
        at = 0.0
        while (at := at + rng.expovariate(self.rate_per_s) * 1e9) < self.duration:
            yield int(at)


@dataclass(frozen=True, kw_only=True)
class Rounds(Workload):
    """Gidenstam et al.'s: in each round the first processes send with a probability, out of step.

    ``per_round`` messages on average: as many as are whole, and one more with what is left over.
    """

    senders: int = 0
    duration_ms: float = 2000.0
    per_round: float = 0.24
    round_ms: float = 100.0

    model: ClassVar[str] = "rounds"

    def __post_init__(self) -> None:
        super().__post_init__()
        above_zero("per_round", self.per_round)
        above_zero("round_ms", self.round_ms)

    def chosen(self, members: list[int], count: int, rng: random.Random) -> list[int]:
        """The first, who are the ones with tickets."""
        return members[:count]

    def times(self, rng: random.Random) -> Iterator[int]:
        """A round apart, from a random phase on."""
        whole, rest = divmod(self.per_round, 1)
        interval = max(1, round(self.round_ms * NS_PER_MS))
        for at in range(rng.randrange(interval), self.duration, interval):
            yield from [at] * (int(whole) + (rng.random() < rest))


@dataclass(frozen=True, kw_only=True)
class Reply(Steady):
    """Steady senders, and for each message some nodes that answer it as soon as they deliver it.

    Answers are answered in turn, ``depth`` times: long causal chains with no pause in them, which
    is what a wrong protocol stumbles over. The payload's first four bytes say how deep a message is.
    """

    payload_bytes: int = 4
    answers: int = 1
    depth: int = 5

    model: ClassVar[str] = "reply"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("payload_bytes", self.payload_bytes, 4)
        at_least("answers", self.answers, 1)
        at_least("depth", self.depth, 1)
        if self.answers_per_message() > 1_000_000:
            raise ValueError(
                f"answers = {self.answers} and depth = {self.depth} make more than a million "
                "answers to each message"
            )

    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        """Who answers is drawn from the message's name, so that all nodes agree on it."""
        depth = int.from_bytes(message.payload[:4], "big")
        if depth >= self.depth or node == message.source:
            return None
        draw = _draw(message)
        # the processes other than the source, counted from a random one of them
        turn = ((node - message.source - 1) % processes - draw) % (processes - 1)
        if turn >= self.answers:
            return None
        return (depth + 1).to_bytes(4, "big") + bytes(self.payload_bytes - 4)

    def answers_per_message(self) -> int:
        """A tree of answers."""
        return sum(self.answers**level for level in range(1, self.depth + 1))


@dataclass(frozen=True, kw_only=True)
class RandomDestinations(Workload):
    """Chandra, Gambhire & Kshemkalyani's: every message to other processes drawn at random.

    A message goes to one of them, or with ``multicast_fraction`` to a number drawn uniformly from 1
    to all, or with ``broadcast_fraction`` to all. ``destinations_fraction`` of the processes is what
    a multicast goes to instead, if it is given. The sender is never among its destinations.
    """

    senders: int = 0
    duration_ms: float = 86_400_000.0
    messages: int = 30_000
    mean_interval_ms: float = 100.0
    multicast_fraction: float = 0.1
    broadcast_fraction: float = 0.0
    destinations_fraction: float | None = None

    model: ClassVar[str] = "random-destinations"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("messages", self.messages, 1)
        above_zero("mean_interval_ms", self.mean_interval_ms)
        both = self.multicast_fraction + self.broadcast_fraction
        if not (self.multicast_fraction >= 0 and self.broadcast_fraction >= 0 and both <= 1):
            raise ValueError(
                f"multicast_fraction = {self.multicast_fraction} and broadcast_fraction = "
                f"{self.broadcast_fraction} must be at least 0, and together at most 1"
            )
        if self.destinations_fraction is not None and not 0 < self.destinations_fraction <= 1:
            raise ValueError(
                "destinations_fraction must be above 0 and at most 1, "
                f"not {self.destinations_fraction}"
            )

    def sends(
        self, processes: int, rng: random.Random, groups: Groups = NO_GROUPS
    ) -> Iterator[Sending]:
        """Exponential gaps at every sender; that is as well exponential gaps, and a random sender."""
        if groups:
            raise ValueError(
                f"{self.model} draws destinations of its own, and [groups] gives others"
            )
        payload = self.payload()
        senders = rng.sample(range(processes), self.senders or processes)
        rate = len(senders) / (self.mean_interval_ms * NS_PER_MS)
        at = 0.0
        for _ in range(self.messages):
            at += rng.expovariate(rate)
            if at >= self.duration:
                return
            node = rng.choice(senders)
            chosen = rng.sample(range(processes - 1), self._size(processes, rng))
            to = frozenset(p + (p >= node) for p in chosen)  # the others, counted past the sender
            yield Sending(int(at), node, payload, to)

    def _size(self, processes: int, rng: random.Random) -> int:
        others = processes - 1
        kind = rng.random()
        if kind < self.broadcast_fraction:
            return others
        if kind >= self.broadcast_fraction + self.multicast_fraction:
            return 1
        if self.destinations_fraction is None:
            return rng.randint(1, others)
        return min(others, max(1, round(self.destinations_fraction * processes)))

    def broadcasts(self) -> bool:
        """Not even a broadcast goes to its sender too."""
        return False


WORKLOADS: dict[str, type[Workload]] = {
    workload.model: workload
    for workload in (Bursts, Steady, Poisson, Rounds, Reply, RandomDestinations)
}


def own_groups(node: int, groups: Groups) -> list[frozenset[int]]:
    """The groups that a node is a member of, in their order."""
    return [members for members in groups.values() if node in members]


def _draw(message: Message) -> int:
    """A number drawn from a message's name, so that all nodes agree on it."""
    return crc32(struct.pack("!II", message.source, message.seq))


def at_least(name: str, value: int, least: int) -> None:
    """Refuse a count that is too small."""
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")


def above_zero(name: str, value: float) -> None:
    """Refuse a duration or a rate that is not positive."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be above 0, not {value}")
