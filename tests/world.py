"""A virtual network that runs protocols in tests, on the product's own ``Node``.

All that is still to happen is on one agenda: copies of messages that arrive, timers that run out,
calls that a test has planned. Three schedules work it off: the test chooses the copy that arrives
next (``pass_on``, ``arrive``), chance does (``shuffle``), or the clock (``step``, ``run``), with delays
that are drawn for each copy. Copies are lost, duplicated and overtake each other as the world is
made, or as ``drops`` and ``cut`` say; processes crash, are restarted and paused; clocks drift. All
that is drawn comes from one seed. Anything that must see what processes do (a judge of causal order,
say) is a log.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

from typing_extensions import override

from testbed.check import Verdict, check_events, memory
from testbed.node import Node
from testbed.node.environment import Application, Runtime
from testbed.node.meter import Meter, Sent
from testbed.protocols import Message, MessageId, Place, Protocol
from testbed.topologies import Groups

MS = 1_000_000
RUN = 0xC0FFEE
ENDLESS = 1_000_000  # steps
Destinations = frozenset[int] | None
P = TypeVar("P", bound=Protocol)


class Copy(NamedTuple):
    """One copy of a message on its way: when it arrives, its number on the agenda, and whose it is."""

    due: int
    number: int
    sender: int
    peer: int
    message: Any  # of one of the protocol's kinds


class Call(NamedTuple):
    """Something that is done at a time: a timer runs out, or what the test has planned."""

    due: int
    number: int
    do: Callable[[], object]


class MemoryLog(memory.MemoryLog):
    """The event log in memory, and who held what back.

    It leaves out that a process joins or leaves, so that the oracle excuses nobody for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[int, MessageId, MessageId | None]] = []

    @override
    def hold(self, t: int, node: int, name: MessageId, waits_for: MessageId | None) -> None:
        self.held.append((node, name, waits_for))

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        if event in ("crash", "restart", "interest", "cluster"):
            super().note(t, node, event, facts)


class Eager(Application):
    """Answers every message inside its delivery, and the answers too, down to a depth.

    Messages begin with their depth, which is 0 where nobody says otherwise.
    """

    def __init__(self, depth: int, audience: Callable[[int], Destinations] = lambda node: None):
        self.depth, self.draw = depth, audience

    @override
    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        depth = message.payload[0]
        return bytes([depth + 1, *bytes(7)]) if depth < self.depth else None

    @override
    def audience(self, node: int, message: Message, processes: int, groups: Groups) -> Destinations:
        return self.draw(node)


