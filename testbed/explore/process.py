"""What one process can do next, worked out once for each of its states.

What a process does depends on its own state and the stimulus alone, and single processes have few
states, however many ways there are to combine them. So a protocol instance is copied and run once for
each pair of state and stimulus; the search then works on numbers alone.
"""

import copy
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

from testbed.explore.freeze import Numbered, freeze
from testbed.explore.recorder import Act, Answers, Destinations, Reaction, Recorder
from testbed.node.encoding import EncodingCheck
from testbed.protocols import Message, Place, Protocol


class Start(NamedTuple):
    """The process begins."""


class Say(NamedTuple):
    """The application multicasts on its own initiative."""

    to: Destinations


class Receive(NamedTuple):
    """A message, known by its number, arrives."""

    sender: int
    message: int


@dataclass(frozen=True)
class Fire:
    """A timer expires. Not a tuple, which could equal another: any value may name a timer."""

    timer: Hashable


Factory = Callable[[Place], Protocol]
Stimulus = Start | Say | Receive | Fire


class Outcome(NamedTuple):
    """What a process does upon a stimulus if the application answers these of its deliveries."""

    state: int
    sends: tuple[tuple[int, int], ...]  # receiver and number of the message
    events: tuple[Act, ...]
    answers: Answers
    multicasts: int  # the number of messages that the application multicast
    failure: str | None


class _State(NamedTuple):
    protocol: Protocol
    multicasts: int
    timers: tuple[Hashable, ...]


class Processes:
    """The states that processes of one protocol can be in, and their outcomes, both numbered."""

    def __init__(
        self,
        make: Factory,
        places: list[Place],
        choices: Sequence[Sequence[Destinations]],
        answers: bool = True,
    ) -> None:
        self.choices = choices  # for each process: the destinations that its application may choose
        self.answers = answers  # whether the application may multicast during a delivery
        self.messages: Numbered[Message] = Numbered()
        self._states: Numbered[_State] = Numbered()
        self.outcomes = cache(self._work_out)
        self._run = cache(self._run_once)
        processes = [make(place) for place in places]
        self._encoding = EncodingCheck(processes[0])
        self.initial = tuple(self._state(_State(process, 0, ())) for process in processes)

    def __len__(self) -> int:
        return len(self._states)

    def timers(self, state: int) -> tuple[Hashable, ...]:
        """The timers that are set in a state."""
        return self._states[state].timers

    def _work_out(self, state: int, stimulus: Stimulus, left: int) -> tuple[Outcome, ...]:
        """One outcome for each way to answer deliveries, with ``left`` messages left to multicast."""
        protocol = self._states[state].protocol
        if isinstance(stimulus, Say):
            if protocol.busy():
                return ()  # the application waits
            left -= 1
        found: dict[Outcome, None] = {}
        open_: deque[Answers] = deque([()])
        while open_:
            answers = open_.popleft()
            outcome, chances = self._run(state, stimulus, answers)
            found[outcome] = None
            first = answers[-1][0] + 1 if answers else 0
            if self.answers and len(answers) < left and outcome.failure is None:
                more = product(range(first, chances), self.choices[protocol.me])
                open_ += [(*answers, answer) for answer in more]
        return tuple(found)

    def _run_once(self, state: int, stimulus: Stimulus, answers: Answers) -> tuple[Outcome, int]:
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

    def _stimulate(self, recorder: Recorder, stimulus: Stimulus, answers: Answers) -> Reaction:
        match stimulus:
            case Receive(sender, number):
                message = copy.deepcopy(self.messages[number])  # a copy, as from a network
                return recorder.receive(message, sender, answers)
            case Fire(timer):
                return recorder.fire(timer, answers)
            case Say(to):
                return recorder.say(to, answers)
            case _:
                return recorder.start()

    def _message(self, message: Message) -> int:
        known = len(self.messages)
        number = self.messages.number(message, freeze(message))
        if number == known:
            self._encoding.check(message)
        return number

    def _state(self, state: _State) -> int:
        key = freeze(vars(state.protocol)), state.multicasts, state.timers
        return self._states.number(state, key)
