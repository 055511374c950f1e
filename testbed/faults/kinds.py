"""Fault schedules: what goes wrong in a run, when, for how long; the same on every engine.

    [[fault]]
    kind = "loss"          # also duplication, reordering, slow, link-down, partition, crash, pause,
                           # and leave and join, which are no faults but happen in the same way
    rate = 0.2
    link = [3, 7]          # every link, if not given
    at_ms = 10             # from the start, if not given
    for_ms = 50            # to the end, if not given; a process that crashed starts again after it

    [[fault]]
    kind = "crash"
    node = 5
    when = { node = 3, delivered = 10 }    # instead of at_ms: a trigger

    [[fault]]
    kind = "link-down"
    per_s = 4              # at random: so often a second, on a link drawn from the seed
    for_ms = 20

An engine does seven things: set the condition of a link, kill a process, start it again, stop it for a
while, let it go on, have it leave and join. ``FaultSchedule`` tells it when. Faults that overlap add
up: a link is up when no fault holds it down, and its losses are independent.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import networkx as nx

from testbed.protocols import NS_PER_MS

Link = tuple[int, int]


class Condition(NamedTuple):
    """What a link does to packets, in both directions, beyond what it was configured to do."""

    up: bool = True
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0  # so large a share of the packets is late
    late_ns: int = 0  # by so much
    slowness: float = 1.0  # transmission takes so many times as long


class Target(NamedTuple):
    """Links or a process."""

    links: tuple[Link, ...] = ()
    node: int = -1


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """When a node has delivered so many messages."""

    node: int
    delivered: int


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What all faults have in common: when, and for how long."""

    at_ms: float = 0.0
    for_ms: float | None = None
    when: Trigger | None = None
    per_s: float | None = None

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if self.at_ms < 0 or (self.for_ms is not None and self.for_ms <= 0):
            raise ValueError("at_ms must not be negative, and for_ms must be above 0")
        if self.per_s is not None and not 0 < self.per_s <= 1e6:
            raise ValueError(f"per_s must be above 0, not {self.per_s}")
        if self.when is not None and (self.per_s is not None or self.at_ms):
            raise ValueError("a fault has one of at_ms, per_s and when")

    def begins(self, duration: int, rng: random.Random) -> Iterator[int]:
        """When it happens, if not by a trigger; at random it does as long as senders send."""
        at = self.at_ms * NS_PER_MS
        if self.per_s is None:
            yield round(at)
            return
        while (at := at + rng.expovariate(self.per_s) * 1e9) < duration:
            yield int(at)

    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        """What it happens to; what the file leaves open is drawn."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class LinkFault(Fault):
    """A fault of one link, or of all."""

    link: Link | None = None

    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        """The link; at random it is one of them, else all."""
        links = sorted((min(edge), max(edge)) for edge in graph.edges)
        if self.link is not None:
            link = (min(self.link), max(self.link))
            if link not in links:
                raise ValueError(f"there is no link {list(self.link)}")
            return Target(links=(link,))
        return Target(links=tuple(links) if self.per_s is None else (rng.choice(links),))

    def worsen(self, condition: Condition) -> Condition:
        """What becomes of a link's condition."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class RatedFault(LinkFault):
    """A fault that befalls so large a share of the packets."""

    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.rate <= 1:
            raise ValueError(f"rate must be from 0 to 1, not {self.rate}")


@dataclass(frozen=True, kw_only=True)
class Loss(RatedFault):
    """Packets are lost."""

    kind: ClassVar[str] = "loss"

    def worsen(self, condition: Condition) -> Condition:
        """Independent of other losses."""
        return condition._replace(loss=1 - (1 - condition.loss) * (1 - self.rate))


@dataclass(frozen=True, kw_only=True)
class Duplication(RatedFault):
    """Packets arrive twice."""

    kind: ClassVar[str] = "duplication"

    def worsen(self, condition: Condition) -> Condition:
        """Independent of others."""
        rate = 1 - (1 - condition.duplication) * (1 - self.rate)
        return condition._replace(duplication=rate)


@dataclass(frozen=True, kw_only=True)
class Reordering(RatedFault):
    """Packets are late, so that others overtake them."""

    late_ms: float = 10.0

    kind: ClassVar[str] = "reordering"

    def worsen(self, condition: Condition) -> Condition:
        """The longest delay counts."""
        rate = 1 - (1 - condition.reordering) * (1 - self.rate)
        late = max(condition.late_ns, round(self.late_ms * NS_PER_MS))
        return condition._replace(reordering=rate, late_ns=late)


@dataclass(frozen=True, kw_only=True)
class Slow(LinkFault):
    """Transmission takes several times as long."""

    factor: float = 10.0

    kind: ClassVar[str] = "slow"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.factor <= 1e6:
            raise ValueError(f"factor must be at least 1, not {self.factor}")

    def worsen(self, condition: Condition) -> Condition:
        """Factors multiply."""
        return condition._replace(slowness=condition.slowness * self.factor)


@dataclass(frozen=True, kw_only=True)
class LinkDown(LinkFault):
    """A link carries nothing; the network finds other ways if there are any."""

    kind: ClassVar[str] = "link-down"

    def worsen(self, condition: Condition) -> Condition:
        """Down is down."""
        return condition._replace(up=False)


@dataclass(frozen=True, kw_only=True)
class Partition(LinkDown):
    """All links between these nodes and the rest are down."""

    nodes: tuple[int, ...]

    kind: ClassVar[str] = "partition"

    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        """The links that cross."""
        inside = set(self.nodes)
        if strangers := sorted(inside - set(graph.nodes)):
            raise ValueError(f"there is no node {strangers[0]}")
        crossing = (
            (min(a, b), max(a, b)) for a, b in graph.edges if (a in inside) != (b in inside)
        )
        return Target(links=tuple(sorted(crossing)))


@dataclass(frozen=True, kw_only=True)
class NodeFault(Fault):
    """A fault of one process."""

    node: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.node is None and self.per_s is None:
            raise ValueError(f"a {self.kind} needs a node, or per_s to have them drawn")

    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        """The process; at random it is one of them."""
        node = rng.choice(sorted(graph.nodes)) if self.node is None else self.node
        if node not in graph:
            raise ValueError(f"there is no node {node}")
        return Target(node=node)


@dataclass(frozen=True, kw_only=True)
class Crash(NodeFault):
    """A process is killed, and starts again after ``for_ms`` if that is given."""

    kind: ClassVar[str] = "crash"


@dataclass(frozen=True, kw_only=True)
class Pause(NodeFault):
    """A process stands still for a while."""

    kind: ClassVar[str] = "pause"


@dataclass(frozen=True, kw_only=True)
class Leave(NodeFault):
    """A process leaves what its protocol keeps members of, and joins again after ``for_ms``."""

    kind: ClassVar[str] = "leave"


@dataclass(frozen=True, kw_only=True)
class Join(NodeFault):
    """A process joins what its protocol keeps members of, and leaves again after ``for_ms``."""

    kind: ClassVar[str] = "join"


FAULTS: dict[str, type[Fault]] = {
    fault.kind: fault
    for fault in (
        Loss,
        Duplication,
        Reordering,
        Slow,
        LinkDown,
        Partition,
        Crash,
        Pause,
        Leave,
        Join,
    )
}
