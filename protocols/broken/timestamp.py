"""Timestamp with one mistake at a time; ``testbed explore`` shows what each leads to."""

from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from ..base import Deliver, Discard, Effects, Place
from ..timestamp import Timestamp, Vector, VectorMessage
from ..wire import MessageId


class Impatient(Timestamp):
    """Delivers every message on arrival.

    Broken rule: a message waits for its causal past. Two messages among three processes: the answer
    overtakes the question. With channels that are not FIFO, two processes are enough.
    """

    name: ClassVar[str] = "broken-impatient"

    @override
    def missing(self, message: VectorMessage) -> MessageId | None:
        return None


class FifoOnly(Timestamp):
    """Looks at the source's entry only.

    Broken rule: m.T[k] <= T[k] for all other k. What is left is FIFO order, whatever the channels;
    two messages among three processes, the relay triangle, tell it from causal order.
    """

    name: ClassVar[str] = "broken-fifo-only"

    @override
    def missing(self, message: VectorMessage) -> MessageId | None:
        if message.seq > self.T[message.source] + 1:
            return MessageId(message.source, message.seq - 1)
        return None


class NoFifo(Timestamp):
    """Looks at all entries but the source's own, relying on FIFO channels.

    Broken rule: m.T[s] = T[s] + 1. Channels do not help: two messages of one process that both wait
    for a third become deliverable together, and the newer may go first. Three messages, three
    processes, a chain.
    """

    name: ClassVar[str] = "broken-no-fifo"

    @override
    def missing(self, message: VectorMessage) -> MessageId | None:
        late = message.vector > self.T
        late[message.source] = False
        k = int(late.argmax())
        return MessageId(k, int(message.vector[k])) if late[k] else None


class OffByOne(Timestamp):
    """Accepts a message although one message of each other process is missing.

    Broken rule: m.T[k] <= T[k], read as m.T[k] <= T[k] + 1, which is right for the source alone.
    """

    name: ClassVar[str] = "broken-off-by-one"

    @override
    def missing(self, message: VectorMessage) -> MessageId | None:
        late = message.vector > self.T + 1
        k = int(late.argmax())
        return MessageId(k, int(message.vector[k]) - 1) if late[k] else None


class NoRescan(Timestamp):
    """Never looks at its hold-back queue again.

    Broken rule: after a delivery the hold-back queue is searched. No message is out of order, but
    one that was held back is never delivered.
    """

    name: ClassVar[str] = "broken-no-rescan"

    @override
    def deliver(self, message: VectorMessage) -> Effects:
        self.T[message.source] = message.seq
        yield Deliver(message)


class SinglePass(Timestamp):
    """Searches its hold-back queue once after an arrival.

    Broken rule: the search is repeated until it finds nothing more. Of a chain of three messages
    whose last two arrive in the wrong order before the first, one is never delivered.
    """

    name: ClassVar[str] = "broken-single-pass"

    @override
    def deliver(self, message: VectorMessage) -> Effects:
        self.T[message.source] = message.seq
        yield Deliver(message)
        for waiting in self.waiting.pop(message.id, ()):
            if missing := self.missing(waiting):
                self.waiting[missing].append(waiting)
            elif waiting.seq > self.T[waiting.source]:
                self.T[waiting.source] = waiting.seq
                yield Deliver(waiting)


class Merge(Timestamp):
    """Merges a message's vector into its own on arrival.

    Broken rule: T counts what was *delivered*. Vector clocks are merged like this, but here messages
    still in flight then look delivered: later ones go first, and they are dropped as duplicates.
    """

    name: ClassVar[str] = "broken-merge"

    @override
    def receive(self, message: VectorMessage, sender: int, now: int) -> Effects:
        mine = self.T[message.source]
        np.maximum(self.T, message.vector, out=self.T)
        self.T[message.source] = mine
        yield from super().receive(message, sender, now)


class LastCause(Timestamp):
    """Attaches only the entry of the message that it delivered last.

    Broken rule: a message carries the whole vector. The last cause seems to cover the causes before
    it, but two concurrent messages may both have been delivered.
    """

    name: ClassVar[str] = "broken-last-cause"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.last_cause = place.me

    @override
    def stamp(self) -> Vector:
        whole = super().stamp()
        vector = np.zeros_like(whole)
        for k in (self.me, self.last_cause):
            vector[k] = whole[k]
        return vector

    @override
    def deliver(self, message: VectorMessage) -> Effects:
        for effect in super().deliver(message):
            if isinstance(effect, Deliver):
                self.last_cause = effect.message.source
            yield effect


class Uncounted(Timestamp):
    """Does not count its own messages as delivered.

    Broken rule: T[me] grows with each multicast. Answers to a message wait at its sender for that
    message, which never arrives there. Two messages, two processes.
    """

    name: ClassVar[str] = "broken-uncounted"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base

    @override
    def stamp(self) -> Vector:
        self.sent += 1
        vector = self.T.copy()
        vector[self.me] = self.sent
        return vector


class LateUpdate(Timestamp):
    """Counts a delivery after the application has handled it.

    Broken rule: state is up to date at every ``yield``. An application that answers during the
    delivery sends an answer without its question in the vector. Nothing else shows it.
    """

    name: ClassVar[str] = "broken-late-update"

    @override
    def deliver(self, message: VectorMessage) -> Effects:
        ready = [message]
        while ready:
            message = ready.pop()
            if message.seq <= self.T[message.source]:
                yield Discard(message, "duplicate")
                continue
            yield Deliver(message)
            self.T[message.source] = message.seq
            for waiting in self.waiting.pop(message.id, ()):
                if missing := self.missing(waiting):
                    self.waiting[missing].append(waiting)
                else:
                    ready.append(waiting)
