"""When hosts are told that a protocol goes on in vain, and when nobody waits any longer."""

import pytest

from testbed.engines.mininet.hosts.counters import SharedCounters
from testbed.engines.mininet.hosts.patience import LONGEST_NS, LONGEST_REAL_NS, Patience

PLANNED = 5


@pytest.fixture
def counters() -> SharedCounters:
    made = SharedCounters(2)
    made.deliveries[0] = made.events[0] = 40
    return made


@pytest.mark.parametrize(
    ("virtual", "longest", "events"), [(True, LONGEST_NS, 1), (False, LONGEST_REAL_NS, 10)]
)
def test_events_without_a_delivery_are_in_vain_after_a_while(
    counters: SharedCounters, virtual: bool, longest: int, events: int
) -> None:
    patience = Patience(counters, virtual)
    assert not patience.is_lost(PLANNED, PLANNED)
    counters.events[1] += events
    assert not patience.is_lost(PLANNED + longest, PLANNED)
    assert counters.vain[0] == 0
    assert not patience.is_lost(PLANNED + longest + 1, PLANNED)
    assert counters.vain[0] == events


def test_a_delivery_or_a_plan_begins_it_anew(counters: SharedCounters) -> None:
    patience = Patience(counters, virtual=False)
    patience.is_lost(PLANNED, PLANNED)
    counters.events[1] += 99
    counters.deliveries[1] += 1
    patience.is_lost(PLANNED + LONGEST_REAL_NS, PLANNED)
    counters.events[1] += 99
    patience.is_lost(PLANNED + 2 * LONGEST_REAL_NS, PLANNED)
    patience.is_lost(PLANNED + 4 * LONGEST_REAL_NS, PLANNED + 3 * LONGEST_REAL_NS)
    assert counters.vain[0] == 0


def test_one_long_timer_is_waited_for_but_not_for_ever(counters: SharedCounters) -> None:
    patience = Patience(counters, virtual=False)
    patience.is_lost(PLANNED, PLANNED)
    counters.events[1] += 1
    assert not patience.is_lost(PLANNED + 2 * LONGEST_NS, PLANNED)
    assert counters.vain[0] == 0
    assert patience.is_lost(PLANNED + 2 * LONGEST_NS + 1, PLANNED)
