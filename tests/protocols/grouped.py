"""Processes in overlapping groups: the test chooses what arrives next, or a clock and a seed do.

Of every message the causal past is kept as a set, so that it can be said whether a message that is
held back has reason to be.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count as count_up
from math import inf
from typing import NamedTuple

from testbed.check import Event, Verdict, check_events
from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Effects,
    Hold,
    Message,
    MessageId,
    Place,
    Protocol,
    Send,
    SetTimer,
)

RUN = 7
Groups = tuple[frozenset[int], ...]
TRIANGLE: Groups = (frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2}))


class Copy(NamedTuple):
    """One copy of a message on its way: when it arrives, when it left, and between whom."""

    due: int
    number: int
    sender: int
    peer: int
    message: Message


class World:
    """Processes of one protocol. Without an ``rng`` time stands still and nothing comes by itself."""

    def __init__(
        self,
        protocol: Callable[[Place], Protocol],
        groups: Groups,
        *,
        rng: random.Random | None = None,
        longest: int = 100,
        fifo: bool = True,
    ) -> None:
        self.everybody = sorted(frozenset().union(*groups))
        count = self.everybody[-1] + 1
        self.protocols = [protocol(Place(me, count, groups=groups)) for me in range(count)]
        self.codec = self.protocols[0].codec(RUN, count)
        self.groups = groups
        self.rng = rng or random.Random(0)
        self.longest = longest if rng else 0
        self.fifo = fifo
        self.now = 0
        self.copies: list[Copy] = []  # a heap
        self.numbers = count_up()
        self.latest: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.timers: dict[tuple[int, Hashable], int] = {}
        self.events: dict[int, list[Event]] = {me: [] for me in range(count)}
        self.delivered: list[list[MessageId]] = [[] for _ in range(count)]
        self.dests: dict[MessageId, frozenset[int]] = {}
        self.past: dict[MessageId, frozenset[MessageId]] = {}
        self.known: list[frozenset[MessageId]] = [frozenset()] * count
        self.held: list[tuple[int, MessageId, MessageId | None]] = []
        self.discarded: list[str] = []
        self.counted: defaultdict[str, int] = defaultdict(int)
        self.answers = 0

    def multicast(self, me: int, group: int) -> MessageId:
        """An application sends to a group."""
        name = MessageId(me, sum(known.source == me for known in self.past) + 1)
        self.past[name], self.dests[name] = self.known[me], self.groups[group]
        self.events[me].append(Event("send", *name, self.groups[group]))
        self._perform(me, self.protocols[me].multicast(b"", self.groups[group], self.now))
        return name

    def pass_on(self, sender: int, peer: int, place: int = 0) -> Message:
        """The oldest copy on its way from one process to another arrives, or a younger one."""
        copy = sorted(c for c in self.copies if (c.sender, c.peer) == (sender, peer))[place]
        self.copies.remove(copy)
        heapify(self.copies)
        self.receive(sender, peer, copy.message)
        return copy.message

    def receive(self, sender: int, peer: int, message: Message) -> None:
        """A copy arrives, through its encoding."""
        data = self.codec.encode(message)
        assert len(data) == message.size
        self._perform(peer, self.protocols[peer].receive(self.codec.decode(data), sender, self.now))

    def fire(self, me: int, timer: Hashable) -> None:
        """A timer runs out."""
        del self.timers[me, timer]
        self._perform(me, self.protocols[me].timeout(timer, self.now))

    def run(self, until: float = inf) -> None:
        """Everything that is due before a moment, or until nothing is under way."""
        while (next_ := self._next()) < until:
            if self.copies and self.copies[0].due <= next_:
                self.now, _, sender, peer, message = heappop(self.copies)
                self.receive(sender, peer, message)
            else:
                self.now = min(self.timers.values())
                self.fire(*next(key for key, due in self.timers.items() if due == self.now))

    def _next(self) -> float:
        return min([*(copy.due for copy in self.copies[:1]), *self.timers.values()], default=inf)

    def play(self, messages: int, senders: list[int] | None = None, interval: int = 30) -> None:
        """Messages of random processes to random groups of theirs, then all the rest."""
        at = self.now
        for _ in range(messages):
            at += self.rng.randrange(2 * interval)
            self.run(at)
            self.now = at
            self.say(self.rng.choice(senders or self.everybody))
        self.run()

    def say(self, me: int) -> None:
        """A process sends to one of its groups."""
        self.multicast(me, self.rng.choice([x for x, g in enumerate(self.groups) if me in g]))

    def _perform(self, me: int, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send(peers, message):
                    for peer in peers:
                        self._launch(me, peer, message)
                case Deliver(message):
                    self._deliver(me, message.id)
                case Hold(message, waits_for):
                    self.held.append((me, message.id, waits_for))
                case Discard(_, reason):
                    self.discarded.append(reason)
                case SetTimer(timer, delay):
                    self.timers[me, timer] = self.now + delay
                case CancelTimer(timer):
                    del self.timers[me, timer]  # no protocol here cancels one that is not set
                case Count(name, amount):
                    self.counted[name] += amount
                case _:
                    raise TypeError(effect)

    def _launch(self, me: int, peer: int, message: Message) -> None:
        due = self.now + 1 + self.rng.randrange(self.longest + 1)
        if self.fifo:
            due = self.latest[me, peer] = max(due, self.latest[me, peer])
        heappush(self.copies, Copy(due, next(self.numbers), me, peer, message))

    def _deliver(self, me: int, name: MessageId) -> None:
        self.events[me].append(Event("deliver", *name))
        self.delivered[me].append(name)
        self.known[me] = self.known[me] | self.past[name] | {name}
        if self.answers and self.rng.random() < 0.3:
            self.answers -= 1
            self.say(me)

    def reasons(self, me: int, name: MessageId) -> set[MessageId]:
        """The messages for which a process must hold a message back."""
        mine = {past for past in self.past[name] if me in self.dests[past]}
        return mine - set(self.delivered[me])

    def check(self) -> Verdict:
        """What the oracle of causal order says."""
        return check_events(self.events, self.events)


def draw_groups(rng: random.Random, processes: int, count: int) -> Groups:
    """Groups of two or more at random; they overlap as they happen to, and mostly with cycles."""
    drawn = {
        frozenset(rng.sample(range(processes), rng.randint(2, processes))) for _ in range(count)
    }
    return tuple(sorted(drawn, key=sorted))


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
