"""Daisies on the world of tests, and what must not harm them however messages travel in a group.

Each scene is given a world of twelve processes in three groups of four, or what makes one.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest
from typing_extensions import override

from testbed.protocols import Message, MessageId, Place
from testbed.protocols.daisy import Daisy
from testbed.protocols.groups.group import Group
from testbed.protocols.groups.messages import Cast
from testbed.protocols.groups.packing import Pack
from tests.world import MS, P, World

QUICK = Daisy.Settings(
    group_size=4, heartbeat_ms=20, patience_ms=70, grace_ms=200, forget_ms=60_000, ack_ms=1
)
RECIPIENTS = replace(QUICK, inside="recipients")
STAR = replace(QUICK, inside="server")
SERVERS = (0, 4, 8)
GROUPS = [range(0, 4), range(4, 8), range(8, 12)]
TOP = 4096  # the group of servers


# Of scenario(): a, b, c, and between whom the copy is lost
PLACES = [
    pytest.param(1, 2, 3, (1, 2), id="nobody serves"),
    pytest.param(0, 1, 2, (0, 1), id="a serves"),
    pytest.param(1, 0, 2, (1, 0), id="b serves"),
    pytest.param(1, 5, 2, (1, 0), id="b elsewhere, lost on the way to the server"),
    pytest.param(0, 5, 1, (0, 4), id="b elsewhere, lost between servers, a serves"),
    pytest.param(1, 5, 2, (0, 4), id="b elsewhere, lost between servers"),
    pytest.param(1, 5, 2, (4, 5), id="b elsewhere, lost on the way from the server"),
    pytest.param(1, 4, 0, (0, 4), id="b and c serve"),
    pytest.param(1, 5, 6, (4, 5), id="b and c elsewhere"),
]


class Members(World[P]):
    """Processes that send to some others, on a network of datagrams."""

    def __init__(
        self, protocol: Callable[[Place], P], processes: int, seed: int = 0, **more: Any
    ) -> None:
        super().__init__(protocol, processes, seed, **{"delays_ms": (1, 5), "wire": True, **more})

    @override
    def draw(self, node: int) -> frozenset[int]:
        everybody = range(len(self.nodes))
        return frozenset(self.rng.sample(everybody, self.rng.randint(1, min(4, len(everybody)))))

    def due(self) -> int:
        """How many deliveries are still due to live processes from live senders."""
        live = set(self.live())
        got = {p: set(self.delivered(p)) for p in live}
        return sum(
            (e.source, e.seq) not in got[p]
            for node in live
            for e in self.log.events[node]
            if e.event == "send"
            for p in live.intersection(live if e.to is None else e.to)
        )

    def settle(self, most_ms: float = 20_000, longer_ms: float = 300) -> None:
        """Until all is delivered that is due, and a while longer; a test sees what is not."""
        end = self.now + most_ms * MS
        while self.now < end and (self.due() or any(self.nodes[p].backlog for p in self.live())):
            self.run(50)
        self.run(longer_ms)


class Daisies(Members[Daisy]):
    """Processes of a daisy."""

    def __init__(
        self,
        processes: int,
        seed: int = 0,
        settings: Daisy.Settings = QUICK,
        kind: type[Daisy] = Daisy,
        **more: Any,
    ) -> None:
        make = lambda place: kind(place, settings)  # noqa: E731
        super().__init__(make, processes, seed, **{"delays_ms": (1, 3), **more})
        self.drops_nothing = self.drops

    @override
    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """A test that looks at what is sent sees each message, as if nothing were packed."""
        parts = isinstance(message, Pack) and self.drops is not self.drops_nothing
        for part in message.messages() if parts else (message,):  # type: ignore[attr-defined]
            super().unicast(sender, peers, part)

    def group(self, node: int, level: int = 0) -> Group:
        return self.protocols[node].groups[level]

    def view(self, node: int, level: int = 0) -> tuple[int, ...]:
        view = self.group(node, level).view
        assert view is not None
        return view.processes

    def held(self, node: int, level: int = 0) -> set[MessageId]:
        """The messages that a member of a group holds back."""
        casting = self.group(node, level).casting
        assert casting is not None
        return {cast.id for cast in casting.held.values()}

    def has_history(self) -> bool:
        """Whether any process still keeps any message."""
        return any(group.history for process in self.protocols for group in process.groups)


Make = Callable[[], Daisies]
M = TypeVar("M", bound=Message)


def nothing(sender: int, peer: int, message: Message) -> bool:
    """What is lost if nothing is."""
    return False


def watch(
    world: World[Any], kind: type[M], lost: Callable[[int, int, Message], bool] = nothing
) -> list[tuple[int, int, M]]:
    """All messages of a kind that are sent from now on: from whom, to whom."""
    seen: list[tuple[int, int, M]] = []

    def drops(sender: int, peer: int, message: Message) -> bool:
        if isinstance(message, kind):
            seen.append((sender, peer, message))
        return lost(sender, peer, message)

    world.drops = drops
    return seen


def lose_casts(*ways: tuple[int, int]) -> Callable[[int, int, Message], bool]:
    """What drops all casts from a process to another."""
    return lambda sender, peer, message: (sender, peer) in ways and isinstance(message, Cast)


def scenario(world: Members[Any], a: int, b: int, c: int, lost: tuple[int, int]) -> None:
    """m1 from a to b is lost, m2 from a to c arrives, c sends m3 to b, a crashes."""
    world.run(12)
    omissions = [(*lost, (a, 1))]

    def drops(sender: int, peer: int, message: Any) -> bool:
        if lose := (sender, peer, message.id) in omissions:
            omissions.clear()
        return lose

    world.drops = drops
    world.say(a, [b])
    world.say(a, [c])
    while (a, 2) not in world.delivered(c):
        world.step()
    world.say(c, [b])
    world.crash(a)
    world.settle(2000)


def events_of(make: Make) -> int:
    """How many events it takes until all is delivered."""
    world = make()
    start = world.steps
    while world.due():
        world.step()
    return world.steps - start


def crash_at(make: Make, server: int, first: int = 0, every: int = 1) -> None:
    """The server crashes at each event, or at some; each time in a new world."""
    events = events_of(make)
    assert events > 100
    for moment in range(first, events, every):
        world = make()
        for _ in range(moment):
            world.step()
        world.crash(server)
        world.settle(3000, longer_ms=50)
        world.answering = 0
        world.settle(3000, longer_ms=50)
        verdict = world.check()
        assert verdict.ok, (moment, verdict.explain(2))


def crash_in_a_row(world: Daisies, servers: Iterable[int], first_ms: float, gap_ms: float) -> None:
    """One server crashes after the other."""
    for number, server in enumerate(servers):
        world.at(25 + first_ms + number * gap_ms, partial(world.crash, server))
    afterwards(world)


def afterwards(world: Daisies) -> None:
    """What was agreed on again works, and nothing was lost."""
    world.run(400)
    for sender in world.live():
        world.say(sender)
    world.settle(5000)
    world.sound()
    assert world.due() == 0


def heal(world: Daisies, island: Iterable[int], ms: int) -> None:
    """Some are cut off for a while, and all talk."""
    world.at(60, lambda: world.part(island))
    world.at(60 + ms, world.part)
    for number in range(24):
        to = [number * 7 % 12, number * 11 % 12, 6] if number % 2 else None
        world.at(30 + number * ms / 12, partial(world.say, number * 5 % 12, to))
    world.run(100 + 2 * ms)
    world.settle()
    assert world.due() == 0
    world.sound()
    world.run(500)
    assert [len({world.view(p) for p in group}) for group in GROUPS] == [1, 1, 1]
    assert len({world.view(world.view(p)[0], 1) for p in SERVERS}) == 1


def stand_still(world: Daisies, process: int) -> None:
    """A process stops for so long that it is suspected, and goes on."""
    world.run(50)
    world.say(process)
    world.pause(process)
    for other in range(12):
        world.say(other)
        world.say(other, [(other + 1) % 12, process])
    world.run(500)
    assert process not in world.view(6)
    world.resume(process)
    world.settle()
    assert process in world.view(6)
    assert world.due() == 0
    world.sound()


def start_again(world: Daisies, gap_ms: float) -> None:
    """Four processes, three of them servers, start again, one after the other."""
    world.run(50)
    for number, process in enumerate((5, 4, 8, 0)):
        world.at(60 + gap_ms * number, partial(world.restart, process))
    for number in range(30):
        to = [number % 12, number * 7 % 12, 5] if number % 4 else None
        world.at(50 + gap_ms / 4 * number, partial(world.say, number % 12, to))
    world.run(600 + 8 * gap_ms)
    world.settle(1000)
    world.sound()
    for process in (0, 4, 5, 8):
        world.say(process)
    world.run(300)
    assert [set(world.view(p)) for p in range(12)] == [set(GROUPS[p // 4]) for p in range(12)]


def leave_and_join(world: Daisies, process: int) -> None:
    """One of the second group leaves while messages flow, and comes back."""
    world.run(50)
    rest = [p for p in range(12) if p != process]
    for number in range(20):
        to = rest if number % 2 else [rest[number * 3 % 11], rest[number * 5 % 11]]
        world.at(50 + 10 * number, partial(world.say, rest[number % 11], to))
    world.at(100, lambda: world.leave(process))
    world.run(400)
    world.settle()
    assert set(world.view(6)) == {4, 5, 6, 7} - {process}
    world.sound()
    world.join(process)
    world.run(300)
    world.say(process)
    world.say(11, [process, 3])
    world.settle()
    assert world.due() == 0
    world.sound()
