"""One integer: messages to all groups carry the number of one common phase.

Mostefaoui & Raynal, "Causal Multicasts in Overlapping Groups: Towards a Low Cost Approach", 1993,
the last alternative of section 5.2: the smallest stamps, and the most resynchs.

State: ``expected[x][j]``, for each group x of this process, the least stamp that the next message of j
to x may have. Its own phase is the greatest that it has promised to any of its groups.
Delivery: a message stamped k is deliverable when expected[x][j] >= k for all own groups x and all their
members j, whatever group it was sent to. The order of stamps extends causal order.
A process that gets a message stamped k tells all its groups that it has reached phase k + 1, unless it
has told them so already. The paper does not say that the members of these groups, which know nothing of
the message, must answer: a resynch for phase t is answered in its group by whoever has not promised t
there. Without that the message would wait for ever (``broken-unanswered``).
Cost: 32 + 4 + d bytes a copy; 36 for a copy of a resynch, to all groups of all receivers, and the
answers there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from .base import Effects
from .mostefaoui_raynal import MostefaouiRaynal
from .resynching import PhaseMessage, Resynch, Resynching


class OneInteger(MostefaouiRaynal):
    """A single number on each message, and resynchs to all groups of a process."""

    name: ClassVar[str] = "one-integer"
    paper: ClassVar[str] = "Mostefaoui & Raynal 1993, section 5.2"
    wire_id: ClassVar[int] = 14

    @dataclass(frozen=True)
    class Settings(Resynching.Settings):
        """When a process that is behind says so, and how messages travel."""

    @override
    def entries_of(self, x: int) -> tuple[int, ...]:
        return (x,)  # one integer stands for all

    @override
    def stamp(self, x: int) -> tuple[int, ...]:
        return (max(self.K),)

    @override
    def concerned(self, x: int) -> Iterable[int]:
        return self.others

    @override
    def entries(self, message: PhaseMessage) -> Iterable[tuple[int, int]]:
        return ((y, message.stamp[0]) for y in self.others)

    @override
    def arrive(self, message: PhaseMessage, now: int) -> Effects:
        if isinstance(message, Resynch):
            yield from self.answer(message, now)
        yield from super().arrive(message, now)

    def answer(self, resynch: Resynch, now: int) -> Effects:
        """Say to the group of a resynch that this process has come as far, unless it has said so."""
        x, t = resynch.group, resynch.stamp[0]
        if self.K[x] < t:
            released = self.reach(x, self.me, t)
            yield from self.resynch_soon(x, now)
            yield from self.deliver(released)

    @override
    def learn(self, message: PhaseMessage) -> None:
        """Nothing: the phase was reached when the message arrived."""
