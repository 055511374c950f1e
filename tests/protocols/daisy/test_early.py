"""Early relaying in the daisy: worked examples, crashes of servers, chance, and what mistakes do."""

import dataclasses
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from testbed.protocols import MessageId
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.messages import NO_VIEW, Cast
from testbed.protocols.daisy.server_group import ByOrigin
from testbed.protocols.daisy.stamped_cast import StampedCast
from tests.protocols.daisy.daisies import QUICK, SERVERS, TOP, Daisies, afterwards, crash_at, watch

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
    """No copy of these messages arrives until it is told otherwise; what servers broadcast."""
    relayed: list[tuple[int, int]] = []

    def drops(sender: int, peer: int, message: Any) -> bool:
        if isinstance(message, Cast) and message.group == TOP and message.id not in relayed:
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
    return all(world.group(node).seen.get((p, 0), 0) >= seq for p, seq in names)


def until(world: Daisies, condition: Callable[[], bool]) -> None:
    end = world.now + 200_000_000
    while not condition():
        assert world.now < end
        world.step()


# worked examples


def test_a_message_leaves_before_what_it_comes_after_and_is_delivered_after_it() -> None:
    world = flowers()
    relayed = lose(world, (1, 0, (1, 1)))
    world.say(1, [5])
    until(world, lambda: has(world, 2, (1, 1)))
    world.say(2, [5])
    world.run(15)
    assert relayed == [(2, 1)]
    assert world.delivered(5) == []
    repair(world)
    assert world.delivered(5) == [(1, 1), (2, 1)]
    assert world.meter.counted["early_relays"] == 1


def test_messages_of_one_sender_overtake_each_other_on_the_way_only() -> None:
    world = flowers()
    relayed = lose(world, (1, 0, (1, 1)))
    world.say(1, [5, 6])
    world.say(1, [5])
    world.run(15)
    assert relayed == [(1, 2)]
    repair(world)
    assert world.delivered(5) == [(1, 1), (1, 2)]


@pytest.mark.parametrize("settings", [EARLY, LATE], ids=["early", "late"])
def test_a_message_does_not_wait_for_one_that_stays_in_the_group(settings: Any) -> None:
    world = flowers(settings=settings)
    lose(world, (1, 0, (1, 1)))
    world.say(1, [2])
    until(world, lambda: has(world, 2, (1, 1)))
    world.say(2, [0, 5])
    world.run(15)
    assert world.delivered(5) == ([(2, 1)] if settings.early else [])
    assert world.delivered(0) == []
    repair(world)


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


def test_no_two_messages_wait_for_each_other() -> None:
    world = waiting_in_a_circle(Daisy)
    assert world.delivered(5) == [(1, 1), (2, 1)]
    assert world.delivered(3) == [(6, 1)]


def test_what_was_relayed_out_of_order_orders_what_answers_it() -> None:
    """m1 and m2 leave group 1 as m2, m1; m3 answers m2; where m1 is late, m3 waits for it."""
    world = flowers(12)
    lose(world, (5, 4, (5, 1)), (4, 8, (5, 1)))
    world.say(5, [9])
    until(world, lambda: has(world, 6, (5, 1)))
    world.say(6, [1])
    world.run(8)
    lose(world, (4, 8, (5, 1)))
    until(world, lambda: (6, 1) in world.delivered(1))
    world.say(1, [9])
    world.run(15)
    assert world.delivered(9) == []
    repair(world)
    assert world.delivered(9) == [(5, 1), (1, 1)]


def answer_before_question(kind: type[Daisy]) -> Daisies:
    """m1 stays in group 0 and is late; m2 leaves; its answer returns to one who lacks m1."""
    world = flowers(kind=kind)
    lose(world, (1, 0, (1, 1)), (1, 2, (1, 1)))
    world.say(1, [2])
    world.say(1, [5])
    until(world, lambda: (1, 2) in world.delivered(5))
    world.say(5, [2])
    world.say(6, [3])
    world.run(15)
    return world


