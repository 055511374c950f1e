"""Everything that can happen to three processes with three tickets on leases, within limits.

Time passes in ticks: a tick is a part of a round, after which each process retransmits what is not
acknowledged. In a tick the processes' timers expire in a fixed order, which stands for phases of their
clocks that differ by less than a tick, and what they send arrives and is answered before the next one
expires. Between two ticks anything may happen, in any order:
- a fault, of which there is a limited number: a link is cut in one direction, a process is paused or
  crashes. Each message that is late is a fault too.
- a repair: a link is healed, a process resumes or restarts, at any time or never. A late message
  arrives at any time or never too, also between the timers of two processes. What is sent over a link
  that is cut, or to a paused process, is lost, or late at the cost of a fault.
- an action: a user joins or leaves; or a slip: a clock loses a tick.
There is no horizon: however long a run is, there are finitely many states. But a run is abandoned when
a ticket is offered in an epoch beyond ``EPOCHS``, since one that is offered to a process that cannot
hear of it is offered again for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, permutations
from typing import NamedTuple

from testbed.explore.tickets.steps import PROCESSES, TICKETS, LeaseSteps, Numbers, TicketOutcome
from testbed.protocols.cluster.tickets import Leases
from testbed.protocols.cluster.tickets.lease_messages import Alive, Poll, Refused

DEAD = -1
EPOCHS = 2
ARCS = tuple(permutations(range(PROCESSES), 2))
Mail = tuple[int, int, int]  # sender, receiver and number of the message
Owner = tuple[int, int, int]  # epoch, process and its incarnation
Successor = tuple[str, "SystemState", "Used"]


class ViolationError(AssertionError):
    """An invariant does not hold."""


class Used(NamedTuple):
    """How many faults, actions and slips there were, or may be."""

    faults: int = 0
    actions: int = 0
    slips: int = 0

    def covers(self, other: Used) -> bool:
        """Whether this is at least as much of each."""
        return all(mine >= its for mine, its in zip(self, other, strict=True))


class SystemState(NamedTuple):
    """The numbers of the processes' states, the network, and the last owner of each ticket."""

    locals: tuple[int, ...]
    late: tuple[Mail, ...] = ()
    cuts: frozenset[tuple[int, int]] = frozenset()
    stopped: frozenset[int] = frozenset()
    incarnations: tuple[int, ...] = (0,) * PROCESSES
    owners: tuple[Owner, ...] = ((-1, -1, -1),) * TICKETS

    def at(self, p: int, local: int) -> SystemState:
        """This state, with one process in another one."""
        return self._replace(locals=(*self.locals[:p], local, *self.locals[p + 1 :]))


