"""Workloads drawn from the seed, each with the paper or the purpose that it comes from."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Annotated

from typing_extensions import override

from testbed.protocols import NS_PER_MS, Message
from testbed.topologies import Groups
from testbed.workloads import base
from testbed.workloads.base import NO_GROUPS, Sending, Workload
from testbed.workloads.lineage import LINEAGE_BYTES, Lineage, tree_of_answers

NODE_BYTES = 2  # in a payload that says who answers
NOBODY = 0xFFFF


@dataclass(frozen=True, kw_only=True)
class Bursts(Workload, model="bursts"):
    """Friedman & Manor's: every sender sends a burst at the beginning of each interval, all at once."""

    burst: base.OneOrMore = 10
    interval_ms: base.AboveZero = 1.0

    @override
    def times(self, rng: random.Random) -> Iterator[int]:
        interval = max(1, round(self.interval_ms * NS_PER_MS))
        for start in range(0, self.duration, interval):
            yield from repeat(start, self.burst)


@dataclass(frozen=True, kw_only=True)
class Steady(Workload, model="steady"):
    """Every sender sends one message each interval, from a random phase on."""

    interval_ms: base.AboveZero = 1.0

    @override
    def times(self, rng: random.Random) -> Iterator[int]:
        interval = max(1, round(self.interval_ms * NS_PER_MS))
        yield from range(rng.randrange(interval), self.duration, interval)


@dataclass(frozen=True, kw_only=True)
class Poisson(Workload, model="poisson"):
    """Every sender sends after exponentially distributed gaps, ``rate_per_s`` messages on average."""

    rate_per_s: base.AboveZero = 100.0

    @override
    def times(self, rng: random.Random) -> Iterator[int]:
        at = 0.0
        while (at := at + rng.expovariate(self.rate_per_s) * 1e9) < self.duration:
            yield int(at)


@dataclass(frozen=True, kw_only=True)
class Rounds(Workload, model="rounds"):
    """Gidenstam et al.'s: in each round, from a random phase on, the first processes may send.

    Each sends ``per_round`` messages on average: the integer part of it, and one more with the
    fraction as probability.
    """

    senders: base.ZeroOrMore = 0
    duration_ms: base.AboveZero = 2000.0
    per_round: base.AboveZero = 0.24
    round_ms: base.AboveZero = 100.0

    @override
    def chosen(self, members: list[int], count: int, rng: random.Random) -> list[int]:
        return members[:count]  # those with tickets

    @override
    def times(self, rng: random.Random) -> Iterator[int]:
        whole, rest = divmod(self.per_round, 1)
        interval = max(1, round(self.round_ms * NS_PER_MS))
        for at in range(rng.randrange(interval), self.duration, interval):
            yield from [at] * (int(whole) + (rng.random() < rest))


@dataclass(frozen=True, kw_only=True)
class Reply(Steady, model="reply"):
    """Steady senders, and for each message some nodes that answer it as soon as they deliver it.

    Answers are answered in turn, ``depth`` times. Such long causal chains without a pause are what a
    wrong protocol fails on. A payload begins with the message's lineage.
    """

    payload_bytes: Annotated[base.PayloadBytes, partial(base.at_least, least=LINEAGE_BYTES)] = 4
    answers: base.OneOrMore = 1
    depth: base.OneOrMore = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        tree_of_answers(self.answers, self.depth)

    @override
    def payload(self, at: int, node: int) -> bytes:
        return Lineage.unasked(at, node).payload(self.payload_bytes)

    @override
    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        lineage = Lineage.of(message.payload)
        if lineage.depth >= self.depth or node == message.source:
            return None
        # All nodes agree who answers: the others in turn, from one drawn for the message.
        first = lineage.draw(message.source)
        turn = ((node - message.source - 1) % processes - first) % (processes - 1)
        if turn >= self.answers:
            return None
        return lineage.answer(node).payload(self.payload_bytes)

    @override
    def draw(self, node: int, message: Message) -> int:
        return Lineage.of(message.payload).answer(node).draw(node)

    @override
    def answers_per_message(self) -> int:
        return tree_of_answers(self.answers, self.depth)