class World(Runtime, Application, Generic[P]):
    """Processes of one protocol, joined by a channel for each ordered pair; time is virtual."""

    may_lose = False  # whether the protocol is allowed to

    def __init__(
        self,
        make: Callable[[Place], P],
        processes: int,
        seed: float = 0,
        *,
        neighbours: Callable[[int], tuple[int, ...]] = lambda node: (),
        groups: tuple[frozenset[int], ...] = (),
        application: Application | None = None,
        answering: float = 0,
        answers: float = inf,
        log: MemoryLog | None = None,
        loss: float = 0,
        duplication: float = 0,
        delays_ms: tuple[float, float] = (0, 0),
        fifo: bool = False,
        wire: bool = False,
        drift: float = 0,
    ) -> None:
        self.make, self.neighbours, self.groups, self.seed = make, neighbours, groups, seed
        self.loss, self.duplication, self.delays_ms, self.fifo = loss, duplication, delays_ms, fifo
        self.rng = random.Random(seed)
        self.rates = [1 + self.rng.uniform(-drift, drift) for _ in range(processes)]
        self.now = self.steps = self.multicasts = 0
        self.agenda: list[Copy | Call] = []  # a heap
        self.numbers = count()
        self.timers: dict[tuple[int, Hashable], Call] = {}
        self.latest: defaultdict[tuple[int, int], int] = defaultdict(
            int
        )  # arrival, of each channel
        self.dead: set[int] = set()
        self.paused: dict[int, list[Callable[[Node, int], object]]] = {}
        self.cut: Callable[[int, int], bool] = lambda sender, peer: False
        self.drops: Callable[[int, int, Any], bool] = lambda sender, peer, message: False
        self.log, self.meter = log or MemoryLog(), Meter()
        self.sent: defaultdict[type[Message], Sent] = defaultdict(Sent)
        self.application: Application = application or self
        self.answering, self.answers = answering, answers  # with what probability, how often in all
        self.protocols = [make(self.place(p, processes)) for p in range(processes)]
        self.nodes = [self._node(protocol) for protocol in self.protocols]
        self.codec = self.protocols[0].codec(RUN, processes) if wire else None
        for node in self.nodes:
            node.start(0)

    def place(self, me: int, processes: int, incarnation: int = 0) -> Place:
        """Where a process stands when it starts, for the first time or again."""
        rng = random.Random(f"{self.seed} {me} {incarnation}")
        return Place(me, processes, self.neighbours(me), rng, incarnation, self.groups)

    def _node(self, protocol: P) -> Node:
        return Node(protocol, self.application, self, self.log, self.meter)

    # What a test does to processes

    def act(self, node: int, do: Callable[[Node, int], object]) -> None:
        """Something happens to a process: now, or when it is resumed; never, if it has crashed."""
        if node in self.paused:
            self.paused[node].append(do)
        elif node not in self.dead:
            do(self.nodes[node], self.clock(node))

    def clock(self, node: int) -> int:
        """What the clock of a process shows."""
        return int(self.now * self.rates[node])

    def say(
        self, node: int, to: Iterable[int] | None = None, payload: bytes = bytes(8)
    ) -> MessageId:
        """An application multicasts, as soon as its protocol is not busy; the message's name."""
        process = self.nodes[node]
        name = MessageId(node, process.multicasts + len(process.backlog) + 1)
        dests = None if to is None else frozenset(to)
        self.act(node, lambda node, now: node.multicast(payload, now, dests))
        return name

    def crash(self, node: int) -> None:
        """A process is gone, with its timers; what it has sent is on its way."""
        if node not in self.dead:
            self.dead.add(node)
            self.log.note(self.now, node, "crash", {})
            self.paused.pop(node, None)
            self.timers = {key: entry for key, entry in self.timers.items() if key[0] != node}

    def restart(self, node: int, start: bool = True) -> None:
        """A process starts again, without its memory; ``start`` is what it does of its own accord."""
        self.crash(node)
        self.dead.discard(node)
        incarnation = self.protocols[node].place.incarnation + 1
        self.protocols[node] = self.make(self.place(node, len(self.nodes), incarnation))
        self.nodes[node] = self._node(self.protocols[node])
        self.log.note(self.now, node, "restart", {"incarnation": incarnation})
        if start:
            self.nodes[node].start(self.clock(node))

    def pause(self, node: int, ms: float = inf) -> None:
        """Stop a process, as SIGSTOP does, for a while or until it is resumed."""
        if node not in self.dead:
            self.paused.setdefault(node, [])
            if ms < inf:
                self.at(self.now / MS + ms, lambda: self.resume(node))

    def resume(self, node: int) -> None:
        """A process goes on, with all that should have happened to it meanwhile."""
        for do in self.paused.pop(node, ()):
            self.act(node, do)

    def join(self, node: int) -> None:
        """An application wants its process to be a member."""
        self.act(node, Node.join)

    def leave(self, node: int) -> None:
        """An application wants its process to be a member no longer."""
        self.act(node, Node.leave)

    def part(self, *islands: Iterable[int]) -> None:
        """Cut the network into these islands and the rest; without islands it is whole."""
        island = {node: number for number, nodes in enumerate(islands) for node in nodes}
        self.cut = lambda sender, peer: island.get(sender) != island.get(peer)

    # Schedules

    @property
    def copies(self) -> list[Copy]:
        """All that is on its way, in the order in which it would arrive."""
        return sorted(entry for entry in self.agenda if isinstance(entry, Copy))

    def channel(self, sender: int, peer: int) -> list[Copy]:
        """All that is on its way from one process to another."""
        return [copy for copy in self.copies if (copy.sender, copy.peer) == (sender, peer)]

    def arrive(self, copy: Copy) -> None:
        """A copy that the test or chance has chosen arrives next."""
        self.agenda.remove(copy)
        heapify(self.agenda)
        self._happen(copy)

    def pass_on(self, sender: int, peer: int, place: int = 0) -> Any:
        """The first copy on a channel arrives, or one further back; its message."""
        copy = self.channel(sender, peer)[place]
        self.arrive(copy)
        return copy.message

    def repeat(self, copy: Copy) -> None:
        """A copy will arrive a second time."""
        heappush(self.agenda, copy._replace(number=next(self.numbers)))

    def shuffle(self, messages: int) -> Iterator[int]:
        """Multicasts and arrivals in random order until all has arrived; yields who acts in each."""
        while (copies := self.copies) or messages:
            if messages and (not copies or self.rng.random() < 0.3):
                messages -= 1
                me = self.rng.randrange(len(self.nodes))
                self.say(me, self.draw(me))
            else:
                copy = self.rng.choice(copies)
                me = copy.peer
                if self.fifo:
                    copy = next(c for c in copies if (c.sender, c.peer) == (copy.sender, me))
                self.arrive(copy)
            yield me

    def play(self, messages: int = 0) -> None:
        """Do all of that."""
        for _ in self.shuffle(messages):
            pass

    def at(self, ms: float, do: Callable[[], object]) -> None:
        """Do something at a time."""
        heappush(self.agenda, Call(round(ms * MS), next(self.numbers), do))

    def step(self) -> None:
        """What is due next happens."""
        self.steps += 1
        assert self.steps < ENDLESS, "it does not end"
        self._happen(heappop(self.agenda))

    def run(self, ms: float = inf) -> None:
        """Let time pass, or all happen that there is."""
        end = self.now + ms * MS
        while self.agenda and self.agenda[0].due <= end:
            self.step()
        if ms < inf:
            self.now = round(end)

    def _happen(self, entry: Copy | Call) -> None:
        self.now = max(self.now, entry.due)
        if isinstance(entry, Call):
            entry.do()
        elif not self.cut(entry.sender, entry.peer):
            self.receive(entry.sender, entry.peer, entry.message)

    def fire(self, node: int, timer: Hashable) -> None:
        """A timer runs out now."""
        self.timers[node, timer].do()

    def receive(self, sender: int, peer: int, message: Message) -> None:
        """A message is there, from the network or made by the test."""
        self.act(peer, lambda node, now: node.receive(message, sender, now))

    # The network, as nodes see it

    @override
    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        assert sender not in peers, f"{sender} sends {message} to itself"
        self.sent[type(message)].add(len(peers), 1, message.size, message)
        data = self.codec.encode(message) if self.codec else b""
        assert not self.codec or len(data) == message.size
        for peer in peers:
            if self.rng.random() < self.loss or self.drops(sender, peer, message):
                continue
            for _ in range(1 + (self.rng.random() < self.duplication)):
                self._launch(sender, peer, self.codec.decode(data) if self.codec else message)

    @override
    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        self.multicasts += 1
        self.unicast(sender, peers, message)

    def delay(self, sender: int, peer: int) -> int:
        """How long a copy takes, drawn for each."""
        return round(self.rng.uniform(*self.delays_ms) * MS)

    def _launch(self, sender: int, peer: int, message: Message) -> None:
        due = self.now + self.delay(sender, peer)
        if self.fifo:
            due = self.latest[sender, peer] = max(due, self.latest[sender, peer])
        heappush(self.agenda, Copy(due, next(self.numbers), sender, peer, message))

    @override
    def set_timer(self, node: Node, timer: Hashable, delay: int) -> None:
        def timeout(node: Node, now: int) -> None:
            if self.timers.get(key) is call:  # not cancelled, nor set again
                del self.timers[key]
                node.timeout(timer, now)

        key, rate = (node.id, timer), self.rates[node.id]
        due = self.now + (delay if rate == 1 else int(delay / rate) + 1)
        call = Call(due, next(self.numbers), lambda: self.act(node.id, timeout))
        self.timers[key] = call
        heappush(self.agenda, call)

    @override
    def cancel_timer(self, node: Node, timer: Hashable) -> None:
        self.timers.pop((node.id, timer), None)

    # Applications, unless a test brings its own

    def draw(self, node: int) -> Destinations:
        """To whom a process sends in a random run, or with an answer."""
        return None

    @override
    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        if not self.answers or self.rng.random() >= self.answering:
            return None
        self.answers -= 1
        return bytes(8)

    @override
    def audience(self, node: int, message: Message, processes: int, groups: Groups) -> Destinations:
        return self.draw(node)

    # What a test asks

    def live(self) -> list[int]:
        """The processes that have not crashed."""
        return [p for p in range(len(self.nodes)) if p not in self.dead]

    def delivered(self, node: int) -> list[MessageId]:
        """What a process has delivered, in order, in all its lives."""
        events = self.log.events[node]
        return [MessageId(e.source, e.seq) for e in events if e.event == "deliver"]

    def check(self) -> Verdict:
        """What the oracle of causal order says."""
        everybody = range(len(self.nodes))
        logs = {p: self.log.events[p] for p in everybody}
        return check_events(everybody, logs, optimistic=self.may_lose)

    def sound(self) -> None:
        """Fail, in words, unless the oracle finds nothing."""
        verdict = self.check()
        assert verdict.ok, "\n".join(verdict.explain(3))
