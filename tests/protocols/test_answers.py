"""An application that answers inside every delivery finds each protocol in a consistent state.

The contract is that of ``protocols/base.py``: what follows ``yield Deliver(m)`` runs when the answer to
m has already been sent, so nothing may be delivered or relayed out of order in between.
"""

import random
from functools import partial
from typing import Any

import pytest

from testbed.check import check_events
from testbed.protocols import PROTOCOLS, Place, Protocol
from tests.world import Destinations, Eager, World

NODES, GROUPS = 6, (frozenset({0, 1, 2}), frozenset({2, 3, 4}), frozenset({4, 5, 0}))
MESSAGES, SPAN_MS, SETTLE_MS = 8, 40, 6000
CUTS, INTERVAL_MS, PATIENCE_MS = 4, 10, 50
MEMBERS = [
    name
    for name, protocol in PROTOCOLS.items()
    if protocol.join is not Protocol.join and not protocol.optimistic
]
TIMES = {"heartbeat_ms": 10, "patience_ms": PATIENCE_MS, "grace_ms": 150}
SETTINGS = {  # of those that would do nothing in so short a time by default
    **dict.fromkeys(MEMBERS, TIMES),
    "daisy": {"group_size": 2, **TIMES},
    "piggyback": {"most_bytes": 2000, **TIMES},
}


def made(protocol: type[Protocol], seed: int) -> World[Protocol]:
    """Processes whose applications answer whatever they deliver, to all, some or a group."""
    rng = random.Random(seed)
    settings = protocol.Settings(**SETTINGS.get(protocol.name, {}))

    def process(place: Place) -> Protocol:
        return protocol(place, settings)

    def audience(node: int) -> Destinations:
        if protocol.needs_groups:
            return rng.choice([group for group in GROUPS if node in group])
        if protocol.takes_subsets and rng.random() < 0.5:
            return frozenset(rng.sample(range(NODES), rng.randint(1, 3)))
        return None

    world: World[Protocol] = World(
        process,
        NODES,
        seed,
        neighbours=lambda node: ((node - 1) % NODES, (node + 1) % NODES),
        groups=GROUPS if protocol.needs_groups else (),
        application=Eager(1 if protocol.rests else rng.choice([1, 2]), audience),
        delays_ms=(0.1, rng.choice([1, 5])),
        fifo=protocol.needs_fifo(settings),
        wire=True,
    )
    world.draw = audience  # type: ignore[method-assign]
    return world


@pytest.mark.parametrize("name", PROTOCOLS)
def test_answers_inside_deliveries_are_in_order(name: str) -> None:
    protocol = PROTOCOLS[name]
    for seed in range(20 if protocol.rests else 3):
        world = made(protocol, seed)
        for _ in range(MESSAGES):
            node = world.rng.randrange(NODES)
            world.at(world.rng.uniform(0, SPAN_MS), partial(say, world, node))
        world.run(*([] if protocol.rests else [SETTLE_MS]))
        sound(world, protocol.optimistic)


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("seed", [12])
def test_so_they_are_at_a_member_that_is_cut_off_and_returns_again_and_again(
    name: str, seed: int
) -> None:
    world = made(PROTOCOLS[name], seed)
    rng, at = world.rng, 20.0
    member = rng.randrange(NODES)
    for _ in range(CUTS):
        away = rng.uniform(1, 2) * PATIENCE_MS
        world.at(at, partial(world.part, [member]))
        world.at(at + away, world.part)
        at += away + rng.uniform(5, 15) * INTERVAL_MS
    for sender in rng.sample(range(NODES), 2):
        send = rng.uniform(0, INTERVAL_MS)
        while send < at:
            world.at(send, partial(say, world, sender))
            send += rng.uniform(0.5, 1.5) * INTERVAL_MS
    world.run(at + SETTLE_MS)
    sound(world, optimistic=False)


def say(world: World[Any], node: int) -> None:
    world.say(node, world.draw(node))


def sound(world: World[Any], optimistic: bool) -> None:
    events = {p: world.log.events[p] for p in range(NODES)}
    verdict = check_events(range(NODES), events, optimistic=optimistic)
    assert verdict.ok, "\n".join(verdict.explain(3))
    assert verdict.messages > MESSAGES
