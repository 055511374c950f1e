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
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from typing_extensions import override

from .base import Count, Deliver, Effects, Figure, Place, Sample, Send
from .holdback import HoldBack
from .ks_log import Dests, KSLog, members, to_log
from .rst import OVERHEAD
from .wire import Message, MessageId, WireError, of_kind

Entry = tuple[int, int, Dests]  # sender and clock of a message, and its Dests


def to_dests(processes: Iterable[int]) -> Dests:
    """A set of processes as bits."""
    return sum(1 << process for process in set(processes))


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
        entries, destinations, _ = log.size
        return 3 * entries + destinations

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
            log: list[Entry] = []
            last = (-1, 0)
            for _ in range(num_log_entries):
                s, t, numdests = next(integers), next(integers), next(integers)
                if s >= processes or (s, t) <= last:
                    raise WireError(f"entry ({s}, {t}) after {last} in a log")
                log.append((s, t, _decode_dests(integers, numdests, processes)))
                last = (s, t)
        except StopIteration:
            raise WireError(f"a log cut short at {len(control)} bytes") from None
        if any(True for _ in integers):
            raise WireError("integers after the end of a log")
        return {"dests": dests, "olog": checked(log, processes)}


def _decode_dests(integers: Iterator[int], number: int, processes: int) -> Dests:
    dests = 0
    for _ in range(number):
        d = next(integers)
        if d >= processes or dests >> d:
            raise WireError(f"destination {d} of {processes} processes, or out of order")
        dests |= 1 << d
    return dests


def checked(entries: list[Entry], processes: int) -> KSLog:
    """A log from entries that came from the network; WireError if no process can have such a log."""
    met = [1 << s for s in range(processes)]  # of each sender: itself, and all Dests before
    over = set()  # senders whose entry was without Dests: it must be their newest
    for s, t, dests in entries:
        if not t or s in over or dests & met[s]:
            raise WireError(f"entries of sender {s} that cannot be in one log")
        met[s] |= dests
        if not dests:
            over.add(s)
    return to_log(processes, entries)


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
        self.LOG = to_log(place.processes, ())

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
        return self.LOG.divided(dests)

    def missing(self, message: KSMessage) -> MessageId | None:
        """The Delivery Condition."""
        missing = message.olog.missing(self.me, self.SR)
        return None if missing is None else MessageId(*missing)

    def learn(self, message: KSMessage) -> None:
        """Constraint I: no process need know any longer that this one is a destination."""
        olog = message.olog.noting(message.source, message.seq, message.dests)
        self.LOG = self.LOG.merged(olog, self.others)

    def count_control(self, copies: list[KSMessage]) -> Effects:
        """Count the control information of all copies, and measure that of a message, their mean."""
        integers = entries = destinations = empty = 0
        for message in copies:
            size = message.olog.size
            integers += message.integers()
            entries += size.entries
            destinations += size.destinations
            empty += size.empty
        parts = {
            "integers": integers,
            "entries": entries,
            "destinations": destinations,
            "empty_entries": empty,
        }
        yield Count("control_copies", len(copies))
        for part, number in parts.items():
            yield Count(f"control_{part}", number)
        if copies:
            means = {f"message_{part}": number / len(copies) for part, number in parts.items()}
            yield Sample(means)

    @override
    def count_log(self) -> Effects:
        size = self.LOG.size
        yield Sample(
            {
                "log_integers": self.messages[0].log_integers(self.LOG),
                "log_entries": size.entries,
                "log_empty_entries": size.empty,
            }
        )
