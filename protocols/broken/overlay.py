"""Overlay with one mistake at a time; ``testbed explore`` shows what each leads to."""

from collections.abc import Hashable
from typing import Any, ClassVar

from typing_extensions import override

from ..base import Deliver, Effects, Place, Send, SetTimer
from ..overlay import Overlay
from ..wire import Message


class Printed(Overlay):
    """The figure as printed: deliver, then forward.

    Broken rule: deliver last. An application that answers during the delivery sends its answer ahead
    of the question. As long as none does, nothing is wrong.
    """

    name: ClassVar[str] = "broken-printed"

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if self.is_new(message):
            self.seen[message.source] = message.seq
            yield Deliver(message)
            yield Send(self.onward(message, sender), message)


class Higher(Overlay):
    """Forwards only to neighbours with higher numbers, to save messages.

    Broken rule: forward to *all* neighbours but the one it came from. Of three processes each still
    gets everything from its source; only the order is lost.
    """

    name: ClassVar[str] = "broken-higher"

    @override
    def onward(self, message: Message, sender: int) -> tuple[int, ...]:
        return tuple(p for p in self.neighbours if p != sender and p > self.me)


class Stingy(Overlay):
    """Does not forward what came directly from its source, whose neighbours all get it.

    Broken rule: *every* first copy is forwarded. The neighbours of the source get it, but perhaps
    after the answer; processes further away never do.
    """

    name: ClassVar[str] = "broken-stingy"

    @override
    def onward(self, message: Message, sender: int) -> tuple[int, ...]:
        return () if sender == message.source else super().onward(message, sender)


class Echo(Overlay):
    """Takes every copy for a new message.

    Broken rule: what is not above ``seen`` is dropped. One message among three processes circulates
    forever.
    """

    name: ClassVar[str] = "broken-echo"

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        yield Send(self.onward(message, sender), message)
        yield Deliver(message)


class Newest(Overlay):
    """Recognises duplicates of a source's newest message only.

    Broken rule: a number *not above* ``seen`` is a duplicate, not only an equal one. It takes two
    messages of one source, the first of which comes back by a longer path.
    """

    name: ClassVar[str] = "broken-newest"

    @override
    def is_new(self, message: Message) -> bool:
        return message.seq != self.seen[message.source]


class Forgetful(Overlay):
    """Does not remember its own messages.

    Broken rule: ``seen`` includes what the process sent itself. Its neighbours' copies come back to
    it as news.
    """

    name: ClassVar[str] = "broken-forgetful"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base

    @override
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        self.sent += 1
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.neighbours, message)
        yield Deliver(message)


class Lazy(Overlay):
    """Batches what is to be forwarded, and forwards it a millisecond later.

    Broken rule: forward *before* delivering. An answer within that millisecond is ahead of the
    question on the same channels.
    """

    name: ClassVar[str] = "broken-lazy"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.gathered: list[tuple[tuple[int, ...], Message]] = []

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if self.is_new(message):
            self.seen[message.source] = message.seq
            self.gathered.append((self.onward(message, sender), message))
            yield SetTimer("forward", 1_000_000)
            yield Deliver(message)

    @override
    def timeout(self, timer: Hashable, now: int) -> Effects:
        gathered, self.gathered = self.gathered, []
        for peers, message in gathered:
            yield Send(peers, message)
