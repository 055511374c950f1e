"""Mostefaoui-Raynal: a message to a group carries one integer for each group of the system.

Mostefaoui & Raynal, "Causal Multicasts in Overlapping Groups: Towards a Low Cost Approach", 1993,
section 4. Each group proceeds in phases of its own, as in ``protocols.phases``.

State: ``expected[x][j]``, for each group x of this process, the least entry for x that the next
message of j to x may have; ``K[x]``, the highest phase of group x that this process knows of, which
is expected[x][me] in its own groups.
Delivery: m is deliverable when expected[x][j] >= m.K[x] for all own groups x and all their members
j. Messages that become deliverable together are delivered in the order of the sum of these m.K[x],
which grows along every causal path: the paper's order of stamps is no matter of taste.
Channels are FIFO, or with ``numbered`` each sender numbers what it sends to a group: the stamps
alone (section 3.4) do not tell how many messages are missing.
Cost: 32 + 4|G| + d bytes a copy, or fewer entries by section 4.3 (see ``entries_of``); 36 bytes for a
copy of a resynch; 4 more each if numbered.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from typing_extensions import override

from .base import (
    NS_PER_MS,
    CancelTimer,
    Deliver,
    Discard,
    Effects,
    Figure,
    Hold,
    Place,
    Send,
    SetTimer,
)
from .grouped import STAMP, Grouped
from .phases import RESYNCHS, PhaseMessage, Resynch, count_resynch
from .wire import Message


class MostefaouiRaynal(Grouped):
    """A vector of one entry for each group, and resynchs within groups."""

    name: ClassVar[str] = "mostefaoui-raynal"
    paper: ClassVar[str] = "Mostefaoui & Raynal 1993, section 4"
    wire_id: ClassVar[int] = 6
    messages: ClassVar[tuple[type[Message], ...]] = (PhaseMessage, Resynch)
    figures: ClassVar[tuple[Figure, ...]] = (STAMP, *RESYNCHS)
    needs_everybody: ClassVar[bool] = True

    @dataclass(frozen=True)
    class Settings(Grouped.Settings):
        """When a process that is behind says so, and whether messages are numbered.

        For ``resynch_after_ms`` it waits for a message of its own, which would say the same.
        With ``numbered`` channels need not be FIFO.
        """

        resynch_after_ms: float = 0.0
        numbered: bool = False

        def __post_init__(self) -> None:
            if not 0 <= self.resynch_after_ms < inf:
                raise ValueError(f"resynch_after_ms must be 0 or more, not {self.resynch_after_ms}")

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.told = {x: self.entries_of(x) for x in self.others}
        self.K = [0] * len(place.groups)
        self.expected = {x: dict.fromkeys(sorted(place.groups[x]), 0) for x in self.others}
        self.phase = dict.fromkeys(self.others, 0)  # the least of each group's ``expected``
        # the hold-back queue, by a group and the phase of it that some member has yet to reach
        self.pending: defaultdict[tuple[int, int], list[PhaseMessage]] = defaultdict(list)
        self.armed: set[int] = set()  # the groups for which a timer is set
        self.numbers = dict.fromkeys(self.others, 0)  # the last one given, for each group
        # by group and source, the last number whose turn has come; and what waits for its turn
        self.arrived: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.early: dict[tuple[int, int, int], PhaseMessage] = {}

    @classmethod
    @override
    def needs_fifo(cls, settings: Any) -> bool:
        return not settings.numbered

    def entries_of(self, x: int) -> tuple[int, ...]:
        """The groups that a message to x has an entry for.

        If the graph of groups has no cycle, section 4.3 leaves out all but the sender's own groups.
        That is wrong where groups share two members: a sender in one of them only passes on nothing
        about the other, so that its message may be deliverable before its causal past. It is right
        to carry the entries for x and for the groups that share two members or more with x, learnt
        from others if need be: every receiver that waits for another group's phase then finds its
        entry in all messages, and a causal path that leaves x returns through a member of x.
        """
        groups = self.place.groups
        every = range(len(groups))
        if not self.reduced():
            return tuple(every)
        return tuple(y for y in every if y == x or len(groups[x] & groups[y]) > 1)

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """GS1: attach K, then go on to the group's next phase."""
        x = self.group_of(destinations)
        self.sent += 1
        stamp = (*(self.K[y] for y in self.told[x]), *self.number(x))
        message = PhaseMessage(self.me, self.sent, payload, now, x, stamp=stamp)
        released = self.reach(x, self.me, self.K[x] + 1)
        if x in self.armed:
            self.armed.remove(x)
            yield CancelTimer(x)
        yield from self.send(message)
        yield Deliver(message)
        yield from self.deliver(released)

    def receive(self, message: PhaseMessage, sender: int, now: int) -> Effects:
        """Take a message or a resynch, in the order of its numbers if it has one."""
        if not self.belongs(message) or len(message.stamp) != self.width(message):
            yield Discard(message, "malformed")
        elif self.settings.numbered:
            yield from self.put_in_order(message, now)
        else:
            yield from self.arrive(message, now)

    def width(self, message: PhaseMessage) -> int:
        """The number of integers that it should carry."""
        entries = 1 if isinstance(message, Resynch) else len(self.told[message.group])
        return entries + bool(self.settings.numbered)

    def put_in_order(self, message: PhaseMessage, now: int) -> Effects:
        """Section 3.4: what arrives early waits for all that its sender sent before it."""
        channel, number = (message.group, message.source), message.stamp[-1]
        if number <= self.arrived[channel] or (*channel, number) in self.early:
            yield Discard(message, "duplicate")
            return
        self.early[*channel, number] = message
        if number > self.arrived[channel] + 1 and not isinstance(message, Resynch):
            yield Hold(message, None)
        while following := self.early.pop((*channel, self.arrived[channel] + 1), None):
            self.arrived[channel] += 1
            yield from self.arrive(following, now)

    def arrive(self, message: PhaseMessage, now: int) -> Effects:
        """GS2 and GS3: note the sender's phase; catch up and say so, if this process is behind."""
        x, j = message.group, message.source
        if isinstance(message, Resynch):
            yield from self.deliver(self.reach(x, j, message.stamp[0]))
            return
        t = message.stamp[self.told[x].index(x)]
        if t < self.expected[x][j]:
            yield Discard(message, "duplicate")
            return
        released = self.reach(x, j, t + 1)
        if self.K[x] < t + 1:
            released += self.reach(x, self.me, t + 1)
            yield from self.resynch_soon(x, now)
        if self.lacks(message):
            yield Hold(message, None)
        yield from self.deliver([*released, message])

    def reach(self, x: int, j: int, phase: int) -> list[PhaseMessage]:
        """Note that member j has reached this phase of group x; the messages that waited for it."""
        expected = self.expected[x]
        expected[j] = max(expected[j], phase)
        self.K[x] = expected[self.me]
        before, self.phase[x] = self.phase[x], min(expected.values())
        reached = range(before + 1, self.phase[x] + 1)
        return [m for t in reached for m in self.pending.pop((x, t), ())]

    def resynch_soon(self, x: int, now: int) -> Effects:
        """GS2: send a resynch to the group at once, or later unless a message does in time."""
        if not self.settings.resynch_after_ms:
            yield from self.resynch(x, now)
        elif x not in self.armed:
            self.armed.add(x)
            yield SetTimer(x, round(self.settings.resynch_after_ms * NS_PER_MS))

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """No message was sent in time: send a resynch."""
        for x in self.armed & {timer}:
            self.armed.remove(x)
            yield from self.resynch(x, now)

    def resynch(self, x: int, now: int) -> Effects:
        """Send the phase that this process has reached to the others of a group."""
        stamp = (self.K[x], *self.number(x))
        message = Resynch(self.me, 0, sent_at=now, group=x, stamp=stamp)
        yield Send(self.others[x], message)
        yield from count_resynch(message, len(self.others[x]))

    def deliver(self, messages: Iterable[PhaseMessage]) -> Effects:
        """GS4: deliver those of these messages that are deliverable; the others wait on."""
        ready = []
        for message in messages:
            if lack := self.lacks(message):
                self.pending[lack].append(message)
            else:
                ready.append(message)
        for message in sorted(ready, key=self.rank):
            self.learn(message)
            yield Deliver(message)

    def learn(self, message: PhaseMessage) -> None:
        """Line 11: merge the sender's knowledge of groups that this process is not in."""
        for y, t in self.entries(message):
            self.K[y] = max(self.K[y], t)  # no news of its own groups

    def lacks(self, message: PhaseMessage) -> tuple[int, int] | None:
        """A group and a phase that not all its members are known to have reached, or none."""
        for y, t in self.entries(message):
            if t > self.phase.get(y, t):
                return y, t
        return None

    def rank(self, message: PhaseMessage) -> int:
        """A number that grows along every causal path between messages to this process."""
        return sum(t for y, t in self.entries(message) if y in self.phase)

    def entries(self, message: PhaseMessage) -> Iterable[tuple[int, int]]:
        """The entries of K that the message carries, as groups and phases."""
        return zip(self.told[message.group], message.stamp, strict=False)

    def number(self, x: int) -> tuple[int, ...]:
        """The number of the next message or resynch to a group, if they are numbered."""
        if not self.settings.numbered:
            return ()
        self.numbers[x] += 1
        return (self.numbers[x],)
