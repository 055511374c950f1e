"""Executions of multicasts to arbitrary sets, and what their graphs say a KS log must hold.

Copies travel in any order, or in FIFO order, as the test draws. Of every send and delivery the causal
past is kept as a plain set of events, so that what the propagation constraints allow to forget can
be judged by their definitions.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hypothesis import strategies as st

from testbed.check import Event, Verdict, check_events
from testbed.protocols import (
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
)
from testbed.protocols.ks import KSLog, members, to_dests

Destinations = frozenset[int] | None
KnownLog = dict[MessageId, set[int]]
RUN = 7


class Copy(NamedTuple):
    """One copy of a message on its way."""

    sender: int
    peer: int
    message: Message


class Graph:
    """The computation graph: of each event its causal past, itself included."""

    def __init__(self) -> None:
        self.past: list[frozenset[int]] = []
        self.last: defaultdict[int, int | None] = defaultdict(lambda: None)  # of each process
        self.send: dict[MessageId, int] = {}
        self.deliver: dict[tuple[MessageId, int], int] = {}
        self.dests: dict[MessageId, frozenset[int]] = {}  # without the sender

    def add(self, process: int, cause: int | None = None) -> int:
        """An event of a process, after its last one and after a send."""
        event = len(self.past)
        causes = [self.past[e] for e in (self.last[process], cause) if e is not None]
        self.past.append(frozenset([event]).union(*causes))
        self.last[process] = event
        return event

    def sent(self, name: MessageId, dests: frozenset[int]) -> None:
        """A process has multicast a message."""
        self.dests[name] = dests - {name.source}
        self.send[name] = self.add(name.source)

    def delivered(self, name: MessageId, process: int) -> None:
        """A process has delivered a message."""
        self.deliver[name, process] = self.add(process, self.send[name])

    def necessary(self, past: frozenset[int]) -> KnownLog:
        """What a log must hold, no less and no more, when this has happened.

        d is among the Dests of M unless (I) M's delivery to d is in this past, or (II) so is a
        message to d whose send comes after M's. Without Dests only a sender's newest stays.
        """
        known = [m for m in self.send if self.send[m] in past]
        log = {
            m: {
                d
                for d in self.dests[m]
                if self.deliver.get((m, d)) not in past
                and not any(d in self.dests[x] and self.precedes(m, x) for x in known)
            }
            for m in known
        }
        return self.purged(log)

    def precedes(self, m: MessageId, x: MessageId) -> bool:
        """Whether one send happened before another."""
        return m != x and self.send[m] in self.past[self.send[x]]

    def purged(self, log: KnownLog) -> KnownLog:
        """The log without empty entries that are not their sender's newest."""
        newest = {m.source: max(x.seq for x in log if x.source == m.source) for m in log}
        return {m: dests for m, dests in log.items() if dests or newest[m.source] == m.seq}

    def necessary_at(self, process: int) -> KnownLog:
        """What the log of a process must hold now."""
        last = self.last[process]
        return self.necessary(frozenset() if last is None else self.past[last])

    def necessary_on(self, name: MessageId, d: int) -> KnownLog:
        """What the copy of a message for d must carry."""
        send = self.send[name]
        covered = self.dests[name] - {d}
        before = self.necessary(self.past[send] - {send})
        return self.purged({m: dests - covered for m, dests in before.items()})


