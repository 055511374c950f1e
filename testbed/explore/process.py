"""What one process can do next, worked out once for each of its states.

A process never sees the whole: its state and what happens to it decide what it does. The states of
single processes are few, however many ways there are to combine them. So a protocol instance is
copied and run once for each pair of state and stimulus; the search then works on numbers alone.
"""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from testbed.explore.freeze import freeze
from testbed.explore.recorder import Act, Answers, Destinations, Did, Recorder
from testbed.protocols import Message, Place, Protocol


class Dice(random.Random):
    """A source of randomness that is copied at once: ``deepcopy`` walks through 625 numbers."""

    def __deepcopy__(self, memo: object) -> Dice:
        copied = Dice(0)
        copied.setstate(self.getstate())
        return copied


class Start(NamedTuple):
    """The process begins."""


class Say(NamedTuple):
    """The application multicasts of its own accord."""

    to: Destinations


class Receive(NamedTuple):
    """A channel hands over a message, known by its number."""

    sender: int
    message: int


@dataclass(frozen=True)
class Fire:
    """A timer runs out. No tuple, since it would equal others: any value may name a timer."""

    timer: Hashable


Making = Callable[[Place], Protocol]
Stimulus = Start | Say | Receive | Fire


class Outcome(NamedTuple):
    """What a process does with a stimulus, if the application answers these of its deliveries."""

    state: int
    sends: tuple[tuple[int, int], ...]  # receiver and number of the message, in this order
    events: tuple[Act, ...]
    answers: Answers
    multicasts: int  # how many messages the application multicast meanwhile
    failure: str | None


class _State(NamedTuple):
    protocol: Protocol
    multicasts: int
    timers: tuple[Hashable, ...]


class Processes:
    """The states that processes of one protocol can be in, and their outcomes, both numbered."""

    def __init__(
        self,
        make: Making,
        places: list[Place],
        choices: Sequence[Sequence[Destinations]],
        answers: bool = True,
    ) -> None:
        self.choices = choices  # of each process: where its application may send a message
        self.answers = answers  # whether the application may multicast while it is delivered to
        self.messages: list[Message] = []
        self._message_numbers: dict[Hashable, int] = {}
        self._states: list[_State] = []
        self._state_numbers: dict[Hashable, int] = {}
        self._outcomes: dict[tuple[int, Stimulus, int], tuple[Outcome, ...]] = {}
        self._runs: dict[tuple[int, Stimulus, Answers], tuple[Outcome, int]] = {}
        self.initial = tuple(self._state(_State(make(place), 0, ())) for place in places)

    def __len__(self) -> int:
        return len(self._states)

    def timers(self, state: int) -> tuple[Hashable, ...]:
        """The timers that are set."""
        return self._states[state].timers

    def outcomes(self, state: int, stimulus: Stimulus, left: int) -> tuple[Outcome, ...]:
        """All that may come of a stimulus if so many messages are left to multicast.

        There is one outcome for each way to answer deliveries.
        """
        key = state, stimulus, left
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = self._work_out(state, stimulus, left)
        return known

    def _work_out(self, state: int, stimulus: Stimulus, left: int) -> tuple[Outcome, ...]:
        protocol = self._states[state].protocol
        if isinstance(stimulus, Say):
            if protocol.busy():
                return ()  # the application waits
            left -= 1
        found: dict[Outcome, None] = {}
        open_: deque[Answers] = deque([()])
        while open_:
            answers = open_.popleft()
            run = state, stimulus, answers
            if run not in self._runs:
                self._runs[run] = self._run(*run)
            outcome, chances = self._runs[run]
            found[outcome] = None
            first = answers[-1][0] + 1 if answers else 0
            if self.answers and len(answers) < left:
                more = product(range(first, chances), self.choices[protocol.me])
                open_ += [(*answers, answer) for answer in more]
        return tuple(found)

    def _run(self, state: int, stimulus: Stimulus, answers: Answers) -> tuple[Outcome, int]:
        before = self._states[state]
        recorder = Recorder(copy.deepcopy(before.protocol), before.multicasts, before.timers)
        did = self._stimulate(recorder, stimulus, answers)
        node = recorder.node
        after = _State(node.protocol, node.multicasts, tuple(recorder.timers))
        sends = tuple((peer, self._message(message)) for peer, message in did.sends)
        multicasts = node.multicasts - before.multicasts
        outcome = Outcome(
            self._state(after), sends, tuple(did.events), answers, multicasts, did.failure
        )
        return outcome, did.chances

    def _stimulate(self, recorder: Recorder, stimulus: Stimulus, answers: Answers) -> Did:
        match stimulus:
            case Receive(sender, number):
                message = copy.deepcopy(self.messages[number])  # nobody else's, as off a wire
                return recorder.receive(message, sender, answers)
            case Fire(timer):
                return recorder.fire(timer, answers)
            case Say(to):
                return recorder.say(to, answers)
            case _:
                return recorder.start()

    def _state(self, state: _State) -> int:
        key = freeze(vars(state.protocol)), state.multicasts, state.timers
        number = self._state_numbers.setdefault(key, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

    def _message(self, message: Message) -> int:
        number = self._message_numbers.setdefault(freeze(message), len(self.messages))
        if number == len(self.messages):
            self.messages.append(message)
        return number