def test_an_answer_waits_at_the_server_that_relayed_the_question_and_others_pass_it_by() -> None:
    world = answer_before_question(Daisy)
    assert world.delivered(2) == []
    assert world.delivered(3) == [(6, 1)]
    repair(world)
    assert world.delivered(2) == [(1, 1), (5, 1)]


def test_messages_within_a_group_carry_nothing_more_and_others_one_vector_for_each_group() -> None:
    world = flowers(12)
    casts = watch(world, Cast)
    world.say(1, [2])
    world.say(1, [5])
    world.settle(longer_ms=0)
    world.say(5, [1])
    world.settle()
    sizes = {(cast.group, cast.id): cast.control_size for *_, cast in casts}
    local = 16 + 4 * 4 + 4
    assert sizes[0, MessageId(1, 1)] == local
    assert sizes[0, MessageId(1, 2)] == local + 4
    assert sizes[1, MessageId(1, 2)] == local + 12 + 4 * 3
    assert sizes[1, MessageId(5, 1)] == local + 12 + 4 * 3
    assert sizes[TOP, MessageId(5, 1)] == 16 + 4 * 3 + 4 + 4


def test_all_is_forgotten_once_it_has_arrived_everywhere() -> None:
    world = flowers(12, loss=0.1)
    for process in range(12):
        world.say(process)
    world.run(2000)
    assert world.due() == 0
    assert not world.has_history()


@pytest.mark.parametrize("wrong", [{"levels": 3}, {"safe": True}, {"split_above": 5}])
def test_early_relaying_takes_two_levels_and_no_waiting(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="takes"):
        dataclasses.replace(EARLY, **wrong)


# crashes


def busy_run(seed: int = 7) -> Daisies:
    world = flowers(12, seed, answering=0.1, wire=False)
    for process, to in ((1, [2, 6, 10]), (2, [3]), (5, None), (9, [0, 4]), (3, [7, 1])):
        world.say(process, to)
    return world


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_may_crash_at_any_event(server: int) -> None:
    crash_at(busy_run, server)


def test_what_waits_for_a_message_that_nobody_has_is_discarded() -> None:
    world = flowers()
    lose(world, *((1, peer, (1, 1)) for peer in (0, 2, 3)))
    world.say(1, [5])
    world.say(1, [6])
    world.say(2, [5])
    world.run(8)
    assert (1, 2) in world.held(4, 1)
    world.crash(1)
    world.run(400)
    assert not world.held(4, 1)
    afterwards(world)
    assert (1, 2) not in world.delivered(6)
    assert world.delivered(5)[0] == (2, 1)


def test_servers_that_begin_anew_do_not_wait_for_what_has_long_arrived() -> None:
    world = flowers(seed=1)
    lose(world, (0, 4, (1, 2)))
    world.say(1, [5])
    world.say(1, [6])
    world.run(200)
    assert [name for name in world.group(1).history if name.source == 1] == [(1, 2)]
    world.crash(0)
    world.crash(4)
    repair(world)
    assert world.delivered(6) == [(1, 2)]


def test_who_was_away_brings_along_what_others_waited_for() -> None:
    world = flowers()
    lose(world, *((1, peer, (1, 1)) for peer in (0, 2, 3)))
    world.say(1, [5])
    world.say(1, [5, 6])
    world.run(8)
    world.pause(1)
    world.drops = lambda sender, peer, message: False
    world.run(300)
    assert 1 not in world.view(0)
    world.resume(1)
    afterwards(world)
    assert world.delivered(5)[:2] == [(1, 1), (1, 2)]


# chance


