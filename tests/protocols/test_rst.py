"""RST on executions of multicasts to arbitrary sets."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import WireError
from testbed.protocols.rst import RST, MatrixMessage
from tests.protocols.executions import Execution


class PrintedRST(RST):
    """As the papers print it: a delivery does not tell to whom else the message went."""

    def learn(self, message: MatrixMessage) -> None:
        np.maximum(self.SENT, message.SENT, out=self.SENT)


def violations(protocol: type[RST], seeds: int) -> int:
    found = 0
    for seed in range(seeds):
        rng = random.Random(seed)
        run = Execution(protocol, rng.randint(2, 5), seed)
        run.play(8)
        found += not run.check().ok
    return found


def test_an_answer_waits_at_the_third_process_for_the_question() -> None:
    a, b, c = range(3)
    run = Execution(RST, 3)
    question = run.say(a, frozenset([b, c]))
    run.pass_on_message(question, b)
    answer = run.say(b, frozenset([c]))
    run.pass_on_message(answer, c)
    assert run.log.held == [(c, answer, question)]
    run.pass_on_message(question, c)
    assert run.delivered(c) == [question, answer]
    assert run.check().ok


def test_the_matrix_is_attached_as_it_was_before_the_message() -> None:
    run = Execution(RST, 3)
    run.say(0, frozenset([1]))
    run.say(0, frozenset([1, 2]))
    first, to_1, to_2 = (copy.message for copy in run.copies)
    assert first.SENT.tolist() == [[0, 0, 0]] * 3
    assert to_1 is to_2
    assert to_1.control_size == 4 * (3 * 3 + 2)
    assert to_1.SENT.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert run.protocols[0].SENT.tolist() == [[0, 2, 2], [0, 0, 0], [0, 0, 0]]


def test_the_later_of_two_messages_waits_for_the_earlier_without_fifo_channels() -> None:
    run = Execution(RST, 3)
    first, second = run.say(0, frozenset([1])), run.say(0, frozenset([1, 2]))
    run.pass_on_message(second, 1)
    assert [missing for _, _, missing in run.log.held] == [first]
    run.pass_on_message(second, 2)  # which the first does not concern
    assert run.delivered(2) == [second]


@pytest.mark.parametrize(
    ("destinations", "delivers"),
    [(None, True), ({0, 1}, True), ({0}, True), ({1, 2}, False), (set(), False)],
)
def test_a_sender_delivers_at_once_if_it_is_a_destination(
    destinations: set[int] | None, delivers: bool
) -> None:
    run = Execution(RST, 3)
    run.say(0, None if destinations is None else frozenset(destinations))
    assert [e.event for e in run.log.events[0]] == ["send", "deliver"][: 1 + delivers]
    run.play()
    assert run.check().ok


def test_causal_order_is_kept_on_a_thousand_schedules() -> None:
    assert violations(RST, 1000) == 0


def test_an_application_may_answer_while_it_is_given_a_message() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        run = Execution(RST, rng.randint(2, 5), seed, answering=0.3, answers=10)
        run.play(5)
        assert run.check().ok


def test_the_papers_text_is_not_enough_for_other_destinations() -> None:
    assert violations(PrintedRST, 200) > 10


@given(seed=st.integers(), n=st.integers(2, 5))
def test_duplicates_are_dropped_whether_they_waited_or_not(seed: int, n: int) -> None:
    rng = random.Random(seed)
    run = Execution(RST, n, seed)
    duplicates = 0
    for _ in run.shuffle(8):
        if run.copies and rng.random() < 0.2:
            run.repeat(rng.choice(run.copies))
            duplicates += 1
    assert run.check().ok
    assert run.meter.discarded == Counter(duplicate=duplicates)


def test_integers_are_counted_as_the_paper_does() -> None:
    run = Execution(RST, 4)
    run.say(0, frozenset([1, 2]))
    run.play()
    assert run.meter.counted == {
        "control_copies": 2,
        "control_integers": 2 * 16,
        "log_integers": 3 * 16,
        "log_events": 3,
    }


@pytest.mark.parametrize(
    "control",
    [
        b"",
        bytes(15),
        bytes(17),
        bytes(16) + bytes([0, 0, 0, 2]),  # a process too many
        bytes(16) + bytes([0, 0, 0, 1, 0, 0, 0, 0]),  # out of order
        bytes(16) + bytes([0, 0, 0, 1, 0, 0, 0, 1]),  # twice
    ],
)
def test_malformed_control_information_is_refused(control: bytes) -> None:
    with pytest.raises(WireError):
        MatrixMessage.decode_control(control, 2)


def test_messages_survive_the_wire_on_the_way() -> None:
    for seed in range(50):
        plain, encoded = Execution(RST, 4, seed), Execution(RST, 4, seed, wire=True)
        plain.play(10)
        encoded.play(10)
        assert plain.log.events == encoded.log.events
