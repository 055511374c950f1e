"""Everything that can happen to a small ring of tickets on FIFO channels, breadth first.

A process's next states are worked out once for each of its states and stimuli, and for each way in
which its random choices may fall.
"""

import copy
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from testbed.explore.choices import ScriptedChoices, all_ways
from testbed.explore.freeze import freeze
from testbed.explore.tickets.system import ViolationError
from testbed.protocols.base import CancelTimer, Place, Send, SetTimer
from testbed.protocols.cluster.tickets.manager import Granted, Revoked
from tests.protocols.cluster.ring import Make, check


class Local(NamedTuple):
    """A process with its timers, and how often its user may still join or leave."""

    machine: Any
    timers: tuple[Hashable, ...]
    left: int


class Outcome(NamedTuple):
    """The number of the next state, and what is sent: to whom, and the message's number."""

    state: int
    sends: tuple[tuple[int, int], ...]


State = tuple[tuple[int, ...], tuple[tuple[tuple[int, int], tuple[int, ...]], ...]]


class Search:
    """All states of some processes whose users join and leave a limited number of times."""

    def __init__(self, make: Make, processes: int, operations: Sequence[int]) -> None:
        self.locals: list[Local] = []
        self.messages: list[Any] = []
        self.numbers: dict[Hashable, int] = {}
        self.outcomes: dict[Hashable, tuple[Outcome, ...]] = {}
        first = []
        for p in range(processes):
            machine = make(Place(p, processes, rng=cast(Any, ScriptedChoices())))
            list(machine.start(0))
            first.append(self.number(Local(machine, (), operations[p])))
        self.initial: State = (tuple(first), ())

    def number(self, local: Local) -> int:
        key = ("local", freeze(vars(local.machine)), local.timers, local.left)
        number = self.numbers.setdefault(key, len(self.locals))
        if number == len(self.locals):
            self.locals.append(local)
        return number

    def message(self, message: Any) -> int:
        key = ("message", freeze(message))
        number = self.numbers.setdefault(key, len(self.messages))
        if number == len(self.messages):
            self.messages.append(message)
        return number

    def after(self, state: int, *stimulus: Any) -> tuple[Outcome, ...]:
        """All that may come of a stimulus."""
        key = (state, *stimulus)
        if key not in self.outcomes:
            self.outcomes[key] = all_ways(lambda script: self.play(state, script, stimulus))
        return self.outcomes[key]

    def play(
        self, state: int, script: tuple[int, ...], stimulus: tuple[Any, ...]
    ) -> tuple[Outcome, list[int]]:
        before = self.locals[state]
        machine = copy.deepcopy(before.machine)
        machine.place.rng.script = script
        timers, left = dict.fromkeys(before.timers), before.left
        match stimulus:
            case ("receive", sender, number):
                effects = machine.receive(self.messages[number], sender, 0)
            case ("timeout", timer):
                del timers[timer]
                effects = machine.timeout(timer, 0)
            case (operation,):
                left -= 1
                effects = getattr(machine, operation)(0)
        sends: list[tuple[int, int]] = []
        for effect in effects:
            match effect:
                case Send(peers, message):
                    sends += [(peer, self.message(message)) for peer in peers]
                case SetTimer(timer, _):
                    timers[timer] = None
                case CancelTimer(timer):
                    timers.pop(timer, None)
                case Granted() | Revoked():
                    pass
        arity = machine.place.rng.arity
        machine.place.rng.arity = []
        return Outcome(self.number(Local(machine, tuple(timers), left)), tuple(sends)), arity

    def steps(self, state: State) -> Iterator[State]:
        """All states that may come next."""
        processes, channels = state
        for p, number in enumerate(processes):
            local = self.locals[number]
            if local.left:
                kind = "join" if local.machine.state == "out" else "leave"
                if local.machine.state != "leaving" and not (
                    kind == "leave" and local.machine.wants_out
                ):
                    for outcome in self.after(number, kind):
                        yield self.follow(state, p, outcome)
            for timer in local.timers:
                for outcome in self.after(number, "timeout", timer):
                    yield self.follow(state, p, outcome)
        for (sender, p), content in channels:
            for outcome in self.after(processes[p], "receive", sender, content[0]):
                yield self.follow(state, p, outcome, (sender, p))

    def follow(
        self, state: State, p: int, outcome: Outcome, taken: tuple[int, int] | None = None
    ) -> State:
        processes = list(state[0])
        processes[p] = outcome.state
        channels = dict(state[1])
        if taken:
            channels[taken] = channels[taken][1:]
        for peer, message in outcome.sends:
            channels[p, peer] = (*channels.get((p, peer), ()), message)
        return tuple(processes), tuple(sorted(item for item in channels.items() if item[1]))

    def machines(self, state: State) -> dict[int, Any]:
        """The processes of a state."""
        return {p: self.locals[number].machine for p, number in enumerate(state[0])}

    def run(self) -> int:
        """Check each reachable state, and that what is under way can always come to an end.

        The answer is how many states there are.
        """
        befores: dict[State, list[State]] = {self.initial: []}
        queue = deque([self.initial])
        while queue:
            state = queue.popleft()
            check(self.machines(state), lambda p: 0)
            for after in self.steps(state):
                if after not in befores:
                    befores[after] = []
                    queue.append(after)
                befores[after].append(state)
        settling = deque(state for state in befores if self.settled(state))
        good = set(settling)
        while settling:
            for before in befores[settling.popleft()]:
                if before not in good:
                    good.add(before)
                    settling.append(before)
        if stuck := next((state for state in befores if state not in good), None):
            states = [machine.state for machine in self.machines(stuck).values()]
            raise ViolationError(f"processes that are {states} never get any further")
        return len(befores)

    def settled(self, state: State) -> bool:
        """Whether everybody has what it wants; who is alone may want to leave in vain."""
        if state[1]:
            return False
        machines = self.machines(state).values()
        alone = sum(machine.state == "coordinator" for machine in machines) == 1
        return all(
            machine.state in ("out", "coordinator") and (alone or not machine.wants_out)
            for machine in machines
        )
