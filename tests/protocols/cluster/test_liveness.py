"""Tickets on leases: who can go on after crashes, cuts and leaving, and who is told that it cannot."""

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.explore.tickets.system import ViolationError
from testbed.protocols.base import Send
from testbed.protocols.cluster.tickets import Granted, Leases, LeaseSettings, TicketEffects
from testbed.protocols.cluster.tickets.lease_messages import Accept, AckUpdate, ReqCoord, Update
from testbed.protocols.cluster.tickets.messages import RingMember
from testbed.protocols.cluster.tickets.polls import REMEMBERED, Memory
from testbed.protocols.wire import Message
from tests.experiments import events_of, parsed, run
from tests.protocols.cluster.ring import Holders
from tests.protocols.cluster.storms import ROUND_MS as ROUND
from tests.protocols.cluster.storms import outcome
from tests.protocols.cluster.test_leases import founded, until
from tests.protocols.cluster.test_printed import EXPERIMENTS
from tests.world import MS


def test_members_whose_leases_have_run_out_go_on_if_nobody_has_excluded_them() -> None:
    ring = founded(6, 12)
    ring.run(ROUND)
    ring.part([0, 1], [2, 3], [4, 5])
    until(ring, lambda: ring.members() == [], 4)
    ring.part()
    until(ring, lambda: len(ring.members()) == 6, 4)
    assert {grant.epoch for grant in ring.granted} == {0}
    assert {machine.state for machine in ring.machines.values()} == {"coordinator", "out"}


def test_a_ticket_that_is_granted_again_counts_on() -> None:
    ring = founded(3, 6, spare=0)
    ring.use(1)
    ring.part([0], [1], [2])
    until(ring, lambda: ring.members() == [], 4)
    ring.part()
    until(ring, lambda: 1 in ring.members(), 4)
    assert ring.granted[-3:].count(Granted(3, 0, 1)) == 1


def test_who_was_excluded_is_told_and_asks_for_a_ticket_again() -> None:
    ring = founded(7, 14)
    ring.part([2])
    until(ring, lambda: ring.machines[2].state == "lapsed", 6)
    until(ring, ring.complete, 10)
    assert ring.machines[2].state == "lapsed"  # it cannot know
    ring.part()
    until(ring, lambda: 2 in ring.members(), 20)
    assert ring.grants[2].epoch > 0


@pytest.mark.parametrize("crashed", [0, 1])
def test_processes_without_a_ticket_vote_so_that_two_members_survive_a_crash(crashed: int) -> None:
    ring = founded(2, 9, spare=4)
    ring.run(2 * ROUND)
    assert {len(ring.machines[p].L) for p in (0, 1)} == {5}
    ring.crash(crashed)
    until(ring, ring.complete, 12)
    ring.join(2)
    until(ring, lambda: ring.members() == [1 - crashed, 2], 10)


def test_voters_that_crash_are_replaced_by_others_that_answer() -> None:
    ring = founded(2, 9, spare=9)
    ring.run(2 * ROUND)
    first = {v.process for v in ring.machines[0].L}
    for p in sorted(first - {1})[:2]:
        ring.crash(p)
    until(ring, lambda: len({v.process for v in ring.machines[0].L} - ring.dead) == 5, 8)


def test_nothing_is_offered_before_there_are_voters() -> None:
    ring = founded(1, 8, spare=5)
    assert ring.machines[0].L == ()
    voters: list[int] = []

    def look(sender: int, peer: int, message: Message) -> bool:
        if isinstance(message, Accept):
            voters.append(len(ring.machines[sender].L))
        return False

    ring.drops = look
    ring.join(1)
    until(ring, lambda: 1 in ring.members(), 6)
    assert voters == [5]
    ring.crash(0)
    until(ring, ring.complete, 12)
    assert ring.members() == [1]


def test_if_all_leave_at_once_the_one_with_the_highest_ticket_stays() -> None:
    ring = founded(4, 8, spare=2)
    for p in range(4):
        ring.leave(p)
    until(ring, ring.complete, 20)
    assert ring.members() == [0]
    ring.join(4)
    until(ring, lambda: ring.members() == [4], 20)


def test_a_voter_remembers_the_latest_members_of_each_ticket_and_which_it_has_forgotten() -> None:
    memory: Memory[int] = Memory()
    for number in range(2 * REMEMBERED):
        for ticket in (0, 1):
            memory.keep(RingMember(number, ticket, number), number)
    assert len(memory) == 2 * REMEMBERED
    assert [memory.forgot(RingMember(n, 1, n)) for n in (0, 3, 4, 7, 8)] == [
        True,
        True,
        *[False] * 3,
    ]
    assert memory.forgot(RingMember(9, 0, 3))  # which is as old as one that was forgotten
    assert not memory.forgot(RingMember(9, 2, 0))


