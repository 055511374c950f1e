"""A local group whose messages all go through its server, point to point, with one integer each.

Baldoni, Friedman & van Renesse 1996, section 3.4, item 3. A member sends its message to the server,
which takes each member's messages in order, relays what leaves the group, and forwards it to the
destinations within. Every link numbers its messages, in either direction, from one in each view.
Delivery: in the order of a link's numbers. The sender delivers its own message at once.
Invariant: all members get a part of one sequence, the server's, in which a message stands after its
causal past: so causal order takes no vector.
State: of each link what is not stable in either direction, and what is held back; at the server, how
far each link was when a message was put into the sequence.
Cost: one copy to the server, and one to each other destination in the group, of
32 + 16 + 4 + 4|Dests| + d bytes; reports of 76 bytes on a link. One hop more.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from typing_extensions import override

from ..groups.casting import AT_ONCE, Casting, Copies, Status
from ..groups.messages import Cast, Report
from ..groups.stability import Stability
from ..groups.view import View
from ..wire import MessageId

SERVER = 0  # its index in a view


class StarCasting(Casting):
    """The messages of one view: the server has a link to each member, a member one to the server.

    Slot i + 1 has what came from member i. A report on a link says how many of the server's and of
    the member's messages were delivered, or sent; and how many are stable of what was carried over,
    of the server's and of the member's.

    *Stability.* A message is kept by its sender, the server and the destinations until the server
    says that it is stable: all its destinations in the view have acknowledged it, it is stable
    above if it leaves the group, and no absent member needs it. With ``safe`` the server relays a
    message up when its sequence up to it has arrived. What the server itself sends goes to all
    members of the view: otherwise no other process has it if the server crashes.

    *View change.* A new view carries over what the members hold, but they do not deliver it yet:
    the old server may have forwarded a message to some of them whose causal past it alone had,
    from above, where that is still kept. So the new server waits until it knows what the group
    above keeps, puts this and what was carried over into its sequence, by logical times, and only
    then takes new messages. If the server is missing, and another member too, or was a short time
    ago, the others wait for ``grace_ms``.

    Limits. A sender and its server that crash together, or are cut off together for longer than
    ``grace_ms``, may leave a hole: they alone had a message, and a later one had been forwarded
    already. Without ``safe``, on three levels or more, so may a server of two levels that crashes
    alone. After a view change the server takes nothing until it is in a complete view above that
    is not weak: if it is alone there, for twice ``grace_ms``. Groups are not split or merged.
    """

    def __init__(
        self, view: View, me: int, carried: Sequence[Cast], kept: Stability | None = None
    ) -> None:
        super().__init__(view, me, carried, kept)
        size = len(view.members)
        self.serves = self.me == SERVER
        self.sent: list[deque[Cast]] = [deque() for _ in range(size)]  # to each, not stable
        self.settled = [0] * size  # how many of these are forgotten
        self.sent_at: dict[tuple[int, int], int] = {}
        self.sequence: dict[MessageId, tuple[Cast, list[int]]] = {}  # and how far the links were
        self.free: list[MessageId] = []  # what of it need not be kept on the server's account
        self.told = (0, 0, 0)

    def enter(self, slot: int, cast: Cast, seen: bool = False, now: int = 0) -> None:
        """Put what came from a member, or was carried over, into its slot."""
        self.slots[slot].append(None if seen else cast)

    def take_over(self, casts: Sequence[Cast], seen: Iterable[MessageId]) -> list[Cast]:
        """Keep what was carried over; it is delivered when the server says so."""
        self.kept.history = {cast.id: cast for cast in casts}
        for name in self.kept.history:
            self.kept.archive.pop(name, None)
        if self.serves:
            self.waits = True
            self.kept.seen.clear()  # from now on, what is in the sequence
        return []

    def send(self, cast: Cast, now: int) -> tuple[Cast, list[Copies]]:
        """Send a member's next message to the server, or the server's to its members."""
        cast = replace(cast, view=self.id)
        if self.serves:
            return cast, self.onward(cast, now)
        return cast, [self._put(SERVER, cast, now)]

    def onward(self, cast: Cast, now: int) -> list[Copies]:
        """At the server: put a message into the sequence, and forward it."""
        if not self.serves:
            return []
        mine = cast.source == self.processes[SERVER]
        copies = [
            self._put(i, cast, now)
            for i, process in enumerate(self.processes)
            if i != SERVER and process != cast.source and (mine or cast.is_for((process,)))
        ]
        self.sequence[cast.id] = cast, [self._count(i) for i in range(len(self.sent))]
        return copies

    def _put(self, i: int, cast: Cast, now: int) -> Copies:
        number = self._count(i) + 1
        copy = replace(cast, view=self.id, vector=(number,))
        self.sent[i].append(copy)
        self.sent_at[i, number] = now
        return (self.processes[i],), copy

    def _count(self, i: int) -> int:
        return self.settled[i] + len(self.sent[i])

    def _linked(self, sender: int) -> bool:
        return self.serves or self.index[sender] == SERVER

    def _acknowledged(self, i: int) -> int:
        """The number of messages that a member has acknowledged; -1 before it is in the view."""
        report = self.delivered[i]
        return -1 if not report else report[SERVER if self.serves else 1]

    # what comes in

    def fits(self, message: Cast | Report, sender: int) -> bool:
        """Whether a cast has one number, and a report is on a link."""
        if isinstance(message, Cast):
            return self._linked(sender) and len(message.vector) == 1
        return (len(message.delivered), len(message.released)) == (2, 3) and self._linked(sender)

    @override
    def number(self, cast: Cast, i: int) -> int:
        return cast.vector[0]

    def deliverable(self, cast: Cast, i: int) -> bool:
        """Whether the server is ready: the next message of a link always is deliverable."""
        return not self.waits

    def note_vector(self, sender: int, vector: tuple[int, ...]) -> None:
        """Nothing to note: a message's number says nothing about others."""

    def note(self, sender: int, report: Report) -> None:
        """Note what the other end of a link has delivered; from the server, what is stable."""
        super().note_vector(sender, report.delivered)
        if self.index[sender] == SERVER:
            carried, servers, own = map(max, self.told, report.released)
            self.told = carried, servers, own

    def reports(
        self, hubs: tuple[int, ...], leads: bool, waiting: Collection[int] | None
    ) -> Iterator[Status]:
        """A report to each member on its link; an acknowledgement goes to the server only."""
        if not self.serves:
            delivered = self.T[SERVER], self._count(SERVER)
            yield Status((self.processes[SERVER],), delivered, self.told)
            others = tuple(p for p in hubs if p != self.processes[SERVER])
            if others and waiting is None:
                yield Status(others, (), ())
        elif waiting is None:
            for process in self.others:
                i = self.index[process]
                released = self.stable[0], self.settled[i], self.stable[i + 1]
                yield Status((process,), (self._count(i), self.T[i]), released)

    def waiting_for(self, processes: Collection[int]) -> Collection[int]:
        """The server, for all that was delivered."""
        return () if self.serves else (self.processes[SERVER],)

    # what is kept, and for how long

    def everywhere(self, name: MessageId) -> bool:
        """Whether all of the server's sequence up to this message has arrived."""
        if name not in self.sequence:
            return False
        _, far = self.sequence[name]
        return all(self._acknowledged(i) >= n for i, n in enumerate(far) if i != SERVER)

    @override
    def depends_on(self, missing: Collection[int]) -> bool:
        return self.processes[SERVER] in missing and len(missing) > 1

    def released_by_others(self, name: MessageId) -> bool:
        """Whether it has arrived everywhere: others release what they have."""
        return self.everywhere(name)

    def release(self, may: Callable[[Cast], bool]) -> None:
        """At the server: what need not be kept on its account."""
        self.free = [name for name, (cast, _) in self.sequence.items() if may(cast)]

    def forget(self) -> Iterator[MessageId]:
        """At the server what is stable; at a member what the server says is."""
        if not self.serves:
            yield from self._obey()
        elif not self.waits:
            for name in self.free:
                if self.everywhere(name):
                    del self.sequence[name]
                    yield name
            self._shorten()

    def _shorten(self) -> None:
        """Take from each slot and link, from the first on, what is kept no longer."""
        for slot, casts in enumerate(self.slots):
            while casts and (casts[0] is None or casts[0].id not in self.sequence):
                casts.popleft()
                self.stable[slot] += 1
        for i, sent in enumerate(self.sent):
            while sent and sent[0].id not in self.sequence:
                self._drop_sent(i)

    def _drop_sent(self, i: int) -> Cast:
        self.settled[i] += 1
        del self.sent_at[i, self.settled[i]]
        return self.sent[i].popleft()

    def _obey(self) -> Iterator[MessageId]:
        for slot in (0, SERVER + 1):
            while self.slots[slot] and self.stable[slot] < self.told[slot]:
                self.stable[slot] += 1
                if cast := self.slots[slot].popleft():
                    yield cast.id
        while self.sent[SERVER] and self.settled[SERVER] < self.told[2]:
            yield self._drop_sent(SERVER).id

    @override
    def missing(
        self, sender: int, now: int, pause: int, leads: bool = False, is_leader: bool = False
    ) -> list[tuple[int, Cast]]:
        i = self.index[sender]
        has = self._acknowledged(i)
        if not self._linked(sender) or has >= self._count(i) or now - self.resent_at[i] < pause:
            return []
        due = list(self.sent[i])[max(0, has - self.settled[i]) :][:AT_ONCE]
        late = [cast for cast in due if now - self.sent_at[i, cast.vector[0]] >= pause]
        if late:
            self.resent_at[i] = now
        return [(self.processes[self.me], cast) for cast in late]
