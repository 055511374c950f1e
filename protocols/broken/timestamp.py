"""Timestamp with one mistake at a time; ``testbed explore`` shows what each leads to."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base import Deliver, Discard, Effects, Multicast, Place, Send
from ..timestamp import Stamped, Timestamp
from ..wire import MessageId


class Impatient(Timestamp):
    """Delivers whatever arrives, as it arrives.

    Broken rule: a message waits for what it depends on. Two messages on three processes: the answer
    overtakes the question. With channels that are not FIFO, two processes are enough.
    """

    name: ClassVar[str] = "broken-impatient"

    def missing(self, message: Stamped) -> MessageId | None:
        """Nothing is ever missing."""
        return None


class FifoOnly(Timestamp):
    """Looks at the entry of the source alone.

    Broken rule: m.T[k] <= T[k] for all other k. What is left is FIFO order, whatever the channels;
    two messages on three processes, the relay triangle, tell it from causal order.
    """

    name: ClassVar[str] = "broken-fifo-only"

    def missing(self, message: Stamped) -> MessageId | None:
        """The source's previous message, at most."""
        if message.seq > self.T[message.source] + 1:
            return MessageId(message.source, message.seq - 1)
        return None


class NoFifo(Timestamp):
    """Looks at all entries but the source's own, trusting in FIFO channels.

    Broken rule: m.T[s] = T[s] + 1. Channels do not help: two messages of one process that both wait
    for a third become deliverable together, and the newer may go first. Three messages, three
    processes, a chain.
    """

    name: ClassVar[str] = "broken-no-fifo"

    def missing(self, message: Stamped) -> MessageId | None:
        """A message of another process."""
        late = message.vector > self.T
        late[message.source] = False
        k = int(late.argmax())
        return MessageId(k, int(message.vector[k])) if late[k] else None


class OffByOne(Timestamp):
    """Accepts a message although one message of each other process is missing.

    Broken rule: m.T[k] <= T[k], read as m.T[k] <= T[k] + 1, which is right for the source alone.
    """

    name: ClassVar[str] = "broken-off-by-one"

    def missing(self, message: Stamped) -> MessageId | None:
        """A message, if one before it is missing too."""
        late = message.vector > self.T + 1
        k = int(late.argmax())
        return MessageId(k, int(message.vector[k]) - 1) if late[k] else None


class NoRescan(Timestamp):
    """Never looks again at what it keeps.

    Broken rule: after a delivery, the buffer is searched. No message is out of order; one that once
    had to wait is never delivered at all.
    """

    name: ClassVar[str] = "broken-no-rescan"

    def deliver(self, message: Stamped) -> Effects:
        """This message, and no other."""
        self.T[message.source] = message.seq
        yield Deliver(message)


class SinglePass(Timestamp):
    """Looks through what it keeps once after an arrival.

    Broken rule: the search is repeated until it finds nothing more. It takes a chain of three, whose
    last two arrive in the wrong order before the first, for one to stay behind.
    """

    name: ClassVar[str] = "broken-single-pass"

    def deliver(self, message: Stamped) -> Effects:
        """The message that arrived, and what waited for it."""
        self.T[message.source] = message.seq
        yield Deliver(message)
        for waiting in self.buffer.pop(message.id, ()):
            if missing := self.missing(waiting):
                self.buffer[missing].append(waiting)
            elif waiting.seq > self.T[waiting.source]:
                self.T[waiting.source] = waiting.seq
                yield Deliver(waiting)


class Merge(Timestamp):
    """Takes the maximum of its own vector and a message's when that arrives.

    Broken rule: T counts what was *delivered*. So are clocks merged, but here it makes messages that
    are still on their way look delivered: others go first, and they are dropped as duplicates.
    """

    name: ClassVar[str] = "broken-merge"

    def receive(self, message: Stamped, sender: int, now: int) -> Effects:
        """Merge all but the source's own entry, then go on as usual."""
        mine = self.T[message.source]
        np.maximum(self.T, message.vector, out=self.T)
        self.T[message.source] = mine
        yield from super().receive(message, sender, now)


class LastCause(Timestamp):
    """Sends along only the entry of the message that it delivered last.

    Broken rule: a message carries the whole vector. That the last cause has causes of its own seems
    to cover the rest, but two messages that are not related at all may both have been delivered.
    """

    name: ClassVar[str] = "broken-last-cause"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.last = place.me

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The own entry and one other."""
        self.T[self.me] += 1
        vector = np.zeros_like(self.T)
        for k in (self.me, self.last):
            vector[k] = self.T[k]
        message = Stamped(self.me, int(self.T[self.me]), payload, sent_at=now, vector=vector)
        yield (Multicast if self.multicasts() else Send)(self.others, message)
        yield Deliver(message)

    def deliver(self, message: Stamped) -> Effects:
        """Remember whose message was last."""
        for effect in super().deliver(message):
            if isinstance(effect, Deliver):
                self.last = effect.message.source
            yield effect


class Uncounted(Timestamp):
    """Does not count its own messages as delivered.

    Broken rule: T[me] grows with each multicast. Answers to a message wait at its sender for that
    message, which will never arrive there. Two messages, two processes.
    """

    name: ClassVar[str] = "broken-uncounted"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Count it in the message only."""
        self.sent += 1
        vector = self.T.copy()
        vector[self.me] = self.sent
        message = Stamped(self.me, self.sent, payload, sent_at=now, vector=vector)
        yield (Multicast if self.multicasts() else Send)(self.others, message)
        yield Deliver(message)


class LateUpdate(Timestamp):
    """Counts a delivery when the application is done with it.

    Broken rule: state is up to date at every ``yield``. An application that answers while it is being
    delivered to sends an answer that does not know its question. Nothing else shows it.
    """

    name: ClassVar[str] = "broken-late-update"

    def deliver(self, message: Stamped) -> Effects:
        """Deliver, then count."""
        ready = [message]
        while ready:
            message = ready.pop()
            if message.seq <= self.T[message.source]:
                yield Discard(message, "duplicate")
                continue
            yield Deliver(message)
            self.T[message.source] = message.seq
            for waiting in self.buffer.pop(message.id, ()):
                if missing := self.missing(waiting):
                    self.buffer[missing].append(waiting)
                else:
                    ready.append(waiting)
