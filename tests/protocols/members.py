"""Processes over a network of datagrams that delays, loses, and is cut in parts; time is virtual.

Everything that chance decides comes from one seed. Processes crash, start again, stand still, join
and leave as a test says; what they send and deliver is logged for the oracle.
"""

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from heapq import heappop, heappush

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
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.group import Group

MS = 1_000_000
RUN = 0xDA15
Destinations = frozenset[int] | None


class Members:
    """Processes of the daisy, or of another protocol."""

    def __init__(
        self,
        processes: int,
        seed: int = 0,
        loss: float = 0,
        delays_ms: tuple[float, float] = (1, 5),
        protocol: Callable[[Place], Protocol] = Daisy,
        answering: float = 0,
        wire: bool = True,
    ) -> None:
        self.protocol, self.loss, self.delays_ms, self.wire = protocol, loss, delays_ms, wire
        self.rng = random.Random(seed)
        self.now = self.steps = self.entries = 0
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self.timers: dict[tuple[int, Hashable], int] = {}
        self.dead: set[int] = set()
        self.still: dict[int, list[Callable[[], None]]] = {}
        self.island: defaultdict[int, int] = defaultdict(int)
        self.log: dict[int, list[Event]] = {p: [] for p in range(processes)}
        self.counted: Counter[str] = Counter()
        self.sent = [0] * processes
        self.backlog: dict[int, deque[Destinations]] = {p: deque() for p in range(processes)}
        self.answering = answering
        self.drops: Callable[[int, int, Message], bool] = lambda sender, peer, message: False
        self.bytes_of: Counter[type] = Counter()
        self.copies_of: Counter[type] = Counter()
        self.processes = [protocol(self._place(p, 0)) for p in range(processes)]
        self.codec = self.processes[0].codec(RUN, processes)
        for p in range(processes):
            self._perform(p, self.processes[p].start(0))

    def _place(self, me: int, incarnation: int) -> Place:
        rng = random.Random(me)
        return Place(me, len(self.log), rng=rng, incarnation=incarnation)

    # what a test does

    def say(self, node: int, to: Iterable[int] | None = None) -> None:
        """The application sends, now or as soon as it can."""
        if node not in self.dead:
            self.backlog[node].append(None if to is None else frozenset(to))
            self._act(node, lambda: None)

    def crash(self, node: int) -> None:
        if node not in self.dead:
            self.dead.add(node)
            self.log[node].append(Event("crash", t=self.now))
            self.timers = {key: at for key, at in self.timers.items() if key[0] != node}
            self.backlog[node].clear()
            self.still.pop(node, None)

    def restart(self, node: int) -> None:
        self.crash(node)
        self.dead.discard(node)
        incarnation = self.processes[node].place.incarnation + 1
        self.processes[node] = self.protocol(self._place(node, incarnation))
        self.sent[node] = self.processes[node].place.base
        self.log[node].append(Event("restart", t=self.now))
        self._perform(node, self.processes[node].start(self.now))

    def part(self, *islands: Iterable[int]) -> None:
        """Cut the network; without islands it is whole."""
        self.island = defaultdict(int)
        for number, nodes in enumerate(islands, 1):
            self.island |= dict.fromkeys(nodes, number)

    def pause(self, node: int) -> None:
        if node not in self.dead:
            self.still.setdefault(node, [])

    def resume(self, node: int) -> None:
        for call in self.still.pop(node, []):
            self._act(node, call)

    def leave(self, node: int) -> None:
        self._perform(node, self.processes[node].leave(self.now))

    def join(self, node: int) -> None:
        self._perform(node, self.processes[node].join(self.now))

    def at(self, ms: float, call: Callable[[], None]) -> None:
        """Something happens at a time."""
        self._after(round(ms * MS) - self.now, call)

    def step(self) -> None:
        self.now, _, call = heappop(self.agenda)
        self.steps += 1
        call()

    def run(self, ms: float) -> None:
        """For so long."""
        end = self.now + round(ms * MS)
        while self.agenda and self.agenda[0][0] <= end:
            self.step()
        self.now = end

    def settle(self, most_ms: float = 20_000, longer_ms: float = 300) -> None:
        """Until all is delivered that is due, and a while longer; a test sees what is not."""
        end = self.now + most_ms * MS
        while self.now < end and (self.due() or any(self.backlog.values())):
            self.run(50)
        self.run(longer_ms)

    # what a test asks

    def due(self) -> int:
        """How many deliveries are still due to live processes from live senders."""
        everybody = set(self.log) - self.dead
        got = {
            p: {(e.source, e.seq) for e in log if e.event == "deliver"}
            for p, log in self.log.items()
        }
        return sum(
            (e.source, e.seq) not in got[p]
            for node in everybody
            for e in self.log[node]
            if e.event == "send"
            for p in everybody.intersection(everybody if e.to is None else e.to)
        )

    def check(self) -> Verdict:
        return check_events(range(len(self.log)), self.log)

    def sound(self) -> None:
        """Fail, in words, unless the oracle finds nothing."""
        verdict = self.check()
        assert verdict.ok, "\n".join(verdict.explain(3))

    def delivered(self, node: int) -> list[MessageId]:
        return [MessageId(e.source, e.seq) for e in self.log[node] if e.event == "deliver"]

    def daisy(self, node: int) -> Daisy:
        process = self.processes[node]
        assert isinstance(process, Daisy)
        return process

    def group(self, node: int, level: int = 0) -> Group:
        return self.daisy(node).groups[level]

    def view(self, node: int, level: int = 0) -> tuple[int, ...]:
        view = self.group(node, level).view
        assert view is not None
        return view.processes

    def live(self) -> list[int]:
        return [p for p in self.log if p not in self.dead]

    # the network and the processes

    def _after(self, delay: int, call: Callable[[], None]) -> None:
        self.entries += 1
        heappush(self.agenda, (self.now + delay, self.entries, call))

    def _act(self, node: int, call: Callable[[], None]) -> None:
        if node in self.still:
            self.still[node].append(call)
        elif node not in self.dead:
            call()
            self._catch_up(node)

    def _catch_up(self, node: int) -> None:
        while self.backlog[node] and not self.processes[node].busy():
            self._multicast(node, self.backlog[node].popleft())

    def _multicast(self, node: int, to: Destinations) -> None:
        self.sent[node] += 1
        self.log[node].append(Event("send", node, self.sent[node], to, self.now))
        self._perform(node, self.processes[node].multicast(b"x" * 8, to, self.now))

    def _perform(self, node: int, effects: Effects) -> None:
        for effect in effects:
            if node in self.dead:
                return
            if isinstance(effect, Send):
                self._send(node, effect)
            elif isinstance(effect, Deliver):
                self._deliver(node, effect.message)
            elif isinstance(effect, SetTimer):
                self.timers[node, effect.timer] = self.entries + 1
                self._after(
                    effect.delay, partial(self._expire, node, effect.timer, self.entries + 1)
                )
            elif isinstance(effect, CancelTimer):
                self.timers.pop((node, effect.timer), None)
            elif isinstance(effect, Count):
                self.counted[effect.name] += effect.amount
            else:
                assert isinstance(effect, Discard | Hold), effect

    def _send(self, node: int, send: Send) -> None:
        message = send.message
        if self.wire:
            data = self.codec.encode(message)
            assert len(data) == message.size
            message = self.codec.decode(data)
        assert node not in send.peers
        self.bytes_of[type(message)] += message.size * len(send.peers)
        self.copies_of[type(send.message)] += len(send.peers)
        for peer in send.peers:
            if self.rng.random() < self.loss or self.drops(node, peer, send.message):
                continue
            delay = round(self.rng.uniform(*self.delays_ms) * MS)
            self._after(delay, partial(self._arrive, node, peer, message))

    def _arrive(self, sender: int, peer: int, message: Message) -> None:
        if self.island[sender] == self.island[peer]:
            receive = lambda: self._perform(  # noqa: E731
                peer, self.processes[peer].receive(message, sender, self.now)
            )
            self._act(peer, receive)

    def _expire(self, node: int, timer: Hashable, entry: int) -> None:
        if self.timers.get((node, timer)) == entry:
            del self.timers[node, timer]
            timeout = lambda: self._perform(  # noqa: E731
                node, self.processes[node].timeout(timer, self.now)
            )
            self._act(node, timeout)

    def _deliver(self, node: int, message: Message) -> None:
        self.log[node].append(Event("deliver", message.source, message.seq, None, self.now))
        if self.answering and self.rng.random() < self.answering:
            everybody = range(len(self.log))
            to = self.rng.sample(everybody, self.rng.randint(1, min(4, len(self.log))))
            self.backlog[node].append(frozenset(to))
            self._catch_up(node)