def test_what_is_forgotten_is_neither_testified_nor_voted_for() -> None:
    machine = founded(3, 3, spare=0).machines[0]
    past = [RingMember(0, 1, number) for number in range(20, 20 + REMEMBERED + 1)]
    for member in past:
        assert machine.resigned(member) == ()
    assert machine.resigned(past[0]) is None
    assert machine.resigned(past[1]) == ()


def test_a_cluster_is_dead_only_for_a_reason() -> None:
    assert outcome(77, Leases) == ("dead", "every member has crashed; all processes are up")
    end, why = outcome(176, Leases)
    assert end == "dead"
    assert "3 (ticket 3, epoch 2) has left its tickets to 2, which has crashed" in why
    end, why = outcome(153, Leases)
    assert end == "dead"
    assert "2 (ticket 1, epoch 0) has 1 of 3 voters" in why


class Despairing(Leases):
    """Gives up when its lease has run out."""

    def excluded(self, now: int) -> bool:
        return super().excluded(now) or self.state == "lapsed"


class FaintHearted(Leases):
    """Is no member if nobody votes for it in the beginning, as before a cut is healed."""

    def excluded(self, now: int) -> bool:
        return super().excluded(now) or (self.lease_end == 0 and now >= self.linking_end)


class Vengeful(Leases):
    """Excludes others although its own voters have refused it, as long as its lease lasts."""

    def request(self, now: int) -> TicketEffects:
        q = self.question
        assert q is not None
        self.question = q._replace(votes=q.votes.union(q.register.voters))
        yield from super().request(now)
        self.question = q


class Hasty(Vengeful):
    """Lets another have its tickets as soon as its voters are silent, though they are alive."""

    @property
    def deserted(self) -> bool:
        return self.state == "lapsed" and self.question is not None and not self.question.heard


class Deaf(Vengeful):
    """Never helps a member that another wanted to exclude, even if it was not excluded."""

    def fence(self, message: ReqCoord, sender: int, now: int) -> TicketEffects:
        yield from super().fence(replace(message, rounds=0), sender, now)


class Departed(Leases):
    """Wants to leave and does nothing for the others, though it is the only one that can."""

    def try_leaving(self) -> TicketEffects:
        self.overdue = 0
        yield from super().try_leaving()


@pytest.mark.parametrize(
    ("kind", "seed", "end"),
    [
        (Despairing, 5, "dead without reason"),
        (FaintHearted, 1963, "dead without reason"),
        (Hasty, 534, "dead without reason"),
        (Deaf, 534, "damaged without reason"),
        (Departed, 1641, "dead without reason"),
        (Vengeful, 1604, "dead"),
    ],
)
def test_the_reason_is_not_that_somebody_gave_up(kind: type[Leases], seed: int, end: str) -> None:
    assert outcome(seed, kind)[0] == end
    assert outcome(seed, Leases)[0] in ("complete", "damaged")


def test_tickets_are_lost_only_with_the_voters_of_their_owner() -> None:
    end, why = outcome(603, Leases)
    assert end == "damaged"
    assert "0 (ticket 15, epoch 0) is gone, and of its 3 voters 1 are left" in why


class Clinging(Leases):
    """Says that it is alive when its lease has run out."""

    def updated(self, message: Update, sender: int) -> TicketEffects:
        yield from super().updated(message, sender)
        if self.state == "lapsed" and message.to == self.member:
            status = AckUpdate(self.me, 0, neighbour=self.as_neighbour, active=1)
            yield Send((sender,), status)


@pytest.mark.parametrize(("kind", "complete"), [(Clinging, False), (Leases, True)])
def test_who_has_lapsed_for_good_lets_its_predecessor_have_its_tickets(
    kind: type[Leases], complete: bool
) -> None:
    ring = founded(7, 14, kind=kind)
    ring.cut = lambda a, b: b == 3 and a != 2  # it hears from its predecessor only
    ring.run(15 * ROUND)
    assert ring.complete() == complete


