"""A node: one protocol instance, the application above it, and what is written down of both.

Every engine drives its processes through this class, so that effects mean the same on all of them.
An engine gives a node its network: how to send, and how to be woken.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol as Interface

from testbed.node.log import Log
from testbed.node.meter import Meter
from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Effects,
    Hold,
    Message,
    MessageId,
    Multicast,
    Note,
    Protocol,
    Send,
    SetTimer,
)
from testbed.topologies import Groups

_CARRIERS = (Send, Multicast, Deliver)


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

    def audience(self, node: int, message: Message, groups: Groups) -> frozenset[int] | None:
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
    id: int = field(init=False)
    processes: int = field(init=False)
    multicasts: int = field(init=False)
    held: set[MessageId] = field(default_factory=set)
    backlog: deque[tuple[bytes, frozenset[int] | None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        place = self.protocol.place
        self.id, self.processes, self.multicasts = place.me, place.processes, place.base

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
        effects = self.protocol.multicast(payload, to, now)
        before, control = [], 0
        for effect in effects:
            before.append(effect)
            if isinstance(effect, _CARRIERS):
                control = effect.message.control_size - effect.message.channel_size
                break
        self.log.send(now, self.id, name, to, len(payload), control)
        self._perform(chain(before, effects), now)

    def receive(self, message: Message, sender: int, now: int) -> None:
        """The network has brought a message."""
        self._perform(self.protocol.receive(message, sender, now), now)
        if self.backlog:
            self._catch_up(now)

    def timeout(self, timer: Hashable, now: int) -> None:
        """A timer has run out."""
        self._perform(self.protocol.timeout(timer, now), now)
        if self.backlog:
            self._catch_up(now)

    def start(self, now: int) -> None:
        """The process begins, or begins again, before anything else happens to it."""
        self._perform(self.protocol.start(now), now)

    def join(self, now: int) -> None:
        """The application wants to be a member."""
        self.log.note(now, self.id, "join", {})
        self._perform(self.protocol.join(now), now)
        self._catch_up(now)

    def leave(self, now: int) -> None:
        """The application wants to be a member no longer."""
        self.log.note(now, self.id, "leave", {})
        self._perform(self.protocol.leave(now), now)

    def _catch_up(self, now: int) -> None:
        while self.backlog and not self.protocol.busy():
            payload, to = self.backlog.popleft()
            self._multicast(payload, now, to)

    def _perform(self, effects: Effects, now: int) -> None:
        for effect in effects:
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
                self.runtime.set_timer(self, *effect)
            elif isinstance(effect, CancelTimer):
                self.runtime.cancel_timer(self, effect.timer)
            elif isinstance(effect, Count):
                self.meter.counted[effect.name] += effect.amount
            elif isinstance(effect, Note):
                self.log.note(now, self.id, *effect)
            else:
                raise TypeError(
                    f"{self.protocol.name} yields {effect!r}, which is not an effect such as Send, "
                    "Deliver or Hold"
                )

    def _deliver(self, message: Message, now: int) -> None:
        meter = self.meter
        meter.deliveries += 1
        if message.source != self.id:
            meter.delays.append(now - message.sent_at)
            if self.held:
                self._release(message, now)
        self.log.deliver(now, self.id, message.source, message.seq)
        answer = self.workload.answer(self.id, message, self.processes)
        if answer is not None:
            self.multicast(answer, now, self.workload.audience(self.id, message, self.groups))

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
