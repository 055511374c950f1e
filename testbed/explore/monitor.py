"""A monitor of causal order that sees events as they happen; its knowledge is part of every state.

Messages are the bits of a mask. The monitor keeps which messages each process should deliver and has
delivered, and the causal past of each process and of each message. A message that was delivered
everywhere cannot be violated any more and is forgotten, so that histories that differ in nothing else
become one state. The oracle of ``testbed.check`` knows nothing of this monitor, and has the last word.
"""

from functools import cache, reduce
from operator import or_
from typing import NamedTuple

from testbed.explore.freeze import Numbered
from testbed.explore.recorder import Act
from testbed.protocols import MessageId

Events = tuple[Act, ...]


class Mistake(NamedTuple):
    """What is wrong, at which process, and with the delivery of which message, if any."""

    sentence: str
    process: int
    message: MessageId | None = None


class Knowledge(NamedTuple):
    """What the monitor knows: sets of messages, as masks."""

    sent: int
    owed: tuple[int, ...]  # for each process: sent to it
    delivered: tuple[int, ...]  # for each process
    past: tuple[int, ...]  # for each process: its causal past, if not delivered everywhere
    causes: tuple[int, ...]  # for each message: the past of its sender before it was sent


class Monitor:
    """Numbers its states of knowledge, and works out each step once."""

    def __init__(self, processes: int, messages: int) -> None:
        self.processes = processes
        self.most = messages
        slots = processes * messages + 1
        self._known: Numbered[Knowledge] = Numbered()
        self._step = cache(self._work_out)
        none = (0,) * processes
        self.initial = self._number(Knowledge(0, none, none, none, (0,) * slots))

    def sent(self, number: int) -> int:
        """How many messages have been multicast."""
        return self._known[number].sent.bit_count()

    def step(self, number: int, process: int, events: Events) -> tuple[int, Mistake | None]:
        """What is known after these events of a process, and what is wrong with them."""
        return self._step(number, process, events) if events else (number, None)

    def lost(self, number: int) -> Mistake | None:
        """What is missing if nothing more happens."""
        known = self._known[number]
        for process, (owed, delivered) in enumerate(zip(known.owed, known.delivered, strict=True)):
            if missing := owed & ~delivered:
                return Mistake(f"process {process} never delivers {self._names(missing)}", process)
        return None

    def _work_out(self, number: int, process: int, events: Events) -> tuple[int, Mistake | None]:
        known = self._known[number]
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
                how = self._wrongly(bit & sent, bit & owed[process], delivered[process], missing)
                if how and not wrong:
                    wrong = Mistake(f"process {process} delivers {name} {how}", process, name)
                delivered[process] |= bit
            past[process] |= bit | causes[slot]
        after = Knowledge(sent, tuple(owed), tuple(delivered), tuple(past), tuple(causes))
        return self._number(_essential(after)), wrong

    def _wrongly(self, sent: int, owed: int, delivered: int, missing: int) -> str | None:
        if not sent:
            return "though nobody has sent it"
        if not owed:
            return "which was not sent to it"
        if owed & delivered:
            return "again"
        return f"without {self._names(missing)}" if missing else None

    def _slot(self, name: MessageId) -> int:
        """The index of a message's bit; the last one is for all that cannot have been sent."""
        within = 0 <= name.source < self.processes and 1 <= name.seq <= self.most
        return name.source * self.most + name.seq - 1 if within else self.processes * self.most

    def _names(self, mask: int) -> str:
        slots = [slot for slot in range(mask.bit_length()) if mask >> slot & 1]
        names = [MessageId(slot // self.most, slot % self.most + 1) for slot in slots]
        return " and ".join(map(str, names))

    def _number(self, known: Knowledge) -> int:
        return self._known.number(known, known)


def _essential(known: Knowledge) -> Knowledge:
    open_ = reduce(or_, (o & ~d for o, d in zip(known.owed, known.delivered, strict=True)))
    causes = (
        causes & open_ if open_ >> slot & 1 else 0 for slot, causes in enumerate(known.causes)
    )
    return known._replace(past=tuple(past & open_ for past in known.past), causes=tuple(causes))