def storm(seed: int, kind: type[Daisy] = Daisy, dead: Iterable[int] = ()) -> Daisies:
    """Losses and unequal delays, as the seed has it, after some have crashed."""
    rng = random.Random(seed)
    world = flowers(
        12,
        seed,
        kind=kind,
        loss=rng.choice([0, 0.1, 0.2, 0.3]),
        delays_ms=rng.choice([(1, 3), (0.1, 10), (0.1, 30)]),
        answering=0.05,
        wire=seed % 4 == 0,
    )
    for process in dead:
        world.say(process)
        world.settle()
    for process in dead:
        world.crash(process)
    world.run(1000 if world.dead else 5)
    now = world.now / 1e6
    for _ in range(40):
        to = rng.sample(range(12), rng.randint(1, 4)) if rng.random() < 0.8 else None
        at = now + rng.uniform(0, 120)
        world.at(at, partial(world.say, rng.choice(world.live()), to))
    world.run(200)
    world.answering = 0
    world.settle(3000)
    return world


@pytest.mark.parametrize("start", range(0, 24, 6))
def test_nothing_is_lost_or_out_of_order_in_any_weather(start: int) -> None:
    early = 0
    for seed in range(start, start + 6):
        world = storm(seed)
        verdict = world.check()
        assert verdict.ok, (seed, verdict.explain(2))
        assert world.due() == 0, seed
        early += world.meter.counted["early_relays"]
    assert early > 20


def test_a_group_of_servers_that_began_anew_keeps_order_too() -> None:
    for seed in range(4):
        world = storm(seed, dead=SERVERS)
        verdict = world.check()
        assert verdict.ok, (seed, verdict.explain(2))
        assert world.due() == 0, seed


# mistakes


class NamesNothing(Daisy):
    """What leaves the group counts for nothing."""

    def _stamped(self, cast: Cast) -> Cast:
        stamped = super()._stamped(cast)
        if isinstance(stamped, StampedCast):
            return dataclasses.replace(stamped, after=())
        return stamped


class KnowsNoServers(Daisy):
    """What comes from elsewhere counts for nothing."""

    def _stamped(self, cast: Cast) -> Cast:
        stamped = super()._stamped(cast)
        if isinstance(stamped, StampedCast):
            return dataclasses.replace(stamped, above=NO_VIEW, beyond=())
        return stamped


class AsServersKnow(Daisy):
    """The vector of servers is that of the relaying one: all that it has received."""

    def _relay(self, queue: Any, origin: int, target: int, now: int) -> Any:
        casting = self.groups[1].casting
        if isinstance(casting, ByOrigin):
            casting.send = partial(self._send, casting)  # type: ignore[method-assign]
        return super()._relay(queue, origin, target, now)

    @staticmethod
    def _send(casting: ByOrigin, cast: Cast, now: int) -> Any:
        after = cast.after if isinstance(cast, StampedCast) else ()
        stamped = StampedCast(
            cast.source, cast.seq, cast.payload, cast.sent_at, cast.group, time=cast.time,
            dests=cast.dests, after=after, above=casting.id, beyond=tuple(casting.T),
        )  # fmt: skip
        return ByOrigin.send(casting, stamped, now)


class AnswersAtOnce(Daisy):
    """What comes from elsewhere is broadcast below as soon as it is deliverable above."""

    def _goes(self, cast: Cast) -> bool:
        return True


def first_caught(kind: type[Daisy], seeds: Iterable[int]) -> int | None:
    worlds = ((seed, storm(seed, kind)) for seed in seeds)
    return next((seed for seed, world in worlds if not world.check().ok), None)


@pytest.mark.parametrize("kind", [NamesNothing, KnowsNoServers])
def test_a_message_without_one_of_its_vectors_is_caught(kind: type[Daisy]) -> None:
    assert first_caught(kind, range(6)) is not None


def test_the_relaying_servers_vector_makes_messages_wait_for_ever() -> None:
    world = waiting_in_a_circle(AsServersKnow)
    assert world.delivered(5) == []


def test_an_answer_that_does_not_wait_for_the_question_is_caught() -> None:
    world = answer_before_question(AnswersAtOnce)
    assert world.delivered(2) == [(5, 1)]
