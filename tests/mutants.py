"""Protocols with a realistic mistake each; the oracle must catch them."""

from protocols import Deliver, Effects, Message, MessageId, Overlay, Send, Timestamp
from protocols.timestamp import Stamped


class ImpatientTimestamp(Timestamp):
    """Delivers whatever arrives, in the order of arrival."""

    def missing(self, message: Stamped) -> MessageId | None:
        return None


class FifoTimestamp(Timestamp):
    """Looks at the source's own entry alone: FIFO order, not causal order."""

    def missing(self, message: Stamped) -> MessageId | None:
        if message.seq > self.T[message.source] + 1:
            return MessageId(message.source, message.seq - 1)
        return None


class PrintedOverlay(Overlay):
    """Fig. 2 as printed: deliver, then forward."""

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if message.seq <= self.seen[message.source]:
            return
        self.seen[message.source] = message.seq
        yield Deliver(message)
        yield Send(tuple(peer for peer in self.neighbours if peer != sender), message)
