"""A protocol on one group of all processes, by the four calls of the group layer.

What the application sends waits in the *outbox* while the view changes; then it is broadcast in the
view (``Group.cast``). What the group delivers (``Deliver``) is handed up where it is for this process.
How a message travels within the view is the protocol's ``way``.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from typing_extensions import override

from ..base import (
    NS_PER_MS,
    SEQUENCE_BITS,
    Count,
    Deliver,
    Effects,
    Figure,
    Place,
    Protocol,
    Send,
    SetTimer,
    Transition,
)
from ..daisy import Daisy
from ..groups.above import Above
from ..groups.casting import Way
from ..groups.detector import Timing
from ..groups.epochs import Epochs
from ..groups.group import Group
from ..groups.messages import Cast
from ..groups.passed import KINDS, Passed
from ..groups.states import SILENT, TRANSITIONS
from ..groups.view import FIRST, Member, View, ViewId
from ..wire import Message

TICK = "tick"


class Waiting(Above):
    """What waits to be broadcast would be lost if this process left."""

    def __init__(self, outbox: deque[Cast]) -> None:
        self.outbox = outbox

    @override
    def needs_this_process(self) -> bool:
        return bool(self.outbox)


class Flat(Protocol):
    """One group of all processes."""

    paper: ClassVar[str] = "Baldoni, Friedman & van Renesse 1996, section 2.3"
    takes_subsets: ClassVar[bool] = True
    rests: ClassVar[bool] = False
    transitions: ClassVar[tuple[Transition, ...]] = tuple(
        row for row in TRANSITIONS if SILENT not in row and row.event not in ("split", "move")
    )
    messages: ClassVar[tuple[type[Message], ...]] = (*KINDS, Passed)
    figures: ClassVar[tuple[Figure, ...]] = Daisy.figures
    way: ClassVar[Way]

    @dataclass(frozen=True)
    class Settings(Protocol.Settings):
        """A process silent for ``patience_ms`` is suspected; what came is reported after ``ack_ms``.

        Those who are cut off may be back within ``grace_ms``, and are owed messages for ``forget_ms``.
        """

        heartbeat_ms: float = 50
        patience_ms: float = 500
        grace_ms: float = 2000
        forget_ms: float = 60_000
        ack_ms: float = 2

        def __post_init__(self) -> None:
            times = (0, self.heartbeat_ms, self.patience_ms, self.grace_ms, self.forget_ms)
            if any(a >= b for a, b in pairwise(times)) or self.ack_ms < 0:
                raise ValueError("heartbeat, patience, grace and forget_ms rise in this order")

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        s = self.settings
        times_ms = s.heartbeat_ms, s.patience_ms, s.grace_ms, s.forget_ms, s.ack_ms
        self.timing = Timing(*(round(ms * NS_PER_MS) for ms in times_ms))
        self.clock, self.time = place.base, 0  # the last message's number; Lamport's clock
        self.outbox: deque[Cast] = deque()
        self.epochs = Epochs(place.me, place.processes, place.incarnation)
        self.seen: dict[tuple[int, int], int] = {}  # delivered to the application
        self.handing_up = False  # whether the application is being given a message
        self.returning = False  # whether it joins again once it has left
        self.datagrams = 0  # that were sent and not counted yet
        members = tuple(Member(p, 0, frozenset({p}), p) for p in range(place.processes))
        self.first = View(ViewId(FIRST, 0), members)
        me = members[self.me]._replace(backing=place.incarnation << SEQUENCE_BITS)
        self.group = self._group(me, None if place.incarnation else self.first)

    def _group(self, me: Member, view: View | None = None, now: int = 0) -> Group:
        others = [member for member in self.first.members if member.process != self.me]
        way, candidates, above = type(self).way, self.first.processes, Waiting(self.outbox)
        me = me._replace(epochs=self.epochs.only({self.me}))
        return Group(0, me, self.timing, candidates, way, view, now, others, above, self.epochs)

    def prepared(self, cast: Cast) -> Cast | None:
        """The next message of the outbox as it can be broadcast now; None if it has to wait."""
        return cast

    @override
    def busy(self) -> bool:
        return not self.group.open or self.group.leaving

    def start(self, now: int) -> Effects:
        """Start the heartbeat at a random time, so that not all beat at once."""
        yield SetTimer(TICK, round(self.place.rng.random() * self.timing.heartbeat))

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Broadcast in the group, as soon as that is possible."""
        self.clock += 1
        self.outbox.append(Cast(self.me, self.clock, payload, now, dests=destinations))
        yield from self._advance(now)

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        yield from self._translate(self.group.receive(message, sender, now))
        yield from self._advance(now)

    @override
    def timeout(self, timer: Hashable, now: int) -> Effects:
        if timer == TICK:
            self._return(now)
            yield from self._translate(self.group.tick(now, lambda cast: True))
            kept = self.group.kept
            yield Count("buffered_messages", len(kept.history) + len(kept.archive))
            yield Count("buffered_bytes", kept.size())
            yield Count("buffer_samples")
            yield SetTimer(TICK, self.timing.heartbeat)
        else:
            yield from self._translate(self.group.reporting.acknowledge(now))
        yield from self._advance(now)

    @override
    def leave(self, now: int) -> Effects:
        self.group.leaving, self.returning = True, False
        yield from ()

    def join(self, now: int) -> Effects:
        """Stay, if nobody can know yet that this process leaves; else leave and come back."""
        group = self.group
        group.leaving = self.returning = group.out or group.admission.said_goodbye
        self._return(now)
        yield from ()

    def _return(self, now: int) -> None:
        """Ask to be admitted again, with what others may lack: what it sends next follows that."""
        if self.returning and self.group.out:
            self.returning = False
            self.epochs.come_back()
            me, kept = self.group.me, self.group.kept.all()
            self.group = self._group(me._replace(backing=me.backing + 1), now=now)
            self.group.kept.history = {cast.id: cast for cast in kept}

    def _advance(self, now: int) -> Effects:
        """Broadcast what can be; answers to a message wait until all is handed up that came with it."""
        while not self.handing_up and self.outbox and self.group.open:
            cast = self.prepared(self.outbox[0])
            if cast is None:
                return
            self.outbox.popleft()
            self.time += 1
            cast = replace(cast, time=self.time, epochs=self.epochs.pairs)
            yield from self._translate(self.group.cast(cast, now))

    def _translate(self, effects: Effects) -> Effects:
        """The group's effects; of what it delivers, what is for this process and new to it."""
        for effect in effects:
            if not isinstance(effect, Deliver):
                if isinstance(effect, Send):
                    self.datagrams += len(effect.peers)
                yield effect
                continue
            cast = effect.message
            assert isinstance(cast, Cast)
            self.epochs.learn(cast.epochs)
            self.time = max(self.time, cast.time)
            stream = cast.source, cast.seq >> SEQUENCE_BITS
            due = cast.is_due(self.me, self.epochs.of(self.me))
            if due and cast.seq > self.seen.get(stream, -1):
                self.seen[stream] = cast.seq
                yield Count("datagrams", self.datagrams)
                self.datagrams = 0
                self.handing_up = True
                yield Deliver(cast)
                self.handing_up = False
