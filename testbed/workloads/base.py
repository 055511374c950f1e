"""Workloads: which processes multicast when, how much, and which of their deliveries they answer.

A workload is drawn from the seed alone, so that every engine runs the same one. ``sends`` yields what
the application sends on its own initiative, ``answer`` what it sends at once in answer to a delivery.
Every workload has an end: that of Friedman & Manor saturates its links, so that delays mean nothing
without the length of the run.

If an experiment has groups, a message goes to one of its sender's groups, drawn at random, or with
``each_group`` one message to each of them. Otherwise it goes to all processes, unless the workload
chooses its destinations.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import repeat
from typing import Annotated, NamedTuple

from testbed.protocols import NS_PER_MS, Message
from testbed.topologies import Groups
from testbed.topologies.errors import Checked

NO_GROUPS: Groups = {}
TOO_MANY = 10  # times the deliveries that can be due: such a run would never end
LONGEST_PAYLOAD = 60_000  # a datagram holds 65,507 bytes, header and control information included


def at_least(name: str, value: int, least: int) -> None:
    """Refuse a count that is too small."""
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")


def above_zero(name: str, value: float) -> None:
    """Refuse a duration or a rate that is not positive."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be above 0, not {value}")


def fits_datagrams(name: str, value: int) -> None:
    """Refuse a payload that no datagram holds."""
    if not 0 <= value <= LONGEST_PAYLOAD:
        raise ValueError(f"{name} must be from 0 to {LONGEST_PAYLOAD}, not {value}")


OneOrMore = Annotated[int, partial(at_least, least=1)]
ZeroOrMore = Annotated[int, partial(at_least, least=0)]
PayloadBytes = Annotated[int, fits_datagrams]
AboveZero = Annotated[float, above_zero]


class Sending(NamedTuple):
    """A message that the application of a node sends, at this time in nanoseconds."""

    at: int
    node: int
    payload: bytes
    to: frozenset[int] | None = None  # None: to all


@dataclass(frozen=True, kw_only=True)
class Workload(Checked):
    """What all workloads have in common: how many senders, drawn at random, and for how long."""

    senders: ZeroOrMore = 10  # 0: all processes
    payload_bytes: PayloadBytes = 0
    duration_ms: AboveZero = 10.0
    warm_up_messages: ZeroOrMore = 0  # multicasts that the protocols' own counters leave out
    each_group: bool = False  # send to each of the sender's groups, not to one of them
    waits: bool = True  # what a process may not send yet it sends later; otherwise never
    settle_ms: AboveZero = 1000.0  # how long a protocol that never rests goes on at the end

    @property
    def duration(self) -> int:
        """Nanoseconds after which no process sends on its own initiative."""
        return round(self.duration_ms * NS_PER_MS)

    @property
    def settling(self) -> int:
        """Nanoseconds that a protocol that never rests goes on for when nothing more is planned."""
        return round(self.settle_ms * NS_PER_MS)

    def sends(
        self, processes: int, rng: random.Random, groups: Groups = NO_GROUPS
    ) -> Iterator[Sending]:
        """All messages that are not answers, in order of time."""
        members = frozenset().union(*groups.values()) if groups else range(processes)
        if self.senders > len(members):
            raise ValueError(
                f"senders = {self.senders}, and only {len(members)} processes are in a group"
            )
        senders = self.chosen(sorted(members), self.senders or len(members), rng)
        for at, node in merge(
            *(
                zip(self.times(random.Random(rng.random())), repeat(sender), strict=False)
                for sender in senders
            )
        ):
            payload = self.payload(at, node)
            for to in self._audiences(node, rng, groups):
                yield Sending(at, node, payload, to)

    def chosen(self, members: list[int], count: int, rng: random.Random) -> list[int]:
        """The members that send."""
        return sorted(rng.sample(members, count))

    def _audiences(
        self, node: int, rng: random.Random, groups: Groups
    ) -> Sequence[frozenset[int] | None]:
        own = own_groups(node, groups)
        if not own or self.each_group:
            return own or [None]
        return [rng.choice(own)]

    def times(self, rng: random.Random) -> Iterator[int]:
        """When one sender sends, in nanoseconds."""
        raise NotImplementedError

    def warm_at(self, sends: Sequence[Sending]) -> int:
        """When the protocols' own counters begin, given all messages that are not answers."""
        if not self.warm_up_messages:
            return 0
        if self.warm_up_messages >= len(sends):
            raise ValueError(
                f"warm_up_messages = {self.warm_up_messages} leaves nothing to count of "
                f"{len(sends)} messages"
            )
        return sends[self.warm_up_messages].at

    def most_deliveries(self, sends: Sequence[Sending], processes: int) -> int:
        """More deliveries than any run has that comes to an end."""
        return TOO_MANY * len(sends) * (1 + self.answers_per_message()) * processes

    def broadcasts(self) -> bool:
        """Whether every message goes to all processes, or to a group if there are groups."""
        return True

    def payload(self, at: int, node: int) -> bytes:
        """The payload of a message that a node sends on its own initiative at this time."""
        return bytes(self.payload_bytes)

    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        """The payload that a node sends at once, having delivered this message."""
        return None

    def audience(
        self, node: int, message: Message, processes: int, groups: Groups
    ) -> frozenset[int] | None:
        """An answer's destinations: one of the node's groups, drawn for the message, or all."""
        own = own_groups(node, groups)
        return own[self.draw(node, message) % len(own)] if own else None

    def draw(self, node: int, message: Message) -> int:
        """A number drawn for what a node does with a message, the same in all runs."""
        return 0

    def answers_per_message(self) -> int:
        """How many answers, direct and indirect, one message brings about at most."""
        return 0


def own_groups(node: int, groups: Groups) -> list[frozenset[int]]:
    """The groups that a node is a member of, in their order."""
    return [members for members in groups.values() if node in members]
