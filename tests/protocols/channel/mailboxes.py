"""Mailboxes over the reliable channel: one process fed by hand, or all on a network that loses."""

import random
from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st

from testbed.protocols import (
    CancelTimer,
    Deliver,
    Effect,
    Effects,
    Message,
    Multicast,
    Place,
    Protocol,
    Send,
    SetTimer,
)
from testbed.protocols.channel.reliable import Connection, Reliable
from testbed.protocols.channel.segments import Segment
from tests.world import World

A, B, C = range(3)
TO_ALL = 255
PATIENT = Reliable.Settings(window=8, retries=100)


class Mailbox(Protocol):
    """Sends each payload to the process that its first byte names, or one copy to all."""

    name: ClassVar[str] = "mailbox"
    paper: ClassVar[str] = "none"
    wire_id: ClassVar[int] = 250

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = 0
        self.said: list[bytes] = []
        self.got: list[tuple[int, ...]] = []  # sender, sequence number, two bytes of payload

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        self.sent += 1
        self.said.append(payload)
        message = Message(self.me, self.sent, payload, sent_at=now)
        if payload[0] == TO_ALL:
            yield Multicast(self.place.others, message)
        else:
            yield Send((payload[0],), message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        self.got.append((sender, message.seq, *message.payload[:2]))
        yield Deliver(message)

    def multicasts(self) -> bool:
        return True


class Lossy(World[Reliable]):
    """Processes of any protocol over the reliable channel, on a network that is as a test says."""

    def __init__(
        self,
        inner: Callable[[Place], Protocol],
        processes: int,
        seed: int = 0,
        settings: Reliable.Settings | None = None,
        **more: Any,
    ) -> None:
        make = lambda place: Reliable(inner(place), settings)  # noqa: E731
        super().__init__(make, processes, seed, **{"wire": True, "delays_ms": (5, 5), **more})

    def mail(self, node: int, to: int = TO_ALL, *more: int, times: int = 1) -> None:
        """An application sends to one process, or to all, once or several times."""
        for _ in range(times):
            self.say(node, payload=bytes([to, *more]))

    def mailbox(self, node: int) -> Mailbox:
        return mailbox(self.protocols[node])

    def settled(self) -> bool:
        """Whether no timer is set and all is acknowledged."""
        return not self.timers and not any(link.unacknowledged() for link in self._links())

    def quiet(self) -> bool:
        """Whether nothing waits besides."""
        incoming = [i for link in self._links() for i in link.incoming.values()]
        return self.settled() and not any(i.early or i.due for i in incoming)

    def _links(self) -> list[Connection]:
        return [link for p in self.live() for link in self.protocols[p].connections.values()]


# Chance

weathers = st.fixed_dictionaries(
    {
        "loss": st.floats(0, 0.4),
        "duplication": st.floats(0, 0.3),
        "delays_ms": st.tuples(st.floats(0, 20), st.floats(0, 70)).map(sorted),
    }
)


def talk(net: Lossy, rng: random.Random, messages: int) -> None:
    """Messages to one process or to all from any, with random time between."""
    for _ in range(messages):
        sender = rng.randrange(len(net.nodes))
        to = rng.choice([*net.protocols[sender].place.others, TO_ALL])
        net.mail(sender, to, net.protocols[sender].incarnation)
        if rng.random() < 0.5:
            net.run(rng.uniform(0, 30))


# One process by hand


def process(me: int, processes: int = 2, **settings: Any) -> Reliable:
    return Reliable(Mailbox(Place(me, processes)), Reliable.Settings(**settings))


def mailbox(channel: Reliable) -> Mailbox:
    assert isinstance(channel.inner, Mailbox)
    return channel.inner


def got(channel: Reliable) -> list[int]:
    """The sequence numbers that the protocol inside was given."""
    return [seq for _, seq, *_ in mailbox(channel).got]


def segments(effects: list[Effect]) -> list[Segment]:
    sent = [e.message for e in effects if isinstance(e, Send | Multicast)]
    assert all(isinstance(segment, Segment) for segment in sent)
    return [segment for segment in sent if isinstance(segment, Segment)]


def timers(effects: list[Effect]) -> list[Effect]:
    return [e for e in effects if isinstance(e, SetTimer | CancelTimer)]


def say(channel: Reliable, to: int, now: int = 0) -> list[Effect]:
    return list(channel.multicast(bytes([to]), None, now))
