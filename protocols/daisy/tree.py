"""The groups at the beginning: processes in local groups, servers in groups, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TypeVar

T = TypeVar("T")

LEVEL = 4096  # group numbers of a level; the common header has room for 16 levels


@dataclass(frozen=True)
class GroupTree:
    """Groups by number: their members, of each the first its server, and all processes below."""

    members: dict[int, tuple[int, ...]]
    rosters: dict[int, frozenset[int]]
    levels: int

    def path(self, process: int) -> tuple[int, ...]:
        """The groups that a process is below, its local group first."""
        return tuple(number for number, roster in self.rosters.items() if process in roster)

    def below(self, number: int, process: int) -> tuple[frozenset[int], int]:
        """For whom a process answers in a group at the beginning, and as whose server."""
        path = self.path(process)
        if number == path[0]:
            return frozenset({process}), process
        group = path[path.index(number) - 1]
        return self.rosters[group], group


def daisy(processes: int, group_size: int, levels: int, grows: bool = False) -> GroupTree:
    """Consecutive processes share a local group of about this size, consecutive groups a daisy."""
    members: dict[int, tuple[int, ...]] = {}
    rosters: dict[int, frozenset[int]] = {}
    current = [(p, frozenset({p})) for p in range(processes)]
    parts = ceil(processes / group_size)
    branching = max(2.0, parts ** (1 / max(1, levels - 1)))
    level = 0
    for level in range(levels):
        groups = cut(current, 1 if level == levels - 1 else parts)
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


def cut(things: Sequence[T], parts: int) -> list[Sequence[T]]:
    """Consecutive parts whose sizes differ by one at most."""
    ends = [len(things) * part // parts for part in range(parts + 1)]
    return [things[start:end] for start, end in pairwise(ends)]
