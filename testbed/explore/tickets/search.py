"""A search through all states of three processes on leases, and how they get well again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from testbed.explore.tickets.steps import TICKETS
from testbed.explore.tickets.system import State, System, Used

EVERYTHING = (1 << TICKETS) - 1


class Search:
    """Breadth first through all states, those after fewer faults, actions and slips first."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.seen: dict[State, list[Used]] = {}
        self.found: list[tuple[State, Used, int]] = []  # with what came before, by number
        self.queues: list[deque[int]] = [deque() for _ in range(sum(system.limits) + 1)]
        self.transitions = 0
        self.at = -1

    def run(self, most: int | None = None, tell: Callable[[], None] = lambda: None) -> bool:
        """Look at all states or so many; whether it is all. Raises at what must never happen."""
        for state in self.system.initial():
            self.add(state, Used(), -1)
        for queue in self.queues:
            while queue:
                if most is not None and len(self.found) >= most:
                    return False
                self.at = queue.popleft()
                state, used, _ = self.found[self.at]
                for _, after, cost in self.system.expand(state, used):
                    self.transitions += 1
                    self.add(after, cost, self.at)
                tell()
        return True

    def add(self, state: State, used: Used, before: int) -> None:
        """A state, unless it is known to be reached with no more of anything."""
        known = self.seen.setdefault(state, [])
        if not any(used.covers(other) for other in known):
            known.append(used)
            self.queues[sum(used)].append(len(self.found))
            self.found.append((state, used, before))

    def trace(self) -> list[str]:
        """What has happened before the state that was looked at last."""
        path = [self.at]
        while (before := self.found[path[-1]][2]) >= 0:
            path.append(before)
        path.reverse()
        return [self.label(a, b) for a, b in pairwise(path)]

    def depth(self) -> int:
        """How many steps it takes to the state that is farthest."""
        depths = [0] * len(self.found)
        for number, (_, _, before) in enumerate(self.found):
            depths[number] = depths[before] + 1 if before >= 0 else 0
        return max(depths)

    def label(self, before: int, after: int) -> str:
        """The step that leads from one state to another, in words."""
        state, used, _ = self.found[before]
        wanted = self.found[after][:2]
        return next(what for what, *end in self.system.expand(state, used) if tuple(end) == wanted)

    def recovery(self, state: State) -> int | None:
        """How many ticks without faults until each ticket is owned or assignable; None if never."""
        system = self.system
        calm = state._replace(late=(), cuts=frozenset(), stopped=frozenset())
        passed: dict[State, None] = {}
        while calm not in passed:
            if system.check(calm) == EVERYTHING:
                return len(passed)
            passed[calm] = None
            calm, _ = next(system.tick(calm, system.limits), (calm, None))
        return None


def told(trace: Sequence[str]) -> str:
    """A trace in one line, ticks counted."""
    runs = ((what, len(list(same))) for what, same in groupby(trace))
    return "; ".join(what if n == 1 else f"{n} × {what}" for what, n in runs)
