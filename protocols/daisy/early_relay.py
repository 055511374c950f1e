"""Early relaying: a server relays what it receives before that is deliverable where it comes from.

Baldoni, Friedman & van Renesse 1996, section 3.4, the first optimisation; for two levels.

A message m from group a to group c carries one vector for each group on its way:

- in group a that of group a, by which its members decide, the server too;
- what m comes after of the messages that leave group a, *after*: of each sender the last one, by its
  name, if it has not arrived everywhere yet. Those that stay in the group are not among them: nobody
  elsewhere ever gets them;
- what m comes after of the other groups' messages, *beyond*: how many broadcasts of each server, in
  the group of servers. It is the sender's knowledge. What the relaying server happens to have
  delivered may itself wait for m, if m was relayed before what it comes after, and then none of them
  would ever be deliverable;
- in group c that of group c.

Delivery in the group of servers: all messages in ``after`` were delivered there, and of each server all
broadcasts up to the number in ``beyond``. A server numbers its broadcasts as it makes them, so this
asks for some that m does not come after; but all of them were sent earlier than m, so that no two
messages wait for each other. Server c decides for its members with these vectors, because only it
sees messages that are not for them. What m waits for passes through server c as well, so that m would
not be delivered sooner if it went on at once, but for the differences of delay on the last hop. The
one thing server c waits for in its own group: m is broadcast there when those of the group's messages
that m answers, and that server c itself relayed early, have become deliverable to it; its vector then
says so. The members decide with the vector of group c.

Processes of one group deliver all that is broadcast in it: so messages that do not leave carry
nothing more, yet pass on what their sender knows.

View changes. Numbers belong to a view of the servers; a new one begins when all its members have
delivered what any of them had received of the old one, so numbers of an old view ask for nothing. What
lacks something in ``after`` then is dropped; its server, as long as it has it, relays it again. Every
view change of a local group is followed by one of the servers, and until then nothing is relayed from
there: so what waits for a message that nobody has any more is *discarded*. Nobody has delivered it, its
sender has crashed or is cut off, and one that returns brings along both. To deliver it instead would
put it before what it comes after.

State, besides that of the daisy: of a process one vector of the servers' size; of a server, for each
other, which of its broadcasts were delivered.
Cost: a message that leaves has 12 + 4s + 8k bytes more in its first group, 4 + 8k in that of the s
servers, where k of its group's members have messages under way, and 12 + 4s in the last.

Limits. A sender that crashes, its server or not, may leave a hole, if something that it sent before was
lost on the way to all others and was not to leave the group: without early relaying its server would
have had that too. A sender that is cut off at such a moment may lose the earlier message to its group,
and while a group is in two parts an answer may overtake its question on the way into the other one.
All members of a group have to deliver all that is broadcast in it. For other limits see ``daisy``, as
without ``safe``. Where nothing is lost or late on the way to servers there is nothing to gain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ..base import Count, Effects, Place
from .messages import NO_VIEW, Cast
from .relay import Relays
from .server_group import ServerGroup, beyond_of, follows, stream_of
from .stamped_cast import StampedCast
from .tree import GroupTree


class EarlyRelays(Relays):
    """Relaying between two levels, early if the settings say so."""

    tree: GroupTree

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.above = NO_VIEW
        self.beyond: tuple[int, ...] = ()  # of each server in that view, the last that arrived here

    def _stamped(self, cast: Cast) -> Cast:
        if not self.settings.early or not self._leaves(0, cast):
            return cast
        last = {
            stream_of(c.id): c.id
            for c in self.local.history.values()
            if c.source in self._home() and self._leaves(0, c)
        }
        return StampedCast(
            cast.source, cast.seq, cast.payload, cast.sent_at, time=cast.time, dests=cast.dests,
            above=self.above, beyond=self.beyond, after=tuple(sorted(last.values())),
        )  # fmt: skip

    def _home(self) -> frozenset[int]:
        """The processes of the local group, whether they are members now or not."""
        return self.tree.rosters[self.path[0]]

    def _leaves(self, level: int, cast: Cast) -> bool:
        if not self.settings.early or level:
            return super()._leaves(level, cast)
        # the same in all views: what is named must be relayed
        return len(self.path) > 1 and (cast.dests is None or not cast.dests <= self._home())

    def _note(self, level: int, cast: Cast) -> None:
        super()._note(level, cast)
        if (
            level
            or not isinstance(cast, StampedCast)
            or not cast.beyond
            or cast.source in self._home()
        ):
            return
        if cast.above == self.above:
            self.beyond = tuple(map(max, self.beyond, cast.beyond))
        else:  # by their order: if servers begin anew, so do their views' numbers
            self.above, self.beyond = cast.above, cast.beyond

    def _relay(self, queue: deque[Cast], origin: int, target: int, now: int) -> Effects:
        if not self.settings.early:
            yield from super()._relay(queue, origin, target, now)
        elif target > origin:
            yield from self._relay_up(queue, now)
        else:
            yield from self._relay_down(queue, now)

    def _relay_up(self, queue: deque[Cast], now: int) -> Effects:
        """What was delivered, in that order, then what was only received."""
        above = self.groups[1]
        assert isinstance(above, ServerGroup)
        if above.view is None or above.me not in above.view.members:
            return  # the servers do not know of the local group's view yet
        while queue and above.open:
            if above.knows(queue[0]):
                queue.popleft()
            elif self._must_wait(0, queue[0], now):
                return
            else:
                yield from self._cast_above(queue.popleft(), now)
        for cast in list(self._held()):
            if not queue and above.open and self._leaves(0, cast) and not above.knows(cast):
                yield Count("early_relays")
                yield from self._cast_above(cast, now)

    def _cast_above(self, cast: Cast, now: int) -> Effects:
        """Broadcast in the group of servers, which may be a new one that knows of nothing."""
        if isinstance(cast, StampedCast):
            local = self.local
            after = (n for n in cast.after if n in local.history or not follows((n,), local.seen))
            cast = replace(cast, after=tuple(after))
        yield Count("relays")
        yield from self._translate(1, self.groups[1].cast(cast, now), now)

    def _relay_down(self, queue: deque[Cast], now: int) -> Effects:
        """What answers messages of the local group waits for them; others pass it by."""
        while self.local.open and (cast := next((c for c in queue if self._goes(c)), None)):
            queue.remove(cast)
            if not self.local.has_seen(cast):
                yield Count("relays")
                yield from self._translate(0, self.local.cast(cast, now), now)

    def _held(self) -> Collection[Cast]:
        """What was received in the local group, and is not deliverable."""
        return () if self.local.casting is None else self.local.casting.held.values()

    def _goes(self, cast: Cast) -> bool:
        """Whether it comes after nothing that was relayed from here and is not deliverable here."""
        casting = self.groups[1].casting
        if casting is None:
            return True
        number = beyond_of(cast, casting)[casting.me]
        for held in self._held():
            slot, which = casting.at.get(held.id, (None, 0))
            if held.id == cast.id or slot == 0 or (slot == casting.me + 1 and which <= number):
                return False
        return True

    def _may_release(self, level: int, cast: Cast, now: int) -> bool:
        if self.settings.early and level == 1:
            waits = not self.groups[1].has_seen(cast) or any(h.id == cast.id for h in self._held())
            return not waits and super()._may_release(level, cast, now)
        return super()._may_release(level, cast, now)
