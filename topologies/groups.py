"""Groups of processes that may overlap, and the graph of groups.

Two groups are neighbours in the graph of groups if they have a member in common (Mostefaoui & Raynal
1993, section 2.1). Whether it has a cycle decides how much control information a message needs:
without one, a process need not know of groups that it is not in. A process in three groups makes a
triangle of them.

    named       as the experiment lists them
    random      groups of equal size, drawn at random; ``overlap`` members of each are in earlier ones
    ring        each group shares members with the next, the last with the first: one long cycle
    star        a group in the middle that shares one member with each of the others: no cycle
    tree        every group shares a member with the one above it: no cycle
    triangle    the paper's example, three processes in three groups of two
    everybody   one group of all
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

import networkx as nx
from typing_extensions import override

from . import errors
from .errors import TopologyError
from .plane import MAX_TRIES

Groups = Mapping[str, frozenset[int]]  # the members of each group by its name; no two are equal


class Grouping(errors.Checked, ABC):
    """A rule that gives groups for any number of processes."""

    @abstractmethod
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        """Draw groups of processes 0..nodes-1; whatever is random comes from ``rng``."""


def group_graph(groups: Groups) -> "nx.Graph[str]":
    """The graph of groups."""
    graph: nx.Graph[str] = nx.empty_graph(groups)
    graph.add_edges_from((a, b) for a, b in combinations(groups, 2) if groups[a] & groups[b])
    return graph


def has_cycle(groups: Groups) -> bool:
    """Whether the graph of groups has a cycle (``protocols.grouped`` asks the same of numbers)."""
    return bool(groups) and not nx.is_forest(group_graph(groups))


@dataclass(frozen=True)
class Named(Grouping, model="named"):
    """Groups with their names and members, one by one."""

    members: dict[str, list[int]]

    def __post_init__(self) -> None:
        errors.require(bool(self.members), "members is empty: name at least one group")
        known: dict[frozenset[int], str] = {}
        for name, members in self.members.items():
            errors.require(len(members) > 1, f"group {name} must have at least 2 members")
            twin = known.setdefault(frozenset(members), name)
            errors.require(twin == name, f"groups {twin} and {name} have the same members")

    @override
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        for name, members in self.members.items():
            for node in members:
                errors.require(
                    0 <= node < nodes,
                    f"group {name} has member {node}, and there are processes 0 to {nodes - 1}",
                )
        return {name: frozenset(members) for name, members in self.members.items()}


@dataclass(frozen=True)
class RandomGroups(Grouping, model="random"):
    """Groups of equal size; ``overlap`` members of a group are drawn from the groups before it.

    Its other members are in no earlier group. Without ``overlap`` all are drawn from all processes.
    """

    groups: errors.OneOrMore = 6
    size: errors.TwoOrMore = 4
    overlap: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.require(
            self.overlap is None or 0 <= self.overlap <= self.size,
            f"overlap = {self.overlap} is out of range: it must be from 0 to size = {self.size}",
        )

    @override
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        fresh = self.size if self.overlap is None else self.size - self.overlap
        needed = self.size + (0 if self.overlap is None else fresh * (self.groups - 1))
        _enough(needed, nodes, f"{self.groups} groups of {self.size}")
        found: set[frozenset[int]] = set()
        drawn: list[frozenset[int]] = []
        for _ in range(self.groups + MAX_TRIES):
            group = self._draw(drawn, nodes, rng)
            if group not in found:
                found.add(group)
                drawn.append(group)
            if len(drawn) == self.groups:
                return _numbered(drawn)
        raise TopologyError(
            f"random: no {self.groups} different groups of {self.size} among {nodes} processes"
        )

    def _draw(
        self, earlier: list[frozenset[int]], nodes: int, rng: random.Random
    ) -> frozenset[int]:
        if self.overlap is None:
            return frozenset(rng.sample(range(nodes), self.size))
        used = frozenset().union(*earlier)
        shared = rng.sample(sorted(used), min(self.overlap, len(used)))
        free = [node for node in range(nodes) if node not in used]
        return frozenset(shared + rng.sample(free, self.size - len(shared)))


@dataclass(frozen=True)
class RingOfGroups(Grouping, model="ring"):
    """All processes in a circle, cut into groups; each also has the first members of the next."""

    groups: errors.ThreeOrMore = 4
    shared: errors.OneOrMore = 1

    @override
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        _enough(self.groups * self.shared, nodes, f"a ring of {self.groups} groups")
        starts = [nodes * group // self.groups for group in range(self.groups + 1)]
        return _numbered(
            [
                frozenset(node % nodes for node in range(start, end + self.shared))
                for start, end in pairwise(starts)
            ]
        )


@dataclass(frozen=True)
class StarOfGroups(Grouping, model="star"):
    """Disjoint groups, and one more of the first member of each."""

    groups: errors.ThreeOrMore = 5
    size: errors.TwoOrMore = 4

    @override
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        outer = self.groups - 1
        _enough(outer * self.size, nodes, f"a star of {self.groups} groups")
        firsts = range(0, outer * self.size, self.size)
        around = [frozenset(range(first, first + self.size)) for first in firsts]
        return _numbered([*around, frozenset(firsts)])


@dataclass(frozen=True)
class TreeOfGroups(Grouping, model="tree"):
    """A balanced tree of groups; a process that two of them share is in no third."""

    groups: errors.OneOrMore = 5
    size: errors.TwoOrMore = 4
    arity: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.require(
            1 <= self.arity < self.size,
            f"arity = {self.arity} is out of range: it must be from 1 to size - 1 = "
            f"{self.size - 1}, since a group shares a process of its own with each one below",
        )

    @override
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        _enough(self.size + (self.groups - 1) * (self.size - 1), nodes, "this tree of groups")
        tree: list[list[int]] = [list(range(self.size))]
        fresh = self.size
        for group in range(1, self.groups):
            above, child = divmod(group - 1, self.arity)
            tree.append([tree[above][1 + child], *range(fresh, fresh + self.size - 1)])
            fresh += self.size - 1
        return _numbered([frozenset(members) for members in tree])


@dataclass(frozen=True)
class Triangle(Grouping, model="triangle"):
    """The paper's example: {P1, P2}, {P2, P3} and {P1, P3}."""

    @override
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        _enough(3, nodes, "a triangle of groups")
        return _numbered([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})])


@dataclass(frozen=True)
class Everybody(Grouping, model="everybody"):
    """One group of all processes."""

    @override
    def generate(self, nodes: int, rng: random.Random) -> Groups:
        return _numbered([frozenset(range(nodes))])


GROUPINGS: dict[str, type[Grouping]] = {
    kind.model: kind
    for kind in (Named, RandomGroups, RingOfGroups, StarOfGroups, TreeOfGroups, Triangle, Everybody)
}


def _numbered(groups: list[frozenset[int]]) -> Groups:
    return {f"g{number}": members for number, members in enumerate(groups, 1)}


def _enough(needed: int, nodes: int, what: str) -> None:
    errors.require(needed <= nodes, f"{what} needs {needed} processes, and there are {nodes}")
