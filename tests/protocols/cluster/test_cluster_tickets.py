"""Tickets that processes join for and leave while they multicast, in whole runs."""

import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testbed.check.memory import MemoryLog
from testbed.engines.simulate.engine import Simulation
from testbed.experiment import Scenario, parse
from testbed.fuzz import draw
from testbed.protocols import Discard, MessageId, Place
from testbed.protocols.broken.cluster import Reset
from testbed.protocols.cluster import Cluster
from testbed.protocols.cluster.events import EventId
from testbed.protocols.cluster.tickets import Leases, TicketManager
from tests.protocols.cluster.ring import check
from tests.protocols.cluster.rounds import Rounds
from tests.world import MS

LEASE_ROUND_MS = 200.0
CHOSEN: dict[str, Any] = {
    "management": "leases",
    "lease_round_ms": LEASE_ROUND_MS,
    "coordinators": 6,
    "tickets": 8,
    "round_ms": 50.0,
}


class Cast(Rounds):
    """Processes that want tickets at some times and not at others; ownership is looked at often."""

    def __init__(
        self,
        processes: int,
        seed: int,
        loss: float = 0.0,
        protocol: type[Cluster] = Cluster,
        **chosen: Any,
    ) -> None:
        settings = protocol.Settings(**{**CHOSEN, **chosen})
        super().__init__(lambda place: protocol(place, settings), processes, seed, loss=loss)
        self.eids: Counter[EventId] = Counter()
        self.answers_to = self.note
        self.at(0, self.look)

    def note(self, me: int, message: Any) -> bool:
        """Nobody answers; what a process sends is delivered to it at once."""
        self.eids[message.eid] += message.source == me
        return False

    def look(self) -> None:
        """No ticket has two owners, or may be given away by two."""
        check(self.managers(), lambda me: self.now)
        self.at(self.now / MS + 5, self.look)

    def managers(self) -> dict[int, TicketManager]:
        """Of the processes that live."""
        found = {p: self.protocols[p].manager for p in self.live()}
        return {p: manager for p, manager in found.items() if manager is not None}

    def owners(self) -> dict[int, int]:
        """Who owns which ticket."""
        tickets = {p: self.protocols[p].ticket for p in self.live()}
        return {ticket: p for p, ticket in tickets.items() if ticket is not None}


def test_the_first_own_tickets_as_soon_as_their_voters_agree_and_others_join() -> None:
    run = Cast(10, seed=1)
    run.run(100)
    assert run.owners() == {ticket: ticket for ticket in range(6)}
    assert run.protocols[8].busy()
    run.join(8)
    run.run(60 * LEASE_ROUND_MS)  # only the owner of ticket 0 has any to give away
    assert 8 in run.owners().values()
    assert not run.protocols[8].busy()
    assert run.try_to_say(8) is not None
    run.run(1000)
    assert run.lost() == 0


def handed_on(protocol: type[Cluster]) -> tuple[Cast, MessageId | None]:
    """The owner of ticket 2 multicasts and leaves; 7 gets the ticket and multicasts."""
    run = Cast(8, seed=2, protocol=protocol, coordinators=6, tickets=6)
    run.run(100)
    for _ in range(3):
        run.try_to_say(2)
    run.run(1000)
    run.leave(2)
    run.join(7)
    run.run(40 * LEASE_ROUND_MS)
    assert run.protocols[7].ticket == 2
    assert run.protocols[2].busy()
    name = run.try_to_say(7)
    run.run(1000)
    return run, name


def test_a_ticket_that_was_given_back_goes_on_in_a_new_epoch_and_nobody_waits_for_the_old() -> None:
    run, name = handed_on(Cluster)
    assert all(name in run.delivered(p) for p in range(8))
    run.sound()
    assert max(run.eids.values()) == 1
    assert run.lost() == 0


def test_a_clock_entry_that_begins_anew_with_its_new_owner_is_caught() -> None:
    run, name = handed_on(Reset)
    assert max(run.eids.values()) == 2  # the name of an event is used twice,
    assert sum(name in run.delivered(p) for p in range(8)) == 1  # so that nobody else takes it


@pytest.mark.parametrize("seed", range(8))
def test_no_ticket_and_no_event_name_is_ever_used_twice(seed: int) -> None:
    rng = random.Random(seed)
    run = Cast(12, seed, loss=rng.choice([0, 0.1, 0.3]))
    run.load(12, 0.3, 200, 50)
    for _ in range(30):
        what = rng.choice([run.join, run.leave])
        run.at(rng.randrange(10_000), partial(what, rng.randrange(12)))
    for _ in range(2):
        run.at(rng.randrange(10_000), partial(run.crash, rng.randrange(12)))
    run.run(12_000)
    assert max(run.eids.values()) == 1
    run.sound()
    assert run.meter.counted["tickets_granted"] > 8
    assert sum(run.eids.values()) > 100


@pytest.mark.parametrize("seed", [*range(1, 20), 21])  # of 20 one of two crashes: nobody owns any
def test_no_ticket_has_two_owners_in_a_simulation_in_any_weather(seed: int) -> None:
    document = draw(Cluster, seed)
    document["protocol"] |= {"management": "leases", "lease_round_ms": 50.0}
    document |= {"channel": "raw", "links": {"delay_ms": [0.1, 5.0]}}
    document["workload"]["settle_ms"] = 1000.0
    experiment = parse(document, Path("any-weather"))[0]
    log = MemoryLog()
    simulation = Simulation(Scenario.of(experiment), log)
    scheduler, owned = simulation.network.scheduler, 0

    def look() -> None:
        nonlocal owned
        here: list[Any] = [n.protocol for n in simulation.nodes if n.id not in simulation.dead]
        alive = {protocol.me: protocol.manager for protocol in here}
        check(alive, lambda me: scheduler.now)
        owned += sum(leases.owns(scheduler.now) is not None for leases in alive.values())

    for ms in range(0, 1000, 2):
        scheduler.call_at(ms * MS, look)
    simulation.run(lambda stage, done, of: None)
    assert owned


def test_who_has_slept_through_its_lease_multicasts_nothing() -> None:
    settings = Cluster.Settings(**CHOSEN)
    run = Rounds(lambda place: Cluster(place, settings), 8)
    run.run(100)
    sleeper = run.protocols[3]
    assert sleeper.ticket == 3
    late = run.now + 100 * sleeper.settings.leases.lease_ns
    effects = list(sleeper.multicast(b"", None, late))
    (discard,) = effects
    assert isinstance(discard, Discard)
    assert discard.reason == "no lease"


def test_one_that_is_started_again_joins_for_a_ticket_again() -> None:
    first, again = (
        Cluster(Place(1, 8, incarnation=incarnation), Cluster.Settings(**CHOSEN))
        for incarnation in (0, 1)
    )
    assert isinstance(first.manager, Leases)
    list(first.start(0))
    assert first.manager.state == "linking"
    assert again.manager is not None
    list(again.start(0))
    assert again.manager.state == "joining"
