"""Tickets on leases: crashes, pauses, slow links and cuts, and versions that fail."""

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.explore.tickets.system import ViolationError
from testbed.protocols.base import Place
from testbed.protocols.broken import leases as broken
from testbed.protocols.cluster.tickets import (
    LEASE_MESSAGES,
    Granted,
    Leases,
    LeaseSettings,
    Revoked,
)
from testbed.protocols.cluster.tickets.lease_messages import Accept, Alive, Neighbour, Voter
from testbed.protocols.cluster.tickets.messages import RingMember
from testbed.protocols.cluster.tickets.polls import needed, refusing
from testbed.protocols.wire import Codec, Message
from tests.protocols.cluster.ring import Holders
from tests.protocols.cluster.storms import ROUND_MS, outcome, storm
from tests.world import MS

ROUND = ROUND_MS
RULES = LeaseSettings(k=2, round_ns=ROUND * MS, delay_ns=ROUND * MS // 10)
QUARANTINE = RULES.quarantine_ns / MS
SILENCE = 3 * ROUND  # until a successor that has crashed is excluded


def founded(
    founders: int, tickets: int, spare: int = 1, kind: type[Leases] = Leases, k: int = 2
) -> Holders:
    """A ring of founders, their tickets evenly spread, and some processes that are not in it."""
    rules = LeaseSettings(k, RULES.round_ns, RULES.delay_ns)
    places = {tickets - 1 - i * (tickets // founders): i for i in range(founders)}
    ring = Holders(lambda place: kind(place, tickets, places, rules), founders + spare)
    ring.run(ROUND)
    return ring


def until(ring: Holders, condition: Callable[[], bool], rounds: int) -> int:
    """How many rounds it takes until something is so; not more than these."""
    for passed in range(rounds):
        if condition():
            return passed
        ring.run(ROUND)
    assert condition(), f"not so after {rounds} rounds"
    return rounds


def test_any_two_sets_of_voters_of_which_one_agrees_and_one_refuses_have_one_in_common() -> None:
    for size in range(12):
        voters = tuple(Voter(p, 0) for p in range(size))
        assert needed(voters) + refusing(voters) == size + 1
    seven = tuple(Voter(p, 0) for p in range(7))
    assert needed(seven) == refusing(seven) == 4  # the paper's k + 1


def test_a_founder_alone_serves_joiners_one_after_the_other() -> None:
    ring = founded(1, 8, spare=7)
    for p in range(1, 8):
        ring.join(p)
    until(ring, lambda: len(ring.members()) == 8, 60)
    assert ring.complete()
    assert ring.meter.counted["exclusions"] == 0


def test_a_founder_that_is_late_does_not_found_again() -> None:
    place = Place(0, 3, incarnation=1)
    machine = Leases(place, 4, {3: 0, 1: 1}, RULES)
    assert list(machine.start(0)) == []
    assert machine.state == "out"


def test_a_founder_needs_the_votes_of_the_others() -> None:
    ring = Holders(lambda place: Leases(place, 6, {5: 0, 3: 1, 1: 2}, RULES), 3)
    ring.cut = lambda a, b: True
    ring.run(10 * ROUND)
    assert ring.granted == []


@pytest.mark.parametrize("crashed", [(3,), (3, 4), (3, 5), (6, 7)])
def test_tickets_of_the_crashed_are_assignable_after_the_papers_bound(
    crashed: tuple[int, ...],
) -> None:
    ring = founded(8, 24)
    for p in crashed:
        ring.crash(p)
    distance = 3 * (len(crashed) + 1)  # of the tickets on both sides of the crashed
    rounds = until(ring, ring.complete, 20)
    assert rounds * ROUND <= SILENCE + (distance + 2) * ROUND
    assert rounds * ROUND <= SILENCE + len(crashed) * ROUND + QUARANTINE + ROUND
    assert sorted(ring.members()) == [p for p in range(8) if p not in crashed]
    ring.join(8)
    until(ring, lambda: 8 in ring.members(), 10)


def test_a_cluster_that_loses_k_neighbours_at_a_time_goes_on_serving_joins() -> None:
    ring = founded(8, 16, spare=8)

    def recovered() -> bool:
        voters = {v.process for p in ring.members() for v in ring.machines[p].L}
        return ring.complete() and voters <= set(ring.machines)

    for first in (0, 2, 4, 6):
        ring.crash(first)
        ring.crash(first + 1)
        ring.join(8 + first)
        ring.join(9 + first)
        until(ring, recovered, 20)
    assert sorted(ring.members()) == list(range(8, 16))


def test_a_voter_that_has_crashed_is_not_handed_round_a_small_ring_for_ever() -> None:
    ring = founded(5, 10)
    ring.crash(3)

    def forgotten() -> bool:
        return all(v.process != 3 for p in ring.members() for v in ring.machines[p].L)

    until(ring, forgotten, 12)
    assert len(ring.members()) == 4


def test_who_is_alone_cannot_be_excluded_and_may_sleep() -> None:
    ring = founded(1, 4)
    ring.pause(0, 20 * ROUND)
    ring.run(20 * ROUND)
    assert ring.members() == [0]
    ring.join(1)
    until(ring, lambda: ring.members() == [0, 1], 10)


def test_a_process_sends_at_most_one_alive_to_each_of_its_successors_in_a_round() -> None:
    ring = founded(9, 18)
    ring.run(3 * ROUND)
    sent: Counter[int] = Counter()

    def count(sender: int, peer: int, message: Message) -> bool:
        sent[sender] += isinstance(message, Alive)
        return False

    ring.drops = count
    ring.run(10 * ROUND)
    per_round = 2 * RULES.k + 1
    assert all(9 * per_round <= sent[p] <= 11 * per_round for p in range(9))
    assert sum(sent.values()) == pytest.approx(9 * 10 * per_round, abs=9 * per_round)


def test_who_has_slept_through_its_lease_owns_nothing_before_it_does_anything() -> None:
    ring = founded(6, 12)
    ring.pause(2, 20 * ROUND)
    ring.run(4 * ROUND)
    machine = ring.machines[2]
    assert machine.state == "coordinator"
    assert machine.owns(ring.clock(2)) is None
    effects = list(machine.receive(Alive(3, 0, number=1, voter=Voter(3, 0)), 3, ring.clock(2)))
    assert Revoked(7) in effects
    assert machine.state == "lapsed"


def test_a_process_that_is_cut_off_stops_and_comes_back_with_another_epoch() -> None:
    ring = founded(7, 14)
    ring.cut = lambda a, b: (a == 2) != (b == 2)
    until(ring, lambda: 2 not in ring.members(), 4)
    until(ring, ring.complete, 10)
    ring.cut = lambda a, b: False
    ring.join(2)
    until(ring, lambda: 2 in ring.members(), 20)
    assert ring.grants[2].epoch > 0


def test_only_one_side_of_a_cut_goes_on() -> None:
    ring = founded(8, 16)
    far = {0, 1}
    ring.cut = lambda a, b: (a in far) != (b in far)
    ring.run(20 * ROUND)
    assert set(ring.members()) == set(range(2, 8))
    assert ring.complete()


def test_who_leaves_stops_at_once_and_its_ticket_is_assignable_again() -> None:
    ring = founded(6, 12)
    ring.leave(3)
    assert 3 not in ring.members()
    until(ring, ring.complete, 8)
    until(ring, lambda: ring.machines[3].state == "out", 8)


def test_the_last_one_stays_until_another_has_joined() -> None:
    ring = founded(1, 4)
    ring.leave(0)
    ring.run(5 * ROUND)
    assert ring.members() == [0]
    ring.join(1)
    until(ring, lambda: ring.members() == [1], 12)
    until(ring, ring.complete, 12)


def test_an_answer_to_an_old_request_is_ignored() -> None:
    ring = founded(4, 8)
    held: list[tuple[int, int, Accept]] = []

    def hold(sender: int, peer: int, message: Message) -> bool:
        if isinstance(message, Accept):
            held.append((sender, peer, message))
        return isinstance(message, Accept)

    ring.drops = hold
    ring.join(4)
    until(ring, lambda: bool(held), 5)
    ring.leave(4)
    ring.join(4)
    ring.drops = lambda sender, peer, message: False
    ring.receive(*held[0])
    assert ring.machines[4].state == "joining"
    until(ring, lambda: 4 in ring.members(), 20)


def test_all_that_is_sent_can_be_encoded_and_is_not_large() -> None:
    ring = founded(7, 14, spare=2)
    codec = Codec(10, LEASE_MESSAGES, 1, 9)
    sizes: Counter[str] = Counter()

    def encode(sender: int, peer: int, message: Message) -> bool:
        data = codec.encode(message)
        assert codec.encode(codec.decode(data)) == data
        sizes[type(message).__name__] = max(len(data), sizes[type(message).__name__])
        return False

    ring.drops = encode
    ring.crash(3)
    ring.leave(5)
    ring.run(5 * ROUND)
    ring.restart(3)
    for p in (3, 7, 8):
        ring.join(p)
    until(ring, lambda: {3, 7, 8} <= set(ring.members()), 30)
    ring.pause(0, 8 * ROUND)
    ring.run(9 * ROUND)
    assert {message.__name__ for message in LEASE_MESSAGES} == set(sizes)
    assert (sizes["Alive"], sizes["Poll"]) == (44, 264)


def hears_late(kind: type[Leases]) -> bool:
    """Whether answers to an old poll make a lease longer."""
    ring = founded(6, 12, kind=kind)
    machine = ring.machines[3]
    before, number = machine.lease_end, machine.question.register.number
    ring.cut = lambda a, b: b == 3
    ring.run(ROUND)
    for voter in machine.L:
        late = Alive(voter.process, 0, number=number, voter=voter)
        list(machine.receive(late, voter.process, ring.clock(3)))
    return bool(machine.lease_end > before)


def test_a_vote_that_is_late_prolongs_nothing() -> None:
    assert not hears_late(Leases)
    assert hears_late(broken.LateVotes)


def test_an_answer_to_a_poll_before_a_crash_is_none_to_a_poll_after_it() -> None:
    machine = Leases(Place(0, 3, incarnation=1), 3, {2: 1, 0: 2}, RULES)
    list(machine.join(0))
    links = [Neighbour(RingMember(p, t, n), 0, ()) for p, t, n in ((0, 1, 1), (2, 0, 0), (1, 2, 0))]
    child = links[0]._replace(voters=(Voter(1, 0), Voter(2, 0)))
    accept = Accept(
        1,
        0,
        number=machine.number,
        parent=links[2].member,
        child=child,
        succ=links[1],
        after=links[2],
        view=(None,) * 3,
    )
    list(machine.receive(accept, 1, 0))
    list(machine.receive(Alive(2, 0, number=1, voter=Voter(2, 0)), 2, 0))
    assert machine.owns(0) is None
    list(machine.receive(Alive(2, 0, number=machine.polls, voter=Voter(2, 0)), 2, 0))
    assert machine.owns(0) == 1


def changing(kind: type[Leases]) -> Holders:
    """4 hears of new voters; its predecessor 3 does not hear from it again, nor 2 from 3."""
    ring = founded(8, 24, kind=kind, k=1)
    ring.machines[8].view = [p if p == 2 else None for p in ring.machines[8].view]
    ring.join(8)
    while Voter(8, 0) not in ring.machines[3].L:
        ring.run(1)
    ring.cut = lambda a, b: (a, b) in {(4, 3), (3, 2)}
    ring.run(15 * ROUND)
    return ring


def test_a_member_changes_its_voters_only_with_the_consent_of_the_old_ones() -> None:
    assert 4 not in changing(Leases).members()
    with pytest.raises(ViolationError, match="3 and 4 both may assign"):
        changing(broken.Obedient)


FAULTS = [
    ("none", 0),
    *product(("crash", "pause", "deaf", "mute"), range(3)),
    *product(("cut",), [(0, 1), (1, 2), (2, 0)]),
]


@pytest.mark.parametrize("first", FAULTS, ids=str)
def test_three_processes_are_safe_whatever_two_faults_follow_each_other(first: Any) -> None:
    for second, gap in product(FAULTS, (0, 2)):
        ring = founded(3, 3, spare=0, k=1)
        for kind, where in (first, second):
            strike(ring, kind, where)
            ring.run(gap * ROUND + ROUND / 3)
        ring.run(6 * ROUND)
        ring.cut = lambda a, b: False
        for p in ring.machines:
            ring.join(p)
        for _ in range(8):
            ring.run(ROUND)
            for p in range(3):
                ring.use(p)


def strike(ring: Holders, kind: str, where: Any) -> None:
    """One process crashes, sleeps, hears nothing or is not heard; or two cannot reach each other."""
    before = ring.cut
    match kind:
        case "crash":
            ring.crash(where)
        case "pause":
            ring.pause(where, 7 * ROUND)
        case "deaf":
            ring.cut = lambda a, b: before(a, b) or b == where
        case "mute":
            ring.cut = lambda a, b: before(a, b) or a == where
        case "cut":
            ring.cut = lambda a, b: before(a, b) or {a, b} == set(where)


@given(st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_in_any_weather_no_ticket_has_two_owners_or_coordinators(seed: int) -> None:
    end, why = outcome(seed, Leases)
    assert end in ("complete", "dead"), why


# where to begin, so that it does not take long
SEEDS = {
    broken.SleepWalker: 13,
    broken.NoQuarantine: 0,
    broken.FickleVoter: 11,
    broken.Presumptuous: 4,
    broken.Timeless: 4,
}


@pytest.mark.parametrize("kind", SEEDS, ids=lambda kind: kind.__name__)
def test_bad_weather_catches_the_broken_versions(kind: type[Leases]) -> None:
    assert {*SEEDS, broken.LateVotes, broken.Obedient} == set(broken.BROKEN_LEASES)

    def many() -> None:
        for seed in range(SEEDS[kind], SEEDS[kind] + 100):
            storm(seed, kind)

    with pytest.raises(ViolationError):
        many()


def test_a_grant_tells_the_epoch_and_counts_from_nothing() -> None:
    ring = founded(4, 8)
    ring.join(4)
    until(ring, lambda: 4 in ring.members(), 10)
    assert ring.grants[4] == Granted(ring.machines[4].ticket, 1, 0)
