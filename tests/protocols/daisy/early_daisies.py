"""Daisies that relay early, and scenes that their tests share."""

import dataclasses
from collections.abc import Callable
from typing import Any

from testbed.protocols.daisy import Daisy
from testbed.protocols.groups.messages import Cast
from testbed.protocols.groups.passed import Passed
from tests.protocols.daisy.daisies import QUICK, TOP, Daisies

EARLY = dataclasses.replace(QUICK, safe=False, early=True)
LATE = dataclasses.replace(QUICK, safe=False)
Way = tuple[int, int, tuple[int, int]]  # from, to, which message


def flowers(
    processes: int = 8, seed: int = 0, settings: Daisy.Settings = EARLY, **more: Any
) -> Daisies:
    world = Daisies(processes, seed, settings, **more)
    world.run(25)
    return world


def lose(world: Daisies, *ways: Way) -> list[tuple[int, int]]:
    """No copy of these messages arrives, in any way, until told otherwise; what servers broadcast."""
    relayed: list[tuple[int, int]] = []

    def drops(sender: int, peer: int, message: Any) -> bool:
        if isinstance(message, Passed):
            sender, peer, message = message.sender, message.to, message.inner
        elif isinstance(message, Cast) and message.group == TOP and message.id not in relayed:
            relayed.append(message.id)
        return isinstance(message, Cast) and (sender, peer, message.id) in ways

    world.drops = drops
    return relayed


def repair(world: Daisies) -> None:
    world.drops = lambda sender, peer, message: False
    world.settle()
    world.sound()
    assert world.due() == 0


def has(world: Daisies, node: int, *names: tuple[int, int]) -> bool:
    """Whether a process has delivered these, within its group, whether or not they are for it."""
    return all(world.group(node).kept.seen.get((p, 0), 0) >= seq for p, seq in names)


def until(world: Daisies, condition: Callable[[], bool]) -> None:
    end = world.now + 200_000_000
    while not condition():
        assert world.now < end
        world.step()


def waiting_in_a_circle(kind: type[Daisy]) -> Daisies:
    """m2 leaves before m1; somebody else's m3 is relayed when m2 has come and still waits."""
    world = flowers(kind=kind)
    lose(world, (1, 0, (1, 1)))
    world.say(1, [5])
    until(world, lambda: has(world, 2, (1, 1)))
    world.say(2, [5])
    world.run(8)
    world.say(6, [3])
    world.run(8)
    world.drops = lambda sender, peer, message: False
    world.settle(1000)
    return world


def answer_before_question(kind: type[Daisy]) -> Daisies:
    """m1 stays in group 0 and is late; m2 leaves; its answer returns to one who lacks m1.

    Another message comes from one who does not know m2.
    """
    world = flowers(kind=kind)
    lose(world, (1, 0, (1, 1)), (1, 2, (1, 1)), (4, 6, (1, 2)))
    world.say(1, [2])
    world.say(1, [5])
    until(world, lambda: (1, 2) in world.delivered(5))
    world.say(5, [2])
    world.say(6, [3])
    world.run(15)
    return world
