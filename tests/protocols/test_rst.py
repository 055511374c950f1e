"""RST on executions of multicasts to arbitrary sets."""

import pytest

from testbed.protocols import WireError
from testbed.protocols.broken.rst import PrintedRST
from testbed.protocols.rst import RST, MatrixMessage
from tests.protocols.executions import Execution, violations


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


def test_the_papers_text_is_not_enough_for_other_destinations() -> None:
    assert violations(PrintedRST, 200) > 10


def test_integers_are_counted_as_the_paper_does() -> None:
    run = Execution(RST, 4)
    run.say(0, frozenset([1, 2]))
    run.play()
    assert run.meter.counted == {"control_copies": 2, "control_integers": 2 * 16}
    assert run.meter.sampled == {"log_integers": {node: [16, 1] for node in (0, 1, 2)}}


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
