"""Breadth-first search through all states of a world; none is visited twice."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from testbed.explore.liveness import circle, stuck
from testbed.explore.monitor import Mistake
from testbed.explore.world import Transition, World, WorldState

LevelProgress = Callable[[float], None]  # called with the number of levels done
STATES_PER_TICK = 1 << 12


@dataclass
class SearchResult:
    """The result of a search."""

    states: int = 0
    steps: int = 0
    schedules: int = 0  # paths from the initial state to a final one
    exact: bool = True  # whether all schedules were counted
    levels: int = 0  # multicasts, receptions and timeouts on the longest path
    complete: bool = False
    path: tuple[Transition, ...] = ()  # a shortest path to a mistake
    wrong: Mistake | None = None
    circle: int = 0  # so many transitions at the end of the path repeat for ever


def search(world: World, limit: int, progress: LevelProgress) -> SearchResult:
    """Visit all states, up to the first that is wrong, or up to a limit."""
    if world.wrong:
        return SearchResult(wrong=world.wrong)
    return _Search(world, limit, progress).run()


class _Search:
    """The level of a state is the number of multicasts, receptions and timeouts before it."""

    def __init__(self, world: World, limit: int, progress: LevelProgress) -> None:
        self.world = world
        self.limit = limit
        self.progress = progress
        self.found = SearchResult()
        self.came_from: dict[WorldState, WorldState | None] = {world.initial: None}
        # for each level: its states, and the number of paths to each
        self.levels: defaultdict[int, dict[WorldState, int]] = defaultdict(dict)
        self.levels[0][world.initial] = 1

    def run(self) -> SearchResult:
        """Visit the states level by level."""
        while self.levels:
            level = self.found.levels = min(self.levels)
            states = self.levels.pop(level)
            for index, (state, ways) in enumerate(states.items()):
                if index % STATES_PER_TICK == 0:
                    self.progress(level + index / len(states))
                if self._visit(state, ways, level):
                    return self.found
        self.found.complete = True
        if not self.found.exact:  # otherwise no path comes back to a state
            self._check_liveness()
        return self.found

    def _check_liveness(self) -> None:
        state = stuck(self.world, self.came_from)
        if state is not None:
            path, self.found.circle = circle(self.world, state)
            wrong = self.world.monitor.lost(path[-1].state[-1])
            assert wrong is not None
            endless = f"{wrong.sentence}, though something happens for ever"
            self._wrong(wrong._replace(sentence=endless), state)
            self.found.path += tuple(path)

    def _visit(self, state: WorldState, ways: int, level: int) -> bool:
        """Visit a state; whether the search is over."""
        found, ended = self.found, True
        found.states += 1
        if wrong := self.world.lost(state):
            return self._wrong(wrong, state)
        for step in self.world.transitions(state):
            ended = False
            found.steps += 1
            if step.wrong:
                return self._wrong(step.wrong, state, step)
            self._reach(step, state, ways, level + step.length)
        if ended:
            found.schedules += ways
        return len(self.came_from) > self.limit

    def _reach(self, step: Transition, before: WorldState, ways: int, level: int) -> None:
        if step.state not in self.came_from:
            self.came_from[step.state] = before
            self.levels[level][step.state] = ways
        elif level in self.levels and step.state in self.levels[level]:
            self.levels[level][step.state] += ways
            if not step.outcome.answers:  # prefer to show a path without answers
                self.came_from[step.state] = before
        else:
            self.found.exact = False

    def _wrong(self, wrong: Mistake, state: WorldState, *last: Transition) -> bool:
        self.found.wrong = wrong
        path = list(last)
        while (before := self.came_from[state]) is not None:
            path.insert(0, next(s for s in self.world.transitions(before) if s.state == state))
            state = before
        self.found.path = tuple(path)
        return True
