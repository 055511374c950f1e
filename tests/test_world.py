"""The virtual network of the tests: order on channels, losses, faults of processes, and time."""

from collections.abc import Hashable
from typing import ClassVar

import pytest

from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Effects,
    Message,
    Protocol,
    Send,
    SetTimer,
)
from tests.world import MS, World


class Plain(Protocol):
    """Sends each message to all others, which deliver it as it comes; a timer is counted."""

    name: ClassVar[str] = "plain"
    paper: ClassVar[str] = "none"
    wire_id: ClassVar[int] = 249
    sent = 0

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        self.sent += 1
        message = Message(self.me, self.place.base + self.sent, payload, sent_at=now)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        yield Deliver(message)

    def start(self, now: int) -> Effects:
        yield SetTimer("early", 10 * MS)
        yield SetTimer("late", 10 * MS)
        yield SetTimer("late", 20 * MS)
        yield SetTimer("never", 5 * MS)
        yield CancelTimer("never")
        yield CancelTimer("unset")

    def timeout(self, timer: Hashable, now: int) -> Effects:
        yield Count(f"{timer} at {now / MS:.0f}")


def seqs(world: World[Plain], node: int = 1) -> list[int]:
    return [seq for _, seq in world.delivered(node)]


@pytest.mark.parametrize("fifo", [True, False])
def test_messages_overtake_each_other_unless_channels_are_fifo(fifo: bool) -> None:
    for by_clock in (True, False):
        world = World(Plain, 2, seed=1, delays_ms=(1, 50), fifo=fifo)
        for _ in range(20):
            world.say(0)
        world.run() if by_clock else world.play()
        assert sorted(seqs(world)) == list(range(1, 21))
        assert (seqs(world) == sorted(seqs(world))) == fifo


def test_the_test_may_choose_what_arrives_next_and_what_arrives_twice() -> None:
    world = World(Plain, 2)
    for _ in range(3):
        world.say(0)
    world.pass_on(0, 1, place=1)
    world.repeat(world.channel(0, 1)[-1])
    while world.channel(0, 1):
        world.pass_on(0, 1)
    assert seqs(world) == [2, 1, 3, 3]
    assert not world.check().ok


def test_copies_are_lost_and_duplicated_as_often_as_is_asked_for() -> None:
    world = World(Plain, 2, loss=0.3, duplication=0.2, wire=True)
    for _ in range(1000):
        world.say(0)
    world.run()
    assert world.sent[Message].copies == 1000
    assert len(set(seqs(world))) == pytest.approx(700, abs=60)
    assert len(seqs(world)) == pytest.approx(700 * 1.2, abs=80)


def test_what_is_dropped_or_cut_off_when_it_arrives_is_lost() -> None:
    world = World(Plain, 3, delays_ms=(5, 5))
    world.say(0)
    world.part([1])
    world.run(6)
    world.part()
    world.drops = lambda sender, peer, message: peer == 2
    world.say(0)
    world.run(6)
    assert (seqs(world, 1), seqs(world, 2)) == ([2], [1])


def test_a_process_that_has_crashed_does_nothing_until_it_is_restarted_without_its_memory() -> None:
    world = World(Plain, 2, delays_ms=(5, 5))
    world.say(0)
    world.crash(0)
    world.say(0)
    world.say(1)
    world.run(15)
    assert seqs(world) == [1, 1]  # one was on its way, one is its own
    assert world.meter.counted == {"early at 10": 1}
    world.restart(0)
    world.say(0)
    world.run()
    assert seqs(world)[2:] == [(1 << 20) + 1]
    assert world.meter.counted["early at 25"] == 1
    assert [e.event for e in world.log.events[0]] == [
        "send",
        "deliver",
        "crash",
        "restart",
        "send",
        "deliver",
    ]


def test_to_a_process_that_is_paused_everything_happens_later_and_in_order() -> None:
    world = World(Plain, 2, delays_ms=(5, 5))
    world.pause(1, ms=30)
    world.say(0)
    world.say(1)
    world.run(29)
    assert (seqs(world, 0), seqs(world, 1)) == ([1], [])
    world.run(10)
    assert world.delivered(1) == [(1, 1), (0, 1)]
    assert world.meter.counted == {
        f"{timer}": 1 for timer in ("early at 10", "early at 30", "late at 20", "late at 30")
    }


def test_time_passes_and_clocks_drift() -> None:
    world = World(Plain, 3, seed=4, drift=0.1)
    seen = []
    world.at(3, lambda: seen.append(world.now))
    world.run(2)
    assert (world.now, seen) == (2 * MS, [])
    world.run(20 / 0.9)
    assert seen == [3 * MS]
    assert world.meter.counted == {"early at 10": 3, "late at 20": 3}  # by their own clocks
    assert len({world.clock(p) for p in range(3)}) == 3
    assert not world.timers


def test_applications_answer_as_often_as_they_may() -> None:
    world = World(Plain, 2, answering=1, answers=2)
    world.say(0)
    world.run()
    assert seqs(world, 0) == [1, 2, 3]
    assert world.check().ok


def test_the_same_seed_makes_the_same_run() -> None:
    runs = [World(Plain, 4, seed, delays_ms=(1, 50), loss=0.1) for seed in (1, 1, 2)]
    for world in runs:
        world.play(20)
    assert runs[0].log.events == runs[1].log.events != runs[2].log.events
