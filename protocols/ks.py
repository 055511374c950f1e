"""KS: a message carries the least control information that keeps causal order.

Kshemkalyani & Singhal, "Necessary and Sufficient Conditions on Information for Causal Message
Ordering and Their Optimal Implementation", 1998, as in Chandra, Gambhire & Kshemkalyani,
"Performance of the Optimal Causal Multicast Algorithm", 2004, section 2.2 and Fig. 2.

State: ``LOG``, entries (sender, clock, Dests): that message may still be undelivered at Dests;
``SR[s]``, the clock of the last message of s that was delivered here. A clock counts multicasts.
Delivery Condition: m is deliverable at j when t <= SR[s] for all entries (s, t) of m with j in Dests.
Invariant: "d is a destination of M" is forgotten as soon as (Propagation Constraint I) M is known to
be delivered at d, or (II) a later message to d was sent that waits for M. So if a log that knows of
later messages of s has no entry (s, t), that message is done with, and two logs are merged by
forgetting what either has forgotten. An entry with no Dests stays while it is its sender's newest.
Cost: 32 + 8 + 4|Dests| + 4·(3 + |Dests|) for each entry + d bytes a copy; each copy has its own log.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .base import Count, Deliver, Effects, Figure, Place, Sample, Send
from .holdback import HoldBack
from .rst import OVERHEAD
from .wire import Message, MessageId, WireError, of_kind

Dests = int  # a set of processes: process d is bit d
Entries = dict[int, Dests]  # of one sender: the Dests of each clock
Clocks = NDArray[np.int64]  # of each process
NOTHING: Entries = {}


def to_dests(processes: Iterable[int]) -> Dests:
    """A set of processes as bits."""
    return sum(1 << process for process in set(processes))


def members(dests: Dests) -> Iterator[int]:
    """The processes in a set, in ascending order."""
    while dests:
        lowest = dests & -dests
        yield lowest.bit_length() - 1
        dests ^= lowest


class Size(NamedTuple):
    """The size of a log: its entries, all their destinations, and the entries without any."""

    entries: int
    destinations: int
    empty: int


@dataclass(slots=True, eq=False)
class KSLog:
    """What may be undelivered where: the clock of each sender's newest message, and what has Dests.

    A log is immutable, so that logs may share their parts. Most entries have no Dests: they are their
    sender's newest, and only its clock is kept of them.
    """

    newest: Clocks  # 0 if no message of that sender is known
    left: dict[int, Entries]  # of the senders that have any, without those that have no Dests
    _size: Size | None = None  # if it has been counted

    @property
    def size(self) -> Size:
        """How much is in it."""
        if self._size is None:
            known, newest = int(np.count_nonzero(self.newest)), self.newest.item
            more = destinations = full = 0
            for s, entries in self.left.items():
                destinations += sum(map(int.bit_count, entries.values()))
                full += newest(s) in entries
                more += len(entries)
            self._size = Size(known - full + more, destinations, known - full)
        return self._size

    def __iter__(self) -> Iterator[tuple[int, int, Dests]]:
        """All entries as (sender, clock, Dests), in order."""
        for s, newest in enumerate(self.newest.tolist()):
            if newest:
                entries = {newest: 0} | self.left.get(s, {})
                yield from ((s, t, dests) for t, dests in sorted(entries.items()))

    def about(self, dests: Dests) -> list[tuple[int, int, Dests]]:
        """The entries with any of these destinations, as (sender, clock, those destinations)."""
        every = self.left.items()
        return [(s, t, d & dests) for s, of in every for t, d in of.items() if d & dests]

    def without(self, gone: Dests) -> KSLog:
        """The log from which these destinations are removed; then PURGE."""
        stay, left = ~gone, {}
        for s, entries in self.left.items():
            if kept := {t: d & stay for t, d in entries.items() if d & stay}:
                left[s] = kept
        return KSLog(self.newest, left)

    def restored(self, due: list[MessageId], d: int) -> KSLog:
        """The log with d among the destinations of these messages again."""
        left, newest = self.left.copy(), self.newest.item
        entries, destinations, empty = self.size
        for s, t in due:
            of = left.get(s, {})
            if t not in of:
                is_newest = t == newest(s)
                empty -= is_newest
                entries += not is_newest
            left[s] = {**of, t: of.get(t, 0) | 1 << d}
        return KSLog(self.newest, left, Size(entries, destinations + len(due), empty))

    def noting(self, sender: int, clock: int, dests: Dests) -> KSLog:
        """The log with one more message, newer than all others of its sender."""
        newest, left = self.newest.copy(), self.left
        newest[sender] = clock
        if dests:
            left = {**left, sender: {**left.get(sender, {}), clock: dests}}
        return KSLog(newest, left)

    def merged(self, other: KSLog, about: Dests) -> KSLog:
        """What neither log has forgotten about these destinations; then PURGE."""
        mine, theirs = self.left, other.left
        our_newest, their_newest = self.newest.item, other.newest.item
        left = {}
        for s in mine.keys() | theirs.keys():
            ours, others = mine.get(s, NOTHING), theirs.get(s, NOTHING)
            known, kept = their_newest(s), {}
            for t, d in ours.items():  # what the other forgot is done with
                if kept_of := d if t > known else d & others.get(t, 0):
                    kept[t] = kept_of
            known = our_newest(s)
            for t, d in others.items():
                if t > known and d & about:
                    kept[t] = d & about
            if kept:
                left[s] = kept
        return KSLog(np.maximum(self.newest, other.newest), left)


@of_kind(1)
class KSMessage(Message):
    """A message with its destinations and the log for one of them: MsgOvhdStruct of Fig. 2.

    The sender and the clock are the source and the sequence number of the header.
    """

    dests: Dests  # without the sender
    olog: KSLog

    @property
    def control_size(self) -> int:
        """Four bytes for each integer but the two that are in the header."""
        return 4 * (self.integers() - 2)

    def integers(self) -> int:
        """The overhead as the paper counts it."""
        return 4 + self.dests.bit_count() + self.log_integers(self.olog)

    @classmethod
    def log_integers(cls, log: KSLog) -> int:
        """The size of a log as the paper counts it: sender, clock, numdests and the dests."""
        return 3 * log.size.entries + log.size.destinations

    def encode_control(self) -> bytes:
        """The rest of the structure, in the paper's order."""
        integers = [self.dests.bit_count(), self.olog.size.entries, *members(self.dests)]
        for s, t, dests in self.olog:
            integers += (s, t, dests.bit_count(), *members(dests))
        return struct.pack(f"!{len(integers)}I", *integers)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) < 8 or len(control) % 4:
            raise WireError(f"{len(control)} bytes are not a log")
        integers = iter(struct.unpack(f"!{len(control) // 4}I", control))
        try:
            numdests, num_log_entries = next(integers), next(integers)
            dests = _decode_dests(integers, numdests, processes)
            log: list[Entries] = [{} for _ in range(processes)]
            last = (-1, 0)
            for _ in range(num_log_entries):
                s, t, numdests = next(integers), next(integers), next(integers)
                if s >= processes or (s, t) <= last:
                    raise WireError(f"entry ({s}, {t}) after {last} in a log")
                log[s][t] = _decode_dests(integers, numdests, processes)
                last = (s, t)
        except StopIteration:
            raise WireError(f"a log cut short at {len(control)} bytes") from None
        if any(True for _ in integers):
            raise WireError("integers after the end of a log")
        return {"dests": dests, "olog": checked(log)}


