"""The log of KS: which messages may be undelivered where, as a value that never changes.

An entry is a message and its Dests, the processes at which it may still be undelivered. An entry
without Dests stays while it is its sender's newest: most are such, and only their clocks are kept.
``ks`` says what logs are divided and merged for. That is where nearly all of its time goes, so this
module is compiled with the simulator.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from typing_extensions import override

Dests = int  # a set of processes: process d is bit d
Name = int  # of a message: its sender, then its clock, as one number
CLOCK_BITS = 32
CLOCK = (1 << CLOCK_BITS) - 1


def members(dests: Dests) -> list[int]:
    """The processes in a set, in ascending order."""
    found = []
    while dests:
        lowest = dests & -dests
        found.append(lowest.bit_length() - 1)
        dests ^= lowest
    return found


class Size(NamedTuple):
    """The size of a log: its entries, all their destinations, and the entries without any."""

    entries: int
    destinations: int
    empty: int


def to_log(processes: int, entries: Iterable[tuple[int, int, Dests]]) -> "KSLog":
    """The log with these entries, (sender, clock, Dests) each, in order."""
    newest, left = [0] * processes, {}
    for s, t, dests in entries:
        newest[s] = t
        if dests:
            left[s << CLOCK_BITS | t] = dests
    return KSLog(newest, left)


class KSLog:
    """The clock of each sender's newest message, and the entries that have Dests.

    Logs share their parts, so nobody may change these.
    """

    def __init__(self, newest: list[int], left: dict[Name, Dests]) -> None:
        self.newest = newest  # 0 if no message of that sender is known
        self.left = left
        self._size: Size | None = None  # if it has been counted

    @property
    def size(self) -> Size:
        """How much is in it."""
        if self._size is None:
            newest, destinations, full, known = self.newest, 0, 0, 0
            for clock in newest:
                if clock:
                    known += 1
            for name, dests in self.left.items():
                destinations += dests.bit_count()
                if newest[name >> CLOCK_BITS] == name & CLOCK:
                    full += 1
            self._size = Size(known - full + len(self.left), destinations, known - full)
        return self._size

    def __iter__(self) -> Iterator[tuple[int, int, Dests]]:
        """All entries as (sender, clock, Dests), in order."""
        empty = {s << CLOCK_BITS | t: 0 for s, t in enumerate(self.newest) if t}
        every = sorted({**empty, **self.left}.items())
        return iter([(name >> CLOCK_BITS, name & CLOCK, dests) for name, dests in every])

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, KSLog) and self.newest == other.newest and self.left == other.left

    @override
    def __hash__(self) -> int:
        return hash((*self.newest, *self.left))

    def __deepcopy__(self, memo: object) -> "KSLog":
        return self

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return KSLog, (self.newest, self.left)

    @override
    def __getstate__(self) -> dict[str, Any]:
        """What it says, for those who look into it."""
        left = {(name >> CLOCK_BITS, name & CLOCK): dests for name, dests in self.left.items()}
        return {"newest": self.newest, "left": left}

    def missing(self, d: int, last: list[int]) -> tuple[int, int] | None:
        """The first message, as (sender, clock), that d must still deliver before one with this log.

        ``last`` has the clock of the last message of each sender that d has delivered.
        """
        bit, found = 1 << d, -1
        for name, dests in self.left.items():
            if dests & bit and name & CLOCK > last[name >> CLOCK_BITS]:
                found = name if found < 0 else min(found, name)
        return None if found < 0 else (found >> CLOCK_BITS, found & CLOCK)

    def divided(self, dests: Dests) -> tuple["KSLog", list["KSLog"]]:
        """The log for all others than these destinations; and the log for each of them.

        The first knows nothing of them any longer, the log for one of them what concerns that one.
        """
        left: dict[Name, Dests] = {}
        due: dict[int, list[Name]] = {}
        for name, before in self.left.items():
            if concerned := before & dests:
                for d in members(concerned):
                    due.setdefault(d, []).append(name)
            if stay := before & ~dests:
                left[name] = stay
        rest = KSLog(self.newest, left)
        return rest, [rest._restored(due[d], d) if d in due else rest for d in members(dests)]

    def _restored(self, due: list[Name], d: int) -> "KSLog":
        """The log with d among the destinations of these messages again."""
        left, bit = self.left.copy(), 1 << d
        entries, destinations, empty = self.size
        for name in due:
            dests = left.get(name, 0)
            if not dests:
                if self.newest[name >> CLOCK_BITS] == name & CLOCK:
                    empty -= 1
                else:
                    entries += 1
            left[name] = dests | bit
        log = KSLog(self.newest, left)
        log._size = Size(entries, destinations + len(due), empty)
        return log

    def noting(self, sender: int, clock: int, dests: Dests) -> "KSLog":
        """The log with one more message, newer than all others of its sender."""
        newest, left = self.newest.copy(), self.left
        newest[sender] = clock
        if dests:
            left = left.copy()
            left[sender << CLOCK_BITS | clock] = dests
        return KSLog(newest, left)

    def merged(self, other: "KSLog", about: Dests) -> "KSLog":
        """What neither log has forgotten about these destinations; then PURGE."""
        ours, theirs, left = self.newest, other.newest, {}
        others = other.left
        for name, dests in self.left.items():
            if name & CLOCK <= theirs[name >> CLOCK_BITS]:  # what the other forgot is done with
                dests &= others.get(name, 0)
            if dests:
                left[name] = dests
        for name, dests in others.items():
            if name & CLOCK > ours[name >> CLOCK_BITS] and (dests := dests & about):
                left[name] = dests
        return KSLog([max(a, b) for a, b in zip(ours, theirs, strict=True)], left)
