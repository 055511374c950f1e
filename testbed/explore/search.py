"""Breadth-first search through everything that can happen; no state is visited twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from testbed.explore.judge import Fault
from testbed.explore.world import State, Step, World

Progress = Callable[[float], None]  # is told how many levels are done
STATES_PER_TICK = 1 << 12


@dataclass
class Found:
    """What a search came to."""

    states: int = 0
    steps: int = 0
    schedules: int = 0  # ways through the states from the beginning to an end
    exact: bool = True  # else there are more schedules than could be counted
    levels: int = 0  # multicasts, hand-overs and timers on the longest way
    complete: bool = False
    path: tuple[Step, ...] = ()  # a shortest way to something wrong
    wrong: Fault | None = None


def search(world: World, limit: int, progress: Progress) -> Found:
    """Visit all states, or those up to the first that is wrong, or so many."""
    if world.wrong:
        return Found(wrong=world.wrong)
    return _Search(world, limit, progress).run()


class _Search:
    """A state is reached after so many multicasts, hand-overs and timers: its level."""

    def __init__(self, world: World, limit: int, progress: Progress) -> None:
        self.world = world
        self.limit = limit
        self.progress = progress
        self.found = Found()
        self.came_from: dict[State, State | None] = {world.initial: None}
        # the ways to each state of a level
        self.levels: defaultdict[int, dict[State, int]] = defaultdict(dict)
        self.levels[0][world.initial] = 1

    def run(self) -> Found:
        """Level by level."""
        while self.levels:
            level = self.found.levels = min(self.levels)
            states = self.levels.pop(level)
            for index, (state, ways) in enumerate(states.items()):
                if index % STATES_PER_TICK == 0:
                    self.progress(level + index / len(states))
                if self._visit(state, ways, level):
                    return self.found
        self.found.complete = True
        return self.found

    def _visit(self, state: State, ways: int, level: int) -> bool:
        """Whether the search is over."""
        found, ended = self.found, True
        found.states += 1
        if wrong := self.world.lost(state):
            return self._wrong(wrong, state)
        for step in self.world.steps(state):
            ended = False
            found.steps += 1
            if step.wrong:
                return self._wrong(step.wrong, state, step)
            self._reach(step, state, ways, level + step.length)
        if ended:
            found.schedules += ways
        return len(self.came_from) > self.limit

    def _reach(self, step: Step, before: State, ways: int, level: int) -> None:
        if step.state not in self.came_from:
            self.came_from[step.state] = before
            self.levels[level][step.state] = ways
        elif level in self.levels and step.state in self.levels[level]:
            self.levels[level][step.state] += ways
            if not step.outcome.answers:  # the plainest way there is the one to show
                self.came_from[step.state] = before
        else:
            self.found.exact = False

    def _wrong(self, wrong: Fault, state: State, *last: Step) -> bool:
        self.found.wrong = wrong
        path = list(last)
        while (before := self.came_from[state]) is not None:
            path.insert(0, next(s for s in self.world.steps(before) if s.state == state))
            state = before
        self.found.path = tuple(path)
        return True
