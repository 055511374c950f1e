"""A node: one protocol instance, the application above it, and what is written down of both.

Every engine drives its processes through this class, so that effects mean the same on all of them.
An engine gives a node its network: how to send, and how to be woken. Engines, logs and meters have one
clock; that of the process itself may run faster or slower (``rates``).
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from math import ceil
from typing import Any
from typing import Protocol as Interface

from testbed.node.effects import EndlessError, MisuseError, misuse
from testbed.node.log import Log
from testbed.node.meter import Meter
from testbed.plugins.limits import limited
from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Effects,
    Hold,
    Instant,
    Message,
    MessageId,
    Multicast,
    Note,
    Protocol,
    Sample,
    Send,
    SetTimer,
)
from testbed.topologies import Groups

_CARRIERS = (Send, Multicast, Deliver)
MOST_EFFECTS = 100_000  # of one call: a protocol that yields more goes on for ever


class Runtime(Interface):
    """What an engine does for a node: it carries messages and keeps timers."""

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """Take a copy of a message to each of these processes."""

    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """Take one copy of a message to all of these processes."""

    def set_timer(self, node: "Node", timer: Hashable, delay: int) -> None:
        """Call the node's ``timeout`` after a while."""

    def cancel_timer(self, node: "Node", timer: Hashable) -> None:
        """Do not call it."""


class Application(Interface):
    """What the application above a node does with its deliveries."""

    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        """The payload that a node multicasts at once, having delivered this message."""

    def audience(
        self, node: int, message: Message, processes: int, groups: Groups
    ) -> frozenset[int] | None:
        """The destinations of that answer, or None for all."""

    @property
    def waits(self) -> bool:
        """Whether what cannot be sent at once is sent later; otherwise it is never made."""
        return True