@dataclass(frozen=True, kw_only=True)
class RandomDestinations(Workload, model="random-destinations"):
    """Chandra, Gambhire & Kshemkalyani's: every message to other processes drawn at random.

    A message goes to one other process; with probability ``multicast_fraction`` to a uniformly drawn
    number of them, or to ``destinations_fraction`` of the processes if that is given; and with
    probability ``broadcast_fraction`` to all of them. The sender is never among the destinations.

    With ``answers``, so many of a message's destinations answer it as soon as they deliver it, each to
    processes drawn in the same way, and answers are answered in turn, ``depth`` times. A payload then
    begins with the message's lineage and with who answers.
    """

    senders: base.ZeroOrMore = 0
    duration_ms: base.AboveZero = 86_400_000.0
    messages: base.OneOrMore = 30_000
    mean_interval_ms: base.AboveZero = 100.0
    multicast_fraction: float = 0.1
    broadcast_fraction: float = 0.0
    destinations_fraction: float | None = None
    answers: base.ZeroOrMore = 0
    depth: base.OneOrMore = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        tree_of_answers(self.answers, self.depth)
        least = LINEAGE_BYTES + self.answers * NODE_BYTES
        if self.answers and self.payload_bytes < least:
            raise ValueError(
                f"payload_bytes must be at least {least}, not {self.payload_bytes}: with answers = "
                f"{self.answers} a payload says who answers"
            )
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

    @override
    def sends(
        self, processes: int, rng: random.Random, groups: Groups = NO_GROUPS
    ) -> Iterator[Sending]:
        if groups:
            raise ValueError(
                f"{self.model} draws destinations of its own, and [groups] gives others"
            )
        senders = rng.sample(range(processes), self.senders or processes)
        # Independent Poisson processes are one Poisson process with a random sender for each event.
        rate = len(senders) / (self.mean_interval_ms * NS_PER_MS)
        at = 0.0
        for _ in range(self.messages):
            at += rng.expovariate(rate)
            if at >= self.duration:
                return
            node = rng.choice(senders)
            to = self._others(node, processes, rng)
            payload = self._payload(Lineage.unasked(int(at), node), node, to)
            yield Sending(int(at), node, payload, to)

    def _others(self, node: int, processes: int, rng: random.Random) -> frozenset[int]:
        chosen = rng.sample(range(processes - 1), self._size(processes, rng))
        return frozenset(p + (p >= node) for p in chosen)  # skips the sender

    def _payload(self, lineage: Lineage, node: int, to: frozenset[int]) -> bytes:
        """A payload that says who answers, if somebody does."""
        if not self.answers:
            return bytes(self.payload_bytes)
        rng = random.Random(~lineage.draw(node))
        chosen = rng.sample(sorted(to), min(len(to), self.answers))
        named = [*chosen, *[NOBODY] * (self.answers - len(chosen))]
        return lineage.payload(self.payload_bytes, struct.pack(f"!{self.answers}H", *named))

    @override
    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        if not self.answers or (lineage := Lineage.of(message.payload)).depth >= self.depth:
            return None
        named = struct.unpack_from(f"!{self.answers}H", message.payload, LINEAGE_BYTES)
        if node not in named:
            return None
        to = self._answered(node, lineage.answer(node), processes)
        return self._payload(lineage.answer(node), node, to)

    @override
    def audience(
        self, node: int, message: Message, processes: int, groups: Groups
    ) -> frozenset[int] | None:
        return self._answered(node, Lineage.of(message.payload).answer(node), processes)

    def _answered(self, node: int, lineage: Lineage, processes: int) -> frozenset[int]:
        """The destinations of a node's answer of this lineage."""
        return self._others(node, processes, random.Random(lineage.draw(node)))

    @override
    def answers_per_message(self) -> int:
        return tree_of_answers(self.answers, self.depth)

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

    @override
    def broadcasts(self) -> bool:
        return False  # not even a broadcast goes to its sender too
