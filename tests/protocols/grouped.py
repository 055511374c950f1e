"""Processes in overlapping groups, and groups that are drawn."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import override

from testbed.protocols import Message, MessageId, Place
from tests.protocols.executions import Graph
from tests.world import P, World

Groups = tuple[frozenset[int], ...]
TRIANGLE: Groups = (frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2}))


class Grouped(World[P]):
    """Processes of one protocol whose messages go to groups of theirs, on channels that are FIFO.

    Copies take up to ``longest`` milliseconds; if that is 0, time stands still.
    """

    def __init__(
        self,
        protocol: Callable[[Place], P],
        groups: Groups,
        seed: int = 0,
        *,
        longest: int = 0,
        answers: int = 0,
        fifo: bool = True,
        **more: Any,
    ) -> None:
        self.everybody = sorted(frozenset[int]().union(*groups))
        super().__init__(
            protocol,
            self.everybody[-1] + 1,
            seed,
            groups=groups,
            delays_ms=(1, 1 + longest) if longest else (0, 0),
            answering=0.3,
            answers=answers,
            fifo=fifo,
            wire=True,
            **more,
        )

    def say_to(self, me: int, group: int) -> MessageId:
        """An application sends to a group."""
        return self.say(me, self.groups[group])

    def inject(self, sender: int, peer: int, message: Message) -> None:
        """A message that the test has made or kept arrives, through its encoding."""
        assert self.codec
        self.receive(sender, peer, self.codec.decode(self.codec.encode(message)))

    @override
    def draw(self, node: int) -> frozenset[int]:
        return self.rng.choice([group for group in self.groups if node in group])

    def talk(self, messages: int, senders: Sequence[int] = (), interval: int = 30) -> None:
        """Random processes send to random groups of theirs, at random times; then all arrives."""
        for _ in range(messages):
            self.run(self.rng.randrange(2 * interval))
            me = self.rng.choice(senders or self.everybody)
            self.say(me, self.draw(me))
        self.run()


class Watched(Grouped[P]):
    """Sees after every arrival that what is held back is held back for a reason."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self.graph = Graph(0)  # nothing goes to everybody
        super().__init__(*arguments, log=self.graph, **more)

    @override
    def receive(self, sender: int, peer: int, message: Message) -> None:
        super().receive(sender, peer, message)
        held = {name for me, name, _ in self.log.held if me == peer}
        assert all(self.graph.reasons(name, peer) for name in held.difference(self.delivered(peer)))


def draw_tree(rng: random.Random, count: int, most_shared: int = 2) -> Groups:
    """Groups whose graph is a tree: each shares some members with one before, and nobody else's."""
    groups = [list(range(rng.randint(2, 4)))]
    free = [groups[0].copy()]
    fresh = len(groups[0])
    for _ in range(count - 1):
        above = rng.choice([members for members in free if members])
        shared = [above.pop() for _ in range(min(len(above), rng.randint(1, most_shared)))]
        members = list(range(fresh, fresh + rng.randint(1, 2)))
        fresh += len(members)
        groups.append(shared + members)
        free.append(members.copy())
    return tuple(map(frozenset, groups))


def draw_cyclic(rng: random.Random) -> Groups:
    """Up to five groups of up to six processes; they overlap as they happen to, mostly in cycles."""
    processes = rng.randint(3, 6)
    sizes = [rng.randint(2, processes) for _ in range(rng.randint(1, 5))]
    drawn = {frozenset(rng.sample(range(processes), size)) for size in sizes}
    return tuple(sorted(drawn, key=sorted))


def played(
    seed: int,
    protocol: Callable[[Place], P],
    draw: Callable[[random.Random], Groups] = draw_cyclic,
    *,
    kind: type[Grouped[Any]] = Grouped,
    one_sender: bool = False,
    **more: Any,
) -> Grouped[P]:
    """A random run with answers; delays are short or long against the time between messages."""
    rng = random.Random(seed)
    groups, longest, answers = draw(rng), rng.choice([3, 30, 100, 300]), rng.randrange(6)
    answers = 0 if one_sender else answers
    world = kind(protocol, groups, seed, longest=longest, answers=answers, **more)
    world.talk(10, [rng.choice(world.everybody)] if one_sender else ())
    return world


def faults(
    seeds: int,
    protocol: Callable[[Place], P],
    draw: Callable[[random.Random], Groups] = draw_cyclic,
    **more: Any,
) -> int:
    """How many of such runs are not causally ordered."""
    return sum(not played(seed, protocol, draw, **more).check().ok for seed in range(seeds))
