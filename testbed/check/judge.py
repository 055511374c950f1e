"""What each node did, held against happens-before.

Node j delivered m too early if a message of m's causal past that is addressed to j comes later in j's
log, or never. For each sender take its messages to j in the order of sending and keep the latest
position so far at which j delivered one: that running maximum at the last message of m's causal past
answers for all of them at once (m itself is among them, and no later than itself). Losses are left
out of it, so that order and gaps are judged apart.

A restarted node has lost its state and is judged as a new process. Others cannot know of it before
they have delivered a message of it, or one that happened after such a message: of what is sent without
that knowledge it may deliver any part, in any order. It owes no deliveries, and nobody owes those of
its messages.

A node that left, and perhaps joined again, is not owed what others sent without knowing that it is
back; nor need it deliver that before what it delivers after it joined. What it delivers is in order.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from testbed.check.history import Bools, History, Ints, Track

CELLS_AT_ONCE = 1 << 22
NOT_DELIVERED = -1

VIOLATIONS = {
    "order": "delivered before a message that happened before it",
    "gap": "delivered although a message that happened before it never was",
    "duplicate": "delivered again",
    "loss": "never delivered at a destination",
    "unsent": "delivered but sent by nobody",
    "misdelivered": "delivered at a node to which it was not sent",
    "cycle": "delivered before it can have been sent",
    "forged": "sent in another node's name",
    "resent": "sent again under the same name",
}
APART = {
    "excused": "never delivered at a destination that crashed",
    "orphaned": "never delivered, and sent by a node that crashed",
    "left": "never delivered at a destination that had left",
    "excused_gap": "a gap at a node that had crashed before",
    "unjudged": "would be a gap, a loss or unsent, but the log that would tell is damaged",
}
Found = tuple[str, int, Ints]  # kind, node, slots


class Judge:
    """Finds the violations at each node."""

    def __init__(self, history: History) -> None:
        self.history = history
        logs = history.logs
        self.doubtful = logs.doubtful | logs.missing
        ended = {process for process, log in logs.of.items() if log.crash is not None}
        restarted = {process for process, log in logs.of.items() if log.restarted}
        self.crashed = {logs.node(process) for process in ended}
        sender_crashed = np.array([s in ended | restarted for s in history.senders], np.bool_)
        self.orphan = sender_crashed[history.sender]
        self.offset = history.sender.astype(np.int64)  # of each slot, to tell senders apart

    def judge(self, node: int) -> Iterator[Found]:
        """All findings at one node, those of a kind in the order of the node's log."""
        events, slots = self._track(node).events, self.history.slots
        first = self._first_deliveries(node)
        again = events >= 0
        again[first] = False
        yield "duplicate", node, events[again]
        delivered, sent = events[first], events[first] < slots
        yield from self._unsent(node, delivered[~sent])
        messages, first = delivered[sent], first[sent]
        position, addressed = self.positions(node), self.history.addressed_to(node)
        yield "misdelivered", node, messages[~addressed[messages]]
        ordered = self.ordered_at(node)
        latest = self.running_maximum(np.where(ordered, position, NOT_DELIVERED))
        overtakes = self.maximum_over_past(messages, latest) > position[messages]
        yield "order", node, messages[overtakes]
        lost = addressed & (position == NOT_DELIVERED)
        if lost.any():
            yield from self._losses(node, lost)
            yield from self._gaps(node, messages, first, lost)

    def judge_logs(self) -> Iterator[Found]:
        """What the logs show without a look at any one node's deliveries."""
        history, links = self.history, self.history.impossible
        pairs = set(zip(history.sender[links.effect].tolist(), links.cause.tolist(), strict=True))
        for sender, slot in sorted(pairs):
            yield "cycle", history.senders[sender], np.array([slot], np.int32)
        for kind, found in (("forged", history.logs.forged), ("resent", history.logs.resent)):
            for node, number in found:
                yield kind, node, history.slot_of[[number]]

    def positions(self, node: int) -> NDArray[np.int64]:
        """Where in a node's log each slot was first delivered."""
        first = self._first_deliveries(node)
        delivered = self._track(node).events[first]
        position = np.full(self.history.slots, NOT_DELIVERED, np.int64)
        sent = delivered < self.history.slots
        position[delivered[sent]] = first[sent]
        return position

    def cause_of(self, kind: str, node: int, effect: int) -> Bools:
        """Which messages make this delivery a fault, if they happened before it."""
        addressed, position = self.ordered_at(node), self.positions(node)
        late: Bools = position > position[effect] if kind == "order" else position == NOT_DELIVERED
        joins = [join for join in self._joins(node) if join <= position[effect]]
        if kind == "gap" and joins:
            late = late & self.history.since(node, joins[-1])
        return addressed & late

    def ordered_at(self, node: int) -> Bools:
        """Which messages a node should deliver in order."""
        history = self.history
        addressed, log = history.addressed_to(node), history.logs.of.get(node)
        return addressed & history.since(node) if log and log.restarted else addressed

    def _first_deliveries(self, node: int) -> NDArray[np.intp]:
        """Where in a node's log a message is delivered for the first time."""
        events = self._track(node).events
        at = np.flatnonzero(events >= 0)
        return at[np.sort(np.unique(events[at], return_index=True)[1])]

    def _track(self, node: int) -> Track:
        empty = Track(np.zeros(0, np.int32), np.zeros(0, np.int64), None)
        return self.history.tracks.get(node, empty)

    def _unsent(self, node: int, unsent: Ints) -> Iterator[Found]:
        sources = (self.history.names[slot][0] for slot in unsent.tolist())
        unsure = np.array([source in self.doubtful for source in sources], np.bool_)
        yield "unsent", node, unsent[~unsure]
        yield "unjudged", node, unsent[unsure]

    def _losses(self, node: int, missing: Bools) -> Iterator[Found]:
        home = self.history.logs.home
        if node in home:
            return  # its successor answers for both
        for before in (process for process in home if home[process] == node):
            missing = missing & (self.positions(before) == NOT_DELIVERED)
        lost = np.flatnonzero(missing).astype(np.int32)
        if node in self.crashed:
            yield "excused", node, lost
        elif node in self.doubtful:
            yield "unjudged", node, lost
        else:
            owed = self._owed(node)[lost]
            yield "left", node, lost[~owed]
            lost = lost[owed]
            orphan = self.orphan[lost]
            yield "loss", node, lost[~orphan]
            yield "orphaned", node, lost[orphan]

    def _owed(self, node: int) -> Bools:
        """Which slots were sent to a node that had not left, or by a sender that knew it was back."""
        log, joins = self.history.logs.of.get(node), self._joins(node)
        if log is not None and log.away:
            return np.zeros(self.history.slots, np.bool_)
        if not joins:
            return np.ones(self.history.slots, np.bool_)
        return self.history.since(node, joins[-1])

    def _joins(self, node: int) -> Sequence[int]:
        """Where in its log a node that had left wanted to be back."""
        log = self.history.logs.of.get(node)
        return () if log is None else log.joins

    def _gaps(
        self, node: int, messages: Ints, first: NDArray[np.intp], lost: Bools
    ) -> Iterator[Found]:
        gap = self._lacks(messages, lost)
        for join in self._joins(node):
            back = first >= join
            gap[back] = self._lacks(messages[back], lost & self.history.since(node, join))
        crash = self._track(node).crash
        excused = gap & (first >= crash) if crash is not None else np.zeros_like(gap)
        yield "excused_gap", node, messages[excused]
        doubtful = self.history.logs.node(node) in self.doubtful
        yield "unjudged" if doubtful else "gap", node, messages[gap & ~excused]

    def _lacks(self, messages: Ints, lost: Bools) -> Bools:
        missing = self.running_maximum(lost.astype(np.int64))
        lacking: Bools = self.maximum_over_past(messages, missing) > 0
        return lacking

    def running_maximum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each slot the maximum over its sender's slots up to it."""
        step = int(values.max(initial=0)) + 2  # lifts each sender above all before it
        return np.maximum.accumulate(values + self.offset * step) - self.offset * step

    def maximum_over_past(self, messages: Ints, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each message the maximum at the last slots of its past, of which it is one."""
        past = self.history.past
        many = max(1, CELLS_AT_ONCE // max(1, past.shape[1]))  # bounds the memory, not the result
        parts = [
            values[past[messages[start : start + many]]].max(axis=1)
            for start in range(0, len(messages), many)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)
