"""A judge that sees events as they happen; what it knows is a part of each state of the search.

Messages are the bits of a mask. It keeps what each process should deliver and has delivered, and what
happened before each message and at each process: what was sent and delivered there, and all that
happened before those. A message that was delivered everywhere can do no more harm and is forgotten, so
that histories that differ in nothing else fall together.
The oracle of ``testbed.check`` knows nothing of this judge, and has the last word.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

from testbed.explore.recorder import Act
from testbed.protocols import MessageId

Events = tuple[Act, ...]


class Fault(NamedTuple):
    """What is wrong, at which process, and with the delivery of which message."""

    sentence: str
    process: int
    message: MessageId | None = None


class Knowledge(NamedTuple):
    """What the judge knows."""

    sent: int
    owed: tuple[int, ...]  # of each process: what was sent to it
    delivered: tuple[int, ...]  # of each process
    past: tuple[
        int, ...
    ]  # of each process: what happened before, if it was not delivered everywhere
    causes: tuple[int, ...]  # of each message: the past of its sender before it was sent


class Judge:
    """Numbers what it knows, and works out each step once."""

    def __init__(self, processes: int, messages: int) -> None:
        self.processes = processes
        self.most = messages
        slots = processes * messages + 1
        self._known: list[Knowledge] = []
        self._numbers: dict[Knowledge, int] = {}
        self._steps: dict[tuple[int, int, Events], tuple[int, Fault | None]] = {}
        none = (0,) * processes
        self.initial = self._number(Knowledge(0, none, none, none, (0,) * slots))

    def sent(self, number: int) -> int:
        """How many messages have been multicast."""
        return self._known[number].sent.bit_count()

    def step(self, number: int, process: int, events: Events) -> tuple[int, Fault | None]:
        """What is known after a process has done these, and what is wrong with them."""
        if not events:
            return number, None
        key = number, process, events
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._step(self._known[number], process, events)
        return found

    def lost(self, number: int) -> Fault | None:
        """What is wrong if nothing more happens."""
        known = self._known[number]
        for process, (owed, delivered) in enumerate(zip(known.owed, known.delivered, strict=True)):
            if missing := owed & ~delivered:
                return Fault(f"process {process} never delivers {self._names(missing)}", process)
        return None

    def _step(self, known: Knowledge, process: int, events: Events) -> tuple[int, Fault | None]:
        sent, owed, delivered, past, causes = known.sent, *map(list, known[1:])
        wrong = None
        for kind, name, to in events:
            slot = self._slot(name)
            bit = 1 << slot
            if kind == "send":
                sent |= bit
                causes[slot] = past[process]
                for peer in range(self.processes) if to is None else to:
                    owed[peer] |= bit
            else:
                missing = causes[slot] & owed[process] & ~delivered[process]
                fault = self._fault(bit & sent, bit & owed[process], delivered[process], missing)
                if fault and not wrong:
                    wrong = Fault(f"process {process} delivers {name} {fault}", process, name)
                delivered[process] |= bit
            past[process] |= bit | causes[slot]
        after = Knowledge(sent, tuple(owed), tuple(delivered), tuple(past), tuple(causes))
        return self._number(_essential(after)), wrong

    def _fault(self, sent: int, owed: int, delivered: int, missing: int) -> str | None:
        if not sent:
            return "though nobody has sent it"
        if not owed:
            return "which was not sent to it"
        if owed & delivered:
            return "again"
        return f"without {self._names(missing)}" if missing else None

    def _slot(self, name: MessageId) -> int:
        """The message's bit; one more than there are for all that cannot have been sent."""
        within = 0 <= name.source < self.processes and 1 <= name.seq <= self.most
        return name.source * self.most + name.seq - 1 if within else self.processes * self.most

    def _names(self, mask: int) -> str:
        slots = [slot for slot in range(mask.bit_length()) if mask >> slot & 1]
        names = [MessageId(slot // self.most, slot % self.most + 1) for slot in slots]
        return " and ".join(map(str, names))

    def _number(self, known: Knowledge) -> int:
        number = self._numbers.setdefault(known, len(self._known))
        if number == len(self._known):
            self._known.append(known)
        return number


def _essential(known: Knowledge) -> Knowledge:
    open_ = reduce(or_, (o & ~d for o, d in zip(known.owed, known.delivered, strict=True)))
    causes = (
        causes & open_ if open_ >> slot & 1 else 0 for slot, causes in enumerate(known.causes)
    )
    return known._replace(past=tuple(past & open_ for past in known.past), causes=tuple(causes))
