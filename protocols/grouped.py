"""What protocols for overlapping groups share: the groups of a process, the entries of a stamp, and
how their messages travel."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, Literal

from typing_extensions import override

from .base import Count, Effects, Figure, Multicast, Place, Protocol, Ratio, Send
from .wire import Message

STAMP = Ratio(
    "stamp_bytes_per_copy",
    "stamp bytes per copy",
    form=",.1f",
    of="stamp_bytes",
    per="stamped_copies",
)
MEMORY = Ratio(
    "memory_per_process",
    "memory for stamps",
    "bytes per process",
    form=",.0f",
    of="memory_bytes",
    per="nodes",
)


# ``topologies.groups`` has the same question for named groups: the two packages import nothing from
# each other, so that either can be used alone.
@lru_cache(maxsize=16)  # every process of a run asks the same
def has_cycle(groups: tuple[frozenset[int], ...]) -> bool:
    """Whether the graph of groups, which joins groups that share a member, has a cycle."""
    import networkx as nx  # slow to import, and most protocols do without

    graph: nx.Graph[int] = nx.empty_graph(len(groups))
    graph.add_edges_from(
        (x, y) for x, y in combinations(range(len(groups)), 2) if groups[x] & groups[y]
    )
    return bool(groups) and not nx.is_forest(graph)


class Carrying(Protocol):
    """A protocol whose messages leave their sender in one of two ways, and that says what it keeps."""

    @dataclass(frozen=True)
    class Settings(Protocol.Settings):
        """How a message leaves its sender: one copy along a tree, or one for each receiver."""

        multicast: Literal["network", "unicast"] = "unicast"

    def carry(self, peers: tuple[int, ...], message: Message) -> Send | Multicast:
        """Hand a message for these processes to the network."""
        return (Multicast if self.multicasts() else Send)(peers, message)

    @override
    def multicasts(self) -> bool:
        return bool(self.settings.multicast == "network")

    @override
    def peers(self) -> tuple[int, ...]:
        return () if self.multicasts() else super().peers()

    @override
    def start(self, now: int) -> Effects:
        yield Count("memory_bytes", 4 * self.integers_kept())

    @abstractmethod
    def integers_kept(self) -> int:
        """Section 5.2: the integers that a process keeps to stamp messages and to order them."""


class Grouped(Carrying):
    """A protocol whose messages go to groups of their senders; groups have numbers.

    ``others[x]`` are the other members of group x, for each group x of this process.
    """

    needs_groups: ClassVar[bool] = True
    takes_subsets: ClassVar[bool] = True
    figures: ClassVar[tuple[Figure, ...]] = (STAMP, MEMORY)

    @dataclass(frozen=True)
    class Settings(Carrying.Settings):
        """Which groups a message carries entries for.

        With "all" every group; with "own" only those that are needed if the graph of groups has no
        cycle; "auto" is "own" where the graph has no cycle, and "all" elsewhere.
        """

        entries: Literal["auto", "all", "own"] = "auto"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.others = {
            x: tuple(sorted(group - {self.me}))
            for x, group in enumerate(place.groups)
            if self.me in group
        }

    def reduced(self) -> bool:
        """Whether messages carry entries for some groups only."""
        entries = self.settings.entries
        return entries == "own" or (entries == "auto" and not has_cycle(self.place.groups))

    def group_of(self, destinations: frozenset[int] | None) -> int:
        """The number of the group whose members these are."""
        members = frozenset(range(self.place.processes)) if destinations is None else destinations
        for x in self.others:
            if self.place.groups[x] == members:
                return x
        raise ValueError(
            f"process {self.me} sends to {sorted(members)}, which is none of the groups it is in"
        )

    def belongs(self, message: Message) -> bool:
        """Whether it comes from another member of one of this process's groups."""
        return message.source in self.others.get(message.group, ())

    def send(self, message: Message) -> Effects:
        """Send a stamped message to the other members of its group."""
        peers = self.others[message.group]
        yield self.carry(peers, message)
        yield Count("stamped_copies", len(peers))
        yield Count("stamp_bytes", message.control_size * len(peers))

    @override
    def peers(self) -> tuple[int, ...]:
        """Those of its groups; with network multicast it sends to groups alone."""
        return () if self.multicasts() else self.companions()

    def companions(self) -> tuple[int, ...]:
        """The other members of this process's groups."""
        return tuple(sorted(set().union(*self.others.values())))