@dataclass(slots=True, eq=False)
class Node:
    """Drives one protocol instance."""

    protocol: Protocol
    workload: Application
    runtime: Runtime
    log: Log
    meter: Meter
    groups: Groups = field(default_factory=dict)
    rates: Mapping[int, float] = field(default_factory=dict)  # by process, of clocks that drift
    inspect: Callable[["Node", Any], None] | None = None  # called with every effect beforehand
    rate: float = field(init=False)
    id: int = field(init=False)
    processes: int = field(init=False)
    multicasts: int = field(init=False)
    held: set[MessageId] = field(default_factory=set)
    backlog: deque[tuple[bytes, frozenset[int] | None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        place = self.protocol.place
        self.id, self.processes, self.multicasts = place.me, place.processes, place.base
        self.rate = self.rates.get(place.me, 1.0)

    def clock(self, now: int) -> int:
        """What the clock of the process shows."""
        return now if self.rate == 1 else int(now * self.rate)

    @limited
    def multicast(self, payload: bytes, now: int, to: frozenset[int] | None = None) -> None:
        """The application sends to these processes, or to all; it waits while its channel is full."""
        if not self.backlog and not self.protocol.busy():
            self._multicast(payload, now, to)
        elif self.workload.waits:
            self.backlog.append((payload, to))
        else:
            self.meter.counted["not_sent"] += 1

    def _multicast(self, payload: bytes, now: int, to: frozenset[int] | None) -> None:
        self.multicasts += 1
        self.meter.multicasts += 1
        name = MessageId(self.id, self.multicasts)
        effects = self.protocol.multicast(payload, to, self.clock(now))
        before, control = [], 0
        for effect in islice(effects, MOST_EFFECTS):
            before.append(effect)
            if isinstance(effect, _CARRIERS):
                control = effect.message.control_size - effect.message.channel_size
                break
        self.log.send(now, self.id, name, to, len(payload), control)
        self._perform(chain(before, effects), now)

    @limited
    def receive(self, message: Message, sender: int, now: int) -> None:
        """The network has brought a message."""
        self._perform(self.protocol.receive(message, sender, self.clock(now)), now)
        if self.backlog:
            self._catch_up(now)

    @limited
    def timeout(self, timer: Hashable, now: int) -> None:
        """A timer has run out."""
        self._perform(self.protocol.timeout(timer, self.clock(now)), now)
        if self.backlog:
            self._catch_up(now)

    @limited
    def start(self, now: int) -> None:
        """The process begins, or begins again, before anything else happens to it."""
        self._perform(self.protocol.start(self.clock(now)), now)

    @limited
    def join(self, now: int) -> None:
        """The application wants to be a member."""
        self.log.note(now, self.id, "join", {})
        self._perform(self.protocol.join(self.clock(now)), now)
        self._catch_up(now)

    @limited
    def leave(self, now: int) -> None:
        """The application wants to be a member no longer."""
        self.log.note(now, self.id, "leave", {})
        self._perform(self.protocol.leave(self.clock(now)), now)

    def _catch_up(self, now: int) -> None:
        while self.backlog and not self.protocol.busy():
            payload, to = self.backlog.popleft()
            self._multicast(payload, now, to)

    def _perform(self, effects: Effects, now: int) -> None:
        for count, effect in enumerate(effects):
            if self.inspect is not None:
                self.inspect(self, effect)
            if count > MOST_EFFECTS:
                raise MisuseError(f"it goes on yielding, {MOST_EFFECTS:,} effects in one call")
            if isinstance(effect, Send):
                self.meter.load[self.id] += len(effect.peers)
                self.runtime.unicast(self.id, *effect)
            elif isinstance(effect, Discard):
                self.meter.discarded[effect.reason] += 1
                if self.held:
                    self._release(effect.message, now)
            elif isinstance(effect, Deliver):
                self._deliver(effect.message, now)
            elif isinstance(effect, Hold):
                self._hold(effect, now)
            elif isinstance(effect, Multicast):
                self.meter.load[self.id] += 1
                self.runtime.multicast(self.id, *effect)
            elif isinstance(effect, SetTimer):
                self._set_timer(effect)
            elif isinstance(effect, CancelTimer):
                self.runtime.cancel_timer(self, effect.timer)
            elif isinstance(effect, Count):
                self.meter.counted[effect.name] += effect.amount
            elif isinstance(effect, Sample):
                self.meter.sample(self.id, effect.values)
            elif isinstance(effect, Note):
                self.log.note(now, self.id, effect.event, self._in_run_time(effect.facts))
            else:
                check(self, effect)

    def _set_timer(self, effect: SetTimer) -> None:
        timer, delay = effect
        self.runtime.set_timer(self, timer, delay if self.rate == 1 else int(delay / self.rate) + 1)

    def _in_run_time(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        return {k: ceil(v / self.rate) if isinstance(v, Instant) else v for k, v in facts.items()}

    def _deliver(self, message: Message, now: int) -> None:
        meter = self.meter
        meter.deliveries += 1
        if message.source != self.id:
            meter.delays.append(now - self._sent_at(message))
            if self.held:
                self._release(message, now)
        self.log.deliver(now, self.id, message.source, message.seq)
        answer = self.workload.answer(self.id, message, self.processes)
        if answer is not None:
            to = self.workload.audience(self.id, message, self.processes, self.groups)
            self.multicast(answer, now, to)

    def _sent_at(self, message: Message) -> int:
        """When a message was multicast, which it says by the clock of its source."""
        rate = self.rates.get(message.source) if self.rates else None
        return message.sent_at if rate is None else round(message.sent_at / rate)

    def _hold(self, hold: Hold, now: int) -> None:
        name = hold.message.id
        if name not in self.held:
            self.held.add(name)
            self.meter.comes(now, len(self.held))
        self.log.hold(now, self.id, name, hold.waits_for)

    def _release(self, message: Message, now: int) -> None:
        if message.id in self.held:
            self.held.remove(message.id)
            self.meter.leaves(now)


def check(node: Node, effect: Any) -> None:
    """Refuse an effect that cannot be performed."""
    if wrong := misuse(effect, node.id, node.processes):
        raise MisuseError(wrong)


def endless(events: int) -> Callable[[Node, Any], None]:
    """Refuse whatever would keep a run going that has had so many events in vain."""

    def refuse(node: Node, effect: Any) -> None:
        if isinstance(effect, Send | Multicast | SetTimer):
            raise EndlessError(f"it goes on without end: {events:,} events since the last delivery")

    return refuse
