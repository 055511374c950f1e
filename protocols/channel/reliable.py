"""The reliable FIFO channel: TCP's ideas, as a layer between a protocol and a network of datagrams.

The network may lose, duplicate, delay and reorder. The protocol inside receives every message of
every peer once, in the order in which the peer sent it:

- messages are numbered; a fixed window of them may be in flight to a peer (no congestion control);
- acknowledgements are cumulative, with a bitmap beyond a gap; they travel on data, or after a short
  delay, or with every second segment;
- a segment is lost, and retransmitted at once, if one that was sent three or more after it has arrived,
  or any later one when its time is over (RFC 2018, 8985); three grows if the network reorders;
- else it is retransmitted after a timeout (RFC 6298: Jacobson's estimate, Karn's rule, exponential
  backoff), but only two segments as probes: their acknowledgement tells what else was lost;
- a peer that is silent after ``retries`` timeouts is given up: what is queued for it is dropped.

A network multicast stays one copy, numbered in a stream of its own for its set of receivers; each
acknowledges, and what one misses is retransmitted to it alone. Order is kept within such a stream and
within what goes to one peer alone, but *not between the two*.

A restarted process has a higher incarnation number, and each segment names those of both ends: what
is from or for a dead incarnation is refused. A peer that learns of a new incarnation starts again at
number 1, or in a multicast stream at the next number, which is marked as the start; what the old one
did not acknowledge is dropped. What was sent before the peer first answered is for any incarnation.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from typing_extensions import override

from ..base import NS_PER_MS, CancelTimer, Count, Effects, Multicast, Protocol, Send, SetTimer
from ..wire import Codec, Message
from .segments import INCARNATIONS, STREAMS, ChannelHeader, Segment, SegmentCodec
from .streams import AT_ONCE, Incoming, Outgoing, RoundTrip, Stream

UNKNOWN = -1


@dataclass
class Connection:
    """The state of the channel to and from one peer."""

    own: Stream  # what goes to this peer alone
    trip: RoundTrip
    incarnation: int = UNKNOWN
    outgoing: dict[int, Outgoing] = field(default_factory=dict)  # by stream
    incoming: dict[int, Incoming] = field(default_factory=dict)
    timeouts: int = 0  # since the last segment from it
    given_up: bool = False
    ack_timer: bool = False
    retransmit_timer: bool = False

    @property
    def receiver(self) -> int:
        """The incarnation that segments are addressed to; the first, until one is known."""
        return max(0, self.incarnation)

    def unacknowledged(self) -> int:
        """The number of messages that it has not acknowledged, sent or still waiting."""
        if self.given_up:
            return 0
        sent = sum(out.stream.next - out.first for out in self.outgoing.values())
        return sent + len(self.own.waiting)


class Reliable(Protocol):
    """Wraps a protocol, whose messages travel as segments."""

    name: ClassVar[str] = "reliable"
    paper: ClassVar[str] = "RFC 2018, 6298, 8985"

    @dataclass(frozen=True)
    class Settings(Protocol.Settings):
        """The window is in messages a peer; the channel is busy when as many again are waiting."""

        window: int = 64
        ack_delay_ms: float = 10
        initial_rto_ms: float = 500
        min_rto_ms: float = 20
        max_rto_ms: float = 2000
        retries: int = 30

        def __post_init__(self) -> None:
            if self.window < 1 or self.retries < 0 or self.ack_delay_ms < 0:
                raise ValueError("a window is at least 1; retries and delays are not negative")
            if not 0 < self.min_rto_ms <= self.initial_rto_ms <= self.max_rto_ms:
                raise ValueError("min_rto_ms, initial_rto_ms and max_rto_ms rise in this order")

    def __init__(self, inner: Protocol, settings: Any = None) -> None:
        super().__init__(inner.place, settings)
        self.inner = inner
        self.incarnation = inner.place.incarnation
        if self.incarnation >= INCARNATIONS:
            raise ValueError(f"incarnation {self.incarnation}; the last is {INCARNATIONS - 1}")
        self.window: int = self.settings.window
        self.ack_delay = round(self.settings.ack_delay_ms * NS_PER_MS)
        self.min_rto = round(self.settings.min_rto_ms * NS_PER_MS)
        self.max_rto = round(self.settings.max_rto_ms * NS_PER_MS)
        self.connections = {peer: self._connect(peer) for peer in inner.place.others}
        self.groups: dict[tuple[int, ...], Stream] = {}

    @override
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        yield from self._translate(self.inner.multicast(payload, destinations, now), now)

    def receive(self, message: Segment, sender: int, now: int) -> Effects:
        """Process the acknowledgement, pass on what is in order, send what the window now allows."""
        connection, channel = self.connections[sender], message.channel
        if channel.incarnation < connection.incarnation:
            yield Count("channel_stale")
            return
        for_many, for_me = channel.ack is None, channel.receiver == self.incarnation
        if channel.incarnation > connection.incarnation:
            yield from self._meet(sender, channel.incarnation, for_me and not for_many, now)
            connection = self.connections[sender]
        progress = False
        if not (for_many or for_me):
            yield Count("channel_stale")
            if message.message is not None:  # the peer addresses an incarnation that is dead
                yield from self._acknowledge(sender, 0)
        else:
            connection.timeouts = 0
            if channel.ack is not None:
                acked = channel.stream if message.message is None else 0
                progress = self._acknowledged(connection, acked, channel.ack, channel.beyond, now)
            if message.message is not None:
                yield from self._take(message.message, sender, channel, now)
        yield from self._resume(sender, now, progress)

    @override
    def timeout(self, timer: Hashable, now: int) -> Effects:
        match timer:
            case ("inner", name):
                yield from self._translate(self.inner.timeout(name, now), now)
            case ("ack", int(peer)):
                self.connections[peer].ack_timer = False
                for stream, incoming in self.connections[peer].incoming.items():
                    if incoming.due:
                        yield from self._acknowledge(peer, stream)
            case ("retransmit", int(peer)):
                self.connections[peer].retransmit_timer = False
                yield from self._retransmit(peer, now)

    def start(self, now: int) -> Effects:
        """After a restart, tell the peers of the new incarnation before anything is sent."""
        if self.place.incarnation:
            for peer in self.peers():
                yield from self._acknowledge(peer, 0)
        yield from self._translate(self.inner.start(now), now)

    @override
    def join(self, now: int) -> Effects:
        yield from self._translate(self.inner.join(now), now)

    @override
    def leave(self, now: int) -> Effects:
        yield from self._translate(self.inner.leave(now), now)

    @override
    def busy(self) -> bool:
        streams = [connection.own for connection in self.connections.values()]
        full = any(len(s.waiting) >= self.window for s in (*streams, *self.groups.values()))
        return full or self.inner.busy()

    def peers(self) -> tuple[int, ...]:
        """Those of the protocol inside; all if it multicasts, since each one acknowledges."""
        return self.place.others if self.inner.multicasts() else self.inner.peers()

    @override
    def multicasts(self) -> bool:
        return self.inner.multicasts()

    @override
    def codec(self, run: int, processes: int) -> Codec:  # type: ignore[override]
        return SegmentCodec(self.inner.wire_id, self.inner.messages, run, processes)

    # what the protocol inside sends

    def _translate(self, effects: Effects, now: int) -> Effects:
        for effect in effects:
            if isinstance(effect, Send):
                for peer in effect.peers:
                    yield from self._enqueue(self.connections[peer].own, effect.message, now)
            elif isinstance(effect, Multicast):
                for stream in self._streams(effect.peers):
                    yield from self._enqueue(stream, effect.message, now)
            elif isinstance(effect, SetTimer):
                yield SetTimer(("inner", effect.timer), effect.delay)
            elif isinstance(effect, CancelTimer):
                yield CancelTimer(("inner", effect.timer))
            else:
                yield effect

    def _streams(self, peers: tuple[int, ...]) -> list[Stream]:
        """The multicast stream of these receivers; if there are too many sets, each one's own."""
        if peers not in self.groups:
            if len(self.groups) == STREAMS - 1 or not peers:
                return [self.connections[peer].own for peer in peers]
            stream = self.groups[peers] = Stream(len(self.groups) + 1, peers)
            for connection in map(self.connections.__getitem__, peers):
                connection.outgoing[stream.id] = Outgoing(
                    stream, start=int(connection.incarnation > 0)
                )
        return [self.groups[peers]]

    def _enqueue(self, stream: Stream, message: Message, now: int) -> Effects:
        reachable = [peer for peer in stream.peers if not self.connections[peer].given_up]
        if len(reachable) < len(stream.peers):
            yield Count("channel_given_up", len(stream.peers) - len(reachable))
        if reachable:
            stream.waiting.append(message)
            yield from self._advance(stream, now)

    def _advance(self, stream: Stream, now: int) -> Effects:
        """Send what is waiting, as far as every receiver's window allows."""
        peers = [peer for peer in stream.peers if not self.connections[peer].given_up]
        outgoing = {peer: self.connections[peer].outgoing[stream.id] for peer in peers}
        if not outgoing:
            stream.waiting.clear()
        end = self.window + min((out.first for out in outgoing.values()), default=0)
        while stream.waiting and stream.next < end:
            message, number = stream.waiting.popleft(), stream.next
            stream.next += 1
            for out in outgoing.values():
                out.launch(number, message, now)
            if stream.id == 0:
                yield Send(stream.peers, self._segment(message, stream.peers[0], 0, number))
            else:
                header = ChannelHeader(self.incarnation, stream=stream.id, number=number)
                yield Multicast(stream.peers, Segment.of(message, header))
                for peer, out in outgoing.items():
                    if out.start == number:
                        yield from self._send_again(peer, out, number, now)
        for peer in outgoing:
            yield from self._set_timers(peer)

    def _send_again(self, peer: int, out: Outgoing, number: int, now: int) -> Effects:
        yield Count("channel_retransmissions")
        message = out.launch_again(number, now)
        start = number == out.start
        yield Send((peer,), self._segment(message, peer, out.stream.id, number, start))

    def _segment(
        self, message: Message, peer: int, stream: int, number: int, start: bool = False
    ) -> Segment:
        """A message for one peer, with an acknowledgement on it."""
        connection = self.connections[peer]
        ack = self._incoming(connection, 0).acknowledge()
        header = ChannelHeader(self.incarnation, connection.receiver, stream, start, number, *ack)
        return Segment.of(message, header)

    # what comes from the network

    def _acknowledged(
        self, connection: Connection, stream: int, ack: int, beyond: int, now: int
    ) -> bool:
        """Process an acknowledgement; whether it is news."""
        out = connection.outgoing.get(stream)
        newest = out.acknowledge(ack, beyond, now - connection.trip.mean // 2) if out else None
        if newest and not newest.again:
            connection.trip.measure(
                now - newest.sent_at, self.ack_delay, self.min_rto, self.max_rto
            )
        return newest is not None

    def _take(self, message: Message, sender: int, channel: ChannelHeader, now: int) -> Effects:
        """Keep what is new, and pass on what is in order."""
        assert channel.number is not None
        incoming = self._incoming(self.connections[sender], channel.stream)
        if channel.start and not incoming.expected:
            incoming.expected = channel.number
        if incoming.has(channel.number):
            yield Count("channel_duplicates")
            incoming.due = AT_ONCE
        elif not incoming.expected or channel.number >= incoming.expected + self.window:
            incoming.due = AT_ONCE  # it cannot be kept, and the acknowledgement tells why
        else:
            for ready in incoming.add(channel.number, message):
                yield from self._translate(self.inner.receive(ready, sender, now), now)

    def _resume(self, peer: int, now: int, progress: bool = False) -> Effects:
        """Retransmit what was lost, send what waits, acknowledge what cannot wait."""
        connection = self.connections[peer]
        for out in connection.outgoing.values():
            for number in out.lost(overdue=now - connection.trip.patience):
                yield from self._send_again(peer, out, number, now)
            if out.stream.waiting:
                yield from self._advance(out.stream, now)
        for stream, incoming in connection.incoming.items():
            if incoming.due >= AT_ONCE:
                yield from self._acknowledge(peer, stream)
        yield from self._set_timers(peer, progress)

    def _acknowledge(self, peer: int, stream: int) -> Effects:
        connection = self.connections[peer]
        ack = self._incoming(connection, stream).acknowledge()
        header = ChannelHeader(self.incarnation, connection.receiver, stream, False, None, *ack)
        yield Count("channel_acks")
        yield Send((peer,), Segment(self.me, 0, channel=header))

    def _incoming(self, connection: Connection, stream: int) -> Incoming:
        """What has come in a stream; a restarted process is told where it enters a multicast stream."""
        if stream not in connection.incoming:
            connection.incoming[stream] = Incoming(expected=int(not (stream and self.incarnation)))
        return connection.incoming[stream]

    # silence and return of a peer

    def _set_timers(self, peer: int, progress: bool = False) -> Effects:
        """Set the timers that are needed and cancel the others; progress resets the timeout."""
        connection = self.connections[peer]
        due = any(incoming.due for incoming in connection.incoming.values())
        if due != connection.ack_timer:
            connection.ack_timer = due
            yield SetTimer(("ack", peer), self.ack_delay) if due else CancelTimer(("ack", peer))
        under_way = any(out.flights for out in connection.outgoing.values())
        if under_way and (progress or not connection.retransmit_timer):
            connection.retransmit_timer = True
            yield SetTimer(("retransmit", peer), connection.trip.timeout)
        elif connection.retransmit_timer and not under_way:
            connection.retransmit_timer = False
            yield CancelTimer(("retransmit", peer))

    def _retransmit(self, peer: int, now: int) -> Effects:
        """Nothing was heard in time: retransmit two segments, or give the peer up."""
        connection = self.connections[peer]
        connection.timeouts += 1
        if connection.timeouts > self.settings.retries:
            yield from self._give_up(connection)
        else:
            connection.trip.back_off(self.max_rto)
            for out in connection.outgoing.values():
                for number in sorted(out.probes()):
                    yield from self._send_again(peer, out, number, now)
        yield from self._resume(peer, now)

    def _give_up(self, connection: Connection) -> Effects:
        """Drop what is queued for a peer; multicast streams go on without it."""
        shared = sum(len(s.waiting) for s in self.groups.values() if s.id in connection.outgoing)
        yield Count("channel_given_up", connection.unacknowledged() + shared)
        connection.given_up = True
        connection.own.waiting.clear()
        for out in connection.outgoing.values():
            out.flights.clear()

    def _meet(self, peer: int, incarnation: int, knows_me: bool, now: int) -> Effects:
        """A peer is heard from for the first time, or has restarted."""
        connection = self.connections[peer]
        if incarnation == connection.receiver:
            connection.incarnation = incarnation if knows_me else UNKNOWN  # it may be dead by now
        elif connection.incarnation == UNKNOWN and not connection.given_up:
            connection.incarnation = incarnation
            connection.incoming.clear()
            for out in connection.outgoing.values():  # what was sent went to another incarnation
                out.start = int(out.stream.id > 0)
                for number in sorted(out.flights):
                    yield from self._send_again(peer, out, number, now)
        else:
            yield Count("channel_given_up", connection.unacknowledged())
            fresh = self.connections[peer] = self._connect(peer)
            fresh.incarnation = incarnation
            fresh.ack_timer = connection.ack_timer
            fresh.retransmit_timer = connection.retransmit_timer
            for stream in (out.stream for out in connection.outgoing.values() if out.stream.id):
                fresh.outgoing[stream.id] = Outgoing(stream, stream.next, start=stream.next)

    def _connect(self, peer: int) -> Connection:
        initial_rto = round(self.settings.initial_rto_ms * NS_PER_MS)
        connection = Connection(Stream(0, (peer,)), RoundTrip(initial_rto))
        connection.outgoing[0] = Outgoing(connection.own)
        return connection