def _decode_dests(integers: Iterator[int], number: int, processes: int) -> Dests:
    dests = 0
    for _ in range(number):
        d = next(integers)
        if d >= processes or dests >> d:
            raise WireError(f"destination {d} of {processes} processes, or out of order")
        dests |= 1 << d
    return dests


def checked(of: list[Entries]) -> KSLog:
    """A log from entries that came from the network; WireError if no process can have such a log."""
    newest, left = np.zeros(len(of), np.int64), {}
    for s, entries in enumerate(of):
        *earlier, (clock, dests) = sorted(entries.items()) or [(0, 0)]
        every = [1 << s, dests, *(d for _, d in earlier)]
        if 0 in entries or sum(every) != reduce(or_, every) or not all(d for _, d in earlier):
            raise WireError(f"entries of sender {s} that cannot be in one log")
        newest[s] = clock
        if kept := {t: d for t, d in entries.items() if d}:
            left[s] = kept
    return KSLog(newest, left)


class KS(HoldBack):
    """The optimal algorithm of Kshemkalyani and Singhal, to any set of destinations.

    A sender that is among the destinations delivers its message as it sends it, and every process
    that knows of the message knows that: the sender is never among its Dests.
    """

    name: ClassVar[str] = "ks"
    paper: ClassVar[str] = "Kshemkalyani & Singhal 1998; Chandra et al. 2004, section 2.2"
    wire_id: ClassVar[int] = 4
    takes_subsets: ClassVar[bool] = True
    messages: ClassVar[tuple[type[KSMessage], ...]] = (KSMessage,)
    figures: ClassVar[tuple[Figure, ...]] = OVERHEAD

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.everybody = frozenset(range(place.processes))
        self.others = to_dests(place.others)
        self.clock = place.base
        self.SR = self.last = [0] * place.processes
        self.LOG = KSLog(np.zeros(place.processes, np.int64), {})

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """SEND: a copy with its own log to each destination; then log the message."""
        if destinations is None:
            destinations = self.everybody
        dests = to_dests(destinations - {self.me})
        self.clock += 1
        name, kind = (self.me, self.clock), self.messages[0]
        rest, ologs = self.propagate(dests)
        self.LOG = rest.noting(*name, dests)
        copies = [kind(*name, payload, now, dests=dests, olog=olog) for olog in ologs]
        for d, message in zip(members(dests), copies, strict=True):
            yield Send((d,), message)
        yield from self.count_control(copies)
        yield from self.count_log()
        if self.me in destinations:
            yield Deliver(kind(*name, payload, now, dests=dests, olog=rest))

    def propagate(self, dests: Dests) -> tuple[KSLog, list[KSLog]]:
        """Constraint II: the log for all others, and the log for each of these destinations."""
        due = defaultdict(list)
        for s, t, about in self.LOG.about(dests):
            for d in members(about):
                due[d].append(MessageId(s, t))
        rest = self.LOG.without(dests)
        return rest, [rest.restored(due[d], d) if d in due else rest for d in members(dests)]

    def missing(self, message: KSMessage) -> MessageId | None:
        """The Delivery Condition."""
        for s, t, _ in message.olog.about(1 << self.me):
            if t > self.SR[s]:
                return MessageId(s, t)
        return None

    def learn(self, message: KSMessage) -> None:
        """Constraint I: no process need know any longer that this one is a destination."""
        olog = message.olog.noting(message.source, message.seq, message.dests)
        self.LOG = self.LOG.merged(olog, self.others)

    def count_control(self, copies: list[KSMessage]) -> Effects:
        """Count the control information of all copies, and measure that of a message, their mean."""
        sizes = [message.olog.size for message in copies]
        parts = {
            "integers": sum(message.integers() for message in copies),
            "entries": sum(size.entries for size in sizes),
            "destinations": sum(size.destinations for size in sizes),
            "empty_entries": sum(size.empty for size in sizes),
        }
        yield Count("control_copies", len(copies))
        for part, number in parts.items():
            yield Count(f"control_{part}", number)
        if copies:
            means = {f"message_{part}": number / len(copies) for part, number in parts.items()}
            yield Sample(means)

    @override
    def count_log(self) -> Effects:
        log = self.LOG
        yield Sample(
            {
                "log_integers": self.messages[0].log_integers(log),
                "log_entries": log.size.entries,
                "log_empty_entries": log.size.empty,
            }
        )
