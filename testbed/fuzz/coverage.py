"""How much of a protocol's table of states its experiments have reached, and where to aim next.

A protocol with a table (``Protocol.transitions``) logs each transition. To reach a row that is still
missing, faults are aimed at the moment at which a process has just got into the state from which that
row leaves. Such an experiment is drawn from its seed and the name of the state, and from nothing else:
what earlier seeds have reached decides only which states are aimed at.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from testbed.check import Event
from testbed.protocols import Protocol, Transition

IN_A_ROW = 3


def reached(protocol: type[Protocol], events: Mapping[int, Sequence[Event]]) -> set[Transition]:
    """The rows of a protocol's table that the logs of a run show."""
    rows = set(protocol.transitions)
    return rows and rows.intersection(
        Transition(e.facts["state"], e.event, e.facts["next"])
        for log in events.values()
        for e in log
        if e.facts and {"state", "next"} <= e.facts.keys()
    )


def sequences(events: Mapping[int, Sequence[Event]]) -> frozenset[tuple[str, ...]]:
    """What processes did in a row, ``IN_A_ROW`` things at a time: change states, send, deliver."""
    found: set[tuple[str, ...]] = set()
    for log in events.values():
        done = [f"{e.event} {(e.facts or {}).get('state', '')}" for e in log]
        found.update(zip(*(done[first:] for first in range(IN_A_ROW)), strict=False))
    return frozenset(found)


def states(rows: Iterable[Transition]) -> list[str]:
    """The states that these rows lead from or to, in order of appearance."""
    return list(dict.fromkeys(state for row in rows for state in (row.state, row.next)))


class Coverage(Counter[Transition]):
    """In how many experiments each row of a table was reached."""

    def missing(self, table: Sequence[Transition]) -> list[Transition]:
        """The rows that were not."""
        return [row for row in table if row not in self]

    def targets(self, table: Sequence[Transition]) -> list[str]:
        """The states, among those that a transition has led to, from which rows are missing."""
        entered = {row.next for row in self}
        return list(dict.fromkeys(r.state for r in self.missing(table) if r.state in entered))
