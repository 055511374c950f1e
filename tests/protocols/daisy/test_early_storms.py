"""Early relaying under chance, and what mistakes in it do."""

import dataclasses
import random
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from typing_extensions import override

from testbed.protocols import Place
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.early_relay import EarlyRelaying
from testbed.protocols.daisy.server_group import ByOrigin
from testbed.protocols.groups.messages import NO_VIEW, Cast
from testbed.protocols.groups.stamped_cast import StampedCast
from tests.protocols.daisy.daisies import SERVERS, Daisies
from tests.protocols.daisy.early_daisies import answer_before_question, flowers, waiting_in_a_circle

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


def relaying_by(kind: type[EarlyRelaying]) -> type[Daisy]:
    """A daisy that relays early in another way."""

    class Relayed(Daisy):
        def __init__(self, place: Place, settings: Any = None) -> None:
            super().__init__(place, settings)
            self.relaying = kind(self)

    return Relayed


class NamesNothing(EarlyRelaying):
    """What leaves the group counts for nothing."""

    @override
    def stamped(self, cast: Cast) -> Cast:
        stamped = super().stamped(cast)
        if isinstance(stamped, StampedCast):
            return dataclasses.replace(stamped, after=())
        return stamped


class KnowsNoServers(EarlyRelaying):
    """What comes from elsewhere counts for nothing."""

    @override
    def stamped(self, cast: Cast) -> Cast:
        stamped = super().stamped(cast)
        if isinstance(stamped, StampedCast):
            return dataclasses.replace(stamped, above=NO_VIEW, beyond=())
        return stamped


class AsServersKnow(EarlyRelaying):
    """The vector of servers is that of the relaying one: all that it has received."""

    @override
    def relay(self, queue: Any, origin: int, target: int, now: int) -> Any:
        casting = self.daisy.groups[1].casting
        if isinstance(casting, ByOrigin):
            casting.send = partial(self._send, casting)  # type: ignore[method-assign]
        return super().relay(queue, origin, target, now)

    @staticmethod
    def _send(casting: ByOrigin, cast: Cast, now: int) -> Any:
        after = cast.after if isinstance(cast, StampedCast) else ()
        stamped = StampedCast(
            cast.source, cast.seq, cast.payload, cast.sent_at, cast.group, time=cast.time,
            dests=cast.dests, after=after, above=casting.id, beyond=tuple(casting.T),
        )  # fmt: skip
        return ByOrigin.send(casting, stamped, now)


class AnswersAtOnce(EarlyRelaying):
    """What comes from elsewhere is broadcast below as soon as it is deliverable above."""

    @override
    def _goes(self, cast: Cast) -> bool:
        return True


def first_caught(kind: type[Daisy], seeds: Iterable[int]) -> int | None:
    worlds = ((seed, storm(seed, kind)) for seed in seeds)
    return next((seed for seed, world in worlds if not world.check().ok), None)


@pytest.mark.parametrize("kind", [NamesNothing, KnowsNoServers])
def test_a_message_without_one_of_its_vectors_is_caught(kind: type[EarlyRelaying]) -> None:
    assert first_caught(relaying_by(kind), range(6)) is not None


def test_the_relaying_servers_vector_makes_messages_wait_for_ever() -> None:
    world = waiting_in_a_circle(relaying_by(AsServersKnow))
    assert world.delivered(5) == []


def test_an_answer_that_does_not_wait_for_the_question_is_caught() -> None:
    world = answer_before_question(relaying_by(AnswersAtOnce))
    assert world.delivered(2) == [(5, 1)]
