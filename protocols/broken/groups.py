"""Protocols for groups with one mistake at a time; ``testbed explore`` shows what each leads to."""

from typing import Any, ClassVar

from typing_extensions import override

from ..base import Effects, Place
from ..mostefaoui_raynal import MostefaouiRaynal
from ..one_integer import OneInteger
from ..phases import Phases
from ..resynching import PhaseMessage, Resynch


class Unstamped(Phases):
    """Messages and resynchs carry no stamp; receivers count instead (section 3.3 of the paper).

    Broken rule: a message carries its phase. The paper says that a process is never behind by more
    than one phase, so that every resynch is one phase after the expected one. That holds as long as
    all proceed in step; a process that hears of a later phase first jumps further.
    """

    name: ClassVar[str] = "broken-unstamped"

    @override
    def stamp(self, k: int) -> tuple[int, ...]:
        return ()

    def stamp_of(self, message: PhaseMessage) -> int:
        """A message has the phase that was expected, a resynch the one after it."""
        return self.expected[message.source] + isinstance(message, Resynch)


class StampsInTurn(Phases):
    """Restores the order of each sender by its stamps, without FIFO channels (section 3.4).

    Broken rule: what a process sends is numbered. Stamps rise by the rules of section 3.3 only while
    all proceed in step. What comes after a jump seems to come too early, and waits for ever.
    """

    name: ClassVar[str] = "broken-stamps-in-turn"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.arrivals: list[PhaseMessage] = []  # that wait for others of their sender

    @classmethod
    @override
    def needs_fifo(cls, settings: Any) -> bool:
        return False

    @override
    def receive_in_order(self, message: PhaseMessage, now: int) -> Effects:
        """A message has the expected stamp, a resynch the one after it; what has not waits."""
        self.arrivals.append(message)
        while next_ones := [m for m in self.arrivals if self.is_next(m)]:
            self.arrivals.remove(next_ones[0])
            yield from self.arrive(next_ones[0], now)

    def is_next(self, message: PhaseMessage) -> bool:
        """Whether it follows what has come from its sender, by the rules of section 3.3."""
        return message.stamp[0] == self.expected[message.source] + isinstance(message, Resynch)


class ArrivalOrder(MostefaouiRaynal):
    """Delivers messages that become deliverable together in any order.

    Broken rule: GS4 delivers in the order of the stamps. A message and its answer may both have
    waited for the same resynch.
    """

    name: ClassVar[str] = "broken-arrival-order"

    @override
    def rank(self, message: PhaseMessage) -> int:
        return 0


class OwnGroups(MostefaouiRaynal):
    """Learns of its own groups only, whatever the graph of groups (section 4.3 of the paper).

    Broken rule: line 11, K[y] := max(K[y], m.K[y]) for groups y that the process is not in. Without
    it messages are stamped as if they carried the entries of their sender's groups alone.
    """

    name: ClassVar[str] = "broken-own-groups"

    def learn(self, message: PhaseMessage) -> None:
        """Nothing."""


class Unanswered(OneInteger):
    """Nobody answers a resynch (section 5.2 of the paper, to the letter).

    Broken rule: who has not promised the phase of a resynch says that it has come as far. The paper has
    only the receivers of a message send resynchs, but they wait for members of their other groups, too,
    which know nothing of the message.
    """

    name: ClassVar[str] = "broken-unanswered"

    @override
    def answer(self, resynch: Resynch, now: int) -> Effects:
        yield from ()
