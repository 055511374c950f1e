"""The world of a small system: its processes, the channels between them, and the monitor.

A state is a tuple of numbers: those of the processes' states, of the channels' contents, and of the
monitor's knowledge.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

from testbed.explore.channel_contents import ChannelContents
from testbed.explore.monitor import Mistake, Monitor
from testbed.explore.process import Fire, Outcome, Processes, Receive, Say, Start, Stimulus

WorldState = tuple[int, ...]


class Transition(NamedTuple):
    """A stimulus of a process, the state that it leads to, and what is wrong with that."""

    process: int
    stimulus: Stimulus
    outcome: Outcome
    state: WorldState
    wrong: Mistake | None

    @property
    def length(self) -> int:
        """The number of steps: each answer counts like any other multicast."""
        return self.outcome.multicasts + (type(self.stimulus) is not Say)


class World:
    """All that can happen while at most ``messages`` are multicast in all."""

    def __init__(self, processes: Processes, messages: int, fifo: bool = True) -> None:
        n = self.n = len(processes.initial)
        self.messages = messages
        self.processes = processes
        self.channels = ChannelContents(fifo)
        self.monitor = Monitor(n, messages)
        self._at = {ends: n + index for index, ends in enumerate(permutations(range(n), 2))}
        self._into = [
            [(sender, at) for (sender, peer), at in self._at.items() if peer == process]
            for process in range(n)
        ]
        self._says = [[Say(to) for to in of_one] for of_one in processes.choices]
        self.initial: WorldState = (
            *self.processes.initial,
            *(0 for _ in self._at),
            self.monitor.initial,
        )
        self.wrong: Mistake | None = None  # in the initial state
        self._begin()

    def transitions(self, state: WorldState) -> Iterator[Transition]:
        """All transitions from a state."""
        left = self.messages - self.monitor.sent(state[-1])
        for process in range(self.n):
            local = state[process]
            for stimulus, place, rest in self._stimuli(state, process, left):
                for outcome in self.processes.outcomes(local, stimulus, left):
                    yield self._step(state, process, stimulus, outcome, place, rest)

    def lost(self, state: WorldState) -> Mistake | None:
        """What is missing in a state, if nothing is in transit."""
        under_way = any(state[self.n : -1]) or any(
            self.processes.timers(local) for local in state[: self.n]
        )
        return None if under_way else self.monitor.lost(state[-1])

    def _stimuli(
        self, state: WorldState, process: int, left: int
    ) -> Iterator[tuple[Stimulus, int, int]]:
        """The stimuli of a process, each with the index of the state that it changes, and to what."""
        local = state[process]
        if left:
            for say in self._says[process]:
                yield say, process, local
        for sender, at in self._into[process]:
            if state[at]:
                for message, rest in self.channels.heads(state[at]):
                    yield Receive(sender, message), at, rest
        for timer in self.processes.timers(local):
            yield Fire(timer), process, local

    def _step(
        self,
        state: WorldState,
        process: int,
        stimulus: Stimulus,
        outcome: Outcome,
        place: int,
        rest: int,
    ) -> Transition:
        after = list(state)
        after[place] = rest
        after[process] = outcome.state
        for peer, message in outcome.sends:
            at = self._at[process, peer]
            after[at] = self.channels.add(after[at], message)
        after[-1], wrong = self.monitor.step(state[-1], process, outcome.events)
        if outcome.failure:
            wrong = Mistake(f"process {process} fails {outcome.failure}", process)
        return Transition(process, stimulus, outcome, tuple(after), wrong)

    def _begin(self) -> None:
        """Start all processes; the order makes no difference."""
        for process in range(self.n):
            (outcome,) = self.processes.outcomes(self.initial[process], Start(), 0)
            step = self._step(self.initial, process, Start(), outcome, process, 0)
            self.initial, self.wrong = step.state, self.wrong or step.wrong
