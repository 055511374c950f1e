"""Protocols that the tests of the explorer need: strange ones, and broken ones."""

from collections.abc import Hashable
from typing import Any, ClassVar

from testbed.explore import CounterExample, explore
from testbed.protocols import (
    KS,
    RST,
    Deliver,
    Effects,
    Message,
    MessageId,
    Overlay,
    Place,
    Protocol,
    Send,
    SetTimer,
    Timestamp,
)
from testbed.protocols.broken import BROKEN
from testbed.protocols.ks import KSMessage
from testbed.protocols.ks_log import Dests, KSLog, to_log
from testbed.protocols.timestamp import VectorMessage

RESTING = {name: p for name, p in BROKEN.items() if p.rests}


def example_of(
    protocol: type[Protocol], nodes: int, messages: int, fifo: bool = True
) -> CounterExample:
    """The counter-example that the search finds."""
    example = explore(protocol, nodes, messages, fifo=fifo).counter_example
    assert example is not None
    return example


class Delayed(Timestamp):
    """Timestamp behind an inbox that is emptied when a timer runs out."""

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.inbox: list[tuple[VectorMessage, int]] = []

    def receive(self, message: VectorMessage, sender: int, now: int) -> Effects:
        self.inbox.append((message, sender))
        yield SetTimer("inbox", 1)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        assert timer == "inbox"
        inbox, self.inbox = self.inbox, []
        for message, sender in inbox:
            yield from super().receive(message, sender, now)


class Reminded(Overlay):
    """Delivers when a timer runs out; nothing but the timer tells that it has not yet."""

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        for effect in super().receive(message, sender, now):
            yield SetTimer(message.id, 1) if isinstance(effect, Deliver) else effect

    def timeout(self, timer: Hashable, now: int) -> Effects:
        assert isinstance(timer, MessageId)
        yield Deliver(Message(*timer))


class Scribbler(Timestamp):
    """Writes on what it sends and on what it has delivered, which others must not notice."""

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        for effect in super().multicast(payload, destinations, now):
            yield effect
            if not isinstance(effect, Deliver):
                effect.message.vector[:] = 9  # type: ignore[union-attr]

    def deliver(self, message: VectorMessage) -> Effects:
        for effect in super().deliver(message):
            yield effect
            effect.message.vector[:] = 9  # type: ignore[union-attr]


class Mute(Overlay):
    """Keeps everything to itself and counts nothing."""

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        yield from ()


class Fragile(Overlay):
    """Fails on the second message of a source."""

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if message.seq == 2:
            raise KeyError("two")
        yield from super().receive(message, sender, now)


class Liar(Overlay):
    """Delivers a message that nobody sent."""

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        yield Deliver(Message(message.source, message.seq + 5))


class Amnesiac(KS):
    """Takes what is new to its log for something that it has forgotten."""

    def learn(self, message: KSMessage) -> None:
        self.LOG = to_log(self.place.processes, [(*message.id, 0)])


class Hasty(KS):
    """Takes a message for delivered at a destination as soon as it is sent there."""

    def propagate(self, dests: Dests) -> tuple[KSLog, list[KSLog]]:
        rest, _ = super().propagate(dests)
        return rest, [rest] * dests.bit_count()


class NewestOnly(KS):
    """Keeps of each sender's messages only the newest in mind."""

    def learn(self, message: KSMessage) -> None:
        super().learn(message)
        newest = [(s, t, dests) for s, t, dests in self.LOG if t == self.LOG.newest[s]]
        self.LOG = to_log(self.place.processes, newest)


class Grouped(RST):
    """RST for a system of groups."""

    takes_subsets: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = True

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        assert destinations in self.place.groups
        yield from super().multicast(payload, destinations, now)


class Stray(Timestamp):
    """Takes every set of destinations for everybody."""

    takes_subsets: ClassVar[bool] = True


class Greeting(Overlay):
    """Says hello to the next process, sets a timer, and delivers nothing before both have come."""

    def start(self, now: int) -> Effects:
        self.lacks = {"hello", "alarm"}
        self.inbox: list[tuple[Message, int]] = []
        yield Send(((self.me + 1) % self.place.processes,), Message(self.me, 0))
        yield SetTimer("alarm", 1)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        yield from self.got(str(timer), now)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if message.seq == 0:
            yield from self.got("hello", now)
        else:
            self.inbox.append((message, sender))
            yield from self.got("", now)

    def got(self, what: str, now: int) -> Effects:
        self.lacks.discard(what)
        while self.inbox and not self.lacks:
            yield from super().receive(*self.inbox.pop(0), now)


class Deaf(Greeting):
    """Waits for something else that nobody says."""

    def start(self, now: int) -> Effects:
        yield from super().start(now)
        self.lacks.add("goodbye")


class Stillborn(Overlay):
    """Fails at once."""

    def start(self, now: int) -> Effects:
        raise OSError("no cradle")


class Shy(Timestamp):
    """Speaks only once, and is busy ever after."""

    def busy(self) -> bool:
        return bool(self.T[self.me])


class PingPong(Overlay):
    """Sends back what it gets, for ever."""

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        yield Send((sender,), message)


class Restless(Overlay):
    """Sets its timer again and again, which keeps nobody from anything."""

    def start(self, now: int) -> Effects:
        yield SetTimer("tick", 1)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        yield SetTimer(timer, 1)


class Tired(Restless):
    """Hears nothing any more once it has heard two messages, though its timer ticks on."""

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if sum(self.seen) < 2:
            yield from super().receive(message, sender, now)
