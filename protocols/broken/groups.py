"""Protocols for groups with one mistake at a time; ``testbed explore`` shows what each leads to."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from ..mostefaoui_raynal import MostefaouiRaynal
from ..phases import PhaseMessage, Phases, Resynch


class Unstamped(Phases):
    """Messages and resynchs carry no stamp; receivers count on (section 3.3 of the paper).

    Broken rule: a message carries its phase. The paper has it that a process that is behind is so
    by one phase, so that every resynch is one phase on from what was expected. That holds as long
    as all proceed in step. Whoever hears of a later phase before the earlier ones jumps further.
    """

    name: ClassVar[str] = "broken-unstamped"

    @override
    def stamp(self, k: int) -> tuple[int, ...]:
        return ()

    def stamp_of(self, message: PhaseMessage) -> int:
        """A message has the phase that was expected, a resynch the one after it."""
        return self.expected[message.source] + isinstance(message, Resynch)


class ArrivalOrder(MostefaouiRaynal):
    """Delivers what becomes deliverable together as it comes to hand.

    Broken rule: GS4 delivers in the order of the stamps. One resynch may be all that a message and
    its answer waited for.
    """

    name: ClassVar[str] = "broken-arrival-order"

    @override
    def rank(self, message: PhaseMessage) -> int:
        return 0


class OwnGroups(MostefaouiRaynal):
    """Knows of its own groups only, whatever the graph of groups (section 4.3 of the paper).

    Broken rule: line 11, K[y] := max(K[y], m.K[y]) for groups y that the process is not in. Without
    it messages are stamped as if they carried the entries of their sender's groups alone.
    """

    name: ClassVar[str] = "broken-own-groups"

    def learn(self, message: PhaseMessage) -> None:
        """Nothing."""
