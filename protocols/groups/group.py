"""The group layer: views that the members agree on, and causal broadcast within each.

What Baldoni, Friedman & van Renesse take from a group communication system (section 3.1), with four
calls: ``cast`` broadcasts a message in the view; ``Deliver`` is yielded for each message of the
group, in causal order; ``is_stable`` and ``is_everywhere`` say who has a message; ``view`` is the
current view. A group consists of a failure detector (``detector``), admission (``admission``), the
agreement on views (``succession``, ``view_change``), the broadcast within one (``casting``), reports
(``reporting``) and what is kept for how long (``stability``); ``states`` has the table of its states.

- *Weak views* (see ``View``): for ``grace`` nothing is relayed out of one. If the others are back by
  then, no other group knows what they do not; if not, they are taken to have crashed. A process that
  is not admitted for ``grace`` starts a weak view of its own.
- *Processes that are away* are owed what is addressed to them, until they were gone for ``forget``;
  then they count as crashed, and what they lack is lost to them.
- *Omissions* are repaired by the reports: the leader sends again to members what they lack; the
  broadcasts of a crashed member are in the union of the next view. A bad link is bypassed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..base import Count, Deliver, Discard, Effects, Hold, Note, Send
from ..wire import Message, MessageId
from .above import Above
from .admission import Admission
from .agreed import Flushed, Given, Label
from .casting import Casting, Copies, Way
from .detector import Detector, Timing
from .epochs import Agreed, Epochs, Pairs
from .flush import Fetch, Flush, Missing, Part
from .messages import NO_VIEW, Cast, Expelled, Join, Leave, Report, Silence
from .passed import Passed, bypassing
from .places import Places
from .reporting import Reporting
from .stability import Stability
from .states import FLUSHING, MEMBER, OUT, PROPOSING, SEEKING, SILENT, Machine
from .succession import Succession
from .view import Member, View, ViewId
from .view_change import ViewChange

ALONE = Above()
OUTSIDERS = (Expelled, Join)


class Group:
    """One process's part in one group; ``view`` is None before it has been a member."""

    def __init__(
        self,
        number: int,
        me: Member,
        timing: Timing,
        candidates: Iterable[int],
        way: Way = Casting,
        view: View | None = None,
        now: int = 0,
        others: Iterable[Member] = (),
        above: Above = ALONE,
        epochs: Epochs | None = None,
    ) -> None:
        self.number, self.me, self.timing, self.way = number, me, timing, way
        self.above, self.epochs, self.agreed = above, epochs or Epochs(me.process, 0), Agreed()
        self.machine = Machine(SEEKING if view is None else MEMBER)
        self.view = view
        self.kept = Stability()
        self.casting = None if view is None else way(view, me.process, (), self.kept)
        self.detector = Detector(me.process, timing)
        if view is not None:
            self.detector.enter(view, now)
        self.admission = Admission(self, candidates, others)
        self.reporting, self.succession = Reporting(self), Succession(self)
        self.places = Places(self)
        self.change = ViewChange(self, view)
        self.leaving = False  # whether the application wants to leave
        self.given: dict[int, Given] = {}  # the processes that this one has split off
        self.silent_since = self.ticked_at = 0

    # what the layer above sees

    @property
    def state(self) -> str:
        """One of ``states``."""
        return self.machine.state

    @property
    def seeking(self) -> bool:
        """Whether this process wants to be admitted."""
        return self.machine.state == SEEKING

    @property
    def out(self) -> bool:
        """Whether this process has left."""
        return self.machine.state == OUT

    @property
    def frozen(self) -> bool:
        """Whether a view change is in progress."""
        return self.machine.state in (FLUSHING, PROPOSING)

    @property
    def open(self) -> bool:
        """Whether broadcasts can be made."""
        return self.machine.state == MEMBER and not self.waits

    @property
    def waits(self) -> bool:
        """Whether, as server, it must first learn what the group above keeps for it."""
        casting = self.casting
        return casting is not None and casting.waits and self.machine.state == MEMBER

    @property
    def is_server(self) -> bool:
        """Whether this process is the first of the view, as far as it knows."""
        view = self.view
        first = view is not None and view.members[0].process == self.me.process
        return first and self.machine.state != OUT

    @property
    def history(self) -> dict[MessageId, Cast]:
        """What was delivered and is not stable."""
        return self.kept.history

    def has_seen(self, message: Message) -> bool:
        """Whether a message, or a later one of its sender, was delivered in the group."""
        return self.kept.has_seen(message)

    def is_everywhere(self, name: MessageId) -> bool:
        """Whether all members of the view are known to have delivered a message."""
        return name not in self.history or (
            self.casting is not None and self.casting.everywhere(name)
        )

    def is_stable(self, cast: Cast) -> bool:
        """Whether a message was seen, and nobody who is present lacks it."""
        return self.kept.is_stable(cast)

    def is_settled(self, cast: Cast) -> bool:
        """Whether all other members have released a message."""
        if not self.has_seen(cast) or cast.id not in self.history or self.casting is None:
            return self.is_stable(cast)
        return self.casting.released_by_others(cast.id)

    def is_calm(self, now: int) -> bool:
        """Whether no view change is due, as far as this process knows."""
        if self.view is None or self.frozen or self.succession.joiners or self.succession.leavers:
            return False
        return len(self.detector.alive(now)) == len(self.view.members)

    def is_last(self, now: int) -> bool:
        """Whether no other member is alive and stays."""
        stay = {m.process for m in self.detector.alive(now)} - self.succession.leavers.keys()
        return not stay - {self.me.process}

    def missing(self) -> frozenset[int]:
        """The processes that are away, or below members that are not known to be in the view yet."""
        if self.view is None or self.casting is None:
            return frozenset()
        if self.casting.complete():
            return self.view.away
        lag = (m.roster for m in self.view.members if not self.casting.is_here(m.process))
        return self.view.away.union(*lag)

    def may_relay(self, now: int) -> bool:
        """Whether what was delivered here may go elsewhere."""
        return self.view is not None and now >= self.change.weak_until

    def cast(self, message: Cast, now: int) -> Effects:
        """Broadcast a message in the view."""
        assert self.casting is not None
        if message.group != self.number:
            message = replace(message, group=self.number)
        cast, copies = self.casting.send(message, now)
        if self.casting.own_at_once:
            self.kept.record(cast)
        yield Count("broadcasts")
        yield from bypassing(self, self._send_copies(copies), now)
        if self.casting.own_at_once:
            yield Deliver(cast)
        yield from self.go_on(self.casting, now)

    def resume(self, recorded: Iterable[Cast], now: int) -> Effects:
        """As server that waits, go on with what the group above keeps and what was carried over."""
        casting = self.casting
        assert casting is not None
        known = {cast.id: cast for cast in (*recorded, *self.history.values())}
        ordered = sorted(known.values(), key=lambda c: (c.time, c.id))
        first = [replace(cast, group=self.number, view=casting.id) for cast in ordered]
        casting.waits = False
        self.history.clear()
        copies = []
        for cast in first:
            self.kept.record(cast)
            copies.append(casting.onward(cast, now))
        for cast, of_it in zip(first, copies, strict=True):
            yield from self._send_copies(of_it)
            yield Deliver(cast)
        yield from self.go_on(casting, now)

    def hush(self, now: int) -> Effects:
        """As server, ask all members to broadcast nothing for a while."""
        yield from self._fall_silent(now)
        if peers := self.peers():
            yield self.send(peers, Silence)

    def _fall_silent(self, now: int) -> Effects:
        self.silent_since = now
        if self.state == MEMBER:
            yield self.go("silence")

    # what comes in

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """Handle a message of a member or a joiner."""
        if isinstance(message, Passed):
            return self._receive_passed(message, sender, now)
        if not self.is_outsiders(message, sender):
            self.detector.hear(sender, now)
        return bypassing(self, self._receive(message, sender, now), now)

    def _receive_passed(self, message: Passed, sender: int, now: int) -> Effects:
        if message.to != self.me.process:
            if self.view is not None and message.to in self.view.processes:
                yield Send((message.to,), message)
        else:
            inner, of = message.inner, message.sender
            if not (isinstance(inner, Cast) or self.is_outsiders(inner, of)):
                self.detector.hear(of, now, by_way_of=sender, unheard=message.unheard)
            inner = replace(inner, group=self.number)
            yield from bypassing(self, self._receive(inner, of, now), now)

    def is_outsiders(self, message: Message, sender: int) -> bool:
        """Whether it is of one that is not in the view, or not any more: no sign of a member's life."""
        return isinstance(message, OUTSIDERS) or self.succession.is_outside(sender)

    def _receive(self, message: Message, sender: int, now: int) -> Effects:
        if self.out and not isinstance(message, Missing | Fetch):
            return  # others may still need what it had said last
        if isinstance(message, Cast):
            yield from self._on_cast(message, sender, now)
        elif isinstance(message, Report):
            yield from self.reporting.on_report(message, sender, now)
        elif isinstance(message, Join):
            yield from self.admission.on_join(message, sender, now)
        elif isinstance(message, Leave):
            yield from self.admission.on_leave(message)
        elif isinstance(message, Expelled):
            yield from self.admission.on_expelled(message, sender, now)
        elif isinstance(message, Flush):
            yield from self.change.on_flush(message, sender, now)
        elif isinstance(message, Part):
            yield from self.change.on_part(message, sender, now)
        elif isinstance(message, Missing):
            yield from self.change.on_missing(message, sender, now)
        elif isinstance(message, Fetch):
            yield from self.change.on_fetch(message, sender, now)
        elif isinstance(message, Silence) and self.view and sender == self.view.server:
            yield from self._fall_silent(now)

    def is_current(self, view: ViewId, sender: int) -> bool:
        """Whether a message belongs to the current view and may be acted on."""
        return (
            self.casting is not None
            and self.state in (MEMBER, SILENT)
            and view == self.casting.id
            and sender in self.casting.index
        )

    def _on_cast(self, cast: Cast, sender: int, now: int) -> Effects:
        casting = self.casting
        if cast.view == NO_VIEW and cast.id in self.change.fetching.holders:
            yield from self.change.on_body(cast, now)
            return
        if casting is None or not self.is_current(cast.view, sender):
            yield Discard(cast, "other view")
            return
        cast = self._with_epochs(cast, self.agreed.complete(cast.epochs))
        if not casting.fits(cast, sender):
            yield Discard(cast, "malformed")
            return
        casting.note_vector(sender, cast.vector)
        if not casting.hold(cast, sender):
            yield Discard(cast, "duplicate")
            return
        if cast.is_for((self.me.process,)) and not casting.deliverable_now(cast, sender):
            yield Hold(cast, None)
        yield from self.go_on(casting, now)

    def go_on(self, casting: Casting, now: int) -> Effects:
        """Deliver what has become deliverable; report soon if others wait for that."""
        while self.casting is casting and (ready := casting.next(now)):
            cast, seen = ready
            if seen:
                yield Count("duplicates_suppressed")
                continue
            self.kept.record(cast)
            yield from self._send_copies(casting.onward(cast, now))
            yield from self.reporting.acknowledge_soon(self.above.relayers(cast))
            yield Deliver(cast)
        if casting.news:
            yield from self.reporting.acknowledge_soon(self.peers())

    def _send_copies(self, copies: Iterable[Copies]) -> Effects:
        for peers, copy in copies:
            cast = self.in_view(copy)
            yield Send(peers, cast)
            yield Count("broadcast_copies", len(peers))
            yield Count("broadcast_control_bytes", len(peers) * cast.control_size)

    def in_view(self, cast: Cast) -> Cast:
        """A message as it travels in the view: with the epochs that not all know there."""
        return self._with_epochs(cast, self.agreed.without(cast.epochs))

    def _with_epochs(self, cast: Cast, epochs: Pairs) -> Cast:
        return cast if cast.epochs == epochs else replace(cast, epochs=epochs)

    # heartbeats

    def tick(self, now: int, may: Callable[[Cast], bool]) -> Effects:
        """Handle a heartbeat; ``may`` says what need not be kept on this process's account."""
        return bypassing(self, self._tick(now, may), now)

    def _tick(self, now: int, may: Callable[[Cast], bool]) -> Effects:
        if self.out:
            return
        yield from self.change.again(now)
        if self.seeking:
            yield from self.admission.seek(now)
            return
        if now - self.ticked_at > 2 * self.timing.heartbeat:  # this process itself was paused
            self.detector.restart(now)
        self.ticked_at = now
        if self.state == SILENT and now - self.silent_since >= 2 * self.timing.heartbeat:
            yield self.go("resume")
        if not self.frozen and self.casting is not None:
            self.casting.release(may)
            self.kept.settle(self.casting.forget(), self.owed(now))
        yield from self.reporting.report(now)
        yield from self.admission.mind_own_place(now)
        if self.view and self.view.absent:
            yield from self.admission.probe(now)
        yield from self.change.lead(now)

    def owed(self, now: int) -> frozenset[int]:
        """For whom messages are kept: who is away, or below no group, and may be alive."""
        return self.detector.owed(now) | self.places.lately(now, self.timing.forget)

    # view changes

    def go(self, event: str) -> Note:
        """Change the state."""
        return self.machine.go(event, group=self.number)

    def flushed(self, joins: bool) -> Flushed:
        """What the next view needs of this process; all it keeps, if somebody joins."""
        archive = self.kept.archive.values() if joins or self.brings_somebody() else ()
        casts = (*archive, *self.history.values())
        known = self.epochs.pairs
        if self.casting is None or self.view is None:
            labels, brought = tuple(map(Label.of, casts)), self.admission.brought
            return Flushed(ViewId(), labels, absent=brought, member=(self.me,), epochs=known)
        if not self.seeking:
            flushed = self.casting.flushed(casts)
            return flushed._replace(member=(self.me,), epochs=known)
        return self.casting.flushed((*casts, *self.above.kept()))._replace(epochs=known)

    def brings_somebody(self) -> bool:
        """Whether this process joins, or answers for others than the view knows of."""
        return self.seeking or not (self.view is None or self.me.roster <= self.view.roster)

    def begin(self, casts: Sequence[Cast], seen: Iterable[MessageId], now: int) -> Effects:
        """Begin a view: deliver what was carried over, then go on."""
        assert self.view is not None
        self.detector.enter(self.view, now)
        self.detector.gone = self.succession.gone()
        self.admission.moved = False
        self.admission.brought = ()
        self.casting = self.way(self.view, self.me.process, casts, self.kept)
        fresh = self.casting.take_over(casts, seen)
        yield from self.reporting.report(now)
        for cast in fresh:
            yield Deliver(cast)

    def give_up_view(self) -> None:
        """Seek a group as one that was in none of its views."""
        self.view, self.casting = None, None
        self.change.answers.spend(ViewId())
        self.succession = Succession(self)
        self.change = ViewChange(self, None, self.change.answers)
        self.me = self.me._replace(backing=self.me.backing + 1)

    def peers(self) -> tuple[int, ...]:
        """The other members."""
        assert self.view is not None
        return tuple(p for p in self.view.processes if p != self.me.process)

    def send(self, peers: tuple[int, ...], kind: type[Message], **fields: object) -> Send:
        """Send some processes a message of this group."""
        return Send(peers, kind(self.me.process, 0, group=self.number, **fields))  # type: ignore[arg-type]
