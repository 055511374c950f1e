"""One process on its own, given a stimulus at a time; what it does is recorded."""

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from typing_extensions import override

from testbed.node.blame import fault
from testbed.node.effects import MisuseError
from testbed.node.environment import Application, Runtime
from testbed.node.log import Log
from testbed.node.meter import Meter
from testbed.node.node import Node, check
from testbed.plugins.blame import FAILURES, words
from testbed.protocols import Message, MessageId, Protocol
from testbed.topologies import Groups

Destinations = frozenset[int] | None  # None: all processes
Answers = tuple[tuple[int, Destinations], ...]  # which deliveries are answered, and to whom


MOST_EFFECTS = 1_000  # of one call, where there are a few messages in all


class Act(NamedTuple):
    """A message is sent to these destinations, or delivered."""

    kind: str  # "send" or "deliver"
    name: MessageId
    to: Destinations = None


@dataclass
class Reaction:
    """What a process did upon one stimulus."""

    sends: list[tuple[int, Message]] = field(default_factory=list)
    events: list[Act] = field(default_factory=list)
    held: list[tuple[MessageId, MessageId | None]] = field(default_factory=list)
    chances: int = 0  # deliveries that the application could answer
    failure: str | None = None


class Recorder(Log, Runtime, Application):
    """The network, the log and the application around a node. Time stands still."""

    def __init__(
        self, protocol: Protocol, multicasts: int = 0, timers: tuple[Hashable, ...] = ()
    ) -> None:
        self.node = Node(protocol, self, self, self, Meter(), inspect=self._inspect)
        self.node.multicasts = multicasts
        self.timers = dict.fromkeys(timers)
        self._did = Reaction()
        self._answers: dict[int, Destinations] = {}
        self._effects = 0  # of the call that is going on

    def start(self) -> Reaction:
        """Start the process."""
        return self._record(lambda: self.node.start(0), ())

    def say(self, to: Destinations, answers: Answers = ()) -> Reaction:
        """Have the application multicast, and answer these of the deliveries meanwhile."""
        return self._record(lambda: self.node.multicast(b"", 0, to), answers)

    def receive(self, message: Message, sender: int, answers: Answers = ()) -> Reaction:
        """The network hands over a message."""
        return self._record(lambda: self.node.receive(message, sender, 0), answers)

    def fire(self, timer: Hashable, answers: Answers = ()) -> Reaction:
        """Let a timer expire."""
        del self.timers[timer]
        return self._record(lambda: self.node.timeout(timer, 0), answers)

    def _record(self, stimulate: Callable[[], None], answers: Answers) -> Reaction:
        self._did, self._answers, self._effects = Reaction(), dict(answers), 0
        try:
            stimulate()
        except FAILURES as error:  # whatever a protocol under test raises is a finding
            self._did.failure = str(fault(error) or words(error))
        return self._did

    def _inspect(self, node: Node, effect: Any) -> None:
        check(node, effect)
        self._effects += 1
        if self._effects > MOST_EFFECTS:
            raise MisuseError(f"it goes on yielding, {MOST_EFFECTS:,} effects in one call")

    # the network

    @override
    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """A copy for each receiver, of the message as it is now."""
        message = copy.deepcopy(message)
        self._did.sends += [(peer, message) for peer in peers]

    multicast = unicast

    @override
    def set_timer(self, node: Node, timer: Hashable, delay: int) -> None:
        """It may run out at any moment from now on."""
        self.timers[timer] = None

    @override
    def cancel_timer(self, node: Node, timer: Hashable) -> None:
        self.timers.pop(timer, None)

    # the log; what a protocol notes is ignored, since time stands still here

    @override
    def send(
        self, t: int, node: int, name: MessageId, to: Destinations, payload: int, control: int = 0
    ) -> None:
        self._did.events.append(Act("send", name, to))

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        self._did.events.append(Act("deliver", MessageId(source, seq)))

    @override
    def hold(self, t: int, node: int, name: MessageId, waits_for: MessageId | None) -> None:
        self._did.held.append((name, waits_for))

    # the application

    @override
    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        if message.source == node or self.node.protocol.busy():
            return None
        self._did.chances += 1
        return b"" if self._did.chances - 1 in self._answers else None

    @override
    def audience(self, node: int, message: Message, processes: int, groups: Groups) -> Destinations:
        return self._answers[self._did.chances - 1]
