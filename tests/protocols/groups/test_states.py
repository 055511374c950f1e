"""The table of a group's states, and that all its events are in it and nothing else."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import groups
from testbed.protocols.base import Note
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.levels import ADDED, REMOVED
from testbed.protocols.groups.states import (
    FLUSHING,
    MEMBER,
    OUT,
    PROPOSING,
    SEEKING,
    SILENT,
    TABLE,
    TRANSITIONS,
    UNLIKELY,
    Machine,
    drawing,
)

STATES = {SEEKING, MEMBER, SILENT, FLUSHING, PROPOSING, OUT}
EVENTS = {event for _, event in TABLE}


def used() -> set[str]:
    """The events that the group layer's own code goes by."""
    sources = "".join(path.read_text() for path in Path(groups.__path__[0]).glob("*.py"))
    names = set(re.findall(r'(?:\bgo|_defer)\("([a-z-]+)"\)', sources))
    return names | set(re.findall(r'\bevent\b[^=\n]*= "([a-z-]+)"', sources))


def test_a_member_flushes_installs_a_view_and_leaves() -> None:
    machine = Machine(MEMBER)
    assert machine.go("flush", group=7) == Note(
        "flush", {"state": MEMBER, "next": FLUSHING, "group": 7}
    )
    assert machine.go("install").facts == {"state": FLUSHING, "next": MEMBER}
    machine.go("left")
    assert machine.state == OUT


def test_a_joiner_says_what_it_has_and_is_admitted() -> None:
    machine = Machine(SEEKING)
    assert [machine.go(event).facts["next"] for event in ("flush", "flush", "install")] == [
        *(SEEKING, SEEKING, MEMBER)
    ]


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (SEEKING, "propose"),
        (MEMBER, "install"),
        (FLUSHING, "silence"),
        (OUT, "flush"),
        (MEMBER, "x"),
    ],
)
def test_an_event_that_is_not_in_the_table_is_a_mistake(state: str, event: str) -> None:
    machine = Machine(state)
    with pytest.raises(KeyError):
        machine.go(event)
    assert machine.state == state


def test_every_event_that_the_group_goes_by_is_in_the_table_and_no_other() -> None:
    assert used() == EVENTS


def test_the_table_has_one_next_state_for_each_and_all_states_can_be_reached() -> None:
    assert len(TABLE) == len(TRANSITIONS)
    reached = {SEEKING, MEMBER}  # where a process begins
    for _ in STATES:
        reached |= {t.next for t in TRANSITIONS if t.state in reached}
    assert reached == STATES
    assert not any(t.state == OUT for t in TRANSITIONS)
    assert {*TRANSITIONS} - {*Daisy.transitions} == {TABLE[row] for row in UNLIKELY}
    assert {*Daisy.transitions} - {*TRANSITIONS} == {ADDED, REMOVED}


@given(st.sampled_from(sorted(STATES)), st.lists(st.sampled_from(sorted(EVENTS)), max_size=12))
def test_a_machine_follows_the_table_and_notes_each_step(start: str, events: list[str]) -> None:
    machine, state = Machine(start), start
    for event in events:
        if (state, event) not in TABLE:
            with pytest.raises(KeyError):
                machine.go(event)
            continue
        note = machine.go(event, group=3)
        assert (note.event, note.facts["state"], note.facts["group"]) == (event, state, 3)
        state = note.facts["next"]
        assert machine.state == state == TABLE[note.facts["state"], event].next


def test_the_document_shows_the_table() -> None:
    document = Path(__file__).parents[3] / "docs" / "groups.md"
    assert f"```mermaid\n{drawing()}\n```" in document.read_text(encoding="utf-8")
    assert all(f"{t.state} --> {t.next}: " in drawing() for t in TRANSITIONS)
