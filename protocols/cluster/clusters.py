"""Clusters: several clusters side by side, with processes in more than one, whose interest moves.

Gidenstam, Koldehofe, Papatriantafilou & Tsigas, "Scalable Group Communication Supporting
Configurable Levels of Consistency", 2011, section 3 and Fig. 1.

Each region of the ``world`` is a cluster with gossip, tickets and clock of its own (``cluster``). Who
comes to see a region joins the gossip of its cluster through somebody who sees it too, and asks for a
ticket; who sees it no longer leaves. An event belongs to one of the clusters in which its process owns
a ticket, and is delivered to who is interested in that one, in causal order with the cluster's other
events. Events of different clusters are not ordered: no clock counts both.
State: ``parts``, the process's part in each cluster; ``inside``, the clusters that it is interested in.
Cost: that of ``cluster`` for each cluster that a process is in. The header's field "group" tells them
apart.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from typing_extensions import override

from ..base import (
    CancelTimer,
    Count,
    Discard,
    Effects,
    Figure,
    Note,
    Place,
    Protocol,
    Send,
    SetTimer,
)
from ..wire import Message
from .cluster import Cluster
from .world import World

MOVE = "move"


class Clusters(Protocol):
    """One process in a world of clusters."""

    name: ClassVar[str] = "clusters"
    paper: ClassVar[str] = "Gidenstam et al. 2011, section 3, Fig. 1"
    rests: ClassVar[bool] = False
    optimistic: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = Cluster.messages
    figures: ClassVar[tuple[Figure, ...]] = (
        *Cluster.figures,
        Figure("regions_entered", "regions that came into view"),
    )
    part: ClassVar[type[Cluster]] = Cluster

    @dataclass(frozen=True)
    class Settings(Cluster.Settings):
        """``clusters`` regions in a circle, around which processes are spread evenly.

        A process is interested in the region that it is in, and in others that are at most ``near``,
        in parts of a region; it moves by ``speed`` regions a second. All other settings are those of
        each cluster: so many ``coordinators`` of those that see a region in the beginning, and so on.
        """

        clusters: int = 3
        near: float = 0.25
        speed: float = 0.0
        membership: Literal["partial"] = "partial"
        management: Literal["none", "ring", "leases"] = "leases"

        def __post_init__(self) -> None:
            super().__post_init__()
            if not 1 <= self.clusters <= 100 or not 0 <= self.near <= self.clusters:
                raise ValueError("clusters is from 1 to 100, near from 0 to clusters")
            if not 0 <= self.speed <= 1000:
                raise ValueError("speed is from 0 to 1000 regions a second")
            if self.members:
                raise ValueError("who is a member follows from what it sees: members is 0")
            if self.speed and self.management == "none":
                raise ValueError("who moves gets and gives tickets, so management is not none")

    def __init__(self, place: Place, settings: Any = None) -> None:
        settings = self.Settings() if settings is None else settings
        super().__init__(place, settings)
        if settings.clusters > place.processes:
            raise ValueError(f"{settings.clusters} clusters of {place.processes} processes")
        self.world = World(place.processes, settings.clusters, settings.near, settings.speed)
        self.parts = [
            self.part(replace(place, groups=(members,)), settings)
            for members in self.world.watchers(0)
        ]
        self.inside = set(self.world.seen_by(self.me, 0))
        self.wants = True
        self.sent = place.base

    @classmethod
    @override
    def needs_fifo(cls, settings: Any) -> bool:
        return cls.part.needs_fifo(settings)

    @classmethod
    @override
    def ring_failures(cls, settings: Any) -> int:
        return cls.part.ring_failures(settings)

    @override
    def busy(self) -> bool:
        return not self.open()

    def open(self) -> list[int]:
        """The clusters in which the process may multicast."""
        return [c for c in sorted(self.inside) if not self.parts[c].busy()]

    def within(self, cluster: int, effects: Effects) -> Effects:
        """What the process's part in a cluster does, told apart from its other parts."""
        for effect in effects:
            match effect:
                case Send(peers, message):
                    yield Send(peers, replace(message, group=cluster))
                case SetTimer(timer, delay):
                    yield SetTimer((cluster, timer), delay)
                case CancelTimer(timer):
                    yield CancelTimer((cluster, timer))
                case Note(event, facts):
                    yield Note(event, {**facts, "cluster": cluster})
                case _:
                    yield effect

    @override
    def start(self, now: int) -> Effects:
        for c, part in enumerate(self.parts):
            yield from self.within(c, part.start(now))
        for c in sorted(self.inside):
            yield Note("interest", {"cluster": c, "interested": True, "begins": True})
        yield from self.follow(now)

    def follow(self, now: int) -> Effects:
        """Enter the clusters that have come into view, and leave those that are out of it."""
        seen = self.world.seen_by(self.me, now) if self.wants else frozenset()
        for c in sorted(seen ^ self.inside):
            enters = c in seen
            yield Note("interest", {"cluster": c, "interested": enters})
            if enters:
                yield Count("regions_entered")
                yield from self.enter(c, now)
            else:
                self.inside.remove(c)
                yield from self.within(c, self.parts[c].leave(now))
        if (crossing := self.world.crossing(self.me, now)) is not None:
            yield SetTimer(MOVE, crossing)

    def enter(self, cluster: int, now: int) -> Effects:
        """Join a cluster through somebody who is in it now."""
        part = self.parts[cluster]
        self.inside.add(cluster)
        known = self.world.watchers(now)[cluster] - {self.me}
        part.view.meet(sorted(known))
        yield from self.within(cluster, part.join(now))

    @override
    def join(self, now: int) -> Effects:
        self.wants = True
        yield from self.follow(now)

    @override
    def leave(self, now: int) -> Effects:
        self.wants = False
        yield from self.follow(now)

    @override
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Make an event of any cluster in which the process owns a ticket."""
        if not (known := self.open()):
            raise ValueError(f"process {self.me} has no ticket and must wait for one")
        c = self.place.rng.choice(known)
        part = self.parts[c]
        part.sent = self.sent
        self.sent += 1
        yield Note("cluster", {"source": self.me, "seq": self.sent, "cluster": c})
        yield from self.within(c, part.multicast(payload, None, now))

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        c = message.group
        if c < len(self.parts):
            yield from self.within(c, self.parts[c].receive(message, sender, now))
        else:
            yield Discard(message, "no such cluster")

    @override
    def timeout(self, timer: Hashable, now: int) -> Effects:
        if timer == MOVE:
            yield from self.follow(now)
        else:
            assert isinstance(timer, tuple)
            c, inner = timer
            yield from self.within(c, self.parts[c].timeout(inner, now))
