"""The world of several clusters: regions in a circle, and processes that move and see a little beyond.

Gidenstam et al. 2011, section 3 and Fig. 1: objects are divided into disjoint clusters, in a game by
their coordinates, and a process is in the cluster of each region that it is interested in. A process
stands at one point and sees its own region, and another if that is ``near``, in parts of a region. In
the beginning all stand at equal distances. Then every other one goes one way round, and the rest goes
the other way, so that all meet. So anybody can tell who sees what, which a game's lobby would know.
"""

from math import floor
from typing import NamedTuple

from ..base import NS_PER_MS

NS_PER_S = 1000 * NS_PER_MS


class World(NamedTuple):
    """Where everybody is; ``speed`` is in regions a second."""

    processes: int
    regions: int
    near: float
    speed: float

    def position(self, process: int, now: int) -> float:
        """Where a process stands; region c reaches from c to c+1."""
        way = self.speed * now / NS_PER_S
        start = (process + 0.5) * self.regions / self.processes
        return (start - way if process % 2 else start + way) % self.regions

    def seen_by(self, process: int, now: int) -> frozenset[int]:
        """The regions that a process is interested in."""
        at = self.position(process, now)
        first, last = floor(at - self.near), floor(at + self.near)
        return frozenset(c % self.regions for c in range(first, last + 1))

    def watchers(self, now: int) -> list[frozenset[int]]:
        """By region, the processes that are interested in it."""
        found: list[set[int]] = [set() for _ in range(self.regions)]
        for process in range(self.processes):
            for region in self.seen_by(process, now):
                found[region].add(process)
        return [frozenset(processes) for processes in found]

    def crossing(self, process: int, now: int) -> int | None:
        """After how many nanoseconds a process may see other regions; never, if nobody moves."""
        if not self.speed:
            return None
        at = self.position(process, now)
        borders = [c + side for c in range(self.regions) for side in (-self.near, self.near)]
        ways = [(at - b if process % 2 else b - at) % self.regions for b in borders]
        return int(min(ways) / self.speed * NS_PER_S) + 1
