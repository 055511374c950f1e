"""Whether all that was sent can still be delivered, from every state.

A path that ends is judged where it ends. An endless path goes round in a circle, since there are
finitely many states, and nothing is multicast on a circle. A protocol is live if from every state some
path leads, without another multicast, to a state in which all is delivered: then only a network that
withholds a message for ever keeps it from being delivered. From a state without such a path, no network
can help.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from testbed.explore.process import Receive
from testbed.explore.world import Transition, World, WorldState


def stuck(world: World, states: Iterable[WorldState]) -> WorldState | None:
    """The first of all states of a world from which not everything can be delivered any more."""
    before: defaultdict[WorldState, list[WorldState]] = defaultdict(list)
    good, open_ = set(), []
    for state in states:
        if world.monitor.lost(state[-1]) is None:
            good.add(state)
            open_.append(state)
        else:
            for step in _without_multicasts(world, state):
                before[step.state].append(state)
    while open_:
        for state in before.pop(open_.pop(), ()):
            if state not in good:
                good.add(state)
                open_.append(state)
    return next((state for state in states if state not in good), None)


def circle(world: World, state: WorldState) -> tuple[list[Transition], int]:
    """A path from a state that is stuck into a circle, and the length of the circle.

    Whatever could happen in the state where the circle closes happens on it, so that it shows a network
    that withholds nothing.
    """
    path: list[Transition] = []
    first = {state: 0}  # visited after how many steps
    last: dict[object, int] = {}  # when each sender and timer of a process last had its turn
    while True:
        steps = list(_without_multicasts(world, state))
        since = first.setdefault(state, len(path))
        if path and all(last.get(_turn(step), -1) >= since for step in steps):
            return path, len(path) - since
        step = min(steps, key=lambda step: last.get(_turn(step), -1))
        last[_turn(step)] = len(path)
        path.append(step)
        state = step.state


def _without_multicasts(world: World, state: WorldState) -> Iterator[Transition]:
    return (step for step in world.transitions(state) if not step.outcome.multicasts)


def _turn(step: Transition) -> object:
    """Who hands something to whom: a sender, or a timer."""
    stimulus = step.stimulus
    return step.process, stimulus.sender if isinstance(stimulus, Receive) else stimulus
