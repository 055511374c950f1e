"""Overlay: constrained flooding over the links of a deterministic overlay network.

Friedman & Manor, "Causal Ordering in Deterministic Overlay Networks", 2004, Fig. 2.

A process sends a message to its overlay neighbours; a process that receives it for the first time
forwards it to all neighbours but the one it came from, and delivers it. Over FIFO channels this
alone keeps causal order: there is no control information, and no message is ever held back.

State: ``seen[s]``, the newest sequence number received from each source.
Invariant: every path is FIFO for every source, so a number not above ``seen`` is a duplicate.
Cost: 2|E| - n + 1 sends of 32 + d bytes for a broadcast over an overlay of |E| links.

The figure as printed delivers before it forwards. An application that answers at once would then
send its answer ahead of the question on the same channels; the paper's prose has the right order.
"""

from typing import Any, ClassVar

from typing_extensions import override

from .base import Deliver, Effects, Place, Protocol, Send
from .wire import Message


class Overlay(Protocol):
    """Constrained flooding over a deterministic overlay."""

    name: ClassVar[str] = "overlay"
    paper: ClassVar[str] = "Friedman & Manor 2004, Fig. 2"
    wire_id: ClassVar[int] = 1
    needs_overlay: ClassVar[bool] = True

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.neighbours = place.neighbours
        self.seen = [0] * place.processes
        self.seen[self.me] = place.base

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Lines 9-11: number the message and send it to all neighbours."""
        self.seen[self.me] += 1
        message = Message(self.me, self.seen[self.me], payload, sent_at=now)
        yield Send(self.neighbours, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Lines 1-8: forward and then deliver what is new; drop the rest."""
        if self.is_new(message):
            self.seen[message.source] = message.seq
            yield Send(self.onward(message, sender), message)
            yield Deliver(message)  # last: the application may answer at once

    def is_new(self, message: Message) -> bool:
        """Whether a message is no duplicate."""
        return message.seq > self.seen[message.source]

    def onward(self, message: Message, sender: int) -> tuple[int, ...]:
        """The neighbours that a message is forwarded to."""
        return tuple([peer for peer in self.neighbours if peer != sender])

    @override
    def peers(self) -> tuple[int, ...]:
        return self.neighbours
