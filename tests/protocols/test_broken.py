"""Every protocol of the bank is caught at the size that it needs, and at no smaller one.

Those that may lose messages gossip for ever, and daisies have heartbeats: they are caught by random
schedules (test_fuzz, test_bank).
"""

import inspect
from typing import NamedTuple

import pytest

from testbed.explore import explore
from testbed.protocols import PROTOCOLS
from testbed.protocols.broken import BROKEN
from testbed.protocols.daisy import Daisy
from tests.explore.odd_protocols import example_of


class Caught(NamedTuple):
    """The smallest system in which a mistake shows, and what the oracle then finds."""

    nodes: int
    messages: int
    kind: str


SMALLEST = {
    "broken-impatient": Caught(3, 2, "order"),
    "broken-fifo-only": Caught(3, 2, "order"),
    "broken-no-fifo": Caught(3, 3, "gap"),
    "broken-off-by-one": Caught(3, 2, "order"),
    "broken-no-rescan": Caught(3, 2, "loss"),
    "broken-single-pass": Caught(3, 3, "loss"),
    "broken-merge": Caught(3, 2, "gap"),
    "broken-last-cause": Caught(3, 3, "order"),
    "broken-uncounted": Caught(2, 2, "loss"),
    "broken-late-update": Caught(3, 2, "order"),
    "broken-printed": Caught(3, 2, "order"),
    "broken-higher": Caught(3, 2, "order"),
    "broken-stingy": Caught(3, 2, "order"),
    "broken-echo": Caught(3, 1, "duplicate"),
    "broken-newest": Caught(3, 2, "duplicate"),
    "broken-forgetful": Caught(3, 1, "duplicate"),
    "broken-lazy": Caught(3, 2, "order"),
    "broken-printed-rst": Caught(3, 2, "order"),
    "broken-unstamped": Caught(3, 3, "order"),
    "broken-stamps-in-turn": Caught(3, 2, "loss"),
    "broken-arrival-order": Caught(3, 3, "order"),
    "broken-own-groups": Caught(3, 3, "order"),
    "broken-unanswered": Caught(3, 2, "loss"),
}


def test_all_are_explored_but_those_that_never_rest() -> None:
    assert set(SMALLEST) == {name for name, protocol in BROKEN.items() if protocol.rests}
    rest = {name for name, protocol in BROKEN.items() if not issubclass(protocol, Daisy)}
    assert rest - set(SMALLEST) == {"broken-too-late", "broken-unsorted"}


@pytest.mark.parametrize("name", SMALLEST)
def test_the_mistake_shows_at_this_size_and_no_smaller(name: str) -> None:
    nodes, messages, kind = SMALLEST[name]
    result = explore(BROKEN[name], nodes, 4)
    assert result.verdict == "invalid"
    assert result.messages == messages
    assert result.counter_example is not None
    assert result.counter_example.verdict is not None
    assert result.counter_example.verdict.count(kind)
    assert result.counter_example.oracle
    if nodes > 2:
        assert explore(BROKEN[name], nodes - 1, 4).verdict == "valid"


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_marked_as_such_and_says_which_rule_it_breaks(name: str) -> None:
    protocol = BROKEN[name]
    assert name == protocol.name
    assert name.startswith("broken-")
    assert name not in PROTOCOLS
    assert issubclass(protocol, (*PROTOCOLS.values(),))
    assert "Broken rule: " in inspect.cleandoc(protocol.__doc__ or "")


@pytest.mark.parametrize("name", ["broken-late-update", "broken-printed"])
def test_some_are_right_while_nobody_answers_during_a_delivery(name: str) -> None:
    assert explore(BROKEN[name], 3, 3, answers=False).verdict == "valid"
    example = example_of(BROKEN[name], 3, 4)
    answered = [m for m in example.moments if m.received is not None and m.multicast]
    assert len(answered) == 1


def test_the_relay_triangle_takes_all_three_processes() -> None:
    example = example_of(BROKEN["broken-fifo-only"], 3, 4)
    assert {moment.process for moment in example.moments} == {0, 1, 2}


def test_one_takes_two_messages_of_one_process() -> None:
    example = example_of(BROKEN["broken-newest"], 3, 4)
    sent = [name for m in example.moments for name in m.multicast]
    assert len(sent) == 2
    assert sent[0].source == sent[1].source


def test_one_takes_two_causes_that_are_not_related() -> None:
    example = example_of(BROKEN["broken-last-cause"], 3, 4)
    sources = [name.source for m in example.moments for name in m.multicast]
    assert sorted(sources) == [0, 1, 2]


@pytest.mark.parametrize("name", ["broken-impatient", "broken-no-fifo"])
def test_two_processes_suffice_where_channels_are_not_fifo(name: str) -> None:
    example = example_of(BROKEN[name], 2, 4, fifo=False)
    assert example.wrong.sentence.endswith("without m(0,1)")
    assert explore(BROKEN["broken-fifo-only"], 2, 3, fifo=False).verdict == "valid"