class Execution:
    """Processes of one protocol; the test says who multicasts and which copy arrives."""

    def __init__(
        self,
        protocol: Callable[[Place], Protocol],
        processes: int,
        fifo: bool = False,
        wire: bool = False,
    ) -> None:
        self.protocols = [protocol(Place(me, processes)) for me in range(processes)]
        self.codec = self.protocols[0].codec(RUN, processes) if wire else None
        self.fifo = fifo
        self.copies: list[Copy] = []
        self.graph = Graph()
        self.events: dict[int, list[Event]] = {me: [] for me in range(processes)}
        self.held: list[tuple[int, Message, MessageId]] = []
        self.discarded: list[str] = []
        self.counted: defaultdict[str, int] = defaultdict(int)
        self.sent = [0] * processes
        self.application: Callable[[int], None] | None = None
        self.control_bytes = 0

    def multicast(self, me: int, destinations: Destinations = None) -> MessageId:
        """An application sends."""
        self.sent[me] += 1
        name = MessageId(me, self.sent[me])
        everybody = frozenset(range(len(self.protocols)))
        self.graph.sent(name, everybody if destinations is None else destinations)
        self.events[me].append(Event("send", *name, destinations))
        self._perform(me, self.protocols[me].multicast(b"", destinations, 0))
        return name

    def arrive(self, copy: Copy) -> None:
        """A copy reaches its process; with ``wire``, through its encoding."""
        self.copies.remove(copy)
        message = copy.message
        if self.codec is not None:
            data = self.codec.encode(message)
            assert len(data) == message.size
            message = self.codec.decode(data)
        self._perform(copy.peer, self.protocols[copy.peer].receive(message, copy.sender, 0))

    def pass_on(self, name: MessageId, peer: int) -> None:
        """The copy of that message for that process arrives."""
        (copy,) = (c for c in self.copies if c.message.id == name and c.peer == peer)
        self.arrive(copy)

    def _perform(self, me: int, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.copies += [Copy(me, peer, effect.message) for peer in effect.peers]
                self.control_bytes += len(effect.peers) * effect.message.control_size
            elif isinstance(effect, Deliver):
                name = effect.message.id
                self.graph.delivered(name, me)
                self.events[me].append(Event("deliver", *name))
                if self.application is not None:
                    self.application(me)
            elif isinstance(effect, Hold):
                self.held.append((me, *effect))
                self._check_need(me, *effect)
            elif isinstance(effect, Discard):
                self.discarded.append(effect.reason)
            elif isinstance(effect, Count):
                self.counted[effect.name] += effect.amount
            else:
                raise TypeError(effect)

    def _check_need(self, me: int, message: Message, waits_for: MessageId) -> None:
        """A message is held back only for one that comes before it and has not been delivered."""
        assert me in self.graph.dests[waits_for]
        assert self.graph.precedes(waits_for, message.id)
        assert (waits_for, me) not in self.graph.deliver

    def steps(self, rng: random.Random, messages: int) -> Iterator[int]:
        """Multicasts and arrivals at random, until all has arrived; says who acted in each step."""
        left = messages
        while left or self.copies:
            if left and (not self.copies or rng.random() < 0.3):
                left -= 1
                me = rng.randrange(len(self.protocols))
                self.multicast(me, draw_destinations(rng, len(self.protocols)))
            else:
                copy = self._draw_copy(rng)
                me = copy.peer
                self.arrive(copy)
            yield me

    def answer(self, rng: random.Random, answers: int) -> None:
        """Let applications multicast while they are given a message, some times."""
        left = iter(range(answers))

        def application(me: int) -> None:
            if rng.random() < 0.3 and next(left, None) is not None:
                self.multicast(me, draw_destinations(rng, len(self.protocols)))

        self.application = application

    def play(self, rng: random.Random, messages: int) -> None:
        """All steps."""
        for _ in self.steps(rng, messages):
            pass

    def _draw_copy(self, rng: random.Random) -> Copy:
        drawn = rng.choice(self.copies)
        if not self.fifo:
            return drawn
        return next(c for c in self.copies if c[:2] == drawn[:2])

    def check(self) -> Verdict:
        """What the oracle of causal order says."""
        return check_events(range(len(self.protocols)), self.events)


def draw_destinations(rng: random.Random, processes: int) -> Destinations:
    """Everybody, one process, or some: with the sender or without, sometimes nobody."""
    kind = rng.randrange(6)
    if kind == 0:
        return None
    size = 1 if kind < 3 else rng.randint(0, processes)
    return frozenset(rng.sample(range(processes), size))


@st.composite
def logs(draw: st.DrawFn, processes: int) -> KSLog:
    """A log that a process could have: of a sender, no two entries share a destination."""
    entries: dict[MessageId, int] = {}
    for s in draw(st.sets(st.integers(0, processes - 1))):
        clocks = sorted(draw(st.sets(st.integers(1, 2**32 - 1), min_size=1, max_size=4)))
        entry_of = draw(
            st.lists(st.sampled_from([0, *clocks]), min_size=processes, max_size=processes)
        )
        for t in clocks:
            dests = to_dests(d for d in range(processes) if entry_of[d] == t and d != s)
            if dests or t == clocks[-1]:
                entries[MessageId(s, t)] = dests
    return make_log(processes, entries)


def make_log(processes: int, entries: dict[MessageId, int]) -> KSLog:
    """The log with these entries."""
    newest, dests, older = [0] * processes, [0] * processes, defaultdict(dict)
    for s, t in sorted(entries):
        if newest[s] and dests[s]:
            older[s][newest[s]] = dests[s]
        newest[s], dests[s] = t, entries[MessageId(s, t)]
    return KSLog(newest, dests, dict(older))


def known(log: KSLog) -> KnownLog:
    """A log in plain sets."""
    return {MessageId(s, t): set(members(dests)) for s, t, dests in log}
