"""What people see of an exploration: the diagram, the command's sentences and its JSON."""

import pytest

from testbed.commands import explore as command
from testbed.explore import explore
from testbed.explore.diagram import Diagram
from testbed.protocols.broken import BROKEN
from testbed.protocols.broken.timestamp import Impatient
from tests.command_line import CommandLine
from tests.explore.odd_protocols import RESTING, NewestOnly, PingPong, example_of

EXPLORE = ("explore", "--protocol")
TRIANGLE = """\
process 0 ━━●a━━━━━━━━━━━━━━━━━━━━━
             ├──┐
             └──┼─────────────┐
process 1 ━━━━━━▼a✓━━●b━━━━━━━┿━━━━
                      └──┐    │
process 2 ━━━━━━━━━━━━━━━▼b✗━━▼a✓━━"""


def test_the_relay_triangle_is_drawn() -> None:
    diagram = Diagram(3, example_of(Impatient, 3, 4))
    assert "\n".join(str(line).rstrip() for line in diagram.lines()) == TRIANGLE
    letters, signs = diagram.legend()
    assert letters == "a = m(0,1), b = m(1,1)"
    assert "✗ delivered wrongly" in signs
    assert "never" not in signs


@pytest.mark.parametrize("name", sorted(RESTING))
def test_a_diagram_fits_the_terminal(name: str) -> None:
    example = example_of(BROKEN[name], 3, 3)
    assert all(len(line) <= 100 for line in Diagram(3, example).lines(100))
    narrow = list(Diagram(3, example).lines(36))
    assert all(len(line) <= 36 for line in narrow)
    assert sum(str(line).startswith("process 0") for line in narrow) >= 1


def test_the_command_says_how_much_was_covered(testbed: CommandLine) -> None:
    out = testbed(*EXPLORE, "timestamp", "--nodes", 2, "--messages", 3).out
    assert "timestamp: 2 processes, up to 3 messages, FIFO channels" in out
    assert "valid: complete; all 100 schedules are right (49 states, 92 steps)" in out


def test_the_command_says_where_messages_go(testbed: CommandLine) -> None:
    one = (*EXPLORE, "rst", "--messages", 1)
    result = testbed(*one, "--json").json()
    assert (result["to"], result["schedules"]) == ("sets", 18)
    assert "rst: 3 processes, 1 message to any others or to all, FIFO" in testbed(*one).out
    assert "rst: 3 processes, 1 message, FIFO" in testbed(*one, "--no-subsets").out


def test_json_names_the_destinations() -> None:
    result = command.to_json(explore(NewestOnly, 3, 3))
    events = [event for m in result["counter_example"]["moments"] for event in m["events"]]
    assert [event for event in events if event[0] == "send"] == [
        ["send", 0, 1, [1]],
        ["send", 0, 2, [2]],
        ["send", 2, 1, [1]],
    ]


def test_the_command_draws_a_counter_example(testbed: CommandLine) -> None:
    out = testbed(*EXPLORE, "broken-impatient", status=1).out
    assert "invalid: process 2 delivers m(1,1) without m(0,1)" in out
    assert TRIANGLE.splitlines()[-1] in out
    assert "the oracle: node 2 delivered m(1,1) before m(0,1), but" in out


def test_the_command_draws_what_goes_on_for_ever(
    testbed: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BROKEN, "ping-pong", PingPong)
    out = testbed(*EXPLORE, "ping-pong", status=1).out
    assert "not live: process 1 never delivers m(0,1), though something happens for ever" in out
    assert "the last 4 moments repeat for ever; whatever happens instead" in out
    example = testbed(*EXPLORE, "ping-pong", "--json", status=1).json()["counter_example"]
    assert example["circle"] == 4


def test_the_command_admits_what_it_has_not_tried(testbed: CommandLine) -> None:
    said = testbed(*EXPLORE, "overlay", "--limit", 500, status=2)
    assert "unknown: incomplete" in said.out


def test_the_command_speaks_json(testbed: CommandLine) -> None:
    result = testbed(*EXPLORE, "broken-merge", "--no-answers", "--json", status=1).json()
    assert (result["protocol"], result["verdict"]) == ("broken-merge", "invalid")
    assert not result["answers"]
    example = result["counter_example"]
    assert example["moments"][0]["events"] == [["send", 0, 1, None], ["deliver", 0, 1]]
    assert example["verdict"]["verdict"] == "invalid"
    assert example["oracle"][0].startswith("node 2 delivered m(1,1) but never m(0,1)")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("overly", "protocol overly: there is no such protocol; did you mean"),
        ("?", "known are"),
        ("overlay --nodes 1", "--nodes 1: must be at least 2"),
        ("overlay --messages 0", "--messages 0: must be at least 1"),
        ("overlay --limit 0", "--limit 0: must be at least 1"),
        ("cluster", "cluster may lose messages"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    arguments: str, sentence: str, testbed: CommandLine
) -> None:
    assert sentence in testbed(*EXPLORE, *arguments.split(), status=2).err
