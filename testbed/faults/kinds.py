"""The kinds of faults: what goes wrong in a run, when, and for how long; the same on every engine.

    [[fault]]
    kind = "loss"          # also duplication, reordering, slow, link-down, partition, crash, pause,
                           # drift, and leave and join, which are no faults but are scheduled like
                           # them; ``messages`` has those of a single message
    rate = 0.2
    link = [3, 7]          # default: every link
    at_ms = 10             # default: from the start
    for_ms = 50            # default: to the end; a process that crashed restarts after it

    [[fault]]
    kind = "crash"
    node = 5
    when = { node = 3, delivered = 10 }    # instead of at_ms: a trigger

    [[fault]]
    kind = "crash"
    node = "same"                          # the process at which the trigger's event happens
    when = { event = "flush", count = 2 }  # the second time that any process logs this event

    [[fault]]
    kind = "link-down"
    per_s = 4              # at random: 4 a second on average, each on a link drawn from the seed
    for_ms = 20

An engine can do seven things (``Actuator``): set the condition of a link; kill, restart, pause and
resume a process; have it leave and join. ``FaultSchedule`` decides when. Overlapping faults add up: a
link is up when no fault takes it down, and its losses are independent.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import networkx as nx
from typing_extensions import override

from testbed.protocols import NS_PER_MS

Edge = tuple[int, int]  # the nodes of a link, the smaller first
DELIVERY = "deliver"  # the event that ``delivered`` counts
Same = Literal["same"]  # the process at which the event of a fault's trigger happens


class Condition(NamedTuple):
    """What a link does to packets, in both directions, beyond what it was configured to do."""

    up: bool = True
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0  # the share of packets that are delayed by late_ns
    late_ns: int = 0
    slowness: float = 1.0  # a factor of the transmission time


class Target(NamedTuple):
    """The links or the process that a fault affects."""

    links: tuple[Edge, ...] = ()
    node: int = -1


class Watch(NamedTuple):
    """Events of a name in the log of a node, or of any."""

    node: int | None
    event: str


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """The moment at which a node has delivered a number of messages, or its protocol has logged an
    event of its own ``count`` times, both since the start of the run.

    Without a node all nodes are counted together.
    """

    node: int | None = None
    delivered: int | None = None
    event: str | None = None
    count: int = 1

    def __post_init__(self) -> None:
        if (self.delivered is None) == (self.event is None):
            raise ValueError("when needs either delivered or event")
        if self.delivered is not None and self.count != 1:
            raise ValueError("in when, count is for an event; delivered is a number itself")
        if self.times < 1:
            raise ValueError(f"in when, a number of times must be at least 1, not {self.times}")

    @property
    def watch(self) -> Watch:
        """What is counted."""
        return Watch(self.node, self.event or DELIVERY)

    @property
    def times(self) -> int:
        """How often it must happen."""
        return self.count if self.delivered is None else self.delivered


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What all faults have in common: when they begin, and how long they last."""

    at_ms: float = 0.0
    for_ms: float | None = None
    when: Trigger | None = None
    per_s: float | None = None

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str | None = None) -> None:
        if kind is not None:
            cls.kind = kind

    def __post_init__(self) -> None:
        if self.at_ms < 0 or (self.for_ms is not None and self.for_ms <= 0):
            raise ValueError("at_ms must not be negative, and for_ms must be above 0")
        if self.per_s is not None and not 0 < self.per_s <= 1e6:
            raise ValueError(f"per_s must be above 0 and at most 1,000,000, not {self.per_s}")
        if self.when is not None and (self.per_s is not None or self.at_ms):
            raise ValueError("a fault has one of at_ms, per_s and when")

    def begins(self, duration: int, rng: random.Random) -> Iterator[int]:
        """When it begins, unless by a trigger; faults at random begin only while senders send."""
        at = self.at_ms * NS_PER_MS
        if self.per_s is None:
            yield round(at)
            return
        while (at := at + rng.expovariate(self.per_s) * 1e9) < duration:
            yield int(at)

    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        """What it affects; what the file leaves open is drawn."""
        raise NotImplementedError

    def triggered_at(self, node: int) -> Fault:
        """The same fault, of this process if it is to be the one at which its trigger happens."""
        return self


