"""The group layer: views that the members agree on, and causal broadcast within each.

What Baldoni, Friedman & van Renesse take from a group communication system (section 3.1).
``membership`` decides who should be in a view, ``agreement`` installs it, ``casting`` broadcasts in it.

- *Weak views* (see ``View``): for ``grace`` nothing is relayed out of one. If the others are back by
  then, no other group knows what they do not; if not, they are taken to have crashed. A process that
  is not admitted for ``grace`` starts a weak view of its own.
- *Absent members* have not released what is addressed to their rosters, until they were gone for
  ``forget``; then they count as crashed, and what they lack is lost to them.
- *Omissions* are repaired by the reports: a member retransmits its broadcasts to one that lacks them;
  the broadcasts of a crashed member are in the union of the next view.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..base import SEQUENCE_BITS, Count, Deliver, Discard, Effects, Hold, Send, SetTimer
from ..wire import Message, MessageId
from .agreement import Agreement
from .casting import Casting, Copies
from .messages import Cast, Expelled, Flush, Join, Leave, Part, Report, Silence
from .view import ViewId


class Group(Agreement):
    """One process's part in one group, as the layer above sees it."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.above: tuple[int, ...] = ()  # members of the group above, as the server reported
        self.ack_due = False
        self.silent_since = 0
        self.ticked_at = 0

    @property
    def waits(self) -> bool:
        """Whether, as server, it must first learn what the group above keeps for it."""
        return False

    def resume(self, recorded: Iterable[Cast], now: int) -> Effects:
        """As server, go on with what the group above keeps."""
        yield from ()

    @property
    def is_complete(self) -> bool:
        """Whether all members are known to be in the view."""
        return self.casting is not None and self.casting.complete()

    def is_everywhere(self, name: MessageId) -> bool:
        """Whether all members of the view are known to have delivered a message."""
        return name not in self.history or (
            self.casting is not None and self.casting.everywhere(name)
        )

    def is_stable(self, cast: Cast) -> bool:
        """Whether a message was seen and is kept no longer."""
        return self.has_seen(cast) and cast.id not in self.history

    def is_settled(self, cast: Cast, now: int) -> bool:
        """Whether all other members have released a message, and no absent one needs it."""
        if not self.has_seen(cast) or cast.id not in self.history or self.casting is None:
            return self.is_stable(cast)
        return self.casting.released_by_others(cast.id) and not self.is_owed(cast, now)

    def is_owed(self, cast: Cast, now: int) -> bool:
        """Whether an absent member that may be alive is among the destinations."""
        assert self.view is not None
        return any(
            cast.is_for(member.roster)
            and now - self.absent_since.get(member.process, now) < self.timing.forget
            for member in self.view.absent
        )

    def cast(self, message: Cast, now: int) -> Effects:
        """Broadcast a message in the view; it is delivered here at once."""
        assert self.casting is not None
        cast, copies = self.casting.send(replace(message, group=self.number), now)
        self._record(cast)
        yield Count("broadcasts")
        yield from self._send_copies(copies)
        yield Deliver(cast)

    def _send_copies(self, copies: Iterable[Copies]) -> Effects:
        for peers, cast in copies:
            yield Send(peers, cast)
            yield Count("broadcast_copies", len(peers))
            yield Count("broadcast_control_bytes", len(peers) * cast.control_size)

    def _record(self, cast: Cast) -> None:
        self.seen[cast.source, cast.seq >> SEQUENCE_BITS] = cast.seq
        self.history[cast.id] = cast

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Handle a message of a member or a joiner."""
        if sender in self.heard and not isinstance(message, Expelled):
            self.heard[sender] = now
        if self.out:
            return
        if isinstance(message, Cast):
            yield from self._on_cast(message, sender, now)
        elif isinstance(message, Report):
            yield from self._on_report(message, sender, now)
        elif isinstance(message, Join):
            yield from self._on_join(message, sender, now)
        elif isinstance(message, Leave):
            yield from self._on_leave(message, sender)
        elif isinstance(message, Expelled):
            yield from self._on_expelled(message, sender, now)
        elif isinstance(message, Flush):
            yield from self._on_flush(message, sender, now)
        elif isinstance(message, Part):
            yield from self._on_part(message, sender, now)
        elif isinstance(message, Silence) and self.view and sender == self.view.server:
            self.silent, self.silent_since = True, now

    def _current(self, view: ViewId, sender: int) -> bool:
        """Whether a message belongs to the current view and may be acted on."""
        return (
            self.casting is not None
            and not (self.joining or self.frozen)
            and view == self.casting.id
            and sender in self.casting.index
        )

    def _on_cast(self, cast: Cast, sender: int, now: int) -> Effects:
        casting = self.casting
        if casting is None or not self._current(cast.view, sender):
            yield Discard(cast, "other view")
            return
        if not casting.fits(cast, sender):
            yield Discard(cast, "malformed")
            return
        casting.note_vector(sender, cast.vector)
        if not casting.hold(cast, sender):
            yield Discard(cast, "duplicate")
            return
        if not casting.deliverable_now(cast, sender) and cast.is_for((self.me.process,)):
            yield Hold(cast, None)
        yield from self._go_on(casting, now)

    def _go_on(self, casting: Casting, now: int) -> Effects:
        """Deliver what has become deliverable; report soon if others wait for that."""
        while self.casting is casting and (ready := casting.next()):
            yield from self._deliver(casting, *ready, now)
        if casting.news:
            yield from self._acknowledge_soon()

    def _deliver(self, casting: Casting, i: int, cast: Cast, now: int) -> Effects:
        if self.has_seen(cast):
            casting.enter(i + 1, None)
            yield Count("duplicates_suppressed")
            return
        casting.enter(i + 1, cast)
        self._record(cast)
        yield from self._send_copies(casting.onward(cast, now))
        yield from self._acknowledge_soon()
        yield Deliver(cast)

    def _acknowledge_soon(self) -> Effects:
        if self.timing.ack is not None and not self.ack_due:
            self.ack_due = True
            yield SetTimer(("ack", self.number), self.timing.ack)

    def _on_report(self, report: Report, sender: int, now: int) -> Effects:
        if self.view is None or self.joining or report.view > self.view.id:
            return
        if report.view < self.view.id:
            yield from self._correct(sender, now)
            return
        if sender == self.view.server and report.above:
            self.above = report.above
        if report.promised > self.promised.number:
            self.promised = ViewId(report.promised)  # a member waits for a greater view
        if self.casting is None or not self._current(report.view, sender):
            return
        if self.casting.fits(report, sender):
            self.casting.note(sender, report)
            for cast in self.casting.missing(sender, now, self.timing.heartbeat):
                yield Send((sender,), cast)
                yield Count("retransmissions")
            yield from self._go_on(self.casting, now)

    def _correct(self, sender: int, now: int) -> Effects:
        """Answer a report from an older view."""
        assert self.view is not None
        if sender not in self.invited:
            yield self._send((sender,), Expelled, view=self.view.id)
        elif self.me.process in (self.view.id.coordinator, self._next(sender, now)):
            for part in self.install_parts:
                yield Send((sender,), part)

    def _next(self, sender: int, now: int) -> int:
        """The oldest member that is alive, except the sender."""
        return next(m.process for m in self._alive(now) if m.process != sender)

    def tick(self, now: int, may: Callable[[Cast], bool], above: tuple[int, ...]) -> Effects:
        """Handle a heartbeat; ``may`` says what need not be kept on this process's account."""
        if self.out:
            return
        if self.view is None or self.joining:
            yield from self._seek(now)
            return
        if now - self.ticked_at > 2 * self.timing.heartbeat:  # this process itself was paused
            self.heard = dict.fromkeys(self.heard, now)
        self.ticked_at = now
        if self.silent and now - self.silent_since > 2 * self.timing.heartbeat:
            self.silent = False
        if not self.frozen and self.casting is not None:
            self.casting.release(may)
            for name in list(self.casting.forget(lambda cast: self.is_owed(cast, now))):
                self.history.pop(name, None)
        yield from self._report(above)
        yield from self._mind_own_place(now)
        yield from self._probe(now)
        yield from self._lead(now)

    def hush(self, now: int) -> Effects:
        """As server, ask all members to broadcast nothing for a while."""
        self.silent, self.silent_since = True, now
        if peers := self._peers():
            yield self._send(peers, Silence)

    def acknowledge(self, above: tuple[int, ...]) -> Effects:
        """Report what was delivered."""
        self.ack_due = False
        if self.view is not None and not (self.joining or self.out):
            yield from self._report(above, urgent=True)

    def _report(self, above: tuple[int, ...], urgent: bool = False) -> Effects:
        assert self.view is not None
        assert self.casting is not None
        for peers, delivered, released in self.casting.reports(urgent):
            yield self._send(
                peers,
                Report,
                view=self.view.id,
                promised=self.promised.number,
                delivered=delivered,
                released=released,
                above=above,
            )
            yield Count("reports", len(peers))
