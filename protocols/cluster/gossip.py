"""PrCast: gossip that spreads an event to all processes with high probability, in no order.

The balls-and-bins dissemination of Koldehofe, "Buffer Management in Probabilistic Peer-to-Peer
Communication Protocols", 2003, rebuilt from what Gidenstam et al. 2011 and later work say of it.

Every round a process sends its buffer in one gossip message to F random others. An event carries its
age and is forwarded until its age is T rounds; if the buffer has more than B events, the oldest are
dropped. The balls-and-bins family has three rules of forwarding (``forwarding``):

    keep    an event is sent in every round, from its first arrival on
    balls   … in the round after each arrival: every ball that is thrown is thrown on
    once    … in the round after its first arrival only

Rounds are not in step. What its age is then is a matter of choice (``aging``):

    hops    a hop counts as a whole round however soon it comes: no age is too low, and the lower of two
            is kept. Spreading ends early: F = 4 and T = 5 send a fifth fewer copies than in step.
    rounds  the time since it was multicast, as far as processes see it: what it spent with them, not on
            its way. Hops are faster than rounds, so that spreading takes more of T for the last few.

State: ``buffer``, the events being spread with their ages; ``history``, the names of the last H
events seen. An event whose name is forgotten too early is taken for new once more.
Cost: with F = 4, T = 5, "keep" and rounds in step, n ln n copies of an event for n = 250. A message
has 32 bytes, 8 for its counts, 4 for each entry of the membership, and for each event 24, its control
information and its payload.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple

from typing_extensions import override

from ..base import NS_PER_MS, Place, Protocol
from ..wire import Message, MessageId, WireError, of_kind
from .lpbcast import NO_NEWS, FullView, News, PartialView

COUNTS = struct.Struct("!HHI")  # of subs, unsubs and events
SUB = struct.Struct("!I")
UNSUB = struct.Struct("!HH")  # process, age
BALL = struct.Struct("!HHIQII")  # source, age, sequence, sent at, lengths of control and payload
FINE = 256  # parts of a round in which an age is told, if it is a time
LONGEST = 255  # rounds that can be told in these parts


class Ball(NamedTuple):
    """An event being spread, with its name and its age: in rounds, or in parts of rounds.

    In a gossip message that is its age as it is sent; in a buffer, as of the process's last round.
    """

    name: MessageId
    event: Message
    age: int


@of_kind(1)
class Gossip(Message):
    """The message of one round: events of many sources, and news of the membership."""

    balls: tuple[Ball, ...]
    news: News = NO_NEWS
    control_size: int = field(init=False)
    carries: ClassVar[type[Message]] = Message

    def __post_init__(self) -> None:
        size = COUNTS.size + SUB.size * len(self.news.subs) + UNSUB.size * len(self.news.unsubs)
        for _, event, _ in self.balls:
            size += BALL.size + event.control_size + len(event.payload)
        object.__setattr__(self, "control_size", size)  # computed once: many links ask for it

    @property
    @override
    def carried(self) -> tuple[MessageId, ...]:
        return tuple(ball.name for ball in self.balls)

    def encode_control(self) -> bytes:
        """Counts, subs, unsubs; then each event with its age, control information and payload."""
        subs, unsubs = self.news
        parts = [COUNTS.pack(len(subs), len(unsubs), len(self.balls))]
        parts += [SUB.pack(process) for process in subs]
        parts += [UNSUB.pack(*unsub) for unsub in unsubs]
        for (source, seq), event, age in self.balls:
            control, payload = event.encode_control(), event.payload
            parts.append(BALL.pack(source, age, seq, event.sent_at, len(control), len(payload)))
            parts += [control, payload]
        return b"".join(parts)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        try:
            subs, unsubs, balls = COUNTS.unpack_from(control)
            split = COUNTS.size + SUB.size * subs
            at = split + UNSUB.size * unsubs
            news = News(
                tuple(process for (process,) in SUB.iter_unpack(control[COUNTS.size : split])),
                tuple((p, age) for p, age in UNSUB.iter_unpack(control[split:at])),
            )
            if len(news.subs) != subs or len(news.unsubs) != unsubs:
                raise WireError(f"a membership of {subs} and {unsubs} processes, cut short")
            _check_processes((*news.subs, *(p for p, _ in news.unsubs)), processes)
            return {"balls": tuple(cls._decode_balls(control, at, balls, processes)), "news": news}
        except struct.error as error:
            raise WireError(f"a gossip message cut short: {error}") from None

    @classmethod
    def _decode_balls(cls, data: bytes, at: int, count: int, processes: int) -> Iterator[Ball]:
        for _ in range(count):
            source, age, seq, sent_at, control, payload = BALL.unpack_from(data, at)
            _check_processes((source,), processes)
            start = at + BALL.size
            middle, at = start + control, start + control + payload
            if at > len(data):
                raise WireError(f"an event of {control} and {payload} bytes, cut short")
            further = cls.carries.decode_control(data[start:middle], processes)
            event = cls.carries(source, seq, data[middle:at], sent_at, **further)
            yield Ball(event.id, event, age)
        if at != len(data):
            raise WireError(f"{len(data) - at} bytes after {count} events")


def _check_processes(named: tuple[int, ...], processes: int) -> None:
    if named and max(named) >= processes:
        raise WireError(f"process {max(named)} is not one of {processes} processes")


@dataclass(frozen=True)
class GossipSettings(Protocol.Settings):
    """PrCast's parameters; the defaults are those of the paper's experiments.

    ``hops`` is also the number of rounds for which an event is forwarded; ``aging`` says what counts as
    a round, and ``forwarding`` how often a process forwards an event meanwhile. A partial view has at
    most ``view_size`` processes; the first ``members`` processes are members at the beginning (0: all).
    """

    fanout: int = 4
    hops: int = 5
    aging: Literal["hops", "rounds"] = "hops"
    forwarding: Literal["keep", "balls", "once"] = "keep"
    events_per_message: int = 20
    history: int = 40
    round_ms: float = 100.0
    membership: Literal["full", "partial"] = "full"
    view_size: int = 15
    unsubs_rounds: int = 20
    members: int = 0

    def __post_init__(self) -> None:
        least = min(self.fanout, self.hops, self.events_per_message, self.history)
        if least < 1 or self.round_ms <= 0:
            raise ValueError("fanout, hops, events_per_message, history, round_ms are above zero")
        if self.view_size < self.fanout or not self.hops < self.unsubs_rounds:
            raise ValueError("view_size is at least fanout, and unsubs_rounds more than hops")
        if self.aging == "rounds" and self.hops > LONGEST:
            raise ValueError(f"hops is at most {LONGEST} where ages are times")
        if self.members < 0 or (self.members and self.membership == "full"):
            raise ValueError("members, which is not negative, is for a partial membership only")


def make_view(place: Place, settings: GossipSettings) -> FullView | PartialView:
    """A process's view of the membership, full or partial by the settings."""
    if settings.membership == "full":
        return FullView(place)
    first = range(settings.members or place.processes)
    members = place.groups[0] if place.groups else frozenset(first)
    return PartialView(place, members, settings.view_size, settings.hops, settings.unsubs_rounds)


