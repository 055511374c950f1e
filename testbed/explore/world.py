"""The world of a small system: its processes, the channels between them, and the judge.

Its state is a tuple of numbers: those of the processes' states, of the channels' contents, and of
what the judge knows. Two states are the same only if all three are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

from testbed.explore.channels import Channels
from testbed.explore.judge import Fault, Judge
from testbed.explore.process import Fire, Outcome, Processes, Receive, Say, Start, Stimulus

State = tuple[int, ...]


class Step(NamedTuple):
    """A process meets a stimulus; this is where it leads, and what is wrong with that."""

    process: int
    stimulus: Stimulus
    outcome: Outcome
    state: State
    wrong: Fault | None

    @property
    def length(self) -> int:
        """An answer counts like a message that is sent unasked."""
        return self.outcome.multicasts + (type(self.stimulus) is not Say)


class World:
    """All that can happen while at most so many messages are multicast in all."""

    def __init__(
        self,
        processes: Processes,
        messages: int,
        fifo: bool = True,
    ) -> None:
        n = self.n = len(processes.initial)
        self.messages = messages
        self.processes = processes
        self.channels = Channels(fifo)
        self.judge = Judge(n, messages)
        self._at = {ends: n + index for index, ends in enumerate(permutations(range(n), 2))}
        self._into = [
            [(sender, at) for (sender, peer), at in self._at.items() if peer == process]
            for process in range(n)
        ]
        self._says = [[Say(to) for to in of_one] for of_one in processes.choices]
        self.initial: State = (*self.processes.initial, *(0 for _ in self._at), self.judge.initial)
        self.wrong: Fault | None = None  # already at the beginning
        self._begin()

    def steps(self, state: State) -> Iterator[Step]:
        """All that can happen next."""
        left = self.messages - self.judge.sent(state[-1])
        for process in range(self.n):
            local = state[process]
            for stimulus, place, rest in self._stimuli(state, process, left):
                for outcome in self.processes.outcomes(local, stimulus, left):
                    yield self._step(state, process, stimulus, outcome, place, rest)

    def lost(self, state: State) -> Fault | None:
        """What is missing in a state in which nothing is under way."""
        under_way = any(state[self.n : -1]) or any(
            self.processes.timers(local) for local in state[: self.n]
        )
        return None if under_way else self.judge.lost(state[-1])

    def _stimuli(
        self, state: State, process: int, left: int
    ) -> Iterator[tuple[Stimulus, int, int]]:
        """What may happen to a process, and which place of the state it changes to what."""
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
        state: State,
        process: int,
        stimulus: Stimulus,
        outcome: Outcome,
        place: int,
        rest: int,
    ) -> Step:
        after = list(state)
        after[place] = rest
        after[process] = outcome.state
        for peer, message in outcome.sends:
            at = self._at[process, peer]
            after[at] = self.channels.add(after[at], message)
        after[-1], wrong = self.judge.step(state[-1], process, outcome.events)
        if outcome.failure:
            wrong = Fault(f"process {process} fails: {outcome.failure}", process)
        return Step(process, stimulus, outcome, tuple(after), wrong)

    def _begin(self) -> None:
        """All processes begin; in which order makes no difference."""
        for process in range(self.n):
            (outcome,) = self.processes.outcomes(self.initial[process], Start(), 0)
            step = self._step(self.initial, process, Start(), outcome, process, 0)
            self.initial, self.wrong = step.state, self.wrong or step.wrong
