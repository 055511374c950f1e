"""Lab 2: deliver the messages of each sender in the order in which they were sent, each of them once.

As it is, this delivers whatever arrives, as it arrives. Change ``__init__`` and ``receive``.
"""

from typing import Any, ClassVar

from testbed.protocols import (
    Deliver,
    Discard,
    Effects,
    Hold,
    Message,
    MessageId,
    Place,
    Protocol,
    Send,
)


class Fifo(Protocol):
    """One process. The testbed makes one object of this class for each of them."""

    name: ClassVar[str] = "my-fifo"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)  # sets self.me and self.place
        # All state belongs into self. place.processes is the number of processes, which are called
        # 0, 1, 2, …; self.me is this one; place.others are all but this one.
        self.sent = place.base  # the number of the last message that this process sent

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends a message to everybody. Nothing needs to be changed here."""
        self.sent += 1  # the first message of a process is number place.base + 1, the next + 2, …
        message = Message(self.me, self.sent, payload, sent_at=now)
        yield Send(self.place.others, message)  # copies for the network
        yield Deliver(message)  # and one for the application of this process itself

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """The network brings a message: message.source sent it, as its message number message.seq.

        What you may yield:
            Deliver(message)                          the application gets it, now
            Hold(message, MessageId(source, seq))     it waits, for the message of that name: a note for
                                                      the log, which keeps nothing for you
            Discard(message, "duplicate")             it is dropped: a note for the log as well
        """
        yield Deliver(message)
