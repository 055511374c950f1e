"""The groups at the beginning: processes in local groups, their servers in groups, and so on."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TypeVar

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


def daisy(processes: int, group_size: int, levels: int, grows: bool = False) -> GroupTree:
    """Local groups of consecutive processes, of about this size, and groups of their servers."""
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
    """Consecutive parts whose sizes differ by at most one."""
    ends = [len(things) * part // parts for part in range(parts + 1)]
    return [things[start:end] for start, end in pairwise(ends)]