@dataclass(frozen=True, kw_only=True)
class LinkFault(Fault):
    """A fault of one link or of all links; with ``per_s`` each time of one drawn at random."""

    link: Edge | None = None

    @override
    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        links = sorted((min(edge), max(edge)) for edge in graph.edges)
        if self.link is not None:
            link = (min(self.link), max(self.link))
            if link not in links:
                raise ValueError(f"there is no link {list(self.link)}")
            return Target(links=(link,))
        return Target(links=tuple(links) if self.per_s is None else (rng.choice(links),))

    def worsen(self, condition: Condition) -> Condition:
        """The condition of a link under this fault as well."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class RatedFault(LinkFault):
    """A fault that affects a share of the packets."""

    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.rate <= 1:
            raise ValueError(f"rate must be from 0 to 1, not {self.rate}")


@dataclass(frozen=True, kw_only=True)
class Loss(RatedFault, kind="loss"):
    """Packets are lost."""

    @override
    def worsen(self, condition: Condition) -> Condition:
        return condition._replace(loss=1 - (1 - condition.loss) * (1 - self.rate))


@dataclass(frozen=True, kw_only=True)
class Duplication(RatedFault, kind="duplication"):
    """Packets arrive twice."""

    @override
    def worsen(self, condition: Condition) -> Condition:
        rate = 1 - (1 - condition.duplication) * (1 - self.rate)
        return condition._replace(duplication=rate)


@dataclass(frozen=True, kw_only=True)
class Reordering(RatedFault, kind="reordering"):
    """Packets are delayed by ``late_ms``, or the longest of overlapping delays, and overtaken."""

    late_ms: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.late_ms < 0:
            raise ValueError(f"late_ms must not be negative, but is {self.late_ms}")

    @override
    def worsen(self, condition: Condition) -> Condition:
        rate = 1 - (1 - condition.reordering) * (1 - self.rate)
        late = max(condition.late_ns, round(self.late_ms * NS_PER_MS))
        return condition._replace(reordering=rate, late_ns=late)


@dataclass(frozen=True, kw_only=True)
class Slow(LinkFault, kind="slow"):
    """Transmission takes ``factor`` times as long; overlapping factors multiply."""

    factor: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.factor <= 1e6:
            raise ValueError(f"factor must be from 1 to 1,000,000, not {self.factor}")

    @override
    def worsen(self, condition: Condition) -> Condition:
        return condition._replace(slowness=condition.slowness * self.factor)


@dataclass(frozen=True, kw_only=True)
class LinkDown(LinkFault, kind="link-down"):
    """A link carries nothing; the network routes around it if it can."""

    @override
    def worsen(self, condition: Condition) -> Condition:
        return condition._replace(up=False)


@dataclass(frozen=True, kw_only=True)
class Partition(LinkDown, kind="partition"):
    """All links between these nodes and the rest are down; "same" cuts off one process."""

    nodes: tuple[int, ...] | Same

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nodes == "same" and self.when is None:
            raise ValueError('nodes = "same" needs when: it is the process at which that happens')

    @override
    def triggered_at(self, node: int) -> Fault:
        return replace(self, nodes=(node,)) if self.nodes == "same" else self

    @override
    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        inside = set() if self.nodes == "same" else set(self.nodes)
        if strangers := sorted(inside - set(graph.nodes)):
            raise ValueError(f"there is no node {strangers[0]}")
        if self.nodes != "same" and len(inside) in (0, len(graph)):
            raise ValueError(f"nodes has {len(inside)} of {len(graph)} nodes, so nothing is parted")
        crossing = (
            (min(a, b), max(a, b)) for a, b in graph.edges if (a in inside) != (b in inside)
        )
        return Target(links=tuple(sorted(crossing)))


@dataclass(frozen=True, kw_only=True)
class NodeFault(Fault):
    """A fault of one process; with ``per_s`` each time of one drawn at random."""

    node: int | Same | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.node is None and self.per_s is None:
            raise ValueError(f"a {self.kind} needs a node, or per_s to have them drawn")
        if self.node == "same" and self.when is None:
            raise ValueError('node = "same" needs when: it is the process at which that happens')

    @override
    def triggered_at(self, node: int) -> Fault:
        return replace(self, node=node) if self.node == "same" else self

    @override
    def target(self, graph: nx.Graph[int], rng: random.Random) -> Target:
        if self.node == "same":
            return Target()
        node = rng.choice(sorted(graph.nodes)) if self.node is None else self.node
        if node not in graph:
            raise ValueError(f"there is no node {node}")
        return Target(node=node)


@dataclass(frozen=True, kw_only=True)
class Crash(NodeFault, kind="crash"):
    """A process is killed, and restarted after ``for_ms`` if that is given."""


@dataclass(frozen=True, kw_only=True)
class Pause(NodeFault, kind="pause"):
    """A process is stopped for a while."""


@dataclass(frozen=True, kw_only=True)
class Leave(NodeFault, kind="leave"):
    """A process leaves the membership that its protocol keeps, and joins again after ``for_ms``."""


@dataclass(frozen=True, kw_only=True)
class Join(NodeFault, kind="join"):
    """A process joins the membership that its protocol keeps, and leaves again after ``for_ms``."""


@dataclass(frozen=True, kw_only=True)
class Drift(Fault, kind="drift"):
    """A process's own clock runs at ``rate`` times the speed of the run's, from start to end."""

    node: int
    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.1 <= self.rate <= 10:
            raise ValueError(f"the rate of a clock must be from 0.1 to 10, not {self.rate}")
        if self.at_ms or self.for_ms or self.per_s or self.when:
            raise ValueError(
                "a drift has a node and a rate, and is there from the start to the end"
            )

    @override
    def begins(self, duration: int, rng: random.Random) -> Iterator[int]:
        return iter(())  # there is nothing to be done at any time
