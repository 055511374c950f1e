"""Executions of multicasts to arbitrary sets, and what their graphs say a KS log must hold.

Copies travel in any order, or in FIFO order, as the test draws. Of every send and delivery the causal
past is kept as a plain set of events, so that what the propagation constraints allow to forget can
be judged by their definitions.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from typing_extensions import override

from testbed.protocols import MessageId, Place
from testbed.protocols.ks import to_dests
from testbed.protocols.ks_log import KSLog, members, to_log
from tests.world import Destinations, MemoryLog, P, World

KnownLog = dict[MessageId, set[int]]


class Graph(MemoryLog):
    """The computation graph: of each event its causal past, itself included."""

    def __init__(self, processes: int) -> None:
        super().__init__()
        self.everybody = frozenset(range(processes))
        self.past: list[frozenset[int]] = []
        self.last: defaultdict[int, int | None] = defaultdict(lambda: None)  # of each process
        self.sent: dict[MessageId, int] = {}
        self.got: dict[tuple[MessageId, int], int] = {}
        self.dests: dict[MessageId, frozenset[int]] = {}  # without the sender

    def add(self, process: int, cause: int | None = None) -> int:
        """An event of a process, after its last one and after a send."""
        event = len(self.past)
        causes = [self.past[e] for e in (self.last[process], cause) if e is not None]
        self.past.append(frozenset([event]).union(*causes))
        self.last[process] = event
        return event

    @override
    def send(
        self, t: int, node: int, name: MessageId, to: Destinations, payload: int, control: int = 0
    ) -> None:
        super().send(t, node, name, to, payload, control)
        self.dests[name] = (self.everybody if to is None else to) - {node}
        self.sent[name] = self.add(node)

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        super().deliver(t, node, source, seq)
        name = MessageId(source, seq)
        self.got[name, node] = self.add(node, self.sent[name])

    @override
    def hold(self, t: int, node: int, name: MessageId, waits_for: MessageId | None) -> None:
        super().hold(t, node, name, waits_for)
        assert waits_for in self.reasons(name, node)

    def reasons(self, name: MessageId, process: int) -> set[MessageId]:
        """The messages for which a process must hold a message back."""
        return {
            m
            for m, dests in self.dests.items()
            if process in dests and (m, process) not in self.got and self.precedes(m, name)
        }

    def necessary(self, past: frozenset[int]) -> KnownLog:
        """What a log must hold, no less and no more, when this has happened.

        d is among the Dests of M unless (I) M's delivery to d is in this past, or (II) so is a
        message to d whose send comes after M's. Without Dests only a sender's newest stays.
        """
        known = [m for m in self.sent if self.sent[m] in past]
        log = {
            m: {
                d
                for d in self.dests[m]
                if self.got.get((m, d)) not in past
                and not any(d in self.dests[x] and self.precedes(m, x) for x in known)
            }
            for m in known
        }
        return self.purged(log)

    def precedes(self, m: MessageId, x: MessageId) -> bool:
        """Whether one send happened before another."""
        return m != x and self.sent[m] in self.past[self.sent[x]]

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
        send = self.sent[name]
        covered = self.dests[name] - {d}
        before = self.necessary(self.past[send] - {send})
        return self.purged({m: dests - covered for m, dests in before.items()})


class Execution(World[P]):
    """Processes of one protocol, which send to arbitrary sets and may answer."""

    def __init__(
        self, protocol: Callable[[Place], P], processes: int, seed: int = 0, **more: Any
    ) -> None:
        self.graph = Graph(processes)
        super().__init__(protocol, processes, seed, log=self.graph, **more)

    @override
    def draw(self, node: int) -> Destinations:
        return draw_destinations(self.rng, len(self.nodes))

    def pass_on_message(self, name: MessageId, peer: int) -> None:
        """The copy of that message for that process arrives."""
        (copy,) = (c for c in self.copies if c.message.id == name and c.peer == peer)
        self.arrive(copy)


def violations(protocol: Callable[[Place], P], seeds: int, fifo: bool = False) -> int:
    """How many of such executions are not causally ordered."""
    runs = [Execution(protocol, drawn(seed, 2), seed, fifo=fifo) for seed in range(seeds)]
    for run in runs:
        run.play(8)
    return sum(not run.check().ok for run in runs)


def drawn(seed: int, least: int) -> int:
    """A number of processes."""
    return random.Random(seed).randint(least, 5)


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
    return to_log(processes, ((*name, dests) for name, dests in sorted(entries.items())))


def known(log: KSLog) -> KnownLog:
    """A log in plain sets."""
    return {MessageId(s, t): set(members(dests)) for s, t, dests in log}
