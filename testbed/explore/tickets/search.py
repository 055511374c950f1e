"""A search through all states of three processes on leases, and how long they take to recover."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from testbed.explore.tickets.steps import TICKETS
from testbed.explore.tickets.system import System, SystemState, Used

EVERYTHING = (1 << TICKETS) - 1


class Search:
    """Breadth-first, states after fewer faults, actions and slips first."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.seen: dict[SystemState, list[Used]] = {}
        self.found: list[tuple[SystemState, Used, int]] = []  # with the index of the state before
        self.queues: list[deque[int]] = [deque() for _ in range(sum(system.limits) + 1)]
        self.transitions = 0
        self.at = -1

    def run(self, most: int | None = None, tell: Callable[[], None] = lambda: None) -> bool:
        """Visit all states, or ``most`` of them; whether it was all. Raises ``ViolationError``."""
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

    def add(self, state: SystemState, used: Used, before: int) -> None:
        """Add a state, unless it was reached before at no greater cost."""
        known = self.seen.setdefault(state, [])
        if not any(used.covers(other) for other in known):
            known.append(used)
            self.queues[sum(used)].append(len(self.found))
            self.found.append((state, used, before))

    def trace(self) -> list[str]:
        """The steps to the state that was visited last."""
        path = [self.at]
        while (before := self.found[path[-1]][2]) >= 0:
            path.append(before)
        path.reverse()
        return [self.label(a, b) for a, b in pairwise(path)]

    def depth(self) -> int:
        """The number of steps to the farthest state."""
        depths = [0] * len(self.found)
        for number, (_, _, before) in enumerate(self.found):
            depths[number] = depths[before] + 1 if before >= 0 else 0
        return max(depths)

    def label(self, before: int, after: int) -> str:
        """The step from one state to another, in words."""
        state, used, _ = self.found[before]
        wanted = self.found[after][:2]
        return next(what for what, *end in self.system.expand(state, used) if tuple(end) == wanted)

    def recovery(self, state: SystemState) -> int | None:
        """Ticks without faults until each ticket is owned or assignable; None if that never happens."""
        system = self.system
        calm = state._replace(late=(), cuts=frozenset(), stopped=frozenset())
        passed: dict[SystemState, None] = {}
        while calm not in passed:
            if system.check(calm) == EVERYTHING:
                return len(passed)
            passed[calm] = None
            calm, _ = next(system.tick(calm, system.limits), (calm, None))
        return None


def summarised(trace: Sequence[str]) -> str:
    """A trace in one line, with repetitions counted."""
    runs = ((what, len(list(same))) for what, same in groupby(trace))
    return "; ".join(what if n == 1 else f"{n} × {what}" for what, n in runs)
