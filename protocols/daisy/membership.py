"""Who should be in a group: which members are alive, who joins or leaves, and who proposes a view.

A member that was silent for ``patience`` is suspected. The coordinator, the oldest member that is not
suspected, proposes views. A member that is expelled and yet alive is told so, and asks to be admitted
again; so does, at every heartbeat until it is, a process that starts, comes from another group, or has
become a server. Members forward that to the coordinator.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..base import Count, Effects, Send
from ..wire import Message, MessageId
from .messages import INSIDE, MOVED, OUTSIDE, Cast, Expelled, Flush, Join, Leave, Part
from .view import Member, View, ViewId
from .view_change import Reshape, State

STRONG = 256  # what a majority adds to a view's number, so that its view prevails
FIRST = 1 << 16  # the number of the views at the beginning
Gather = Callable[[int, int], list[Cast] | None]


class Timing(NamedTuple):
    """In nanoseconds; without ``ack`` deliveries are reported with the heartbeat only."""

    heartbeat: int
    patience: int
    grace: int
    forget: int
    ack: int | None


class Joiner(NamedTuple):
    """A process that wants to be a member, or a member with a new roster or backing."""

    member: Member
    how: int
    asked_at: int


@dataclass
class Proposal:
    """A view that this process proposes, and the answers so far."""

    id: ViewId
    target: tuple[Member, ...]
    asked: frozenset[int]
    since: int = 0
    states: dict[int, State] = field(default_factory=dict)

    def waiting(self) -> tuple[int, ...]:
        """The processes that have not answered."""
        return tuple(sorted(p for p in self.asked if p not in self.states))


def nothing_to_gather(process: int, now: int) -> list[Cast] | None:
    """What the group above keeps for a joiner; None: that is not known."""
    return None


class Membership(ABC):
    """One process's part in one group; ``view`` is None before it has been a member."""

    history: dict[MessageId, Cast]

    def __init__(
        self,
        number: int,
        me: Member,
        timing: Timing,
        candidates: Iterable[int],
        view: View | None = None,
        now: int = 0,
        others: Iterable[Member] = (),
    ) -> None:
        self.number, self.me, self.timing = number, me, timing
        self.candidates = tuple(p for p in candidates if p != me.process)
        self.others = tuple(others)  # the absent, if this process has to start the group again
        self.contacts: tuple[int, ...] = ()
        self.turn = 0
        self.view = view
        self.promised = ViewId() if view is None else view.id
        self.weak_until = self.behind_until = 0
        self.joining = view is None
        self.leaving = self.out = self.moved = self.silent = False
        self.asking_since: int | None = None
        self.heard: dict[int, int] = dict.fromkeys(() if view is None else view.processes, now)
        self.absent_since: dict[int, int] = {}
        self.joiners: dict[int, Joiner] = {}
        self.leavers: dict[int, bool] = {}  # whether the roster leaves as well
        self.proposal: Proposal | None = None
        self.reshape: Reshape | None = None  # what this process wants as coordinator
        self.given: frozenset[int] = frozenset()  # processes that were split off
        self.gather: Gather = nothing_to_gather
        self.invited = frozenset(self.heard)
        self.install_parts: tuple[Part, ...] = ()

    @abstractmethod
    def _state(self) -> State:
        """What the next view needs of this process."""

    @abstractmethod
    def _decide(self, now: int) -> Effects:
        """Install the proposed view if all who were asked have answered."""

    def _kept(self) -> Iterable[Cast]:
        """The messages of the view that this process keeps for the next one."""
        return self.history.values()

    @property
    def open(self) -> bool:
        """Whether broadcasts can be made: it is a member, and no view change is in progress."""
        closed = self.joining or self.out or self.frozen or self.silent
        return self.view is not None and not closed

    @property
    def frozen(self) -> bool:
        """Whether a view change is in progress."""
        return self.view is not None and self.promised > self.view.id

    @property
    def is_server(self) -> bool:
        """Whether this process is the first of the view, as far as it knows."""
        return self.view is not None and not self.out and self.view.server == self.me.process

    def is_calm(self, now: int) -> bool:
        """Whether no view change is due, as far as this process knows."""
        if self.view is None or self.frozen or self.joiners or self.leavers:
            return False
        return len(self._alive(now)) == len(self.view.members)

    def may_relay(self, now: int) -> bool:
        """Whether what was delivered here may go elsewhere."""
        return self.view is not None and now >= self.weak_until

    def _on_join(self, join: Join, sender: int, now: int) -> Effects:
        if self.view is None or self.joining or join.source == self.me.process:
            return
        member = Member(join.source, join.backing, join.roster, join.of)
        if member in self.view.members:
            for part in self.install_parts:
                yield Send((join.source,), part)
        elif not any(m.replaces(member) for m in self.view.members):
            self.joiners[join.source] = Joiner(member, join.how, now)
            self.leavers.pop(join.source, None)
            yield from self._pass_on(join, sender, now)
            if join.how == MOVED:  # it may take a while, but the group exists
                yield self._send((join.source,), Expelled, view=self.view.id)

    def _on_leave(self, leave: Leave, sender: int) -> Effects:
        if self.view is None or self.joining or leave.source == self.me.process:
            return
        if leave.source not in self.view.processes:
            yield self._send((leave.source,), Expelled, view=self.view.id)
        else:
            self.leavers[leave.source] = leave.with_roster

    def _pass_on(self, message: Message, sender: int, now: int) -> Effects:
        """Forward a message to the coordinator, unless a member forwarded it here."""
        coordinator = self._leaders(self._alive(now))[0].process
        if sender == message.source and coordinator != self.me.process:
            yield Send((coordinator,), message)

    def _on_expelled(self, message: Expelled, sender: int, now: int) -> Effects:
        if self.view is None or self.joining:
            self.contacts = (sender,)
            if self.moved:
                self.asking_since = now
        elif message.view > self.view.id and self.me.process in self.leavers:
            self.out = True
        elif message.view > self.view.id:
            self.contacts = (sender,)
            yield from self._go_away(now)
        elif message.view < self.view.id:
            yield self._send((sender,), Expelled, view=self.view.id)

    def _go_away(self, now: int) -> Effects:
        """There is a view without this process: ask to be admitted as a new member."""
        yield Count("expelled")
        self.joining = True
        self.asking_since = now
        self.proposal = None
        self.me = self.me._replace(backing=self.me.backing + 1)
        yield from self._ask(now)

    def _ask(self, now: int) -> Effects:
        """Ask known members to be admitted, and one by one all who might be members."""
        peers = set(self.contacts)
        if self.view is not None and not self.joining:
            peers = set(self._peers())
        elif self.candidates:
            peers.add(self.candidates[self.turn % len(self.candidates)])
            self.turn += 1
        peers.discard(self.me.process)
        if peers:
            how = MOVED if self.moved else OUTSIDE if self.joining else INSIDE
            _, backing, roster, of = self.me
            asked = tuple(sorted(peers))
            yield self._send(asked, Join, backing=backing, of=of, how=how, roster=roster)

    def _mind_own_place(self, now: int) -> Effects:
        """Leave, once nothing of its own is in transit; or announce a new roster."""
        assert self.view is not None
        if self.leaving and not any(name.source == self.me.process for name in self.history):
            yield self._send(self._peers(), Leave, with_roster=True)
            self.leavers[self.me.process] = True
        if self.me not in self.view.members:
            self.joiners[self.me.process] = Joiner(self.me, INSIDE, now)
            yield from self._ask(now)

    def _probe(self, now: int) -> Effects:
        """As server, look for absent members that are alive, and for unknown views."""
        assert self.view is not None
        if not self.is_server or not self.view.absent:
            return
        peers = {
            m.process
            for m in self.view.absent
            if now - self.absent_since[m.process] < self.timing.forget
        }
        if peers and self.candidates:
            peers.add(self.candidates[self.turn % len(self.candidates)])
            self.turn += 1
        if peers := peers.difference(self.view.processes):
            yield self._send(tuple(sorted(peers)), Expelled, view=self.view.id)

    def _alive(self, now: int) -> list[Member]:
        """The members that are not suspected, oldest first."""
        assert self.view is not None
        return [
            m
            for m in self.view.members
            if m.process == self.me.process or now - self.heard[m.process] < self.timing.patience
        ]

    def _leaders(self, alive: list[Member]) -> list[Member]:
        """Those of these members whom no joiner replaces, if there are any."""
        replaced = self._replaced([j.member for j in self.joiners.values() if j.how != INSIDE])
        return [m for m in alive if m.process not in replaced] or alive

    def _resigned(self) -> set[int]:
        """The members that have said that they are no longer servers."""
        return {process for process, wholly in self.leavers.items() if not wholly}

    def _replaced(self, target: Sequence[Member]) -> set[int]:
        assert self.view is not None
        return {m.process for m in self.view.members if any(t.replaces(m) for t in target)}

    def _lead(self, now: int) -> Effects:
        """As coordinator, propose a view if the current one has not exactly the right members."""
        assert self.view is not None
        resigned, patience = self._resigned(), self.timing.patience
        alive = [m for m in self._alive(now) if m.process not in resigned]
        self.joiners = {p: j for p, j in self.joiners.items() if now - j.asked_at < patience}
        if self._leaders(alive)[0].process != self.me.process or now < self.behind_until:
            self.proposal = None
            return
        joiners = self._admissible(now)
        inside = {j.process: j for j in joiners if self.joiners[j.process].how == INSIDE}
        come = self._replaced(joiners) | {j.process for j in joiners}
        gone = (come | set(self.leavers)) - set(inside)
        stay = [inside.get(m.process, m) for m in alive if m.process not in gone]
        target = (*stay, *(j for j in joiners if j not in stay))
        if not target:
            self.out = True
        elif target != self.view.members or self.frozen or self.reshape:
            asked = frozenset(m.process for m in (*alive, *joiners))
            yield from self._propose(target, asked, now)

    def _admissible(self, now: int) -> list[Member]:
        """The joiners, without those whom another joiner replaces.

        One from another group needs what is in transit to it from above. Once proposed it stays so:
        a view without it would cause a view change above, during which that is not known.
        """
        assert self.view is not None
        proposed = () if self.proposal is None else self.proposal.target
        wanting = [
            j.member
            for _, j in sorted(self.joiners.items())
            if j.how != MOVED
            or j.member in proposed
            or self.gather(j.member.process, now) is not None
        ]
        wanting = [j for j in wanting if j not in self.view.members]
        return [j for j in wanting if not any(other.replaces(j) for other in wanting)]

    def _propose(self, target: tuple[Member, ...], asked: frozenset[int], now: int) -> Effects:
        proposal = self.proposal
        late = proposal is not None and now - proposal.since >= self.timing.grace
        if proposal is not None and late and proposal.waiting():
            proposal = None  # some are alive, but have promised another view of that number
        if proposal is None or (proposal.target, proposal.asked) != (target, asked):
            proposal = self.proposal = Proposal(self.promised, target, asked, now)
            grows = 1 if self._weakens(proposal, now) else STRONG
            id = proposal.id = ViewId(self.promised.number + grows, self.me.process)
            self.promised = id
            proposal.states[self.me.process] = self._state()
        if waiting := proposal.waiting():
            yield self._send(waiting, Flush, view=proposal.id)
        yield from self._decide(now)

    def _weakens(self, proposal: Proposal, now: int) -> bool:
        assert self.view is not None
        replaced = self._replaced(proposal.target) | self._resigned()
        return now < self.weak_until or not self.view.is_majority(proposal.asked, replaced)

    def _peers(self) -> tuple[int, ...]:
        assert self.view is not None
        return tuple(p for p in self.view.processes if p != self.me.process)

    def _send(self, peers: tuple[int, ...], kind: type[Message], **fields: object) -> Send:
        return Send(peers, kind(self.me.process, 0, group=self.number, **fields))  # type: ignore[arg-type]
