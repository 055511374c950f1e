"""Exhaustive exploration of a small system: every execution, or the shortest that is wrong.

Explored are all executions of n processes in which at most M messages are multicast: to all, or to any
set of others if the protocol takes subsets, or to any of the sender's groups if it needs groups. Any
process may multicast at any moment, so every choice of senders, every number of messages up to M and
every chain of answers is among them; the application may also answer a message while it is being
delivered, before the protocol goes on. Channels hand over one message at a time, in FIFO order or in
any order, and a timer may expire at any moment once it is set. Time stands still at 0; what a protocol
draws at random comes from one seed.

Checked after every step: a message is delivered after its causal past, once, and only if it was sent;
the protocol raises no exception. When nothing is in transit: every message was delivered at all its
destinations; that others could still be multicast is no excuse. When all states are known: from each of
them everything that was sent can still be delivered; otherwise the protocol is not live, and an
execution is shown that goes round in a circle for ever.

The way through the modules: ``process`` works out what one process does (``recorder`` runs it),
``channel_contents`` and ``monitor`` what channels hold and what is known, each numbered by ``freeze``
or by content; ``world`` combines the numbers, ``search`` visits all states, ``liveness`` looks for
circles, ``replay`` repeats a counter-example for the oracle of ``testbed.check``, and ``diagram`` draws
it.
"""

import random
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from typing import Any

from testbed.check import Verdict
from testbed.errors import ProtocolError
from testbed.explore.choices import SeededChoices
from testbed.explore.monitor import Mistake
from testbed.explore.process import Processes
from testbed.explore.recorder import Destinations
from testbed.explore.replay import ENOUGH, Moment, Replay
from testbed.explore.search import SearchResult, search
from testbed.explore.world import World
from testbed.node.shared import SharedState
from testbed.plugins.blame import make
from testbed.plugins.limits import time_limit
from testbed.progress import Progress
from testbed.protocols import Place, Protocol
from testbed.topologies import OVERLAYS

LIMIT = 2_000_000  # states, for which a gigabyte is enough


@dataclass(frozen=True)
class CounterExample:
    """A wrong execution: one with the fewest messages, and of these one with the fewest steps."""

    wrong: Mistake
    moments: tuple[Moment, ...]  # up to the mistake, and on to what was delivered too late
    at: int  # the index of the moment that is wrong
    verdict: Verdict | None  # of the oracle, once all that was in transit has arrived
    circle: int = 0  # so many moments at the end repeat for ever: the protocol is not live

    @property
    def oracle(self) -> list[str]:
        """What the oracle says about the wrong delivery, or about what is missing."""
        told = dict.fromkeys(self.verdict.explain(ENOUGH)[1:]) if self.verdict else {}
        about = "" if self.wrong.message is None else str(self.wrong.message)
        start = f"node {self.wrong.process} "
        return [line for line in told if line.startswith(start) and about in line]


@dataclass(frozen=True)
class Exploration:
    """The result of an exploration."""

    protocol: str
    nodes: int
    messages: int
    fifo: bool
    answers: bool
    to: str  # "all", also any "sets" of other processes, or "groups"
    found: SearchResult
    counter_example: CounterExample | None = None

    @property
    def verdict(self) -> str:
        """As of the oracle: invalid; unknown if states remain unvisited; or valid."""
        if self.counter_example:
            return "invalid"
        return "valid" if self.found.complete else "unknown"


@time_limit()
def explore(
    protocol: type[Protocol],
    nodes: int,
    messages: int,
    *,
    fifo: bool = True,
    answers: bool = True,
    subsets: bool = True,
    settings: Any = None,
    limit: int = LIMIT,
    progress: Progress = lambda stage, done, of: None,
) -> Exploration:
    """Explore everything with one message, then with two, and so on, up to the first mistake.

    Without ``subsets`` even a protocol that takes them sends every message to all.
    """

    def made(place: Place) -> Protocol:
        return make(protocol, place, settings)

    places = make_places(protocol, nodes)
    to = "sets" if protocol.takes_subsets and subsets else "all"
    if protocol.needs_groups:
        to = "groups"
    choices = [choose(place, to) for place in places]
    shared = SharedState(protocol)
    processes = Processes(made, places, choices, answers)
    levels = 1  # for one message; the number grows with the messages
    for count in range(1, messages + 1):
        world = World(processes, count, fifo)
        tell = partial(_tell, progress, f"{count} of {messages} messages", levels * count)
        found = search(world, limit, tell)
        if found.wrong or not found.complete:
            break
        levels = found.levels // count
    shared.check()  # or executions would depend on each other
    example = None
    if found.wrong:
        replay = Replay(made, make_places(protocol, nodes))
        replay.play(found.path, processes.messages)
        example = _counter_example(replay, found.wrong, found.circle)
    return Exploration(protocol.name, nodes, count, fifo, answers, to, found, example)


def _tell(progress: Progress, stage: str, levels: int, done: float) -> None:
    progress(stage, round(100 * done), 100 * levels)


def make_places(protocol: type[Protocol], nodes: int) -> list[Place]:
    """The places of the processes: on a hypercube, or in a ring of groups of two, if need be."""
    graph = OVERLAYS["hypercube"]().generate(nodes, random.Random(0))
    near = [tuple(sorted(graph[me])) if protocol.needs_overlay else () for me in range(nodes)]
    pairs = dict.fromkeys(frozenset({me, (me + 1) % nodes}) for me in range(nodes))
    groups = tuple(pairs) if protocol.needs_groups else ()
    return [Place(me, nodes, near[me], SeededChoices(me), groups=groups) for me in range(nodes)]


def choose(place: Place, to: str) -> list[Destinations]:
    """The destinations that a process may choose, the smallest sets first."""
    choices: list[Destinations] = [None]
    if to == "sets":
        others = (combinations(place.others, size) for size in range(1, place.processes))
        choices = [*map(frozenset, chain.from_iterable(others)), None]
    elif to == "groups":
        choices = [group for group in place.groups if place.me in group]
    return choices


def _counter_example(replay: Replay, wrong: Mistake, circle: int) -> CounterExample:
    """The execution that was replayed, once the oracle has confirmed that it is wrong."""
    end = len(replay.moments)
    last = replay.moments[-1]
    if last.did.failure:
        return CounterExample(wrong, tuple(replay.moments), end - 1, None)
    replay.finish(last.process)
    verdict = replay.judge()
    if verdict.verdict != "invalid":
        raise ProtocolError(
            f"{wrong.sentence}, but when the same steps are repeated the oracle finds them "
            f"{verdict.verdict}: something is remembered outside of self, in a class, a module or a "
            "default argument, which all processes share"
        )
    late = _late(replay.moments, end, {v.cause for v in verdict.violations()})
    return CounterExample(wrong, tuple(replay.moments[:late]), end - 1, verdict, circle)


def _late(moments: list[Moment], end: int, causes: set[tuple[int, int]]) -> int:
    """The end of the moments, once the wrong process has delivered what it delivered too late."""
    process = moments[end - 1].process
    for index in range(end, len(moments)):
        if moments[index].process == process and causes & set(moments[index].delivered):
            return index + 1
    return end


__all__ = ["LIMIT", "CounterExample", "Exploration", "Moment", "choose", "explore", "make_places"]
