"""What one process can do next, worked out once for each of its states.

A process never sees the whole: its state and what happens to it decide what it does. The states of
single processes are few, however many ways there are to combine them. So a protocol instance is
copied and run once for each pair of state and stimulus; the search then works on numbers alone.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Hashable
from typing import NamedTuple

from protocols import Message, MessageId, Place, Protocol
from testbed.explore.freeze import freeze
from testbed.explore.recorder import Did, Recorder


class Dice(random.Random):
    """A source of randomness that is copied at once: ``deepcopy`` walks through 625 numbers."""

    def __deepcopy__(self, memo: object) -> Dice:
        copied = Dice(0)
        copied.setstate(self.getstate())
        return copied


class Say(NamedTuple):
    """The application multicasts of its own accord."""


class Receive(NamedTuple):
    """A channel hands over a message, known by its number."""

    sender: int
    message: int


class Fire(NamedTuple):
    """A timer runs out."""

    timer: Hashable


Stimulus = Say | Receive | Fire


class Outcome(NamedTuple):
    """What a process does with a stimulus, if the application answers these of its deliveries."""

    state: int
    sends: tuple[tuple[int, int], ...]  # receiver and number of the message, in this order
    events: tuple[tuple[str, MessageId], ...]  # "send" and "deliver", in this order
    answers: tuple[int, ...]
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
        make: Callable[[Place], Protocol],
        places: list[Place],
        most: int,
        answers: bool,
    ) -> None:
        self.most = most  # messages that one process may multicast
        self.answers = answers  # whether the application may multicast while it is delivered to
        self.messages: list[Message] = []
        self._message_numbers: dict[Hashable, int] = {}
        self._states: list[_State] = []
        self._state_numbers: dict[Hashable, int] = {}
        self._outcomes: dict[tuple[int, Stimulus], tuple[Outcome, ...]] = {}
        self.initial = tuple(self._state(_State(make(place), 0, ())) for place in places)

    def __len__(self) -> int:
        return len(self._states)

    def timers(self, state: int) -> tuple[Hashable, ...]:
        """The timers that are set."""
        return self._states[state].timers

    def outcomes(self, state: int, stimulus: Stimulus) -> tuple[Outcome, ...]:
        """All that may come of a stimulus: one outcome for each way to answer deliveries."""
        key = state, stimulus
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = self._work_out(state, stimulus)
        return known

    def _work_out(self, state: int, stimulus: Stimulus) -> tuple[Outcome, ...]:
        found: dict[Outcome, None] = {}
        open_: list[tuple[int, ...]] = [()]
        while open_:
            answers = open_.pop()
            outcome, chances = self._run(state, stimulus, answers)
            if self._states[outcome.state].multicasts > self.most:
                continue
            found[outcome] = None
            first = answers[-1] + 1 if answers else 0
            if self.answers:
                open_ += [(*answers, chance) for chance in range(first, chances)]
        return tuple(found)

    def _run(self, state: int, stimulus: Stimulus, answers: tuple[int, ...]) -> tuple[Outcome, int]:
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

    def _stimulate(self, recorder: Recorder, stimulus: Stimulus, answers: tuple[int, ...]) -> Did:
        match stimulus:
            case Receive(sender, number):
                message = copy.deepcopy(self.messages[number])  # nobody else's, as off a wire
                return recorder.receive(message, sender, answers)
            case Fire(timer):
                return recorder.fire(timer, answers)
            case _:
                return recorder.say(answers)

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
