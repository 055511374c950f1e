"""The two ends of a reliable stream: what is in flight to a receiver, what came from a sender.

Book-keeping without effects; ``reliable`` acts on it.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile

from ..wire import Message

REORDERING = 3  # a segment this far behind one that has arrived is lost; grows with reordering
AT_ONCE = 2  # unacknowledged segments that are acknowledged without delay


@dataclass
class Stream:
    """Messages for the same receivers, numbered from 1; those beyond the window wait."""

    id: int
    peers: tuple[int, ...]
    next: int = 1
    waiting: deque[Message] = field(default_factory=deque)


@dataclass
class Flight:
    """A segment in flight: its latest transmission, the ``order``-th to its receiver."""

    message: Message
    order: int
    sent_at: int
    again: bool = False


@dataclass
class Outgoing:
    """How far one receiver has got in a stream.

    ``start`` is the number that the receiver must be told to start with, or 0.
    """

    stream: Stream
    first: int = 1  # the oldest number that it has not acknowledged
    start: int = 0
    transmissions: int = 0
    arrived: int = 0  # the newest transmission that has arrived
    reordering: int = REORDERING
    flights: dict[int, Flight] = field(default_factory=dict)  # by number, in order of transmission

    def launch(self, number: int, message: Message, now: int) -> None:
        """Record the first transmission of a segment."""
        self.transmissions += 1
        self.flights[number] = Flight(message, self.transmissions, now)

    def launch_again(self, number: int, now: int) -> Message:
        """Record a retransmission."""
        self.transmissions += 1
        message = self.flights.pop(number).message
        self.flights[number] = Flight(message, self.transmissions, now, again=True)
        return message

    def acknowledge(self, ack: int, beyond: int, soonest: int) -> Flight | None:
        """Record what has arrived; the latest transmission among it, if anything was in flight.

        A retransmission after ``soonest`` cannot have arrived yet, so the first copy has: the
        network has reordered it, and more of that is tolerated from now on.
        """
        if ack >= self.stream.next:
            return None  # nothing was sent under that number
        have = [
            number
            for number in self.flights
            if number <= ack or (number > ack + 1 and beyond >> (number - ack - 2) & 1)
        ]
        self.first = max(self.first, ack + 1)
        flights = [self.flights.pop(number) for number in have]
        if any(flight.again and flight.sent_at > soonest for flight in flights):
            self.reordering = min(2 * self.reordering, self.transmissions)
        newest = max(flights, key=lambda flight: flight.order, default=None)
        if newest:
            self.arrived = max(self.arrived, newest.order)
        return newest

    def lost(self, overdue: int) -> list[int]:
        """The numbers that were overtaken: by some steps, or at all if sent before ``overdue``."""

        def is_lost(flight: Flight) -> bool:
            steps = self.arrived - flight.order
            return steps >= self.reordering or (steps > 0 and flight.sent_at <= overdue)

        return [number for number, _ in takewhile(lambda f: is_lost(f[1]), self.flights.items())]

    def probes(self) -> set[int]:
        """The oldest and the newest number in flight: whichever arrives tells of the rest."""
        return {min(self.flights), max(self.flights)} if self.flights else set()


@dataclass
class Incoming:
    """What has come of a peer's stream; ``expected`` is 0 until its start is known."""

    expected: int
    early: dict[int, Message] = field(default_factory=dict)  # by number, beyond the expected one
    due: int = 0  # segments that have not been acknowledged

    def acknowledge(self) -> tuple[int, int]:
        """The number up to which all have arrived, and in bit i whether that + 2 + i has too."""
        self.due = 0
        beyond = sum(1 << number - self.expected - 1 for number in self.early)
        return max(0, self.expected - 1), beyond

    def has(self, number: int) -> bool:
        """Whether this number has arrived before."""
        return number < self.expected or number in self.early

    def add(self, number: int, message: Message) -> list[Message]:
        """Add a new message; those that are now in order.

        A gap, and the end of a gap, is acknowledged at once.
        """
        in_order = number == self.expected and not self.early
        self.due = self.due + 1 if in_order else AT_ONCE
        self.early[number] = message
        ready = []
        while self.expected in self.early:
            ready.append(self.early.pop(self.expected))
            self.expected += 1
        return ready


@dataclass
class RoundTrip:
    """Jacobson's estimate of the time until an acknowledgement comes, in nanoseconds."""

    timeout: int
    mean: int = 0  # not measured yet
    deviation: int = 0

    @property
    def patience(self) -> int:
        """The time after which it has come, unless the peer delayed it."""
        return self.mean + 4 * self.deviation

    def measure(self, sample: int, ack_delay: int, least: int, most: int) -> None:
        """Take the sample of a segment that was transmitted once."""
        if self.mean:
            self.deviation += (abs(sample - self.mean) - self.deviation) // 4
            self.mean += (sample - self.mean) // 8
        else:
            self.mean, self.deviation = sample, sample // 2
        self.timeout = min(most, max(least, self.patience + ack_delay))

    def back_off(self, most: int) -> None:
        """Double the timeout; by Karn's rule it stays until a segment sent once is acknowledged."""
        self.timeout = min(most, 2 * self.timeout)
