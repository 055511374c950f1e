"""Everything that can happen to a small ring of tickets on FIFO channels, breadth first."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import networkx as nx

from testbed.explore.tickets.steps import Steps
from testbed.explore.tickets.system import ViolationError
from tests.protocols.cluster.ring import Make, check

SETTLED = "settled"


class State(NamedTuple):
    """The numbers of the processes' states, how often each may still join or leave, and channels."""

    locals: tuple[int, ...]
    left: tuple[int, ...]
    channels: tuple[tuple[tuple[int, int], tuple[int, ...]], ...] = ()


class Search:
    """All states of some processes whose users join and leave a limited number of times."""

    def __init__(self, make: Make, operations: Sequence[int]) -> None:
        self.steps = Steps(make)
        first = tuple(self.steps.begun(p, 0).state for p in range(len(operations)))
        self.initial = State(first, tuple(operations))

    def after(self, state: State) -> Iterator[State]:
        """All states that may come next."""
        for p, number in enumerate(state.locals):
            machine, timers = self.steps.locals[number]
            kind = "join" if machine.state == "out" else "leave"
            may_leave = machine.state != "leaving" and not machine.wants_out
            if state.left[p] and (kind == "join" or may_leave):
                left = tuple(n - (q == p) for q, n in enumerate(state.left))
                yield from self.follow(state._replace(left=left), p, kind)
            for timer, _ in timers:
                yield from self.follow(state, p, "timeout", timer)
        for (sender, p), content in state.channels:
            channels = {**dict(state.channels), (sender, p): content[1:]}
            rest = state._replace(channels=tuple(channels.items()))
            yield from self.follow(rest, p, "receive", sender, content[0])

    def follow(self, state: State, p: int, *stimulus: Any) -> Iterator[State]:
        """All that may come of a stimulus of a process."""
        for outcome in self.steps.after(state.locals[p], *stimulus):
            channels = dict(state.channels)
            for peer, message in outcome.sends:
                channels[p, peer] = (*channels.get((p, peer), ()), message)
            yield State(
                (*state.locals[:p], outcome.state, *state.locals[p + 1 :]),
                state.left,
                tuple(sorted(item for item in channels.items() if item[1])),
            )

    def machines(self, state: State) -> dict[int, Any]:
        """The processes of a state."""
        return {p: self.steps.locals[number].machine for p, number in enumerate(state.locals)}

    def run(self) -> int:
        """Check each reachable state, and that what is under way can always come to an end.

        The answer is how many states there are.
        """
        graph: nx.DiGraph[State | str] = nx.DiGraph()
        graph.add_nodes_from([SETTLED, self.initial])
        reached = [self.initial]
        for state in reached:  # which grows meanwhile
            check(self.machines(state), lambda p: 0)
            for after in self.after(state):
                if after not in graph:
                    reached.append(after)
                graph.add_edge(state, after)
            if self.settled(state):
                graph.add_edge(state, SETTLED)
        good = nx.ancestors(graph, SETTLED)
        if stuck := next((state for state in reached if state not in good), None):
            states = [machine.state for machine in self.machines(stuck).values()]
            raise ViolationError(f"processes that are {states} never get any further")
        return len(reached)

    def settled(self, state: State) -> bool:
        """Whether everybody has what it wants; who is alone may want to leave in vain."""
        machines = self.machines(state).values()
        alone = sum(machine.state == "coordinator" for machine in machines) == 1
        return not state.channels and all(
            machine.state in ("out", "coordinator") and (alone or not machine.wants_out)
            for machine in machines
        )
