"""Early relaying: a server relays what it receives before it is deliverable in the group of origin.

Baldoni, Friedman & van Renesse 1996, section 3.4, the first optimisation; for two levels.

A message m from group a to group c carries, besides the vectors of a and of c in these groups, its
causal past among the messages between groups, as its *sender* knew it:

- ``after``: of the messages that leave group a, the last one of each sender, by name, if it has not
  arrived everywhere yet;
- ``beyond``: of the other groups' messages, the number of broadcasts of each server in the group of
  servers. (What the relaying server happens to have delivered may itself wait for m, if m was relayed
  before its causal past; then neither would ever be deliverable.)

Delivery in the group of servers: all messages in ``after`` were delivered there, and of each server
all broadcasts up to the number in ``beyond``. Numbers are given as broadcasts are made, so this asks
for some that are not in m's causal past; but all of them were sent earlier than m, so that no two
messages wait for each other. Server c decides for its members by these vectors, because only it sees
messages that are not for them. In its own group it waits for one thing: m is broadcast there when
those of the group's messages that m answers, and that c itself relayed early, are deliverable to it.

State, besides that of the daisy: at a process one vector of the servers' size; at a server, for each
other, which of its broadcasts were delivered.
Cost: a message that leaves has 12 + 4s + 8k bytes more in its first group, 4 + 8k in that of the s
servers, where k of its group's members have messages in transit, and 12 + 4s in the last.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import replace

from typing_extensions import override

from ..base import Count, Effects
from ..groups.messages import NO_VIEW, Cast
from ..groups.stability import stream_of
from ..groups.stamped_cast import StampedCast
from .hierarchy import Hierarchy
from .relay import Relaying
from .server_group import ByOrigin, beyond_of, follows


class EarlyRelaying(Relaying):
    """Relaying between two levels, before messages are deliverable.

    View changes. Numbers belong to a view of the servers; a new view begins when all its members
    have delivered what any of them had received in the old one, so numbers of an old view ask for
    nothing. A message that then lacks something in ``after`` is dropped; its server, as long as
    it has it, relays it again. Every view change of a local group is followed by one of the
    servers, and until then nothing is relayed from there: so what waits for a message that no
    process has any more is *discarded*. It has not been delivered anywhere, its sender has
    crashed or is cut off, and brings both along if it returns.

    Limits. A sender that crashes may leave a hole, if an earlier message of its that was not to
    leave the group was lost on the way to all others: without early relaying its server would
    have had that too. A sender that is cut off then may lose the earlier message to its group,
    and while a group is partitioned an answer may overtake its question on the way into the other
    part. All members of a group must deliver all its broadcasts. For other limits see ``daisy``,
    as without ``safe``. Where nothing is lost or late on the way to servers there is nothing to
    gain.
    """

    def __init__(self, daisy: Hierarchy) -> None:
        super().__init__(daisy)
        self.above = NO_VIEW
        self.beyond: tuple[int, ...] = ()  # the last broadcast of each server in that view, here

    @override
    def stamped(self, cast: Cast) -> Cast:
        if not self.leaves(0, cast):
            return cast
        last = {
            stream_of(c.id): c.id
            for c in self.daisy.local.history.values()
            if c.source in self._home() and self.leaves(0, c)
        }
        return StampedCast(
            cast.source, cast.seq, cast.payload, cast.sent_at, time=cast.time, dests=cast.dests,
            epochs=cast.epochs, above=self.above, beyond=self.beyond,
            after=tuple(sorted(last.values())),
        )  # fmt: skip

    def _home(self) -> frozenset[int]:
        """The processes of the local group, whether they are members now or not."""
        return self.daisy.tree.rosters[self.daisy.path[0]]

    @override
    def leaves(self, level: int, cast: Cast) -> bool:
        if level:
            return super().leaves(level, cast)
        # the same in all views: what is named must be relayed
        return len(self.daisy.path) > 1 and cast.leaves(self._home())

    @override
    def note(self, level: int, cast: Cast) -> None:
        super().note(level, cast)
        if (
            level
            or not isinstance(cast, StampedCast)
            or not cast.beyond
            or cast.source in self._home()
        ):
            return
        if cast.above == self.above:
            self.beyond = tuple(map(max, self.beyond, cast.beyond))
        else:  # a new view of the servers starts its numbers again
            self.above, self.beyond = cast.above, cast.beyond

    @override
    def relay(self, queue: deque[Cast], origin: int, target: int, now: int) -> Effects:
        if target > origin:
            yield from self._relay_up(queue, now)
        else:
            yield from self._relay_down(queue, now)

    def _relay_up(self, queue: deque[Cast], now: int) -> Effects:
        """Relay what was delivered, in that order, then what was only received."""
        above = self.daisy.groups[1]
        if above.view is None or above.me not in above.view.members:
            return  # the servers do not know the local group's view yet
        while queue and above.open:
            assert isinstance(above.casting, ByOrigin)
            if above.casting.knows(queue[0]):
                queue.popleft()
            elif self.must_wait(0, queue[0], now):
                return
            else:
                yield from self._cast_above(queue.popleft(), now)
        for cast in list(self._held()):
            if queue or not above.open or not self.leaves(0, cast):
                continue
            assert isinstance(above.casting, ByOrigin)
            if not above.casting.knows(cast):
                yield Count("early_relays")
                yield from self._cast_above(cast, now)

    def _cast_above(self, cast: Cast, now: int) -> Effects:
        """Broadcast in the group of servers, which may be a new one that has seen nothing."""
        if isinstance(cast, StampedCast):
            kept = self.daisy.local.kept
            after = (n for n in cast.after if n in kept.history or not follows((n,), kept))
            cast = replace(cast, after=tuple(after))
        yield Count("relays")
        yield from self.daisy.translate(1, self.daisy.groups[1].cast(cast, now), now)

    def _relay_down(self, queue: deque[Cast], now: int) -> Effects:
        """Relay down what does not answer held messages of the local group; the rest waits."""
        while self.daisy.local.open and (cast := next((c for c in queue if self._goes(c)), None)):
            queue.remove(cast)
            if cast.is_for(self.daisy.roster(0)) and not self.daisy.local.has_seen(cast):
                yield Count("relays")
                yield from self.daisy.translate(0, self.daisy.local.cast(cast, now), now)

    def _held(self) -> Collection[Cast]:
        """What was received in the local group and is not deliverable."""
        return () if self.daisy.local.casting is None else self.daisy.local.casting.held.values()

    def _goes(self, cast: Cast) -> bool:
        """Whether nothing in its causal past was relayed from here and is not deliverable here."""
        casting = self.daisy.groups[1].casting
        if casting is None:
            return True
        number = beyond_of(cast, casting)[casting.me]
        for held in self._held():
            slot, which = casting.at.get(held.id, (None, 0))
            if held.id == cast.id or slot == 0 or (slot == casting.me + 1 and which <= number):
                return False
        return True

    @override
    def may_release(self, level: int, cast: Cast, now: int) -> bool:
        seen = level == 0 or self.daisy.groups[1].has_seen(cast)
        if not seen or (level and any(held.id == cast.id for held in self._held())):
            return False
        return super().may_release(level, cast, now)
