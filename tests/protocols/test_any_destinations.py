"""What RST, KS and KS' have in common: each message goes to any set of processes."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import KS, RST, KSPrime
from tests.protocols.executions import Execution, drawn, known, violations

Protocol = type[RST] | type[KS]
ALL = pytest.mark.parametrize("protocol", [RST, KS, KSPrime])


@ALL
def test_the_later_of_two_messages_waits_for_the_earlier_without_fifo_channels(
    protocol: Protocol,
) -> None:
    run = Execution(protocol, 3)
    first, second = run.say(0, frozenset([1])), run.say(0, frozenset([1, 2]))
    run.pass_on_message(second, 1)
    assert [missing for _, _, missing in run.log.held] == [first]
    run.pass_on_message(second, 2)  # which the first does not concern
    assert run.delivered(2) == [second]


@pytest.mark.parametrize(
    ("destinations", "delivers"),
    [(None, True), ({0, 1}, True), ({0}, True), ({1, 2}, False), (set(), False)],
)
@ALL
def test_a_sender_delivers_at_once_if_it_is_a_destination(
    protocol: Protocol, destinations: set[int] | None, delivers: bool
) -> None:
    run = Execution(protocol, 3)
    name = run.say(0, None if destinations is None else frozenset(destinations))
    assert [e.event for e in run.log.events[0]] == ["send", "deliver"][: 1 + delivers]
    sender = run.protocols[0]
    if isinstance(sender, KS):
        others = {1, 2} if destinations is None else destinations - {0}
        assert known(sender.LOG) == {name: others}
    run.play()
    assert run.check().ok


@pytest.mark.parametrize(("protocol", "fifo"), [(RST, False), (KS, False), (KS, True)])
def test_causal_order_is_kept_on_a_thousand_schedules(protocol: Protocol, fifo: bool) -> None:
    assert violations(protocol, 1000, fifo) == 0


@pytest.mark.parametrize("protocol", [RST, KS])
def test_an_application_may_answer_while_it_is_given_a_message(protocol: Protocol) -> None:
    for seed in range(200):
        run = Execution(protocol, drawn(seed, 2), seed, answering=0.3, answers=10)
        for me in run.shuffle(5):
            process = run.protocols[me]
            if isinstance(process, KS):
                assert known(process.LOG) == run.graph.necessary_at(me)
        assert run.check().ok


@ALL
@given(seed=st.integers(), n=st.integers(2, 5))
def test_duplicates_are_dropped_whether_they_waited_or_not(
    protocol: Protocol, seed: int, n: int
) -> None:
    rng = random.Random(seed)
    run = Execution(protocol, n, seed)
    duplicates = 0
    for _ in run.shuffle(8):
        if run.copies and rng.random() < 0.2:
            run.repeat(rng.choice(run.copies))
            duplicates += 1
    assert run.check().ok
    assert run.meter.discarded == Counter(duplicate=duplicates)
    assert not any(p.waiting for p in run.protocols)