@pytest.mark.parametrize(("coordinators", "crashed"), [(2, [1]), (3, [1]), (3, [1, 2])])
def test_the_others_go_on_sending_when_one_of_two_or_two_of_three_coordinators_crash(
    coordinators: int, crashed: list[int], tmp_path: Path
) -> None:
    crashes = [{"kind": "crash", "node": p, "at_ms": 1000.0, "for_ms": 500.0} for p in crashed]
    document = {
        "name": "dead",
        "seed": 1,
        "engine": "simulate",
        "protocol": {
            "name": "cluster",
            "coordinators": coordinators,
            "tickets": 9,
            "management": "leases",
            "lease_round_ms": 100.0,
        },
        "topology": {"model": "star", "nodes": 9},
        "links": {"delay_ms": [0.5, 2.0], "bandwidth_mbit": 100.0},
        "workload": {
            "model": "rounds",
            "senders": 0,
            "per_round": 0.6,
            "round_ms": 100.0,
            "duration_ms": 4000.0,
            "settle_ms": 500.0,
        },
        "fault": [*crashes, {"kind": "join", "node": 7, "at_ms": 2300.0}],
    }
    done = run(parsed(document), tmp_path)
    assert done.verdict.ok
    late = {e["node"] for e in events_of(done) if e["event"] == "send" and e["t"] > 3.3e9}
    assert {0, *crashed, 7} <= late


def test_coordinators_that_are_killed_in_a_row_or_cut_off_send_again(tmp_path: Path) -> None:
    document = tomllib.loads((EXPERIMENTS / "coordinators.toml").read_text())
    done = run(parsed(document), tmp_path)
    assert done.verdict.ok
    assert done.summary["no_owner_ms_max"] == 0
    late = {e["node"] for e in events_of(done) if e["event"] == "send" and e["t"] > 4.5e9}
    assert late == {*range(10), 20}


@pytest.mark.parametrize("waits", [True, False])
def test_who_has_no_ticket_produces_nothing_or_all_at_once_when_it_gets_one(
    waits: bool, tmp_path: Path
) -> None:
    chosen = {"coordinators": 2, "tickets": 4, "management": "leases", "lease_round_ms": 100.0}
    document = {
        "name": "backlog",
        "engine": "simulate",
        "protocol": {"name": "cluster", **chosen},
        "topology": {"model": "star", "nodes": 6},
        "workload": {
            "model": "rounds",
            "per_round": 2.0,
            "duration_ms": 3000.0,
            "settle_ms": 300.0,
            "waits": waits,
        },
        "fault": [{"kind": "join", "node": 4, "at_ms": 1500.0}],
    }
    done = run(parsed(document), tmp_path)
    sends = [e["t"] for e in events_of(done) if e["event"] == "send" and e["node"] == 4]
    most = max(Counter(sends).values())
    assert most > 20 if waits else most == 2
    assert (done.summary.get("not_sent", 0) > 100) is not waits


def drifting(slow: float, fast: float, phase: int) -> None:
    """The link from 3 to 2 is cut; 3, whose clock is slow, is excluded by 2, whose clock is fast."""
    rules = LeaseSettings(k=2, round_ns=ROUND * MS, delay_ns=ROUND * MS // 10)
    places = {13 - 2 * i: i for i in range(7)}
    ring = Holders(lambda place: Leases(place, 14, places, rules), 7)
    ring.rates = [slow if p == 3 else fast for p in range(7)]
    ring.run(5 * ROUND + phase * ROUND / 8)
    ring.cut = lambda a, b: (a, b) == (3, 2)
    ring.run(20 * ROUND)


def test_clock_rates_may_differ_by_less_than_quarantine_to_lease() -> None:
    rules = LeaseSettings()
    bound = rules.quarantine_ns / rules.lease_ns
    assert bound == pytest.approx(3.2 / 2.2)
    assert 1.19 / 0.83 < bound < 1.25 / 0.75
    for phase in range(6, 10):
        drifting(0.83, 1.19, phase)
    with pytest.raises(ViolationError, match="2 and 3 both may assign"):
        drifting(0.75, 1.25, 8)


@pytest.mark.parametrize(("rate", "safe"), [(0.7, True), (0.6, False)])
def test_a_process_with_a_slow_clock_shares_a_ticket_only_beyond_the_bound(
    rate: float, safe: bool, tmp_path: Path
) -> None:
    document = tomllib.loads((EXPERIMENTS / "drift.toml").read_text())
    slow, cut = document["fault"]
    wrong = []
    for at_ms in (460.0, 480.0, 500.0, 520.0):  # at different phases of a round
        faults = [slow | {"rate": rate}, cut | {"at_ms": at_ms}]
        wrong.append(run(parsed(document, fault=faults), tmp_path).verdict.faults)
    assert ("co_assigned",) not in wrong if safe else ("co_assigned",) in wrong
    assert safe == (1 / rate < 3.2 / 2.2)