class System:
    """Three processes and all that may happen to them."""

    def __init__(
        self, kind: type[Leases], limits: Used, parts: int = 4, turns: Sequence[int] = (0, 1, 2)
    ) -> None:
        self.steps = LeaseSteps(kind, parts)
        self.limits = limits
        self.turns = turns
        self.powers = cache(self._powers)
        self.ranks = cache(self._ranks)

    def initial(self) -> list[SystemState]:
        """The states after the founders have started; none of their first messages is late."""
        begun = [self.steps.begun(p, 0) for p in range(PROCESSES)]
        state = SystemState(tuple(outcome.state for outcome in begun))
        mails = tuple((p, peer, m) for p, o in enumerate(begun) for peer, m in o.sends)
        return [self.later(after) for after, _ in self.settle(state, self.limits, mails)]

    def expand(self, state: SystemState, used: Used) -> Iterator[Successor]:
        """All successors of a state."""
        yield from self.late(state, used)
        if used.faults < self.limits.faults:
            yield from self.faults(state, used._replace(faults=used.faults + 1))
        yield from self.repairs(state, used)
        if used.actions < self.limits.actions:
            yield from self.actions(state, used._replace(actions=used.actions + 1))
        if used.slips < self.limits.slips:
            cost = used._replace(slips=used.slips + 1)
            for p, local in self.living(state):
                yield f"clock {p} slips", state.at(p, self.steps.slowed(local)), cost
        for after, cost in self.tick(state, used):
            late = len(after.late) > len(state.late)
            yield "tick, late message" if late else "tick", after, cost

    def living(self, state: SystemState) -> list[tuple[int, int]]:
        """The processes that are alive, with their states."""
        return [(p, local) for p, local in enumerate(state.locals) if local != DEAD]

    def late(self, state: SystemState, used: Used) -> Iterator[Successor]:
        """Late messages arrive."""
        for mail in state.late:
            sender, p, number = mail
            if state.locals[p] == DEAD or p in state.stopped:
                continue
            rest = state._replace(late=tuple(m for m in state.late if m != mail))
            what = type(self.steps.messages[number]).__name__
            for outcome in self.steps.after(state.locals[p], "receive", sender, number):
                for after, cost in self.act(rest, used, p, outcome):
                    yield f"late {what} from {sender} reaches {p}", after, cost

    def faults(self, state: SystemState, cost: Used) -> Iterator[Successor]:
        """A link is cut, a process is paused or crashes."""
        for link in ARCS:
            if link not in state.cuts:
                yield f"cut {link}", state._replace(cuts=state.cuts | {link}), cost
        for p, _ in self.living(state):
            if p not in state.stopped:
                yield f"stop {p}", state._replace(stopped=state.stopped | {p}), cost
            number = tuple(n + (q == p) for q, n in enumerate(state.incarnations))
            rest = state._replace(incarnations=number, stopped=state.stopped - {p})
            yield f"crash {p}", rest.at(p, DEAD), cost

    def repairs(self, state: SystemState, used: Used) -> Iterator[Successor]:
        """A link is healed, a process resumes or restarts."""
        for link in state.cuts:
            yield f"heal {link}", state._replace(cuts=state.cuts - {link}), used
        for p in state.stopped:
            yield f"go on {p}", state._replace(stopped=state.stopped - {p}), used
        for p, local in enumerate(state.locals):
            if local == DEAD:
                begun = self.steps.begun(p, state.incarnations[p])
                yield f"restart {p}", state.at(p, begun.state), used

    def actions(self, state: SystemState, cost: Used) -> Iterator[Successor]:
        """A user joins or leaves."""
        for p, local in self.living(state):
            machine = self.steps.machine(local)
            if p in state.stopped or machine.state == "leaving" or machine.wants_out:
                continue
            what = "join" if machine.state == "out" else "leave"
            for outcome in self.steps.after(local, what):
                for after, total in self.act(state, cost, p, outcome):
                    yield f"{what} {p}", after, total

    def tick(self, state: SystemState, used: Used) -> Iterator[tuple[SystemState, Used]]:
        """Let the timers expire that are due, process by process; then time passes."""
        stack = [(state, used, 0)]
        while stack:
            now, cost, turn = stack.pop()
            if turn == PROCESSES:
                if all(self.clock(local) <= EPOCHS for _, local in self.living(now)):
                    yield self.later(now), cost
                continue
            p = self.turns[turn]
            idle = now.locals[p] == DEAD or p in now.stopped
            timers = () if idle else self.steps.locals[now.locals[p]].timers
            due = next((timer for timer, left in timers if not left), None)
            if due is None:
                stack.append((now, cost, turn + 1))
                stack += [(after, total, turn + 1) for _, after, total in self.late(now, cost)]
                continue
            for outcome in self.steps.after(now.locals[p], "timeout", due):
                stack += [(*after, turn) for after in self.act(now, cost, p, outcome)]

    def clock(self, local: int) -> int:
        """The logical clock of a process."""
        clock: int = self.steps.machine(local).clock
        return clock

    def act(
        self, state: SystemState, used: Used, p: int, outcome: TicketOutcome
    ) -> Iterator[tuple[SystemState, Used]]:
        """The states of the system after an outcome of one process."""
        mails = tuple((p, peer, message) for peer, message in outcome.sends)
        return self.settle(self.grant(state, p, outcome), used, mails)

    def settle(
        self, state: SystemState, used: Used, mails: tuple[Mail, ...]
    ) -> Iterator[tuple[SystemState, Used]]:
        """Hand over messages and the answers to them, unless they are lost or late."""
        stack = [(state, used, mails)]
        while stack:
            now, cost, queue = stack.pop()
            if not queue:
                yield now, cost
                continue
            mail, rest = queue[0], queue[1:]
            sender, p, number = mail
            fresh = mail not in now.late and not self.stale(now.locals, mail)
            if cost.faults < self.limits.faults and fresh:
                late = now._replace(late=tuple(sorted((*now.late, mail))))
                stack.append((late, cost._replace(faults=cost.faults + 1), rest))
            if now.locals[p] == DEAD or p in now.stopped or (sender, p) in now.cuts:
                stack.append((now, cost, rest))
                continue
            for outcome in self.steps.after(now.locals[p], "receive", sender, number):
                answers = tuple((p, peer, message) for peer, message in outcome.sends)
                stack.append((self.grant(now, p, outcome), cost, rest + answers))

    def grant(self, state: SystemState, p: int, outcome: TicketOutcome) -> SystemState:
        """The state after an outcome. I3: the epochs of a ticket increase, unless its owner resumes."""
        owners = list(state.owners)
        for ticket, epoch in outcome.grants:
            owner = epoch, p, state.incarnations[p]
            if epoch < owners[ticket][0] or (
                epoch == owners[ticket][0] and owner != owners[ticket]
            ):
                raise ViolationError(f"ticket {ticket} is granted again in epoch {epoch}")
            owners[ticket] = owner
        after = state.at(p, outcome.state)._replace(owners=tuple(owners))
        self.check(after)
        return after

    def later(self, state: SystemState) -> SystemState:
        """The state a tick later; polls get the smallest numbers in the same order."""
        steps = self.steps
        mails = [mail for mail in state.late if not self.stale(state.locals, mail)]
        known = [steps.polls(local) for _, local in self.living(state)]
        known += [steps.polls_in(number, p) for _, p, number in mails]
        ranks = self.ranks(frozenset[tuple[int, int]]().union(*known))
        after = state._replace(
            locals=tuple(DEAD if s == DEAD else steps.tick(s, ranks) for s in state.locals),
            late=tuple(sorted({(s, p, steps.readdressed(m, p, ranks)) for s, p, m in mails})),
        )
        self.check(after)
        return after

    def _ranks(self, polls: frozenset[tuple[int, int]]) -> Numbers:
        by_process = groupby(sorted(polls), key=lambda poll: poll[0])
        ranked = [(p, n, i) for p, own in by_process for i, (_, n) in enumerate(own, 1)]
        return frozenset((p, n, i) for p, n, i in ranked if n != i)

    def stale(self, locals_: tuple[int, ...], mail: Mail) -> bool:
        """Whether a message can make no difference any more, whenever it arrives; False if in doubt."""
        sender, p, number = mail
        message = self.steps.messages[number]
        if locals_[p] == DEAD or not isinstance(message, Alive | Refused | Poll):
            return False
        machine = self.steps.machine(locals_[p])
        if isinstance(message, Alive | Refused):
            q = machine.question
            spare = q is not None and message.voter.process in q.spares
            asked = q is not None and q.register.number == message.number
            settled = q is None or not asked or (q.settled and not spare)
            return settled and self.steps.kind.voted is Leases.voted
        register = message.register
        known = machine.registers.get(register.member)
        q = None if locals_[sender] == DEAD else self.steps.machine(locals_[sender]).question
        if q is not None and q.register.number == register.number:
            return False
        if machine.fenced(register.member):
            return True
        return known is not None and known.number >= register.number

    def _powers(self, local: int) -> tuple[int, int]:
        machine = self.steps.machine(local)
        ticket = machine.owns(0)
        return 0 if ticket is None else 1 << ticket, sum(1 << t for t in machine.assignable(0))

    def check(self, state: SystemState) -> int:
        """I1 and I2: no ticket is owned or assignable by two. Return those that are, as bits."""
        taken = 0
        for p, local in self.living(state):
            owned, assignable = self.powers(local)
            if taken & (owned | assignable):
                raise ViolationError(f"process {p} owns or may assign a ticket that is another's")
            taken |= owned | assignable
        return taken
