"""Mostefaoui-Raynal: a message to a group carries one integer for each group of the system.

Mostefaoui & Raynal, "Causal Multicasts in Overlapping Groups: Towards a Low Cost Approach", 1993,
section 4. Each group proceeds in phases of its own, as in ``protocols.phases``.

State: ``expected[x][j]``, for each group x of this process, the least entry for x that the next
message of j to x may have; ``K[x]``, the highest phase of group x that this process knows of, which
is expected[x][me] in its own groups.
Delivery: m is deliverable when expected[x][j] >= m.K[x] for all own groups x and all their members
j. Messages that become deliverable together are delivered in the order of the sum of these m.K[x],
which grows along every causal path: the paper's order of stamps is no matter of taste.
Channels are FIFO, or with ``numbered`` each sender numbers what it sends to a group
(``protocols.resynching``).
Cost: 32 + 4|G| + d bytes a copy, or fewer entries by section 4.3 (see ``entries_of``); 36 bytes for a
copy of a resynch; 4 more each if numbered.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from .base import Deliver, Discard, Effects, Figure, Hold, Place
from .grouped import Grouped
from .resynching import PhaseMessage, Resynch, Resynching


class MostefaouiRaynal(Grouped, Resynching):
    """A vector of one entry for each group, and resynchs within groups."""

    name: ClassVar[str] = "mostefaoui-raynal"
    paper: ClassVar[str] = "Mostefaoui & Raynal 1993, section 4"
    wire_id: ClassVar[int] = 6
    figures: ClassVar[tuple[Figure, ...]] = Resynching.figures

    @dataclass(frozen=True)
    class Settings(Grouped.Settings, Resynching.Settings):
        """The entries of a stamp, when a process that is behind says so, and how messages travel."""

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.told = {x: self.entries_of(x) for x in self.others}
        self.K = [0] * len(place.groups)
        self.expected = {x: dict.fromkeys(sorted(place.groups[x]), 0) for x in self.others}
        self.phase = dict.fromkeys(self.others, 0)  # the least of each group's ``expected``
        # the hold-back queue, by a group and the phase of it that some member has yet to reach
        self.pending: defaultdict[tuple[int, int], list[PhaseMessage]] = defaultdict(list)

    @override
    def integers_kept(self) -> int:
        others = set().union(*self.told.values()) - self.others.keys()  # groups that it is not in
        return sum(map(len, self.expected.values())) + len(others)

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
        stamp = (*self.stamp(x), *self.number(x))
        message = PhaseMessage(self.me, self.sent, payload, now, x, stamp=stamp)
        released = self.reach(x, self.me, self.phase_of(message) + 1)
        yield from self.resynch_no_more(x)
        yield from self.send(message)
        yield Deliver(message)
        yield from self.deliver(released)

    def receive(self, message: PhaseMessage, sender: int, now: int) -> Effects:
        """Take a message or a resynch, in the order of its numbers if it has one."""
        if not self.belongs(message) or len(message.stamp) != self.width(message):
            yield Discard(message, "malformed")
        else:
            yield from self.receive_in_order(message, now)

    def width(self, message: PhaseMessage) -> int:
        """The number of integers that it should carry."""
        entries = 1 if isinstance(message, Resynch) else len(self.told[message.group])
        return entries + bool(self.settings.numbered)

    @override
    def arrive(self, message: PhaseMessage, now: int) -> Effects:
        """GS2 and GS3: note the sender's phase; catch up and say so, if this process is behind."""
        x, j = message.group, message.source
        if isinstance(message, Resynch):
            yield from self.deliver(self.reach(x, j, message.stamp[0]))
            return
        t = self.phase_of(message)
        if t < self.expected[x][j]:
            yield Discard(message, "duplicate")
            return
        released = self.reach(x, j, t + 1)
        for y in self.concerned(x):
            if self.K[y] < t + 1:
                released += self.reach(y, self.me, t + 1)
                yield from self.resynch_soon(y, now)
        if self.lacks(message):
            yield Hold(message, None)
        yield from self.deliver([*released, message])

    def stamp(self, x: int) -> tuple[int, ...]:
        """What the next message to a group tells of phases."""
        return tuple(self.K[y] for y in self.told[x])

    def phase_of(self, message: PhaseMessage) -> int:
        """The phase of its group that a message belongs to."""
        return message.stamp[self.told[message.group].index(message.group)]

    def concerned(self, x: int) -> Iterable[int]:
        """The groups in which a message to x may find this process behind."""
        return (x,)

    def reach(self, x: int, j: int, phase: int) -> list[PhaseMessage]:
        """Note that member j has reached this phase of group x; the messages that waited for it."""
        expected = self.expected[x]
        expected[j] = max(expected[j], phase)
        self.K[x] = expected[self.me]
        before, self.phase[x] = self.phase[x], min(expected.values())
        reached = range(before + 1, self.phase[x] + 1)
        return [m for t in reached for m in self.pending.pop((x, t), ())]

    @override
    def resynch(self, x: int, now: int) -> Effects:
        yield from self.send_resynch(x, self.others[x], (self.K[x],), now)

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
