"""KS': the algorithm of KS with the log written as an array of bits.

Chandra, Gambhire & Kshemkalyani 2004, end of section 2.2. Flag (i, j) says that a message from i to j
is in the log, and for each flag there is the message's clock: one is enough, since a later message
from i to j makes the earlier one obsolete. The paper does not say how an entry without Dests is
written; here flag (i, i), which no message to others needs, says that i's newest has none.
Cost: 32 + n(n + 1) bits, in whole integers, + 4 for each flag + d bytes a copy. The first n bits are
the message's own destinations. KS takes less when the array is sparse, that is, for many processes.
State, delivery condition and invariant are those of KS.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from typing_extensions import override

from .ks import KS, Entry, KSMessage, checked
from .ks_log import KSLog, members
from .wire import WireError

WORD_BITS = 32


def words(bits: int) -> int:
    """The number of integers that hold this number of bits."""
    return -(-bits // WORD_BITS)


def flags(log: KSLog) -> int:
    """The number of flags of a log."""
    _, destinations, empty = log.size
    return destinations + empty


@dataclass(frozen=True, slots=True, eq=False)
class KSPrimeMessage(KSMessage):
    """A message with its destinations and the log for one of them, as bits and clocks."""

    @property
    def control_size(self) -> int:
        """The bits, and four bytes for each clock."""
        n = len(self.olog.newest)
        return 4 * (words(n * (n + 1)) + flags(self.olog))

    def integers(self) -> int:
        """The overhead as the paper counts it, without the message's own destinations."""
        return self.log_integers(self.olog)

    @classmethod
    def log_integers(cls, log: KSLog) -> int:
        """The array in integers, and a clock for each flag."""
        return words(len(log.newest) ** 2) + flags(log)

    def encode_control(self) -> bytes:
        """Flag (i, j) is bit n(i + 1) + j of one number; the clocks are in the order of the flags."""
        n = len(self.olog.newest)
        flagged = sorted((s, d, t) for s, t, dests in self.olog for d in members(dests or 1 << s))
        bits = self.dests | sum(1 << n * (s + 1) + d for s, d, _ in flagged)
        clocks = [t for _, _, t in flagged]
        return bits.to_bytes(4 * words(n * (n + 1)), "big") + struct.pack(
            f"!{len(clocks)}I", *clocks
        )

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        n, size = processes, 4 * words(processes * (processes + 1))
        bits = int.from_bytes(control[:size], "big")
        if len(control) != size + 4 * (bits >> n).bit_count() or bits >> n * (n + 1):
            raise WireError(
                f"{len(control)} bytes are not an array of {n} × {n} bits and its clocks"
            )
        clocks = iter(struct.unpack(f"!{(len(control) - size) // 4}I", control[size:]))
        every = (1 << n) - 1
        rows = (_decode_row(s, bits >> n * (s + 1) & every, clocks) for s in range(n))
        return {"dests": bits & every, "olog": checked([*chain.from_iterable(rows)], n)}


def _decode_row(s: int, flags: int, clocks: Iterator[int]) -> list[Entry]:
    entries: defaultdict[int, int] = defaultdict(int)
    empty = None
    for d in members(flags):
        if d == s:
            empty = next(clocks)
        else:
            entries[next(clocks)] |= 1 << d
    if empty is not None and entries.setdefault(empty, 0):
        raise WireError(f"message {empty} of {s} with and without destinations")
    return [(s, t, dests) for t, dests in sorted(entries.items())]


class KSPrime(KS):
    """KS with its log as an array of bits, to any set of destinations."""

    name: ClassVar[str] = "ks-prime"
    paper: ClassVar[str] = "Chandra et al. 2004, end of section 2.2"
    wire_id: ClassVar[int] = 5
    messages: ClassVar[tuple[type[KSMessage], ...]] = (KSPrimeMessage,)