class Round(NamedTuple):
    """What to send in a round and where; ``dropped`` events did not fit the buffer."""

    targets: tuple[int, ...]
    gossip: Gossip
    dropped: int


@dataclass(eq=False)
class PrCast:
    """One process of the gossip layer; the protocol above sends and receives its messages."""

    me: int
    view: FullView | PartialView
    settings: GossipSettings
    gossip: type[Gossip] = Gossip
    buffer: dict[MessageId, Ball] = field(default_factory=dict)
    history: OrderedDict[MessageId, None] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        timed = self.settings.aging == "rounds"
        self.round_ns = round(self.settings.round_ms * NS_PER_MS)
        self.unit = FINE if timed else 1  # of ages, in a round
        self.youth = (self.settings.hops - 1) * self.unit  # what is older is not sent again
        self.last = 0  # when the last round was

    def begin(self, first: int) -> None:
        """Learn when the first round is: the one before it would have been a round earlier."""
        self.last = first - self.round_ns

    def multicast(self, event: Message, now: int) -> None:
        """Spread an event from the next round on."""
        name = event.id
        self._remember(name)
        self.buffer[name] = Ball(name, event, -self._since_round(now))

    def round(self, now: int) -> Round | None:
        """The gossip of this round; all events grow older by a round."""
        balls = list(self.buffer.values())
        dropped = len(balls) - self.settings.events_per_message
        if dropped > 0:  # of the same age, those that came first have been spread more
            balls = sorted(balls, key=attrgetter("age"), reverse=True)[dropped:]
        grown = self._since_round(now) if self.unit > 1 else 1
        self.last = now
        keeps, youth = self.settings.forwarding == "keep", self.youth
        end = youth + self.unit  # a process that stood still finds that its events are too old
        grey = [Ball(name, event, age + grown) for name, event, age in balls]
        older = tuple([ball for ball in grey if ball.age <= end])
        self.buffer = {ball.name: ball for ball in older if keeps and ball.age <= youth}
        news = self.view.news()
        targets = self.view.targets(self.settings.fanout) if older or any(news) else ()
        self.view.tick()
        if not targets:
            return None
        return Round(targets, self.gossip(self.me, 0, balls=older, news=news), max(dropped, 0))

    def receive(self, gossip: Gossip, now: int) -> list[Message]:
        """The new events of a gossip message; what is young enough is kept to be forwarded."""
        new: list[Message] = []
        buffer, history, youth = self.buffer, self.history, self.youth
        again, since = self.settings.forwarding == "balls", self._since_round(now)
        for ball in gossip.balls:
            if since:
                ball = ball._replace(age=ball.age - since)
            name = ball[0]
            kept = buffer.get(name)
            if kept is not None:
                if ball[2] < kept[2]:
                    buffer[name] = ball
                continue
            known = name in history
            if not known:
                self._remember(name)
                new.append(ball[1])
            if ball[2] <= youth and (again or not known):
                buffer[name] = ball
        self.view.learn(gossip.news)
        return new

    def _since_round(self, now: int) -> int:
        """How old what is new now would be if it had been here at the last round, as a time."""
        return FINE * (now - self.last) // self.round_ns if self.unit > 1 else 0

    def _remember(self, name: MessageId) -> None:
        self.history[name] = None
        if len(self.history) > self.settings.history:
            self.history.popitem(last=False)
