"""The groups at the beginning: processes in local groups, their servers in groups, and so on.

Processes are grouped by number, or "according to the physical topology of the communication network"
(footnote 5 of the paper): a stub domain is a local group, its servers are grouped by transit domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any, TypeVar

from ..base import Place

T = TypeVar("T")

LEVEL = 4096  # group numbers of a level; the common header has room for 16 levels


@dataclass(frozen=True)
class GroupTree:
    """Groups by number: their members, the first of which is the server, and all processes below."""

    members: dict[int, tuple[int, ...]]
    rosters: dict[int, frozenset[int]]
    levels: int

    def path(self, process: int) -> tuple[int, ...]:
        """The groups above a process, its local group first."""
        return tuple(number for number, roster in self.rosters.items() if process in roster)

    def below(self, number: int, process: int) -> tuple[frozenset[int], int]:
        """The processes that a process answers for in a group, and the group that it serves."""
        path = self.path(process)
        if number == path[0]:
            return frozenset({process}), process
        group = path[path.index(number) - 1]
        return self.rosters[group], group


def first_groups(place: Place, s: Any) -> GroupTree:
    """The groups at the beginning."""
    if s.groups == "domains" and not place.domains:
        raise ValueError("groups = 'domains' takes a topology with domains, such as transit-stub")
    domains = place.domains if s.groups == "domains" else ()
    return daisy(place.processes, s.group_size, s.levels, s.split_above is not None, domains)


@lru_cache  # of all processes of a run
def daisy(
    processes: int,
    group_size: int,
    levels: int,
    grows: bool = False,
    domains: tuple[tuple[str, ...], ...] = (),
) -> GroupTree:
    """Local groups of consecutive processes, of about this size, and groups of their servers.

    On the levels for which there are ``domains``, those who are in the same one are a group.
    """
    members: dict[int, tuple[int, ...]] = {}
    rosters: dict[int, frozenset[int]] = {}
    current = [(p, frozenset({p})) for p in range(processes)]
    parts = ceil(processes / group_size)
    branching = max(2.0, parts ** (1 / max(1, levels - 1)))
    level = 0
    for level in range(levels):
        top = level == levels - 1
        if domains and not top and level < len(domains[0]):
            groups = together(current, [domains[p][level] for p, _ in current])
        else:
            groups = cut(current, 1 if top else parts)
        current = []
        for number, group in enumerate(groups, LEVEL * level):
            roster = frozenset().union(*(below for _, below in group))
            current.append((group[0][0], roster))
            if level == 0 or len(group) > 1 or grows:  # one server alone needs no group
                members[number] = tuple(p for p, _ in group)
                rosters[number] = roster
        if len(current) == 1 and (level or not grows):
            break
        parts = ceil(len(current) / branching - 1e-9)
    return GroupTree(members, rosters, level + 1)


def together(things: Sequence[T], names: Sequence[str]) -> list[Sequence[T]]:
    """Those with the same names, in the order in which these first appear."""
    groups: dict[str, list[T]] = {}
    for thing, name in zip(things, names, strict=True):
        groups.setdefault(name, []).append(thing)
    return [*groups.values()]


def cut(things: Sequence[T], parts: int) -> list[Sequence[T]]:
    """Consecutive parts whose sizes differ by at most one."""
    ends = [len(things) * part // parts for part in range(parts + 1)]
    return [things[start:end] for start, end in pairwise(ends)]
