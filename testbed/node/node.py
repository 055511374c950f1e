"""A node: one protocol instance, the application above it, and what is written down of both.

Every engine drives its processes through this class, so that effects mean the same on all of them.
An engine gives a node its network: how to send, and how to be woken. Engines, logs and meters have one
clock; that of the process itself may run faster or slower (``rates``).
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain, islice
from math import ceil
from typing import Any

from testbed.node.effects import EndlessError, MisuseError, misuse
from testbed.node.environment import Application, Runtime
from testbed.node.log import Log
from testbed.node.meter import Meter
from testbed.node.trouble import trouble
from testbed.plugins.calls import calls
from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
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


class Node:
    """Drives one protocol instance."""

    def __init__(
        self,
        protocol: Protocol,
        workload: Application,
        runtime: Runtime,
        log: Log,
        meter: Meter,
        groups: Groups | None = None,
        rates: Mapping[int, float] | None = None,
        inspect: Callable[["Node", Any], None] | None = None,
    ) -> None:
        place = protocol.place
        self.protocol = protocol
        self.workload = workload
        self.runtime = runtime
        self.log = log
        self.meter = meter
        self.groups: Groups = groups or {}
        self.rates: Mapping[int, float] = rates or {}  # by process, of clocks that drift
        self.inspect = inspect  # called with every effect beforehand
        self.rate = self.rates.get(place.me, 1.0)
        self.id, self.processes, self.multicasts = place.me, place.processes, place.base
        self.held: set[MessageId] = set()
        self.backlog: deque[tuple[bytes, frozenset[int] | None]] = deque()

    def clock(self, now: int) -> int:
        """What the clock of the process shows."""
        return now if self.rate == 1 else int(now * self.rate)

    def multicast(self, payload: bytes, now: int, to: frozenset[int] | None = None) -> None:
        """The application sends to these processes, or to all; it waits while its channel is full."""
        calls.begin()
        try:
            if not self.backlog and not self.protocol.busy():
                self._multicast(payload, now, to)
            elif self.workload.waits:
                self.backlog.append((payload, to))
            else:
                self.meter.counted["not_sent"] += 1
        finally:
            calls.end()

    def _multicast(self, payload: bytes, now: int, to: frozenset[int] | None) -> None:
        self.multicasts += 1
        self.meter.multicasts += 1
        name = MessageId(self.id, self.multicasts)
        effects: Any = None
        try:
            effects = self.protocol.multicast(payload, to, self.clock(now))
            before, control = [], 0
            for effect in islice(effects, MOST_EFFECTS):
                before.append(effect)
                if isinstance(effect, _CARRIERS):
                    control = effect.message.control_size - effect.message.channel_size
                    break
            self.log.send(now, self.id, name, to, len(payload), control)
            self._perform(chain(before, effects), now)
        except BaseException as error:
            trouble(error, self).happened("multicast", (name,), now, effects)
            raise

    def receive(self, message: Message, sender: int, now: int) -> None:
        """The network has brought a message."""
        calls.begin()
        try:
            self._perform(self.protocol.receive(message, sender, self.clock(now)), now)
            if self.backlog:
                self._catch_up(now)
        except BaseException as error:
            trouble(error, self).happened("receive", (message, sender), now)
            raise
        finally:
            calls.end()

    def timeout(self, timer: Hashable, now: int) -> None:
        """A timer has run out."""
        self._call("timeout", (timer,), now)

    def start(self, now: int) -> None:
        """The process begins, or begins again, before anything else happens to it."""
        self._call("start", (), now)

    def join(self, now: int) -> None:
        """The application wants to be a member."""
        self.log.note(now, self.id, "join", {})
        self._call("join", (), now)

    def leave(self, now: int) -> None:
        """The application wants to be a member no longer."""
        self.log.note(now, self.id, "leave", {})
        self._call("leave", (), now)

    def _call(self, method: str, arguments: tuple[Any, ...], now: int) -> None:
        """Call a method of the protocol, and perform what it yields."""
        calls.begin()
        try:
            self._perform(getattr(self.protocol, method)(*arguments, self.clock(now)), now)
            if self.backlog and method != "leave":
                self._catch_up(now)
        except BaseException as error:
            trouble(error, self).happened(method, arguments, now)
            raise
        finally:
            calls.end()

    def _catch_up(self, now: int) -> None:
        while self.backlog and not self.protocol.busy():
            payload, to = self.backlog.popleft()
            self._multicast(payload, now, to)

    def _perform(self, effects: Iterable[Any], now: int) -> None:
        """Give effects their meaning; whether they are effects at all is seen as they come."""
        count, effect = 0, None
        try:
            for effect in effects:
                count += 1
                if self.inspect is not None:
                    self.inspect(self, effect)
                if count > MOST_EFFECTS:
                    raise MisuseError(f"it goes on yielding, {MOST_EFFECTS:,} effects in one call")
                self._perform_one(effect, now)
        except BaseException as error:
            trouble(error, self).performed(effects, [effect] if count else [])
            raise

    def _perform_one(self, effect: Any, now: int) -> None:
        if isinstance(effect, Send):
            peers = tuple(effect.peers)
            self.meter.load[self.id] += len(peers)
            self.runtime.unicast(self.id, peers, effect.message)
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
            self.runtime.multicast(self.id, tuple(effect.peers), effect.message)
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
