"""The two-layer protocol in whole runs: what it promises under loss, delay, handover and crashes."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Place
from testbed.protocols.base import SEQUENCE_BITS
from testbed.protocols.broken.cluster import Reset, TooLate, Unsorted
from testbed.protocols.cluster import Cluster
from testbed.protocols.cluster.events import EventId
from tests.protocols.cluster.rounds import Rounds
from tests.world import MS

EPOCH = 1 << SEQUENCE_BITS
ROUND_NS = 100_000_000

THIN: dict[str, Any] = {"fanout": 2, "hops": 3, "time_to_terminate": 3, "time_to_recover": 3}


def played(
    protocol: Any = Cluster,
    processes: int = 12,
    p: float = 0.3,
    rounds: int = 30,
    senders: int | None = None,
    answers: float = 0,
    handovers: int = 0,
    dead: int = 0,
    network: dict[str, Any] | None = None,
    **chosen: Any,
) -> Rounds:
    """A run in which processes multicast at random, and answer some of what they deliver."""
    senders = senders or processes
    everything = protocol.Settings(
        **{"coordinators": senders, "events_per_round": p * senders, **chosen}
    )
    run = Rounds(lambda place: protocol(place, everything), processes, **(network or {}))
    for process in range(processes - dead, processes):
        run.crash(process)
    run.answers_to = lambda me, message: run.now < rounds * ROUND_NS and run.rng.random() < answers
    run.load(processes - dead, p, rounds, 100)
    for k in range(handovers):
        run.at((k + 1) * rounds * 100 / (handovers + 1), lambda: hand_over(run))
    run.run(100 * (rounds + 40))
    return run


def hand_over(run: Rounds) -> None:
    """A ticket goes to a process that has none: with its last number, or with a new epoch."""
    owner = run.rng.choice([p for p in run.protocols if p.ticket is not None])
    heir = run.rng.choice([p for p in run.protocols if p.ticket is None])
    assert owner.ticket is not None
    epoch, last = divmod(owner.seq, EPOCH)
    if run.rng.random() < 0.3:
        epoch, last = epoch + 1, 0
    heir.own(owner.ticket, epoch, last)
    owner.disown()


@given(
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0, 0.2, 0.4]),
    slowest=st.sampled_from([20, 150, 700]),
    recovery=st.sampled_from(["none", "source", "any"]),
    answers=st.sampled_from([0, 0.03]),
    handovers=st.sampled_from([0, 8]),
    history=st.sampled_from([3, 40]),
)
def test_nothing_is_delivered_after_what_it_precedes(
    seed: int,
    loss: float,
    slowest: int,
    recovery: str,
    answers: float,
    handovers: int,
    history: int,
) -> None:
    run = played(
        processes=8,
        senders=5,
        rounds=15,
        answers=answers,
        handovers=handovers,
        network={"loss": loss, "delays_ms": (1, slowest), "seed": seed},
        recovery=recovery,
        history=history,
        **THIN,
    )
    run.sound()
    assert not any(p.held or p.asked for p in run.protocols)


def test_without_loss_or_slowness_every_event_is_delivered_everywhere() -> None:
    network = {"wire": True, "delays_ms": (1, 150)}
    run = played(processes=16, rounds=12, answers=0.05, network=network, recovery="source")
    assert run.lost() == 0
    run.sound()
    assert run.log.held


def test_without_the_causality_layer_what_comes_out_of_order_is_lost_and_nothing_waits() -> None:
    network = {"delays_ms": (1, 150)}
    runs = {
        causal: played(processes=16, causal=causal, answers=0.05, network=network)
        for causal in (True, False)
    }
    assert all(run.check().ok for run in runs.values())
    assert runs[True].log.held
    assert not runs[False].log.held
    assert runs[False].lost() >= runs[False].meter.discarded["obsolete"] > 20
    assert runs[False].lost() > 10 * runs[True].lost()


@pytest.mark.parametrize("seed", range(2))
def test_recovery_from_four_leaves_a_tenth_of_the_loss_under_a_fifth_of_datagrams_lost(
    seed: int,
) -> None:
    def lost(recovery: str) -> int:
        network = {"loss": 0.2, "seed": seed}
        run = played(processes=25, p=0.5, rounds=40, network=network, recovery=recovery)
        run.sound()
        if recovery != "none":
            assert (
                0.8 < run.meter.counted["recovered"] / run.meter.counted["recovery_attempts"] <= 1
            )
        return run.lost()

    without = lost("none")
    assert without > 30
    assert lost("any") <= without / 10


def test_rounds_need_not_be_in_step() -> None:
    run = played(processes=125, senders=5, recovery="none")
    assert run.lost() < 0.005 * 125 * run.sent_in_all()


def test_a_history_that_is_too_short_costs_duplicates_only() -> None:
    long, short = (played(history=h, processes=10, network={"seed": 4}) for h in (200, 4))
    assert long.meter.counted["repeated"] == 0
    assert short.meter.counted["repeated"] > 100
    for run in (long, short):
        assert run.lost() == 0
        run.sound()


def test_gossip_over_partial_views_reaches_all_with_joins_and_leaves() -> None:
    chosen: dict[str, Any] = {"membership": "partial", "view_size": 6, "members": 18}
    run = Rounds(
        lambda place: Cluster(place, Cluster.Settings(coordinators=4, **chosen)), 20, wire=True
    )
    run.run(100)
    for newcomer in (18, 19):
        assert run.protocols[newcomer].busy()
        run.join(newcomer)
    run.leave(17)
    run.run(2500)
    assert not run.protocols[17].view.member
    run.load(4, 0.5, 20, 100)
    run.run(6000)
    run.sound()
    assert run.lost(17) == run.sent_in_all()
    for me in (*range(17), 18, 19):
        assert run.lost(me) <= 2


# What the paper proves of buffers and of the number of processes to ask


@pytest.mark.parametrize("share", [1, 0.5])
def test_a_buffer_of_twice_the_expected_events_has_nearly_all_that_may_be_asked_for(
    share: float,
) -> None:
    """Theorem 5.1: of 2npT events, one is not there with probability below (e/4)^npT."""
    n, np_, rounds = 5, 1.0, 6  # 2 hops twice, and two time-outs of one round
    chosen = Cluster.Settings(hops=2, time_to_terminate=1, time_to_recover=1, events_per_round=np_)
    assert chosen.recovery_size == 2 * np_ * rounds
    size = round(share * chosen.recovery_size)
    absent = seen = 0
    run = played(processes=n, p=0, hops=2, recovery_buffer=size, events_per_round=1)

    def look(eid: EventId) -> None:
        nonlocal absent, seen
        seen += n
        absent += sum(eid not in p.B for p in run.protocols)

    def look_later(me: int, message: Any) -> bool:
        if message.source == me:
            run.at(run.now / MS + rounds * 100, lambda: look(message.eid))
        return False

    run.answers_to = look_later
    run.load(n, np_ / n, 400, 100)
    run.run(100 * 420)
    assert seen > 1500
    bound = (math.e / 4) ** (np_ * rounds)
    if share == 1:
        assert absent / seen < bound
    else:
        assert absent / seen > bound


@pytest.mark.parametrize(("n", "p_f"), [(20, 0.05), (40, 0.1), (50, 0.2)])
def test_of_enough_processes_asked_one_is_alive(n: int, p_f: float) -> None:
    """Lemma 5.2: of 2np_f processes all have failed with probability below (e/4)^np_f."""
    rng = random.Random(n)
    view = Cluster(Place(0, n, rng=rng)).view

    def nobody(asked: int, trials: int = 2000) -> float:
        """How often all that are asked have failed."""
        failed = ({p for p in range(n) if rng.random() < p_f} for _ in range(trials))
        return sum(failed_ones.issuperset(view.targets(asked)) for failed_ones in failed) / trials

    assert nobody(round(2 * n * p_f)) < (math.e / 4) ** (n * p_f)
    assert nobody(1) == pytest.approx(p_f, rel=0.3)


def test_recovery_from_four_succeeds_as_often_as_is_proven_with_failed_processes() -> None:
    """Theorem 5.2: with k = 4 targets each of n = 25 may have failed with probability k / 2n."""
    run = played(processes=25, p=0.5, network={"loss": 0.2, "seed": 1}, dead=2)
    attempts = run.meter.counted["recovery_attempts"]
    assert attempts > 30
    assert run.meter.counted["recovered"] / attempts > 1 - (math.e / 4) ** 2


# Mistakes


def test_recovery_that_delivers_late_events_is_caught() -> None:
    network = {"loss": 0.3, "delays_ms": (1, 400), "seed": 2}
    chosen = {**THIN, "time_to_recover": 1}
    assert played(TooLate, network=network, **chosen).check().count("order")
    played(Cluster, network=network, **chosen).sound()


def test_a_past_that_is_delivered_as_it_came_is_caught() -> None:
    network = {"loss": 0.3, "delays_ms": (1, 400), "seed": 2}
    assert played(Unsorted, network=network, **THIN).check().count("order")
    played(Cluster, network=network, **THIN).sound()


def test_a_clock_entry_that_begins_anew_with_its_new_owner_is_caught() -> None:
    def violations(protocol: type[Cluster]) -> int:
        runs = (
            played(protocol, senders=6, handovers=12, network={**network, "seed": seed}, **THIN)
            for seed in range(8, 13)
        )
        return sum(run.check().count("order") for run in runs)

    network = {"loss": 0.3, "delays_ms": (1, 300)}
    assert violations(Reset) > 0
    assert violations(Cluster) == 0
