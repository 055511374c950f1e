"""A judge that sees events as they happen; what it knows is a part of each state of the search.

Messages are the bits of a mask. It keeps what each process has delivered, and what happened before
each message: all that its sender had delivered or sent, which includes what happened before those, as
long as nothing is wrong. A message that was delivered everywhere can do no more harm and is forgotten,
so that histories that differ in nothing else fall together.
The oracle of ``testbed.check`` knows nothing of this judge, and has the last word.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import NamedTuple

from protocols import MessageId

Events = tuple[tuple[str, MessageId], ...]


class Fault(NamedTuple):
    """What is wrong, at which process, and with the delivery of which message."""

    sentence: str
    process: int
    message: MessageId | None = None


class Knowledge(NamedTuple):
    """What the judge knows."""

    sent: int
    delivered: tuple[int, ...]  # of each process
    causes: tuple[int, ...]  # of each message: what happened before it was sent


class Judge:
    """Numbers what it knows, and works out each step once."""

    def __init__(self, processes: int, messages: int) -> None:
        self.processes = processes
        self.most = messages
        slots = processes * messages + 1
        self._known: list[Knowledge] = []
        self._numbers: dict[Knowledge, int] = {}
        self._steps: dict[tuple[int, int, Events], tuple[int, Fault | None]] = {}
        self.initial = self._number(Knowledge(0, (0,) * processes, (0,) * slots))

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
        for process, delivered in enumerate(known.delivered):
            if missing := known.sent & ~delivered:
                return Fault(f"process {process} never delivers {self._names(missing)}", process)
        return None

    def _step(self, known: Knowledge, process: int, events: Events) -> tuple[int, Fault | None]:
        sent, delivered, causes = known.sent, known.delivered[process], list(known.causes)
        own = ((1 << self.most) - 1) << process * self.most
        wrong = None
        for kind, name in events:
            slot = self._slot(name)
            bit = 1 << slot
            if kind == "send":
                causes[slot] = delivered | sent & own
                sent |= bit
                continue
            fault = self._fault(bit & sent, delivered, causes[slot] & ~delivered)
            if fault and not wrong:
                wrong = Fault(f"process {process} delivers {name} {fault}", process, name)
            delivered |= bit
        everyone = (*known.delivered[:process], delivered, *known.delivered[process + 1 :])
        after = Knowledge(sent, everyone, tuple(causes))
        return self._number(_essential(after)), wrong

    def _fault(self, message: int, delivered: int, missing: int) -> str | None:
        if not message:
            return "though nobody has sent it"
        if message & delivered:
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
    everywhere = reduce(and_, known.delivered)
    causes = (
        0 if everywhere >> slot & 1 else causes & ~everywhere
        for slot, causes in enumerate(known.causes)
    )
    return known._replace(causes=tuple(causes))
