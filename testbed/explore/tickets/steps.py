"""What one process that wants a ticket does next, worked out once for each of its states and stimuli.

A state of a process on leases is relative to the present: times are remaining times, in ``TICK``s of a
part of a round, and what can no longer make a difference is set to one value. After each tick the polls
are renumbered, in the same order. So even an endless run has finitely many states.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from copy import deepcopy
from dataclasses import fields, replace
from functools import cache, lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, cast

from typing_extensions import override

from testbed.explore.choices import ScriptedChoices, all_ways
from testbed.explore.freeze import Numbered, freeze
from testbed.protocols.base import CancelTimer, Place, Send, SetTimer
from testbed.protocols.cluster.tickets import Granted, Leases, LeaseSettings
from testbed.protocols.cluster.tickets.exclusion import SILENCE, Exclusion
from testbed.protocols.cluster.tickets.lease_messages import Accept, Alive, Refused, Register, Voter
from testbed.protocols.cluster.tickets.polls import Memory
from testbed.protocols.cluster.tickets.voting import NOWHERE

TICK = 2
PROCESSES = TICKETS = 3
FOUNDERS = {TICKETS - 1 - p: p for p in range(PROCESSES)}
FIELDS = (
    *("voter", "state", "ticket", "wants_out", "number", "member", "clock", "polls", "question"),
    *(
        "L",
        "version",
        "proposal",
        "turn",
        "succ",
        "after",
        "confirmed",
        "silence",
        "pred",
        "unheard",
        "ignored",
        "overdue",
    ),
    *("lease_end", "quarantine_end", "linking_end", "part"),
)
EXCLUSION_FIELDS = ("target", "after", "ended", "candidate", "waited", "rounds", "fenced_at")
field_values, exclusion_values = attrgetter(*FIELDS), attrgetter(*EXCLUSION_FIELDS)
THAWED = 1 << 12  # processes that are kept ready, beside what makes a difference in all of them
ENDS = ("lease_end", "quarantine_end", "linking_end")
IDLE: dict[str, Any] = {
    **dict.fromkeys(ENDS, 0),
    **dict.fromkeys(("silence", "part", "unheard", "version", "ignored", "overdue"), 0),
    **dict.fromkeys(("L", "proposal"), ()),
    **dict.fromkeys(("succ", "after"), NOWHERE),
    "confirmed": False,
    "pred": None,
}
Renumber = Callable[[int, int], int]
Numbers = frozenset[tuple[int, int, int]]  # process, old number and new number of polls


class Local(NamedTuple):
    """A process, or what makes a difference in it, and the ticks until its timers are due."""

    machine: Any
    timers: tuple[tuple[Hashable, int], ...]


class TicketOutcome(NamedTuple):
    """The number of the next state, the messages to peers, and the (ticket, epoch) pairs granted."""

    state: int
    sends: tuple[tuple[int, int], ...]
    grants: tuple[tuple[int, int], ...]


def hashable_message(message: Any) -> Hashable:
    """A message as a hashable value."""
    return message.kind, message.source, *(getattr(message, name) for name in message.types)


def registers(value: Any, change: Renumber) -> Any:
    """A value with the polls in its registers renumbered."""
    if isinstance(value, Register):
        return value._replace(number=change(value.member.process, value.number))
    if type(value) is tuple:
        return tuple(registers(item, change) for item in value)
    return value


def renumber(machine: Any, change: Renumber) -> None:
    """Renumber polls, wherever a process knows them."""
    machine.polls = change(machine.me, machine.polls)
    known = [machine.registers, machine.ended]
    if (q := machine.question) is not None:
        machine.question = q._replace(register=registers(q.register, change))
    if (x := machine.exclusion) is not None:
        known.append(x.reports)
    for some in known:
        some |= {key: registers(value, change) for key, value in some.items()}


def readdress(message: Any, to: int, change: Renumber) -> Any:
    """A message with its polls renumbered; a vote has one of the process that it goes to."""
    if isinstance(message, Alive | Refused):
        return replace(message, number=change(to, message.number))
    known = {f.name: getattr(message, f.name) for f in fields(message)}
    changed = {name: registers(value, change) for name, value in known.items()}
    return message if changed == known else replace(message, **changed)


def collect(walk: Callable[[Renumber], object]) -> frozenset[tuple[int, int]]:
    """The polls that a renumbering comes across; their numbers stay as they are."""
    polls: dict[tuple[int, int], int] = {}
    walk(lambda process, number: polls.setdefault((process, number), number))
    return frozenset(polls)


def remembered(known: Iterable[Any], forgotten: Iterable[Any]) -> Memory[Any]:
    """A memory with these members, and the latest ones that it has forgotten."""
    memory: Memory[Any] = Memory()
    memory.update(known)
    memory.forgotten = dict(forgotten)
    return memory


class Steps:
    """The states of single processes and the messages, by number, and the steps between them."""

    def __init__(self, make: Callable[[Place], Any]) -> None:
        self.make = make
        self.locals: Numbered[Local] = Numbered()
        self.messages: Numbered[Any] = Numbered()
        self.after = cache(self._after)
        self.begun = cache(self._begun)

    def clone(self, machine: Any) -> Any:
        """A copy of a process."""
        return deepcopy(machine)

    def normalise(self, machine: Any) -> None:
        """Normalise what makes no difference: nothing, unless more is known of the process."""

    def hashable(self, machine: Any) -> Hashable:
        """All that makes a difference in a process, as a hashable value."""
        return freeze(vars(machine))

    def number(self, local: Local) -> int:
        """The number of a state."""
        return self.locals.number(local, (self.hashable(local.machine), local.timers))

    def message(self, message: Any) -> int:
        """The number of a message."""
        return self.messages.number(message, hashable_message(message))

    def _begun(self, p: int, incarnation: int) -> TicketOutcome:
        """The start of a process."""
        place = Place(p, PROCESSES, rng=cast(Any, ScriptedChoices()), incarnation=incarnation)
        machine = self.make(place)
        return self.drain(machine, {}, machine.start(0))

    def _after(self, state: int, *stimulus: Any) -> tuple[TicketOutcome, ...]:
        """The outcomes of a stimulus under all random choices."""
        return all_ways(lambda script: self.play(state, script, stimulus))

    def play(
        self, state: int, script: tuple[int, ...], stimulus: tuple[Any, ...]
    ) -> tuple[TicketOutcome, list[int]]:
        """The outcome of a stimulus when random choices follow a script, and their arity."""
        before = self.locals[state]
        machine, timers = self.clone(before.machine), dict(before.timers)
        rng = machine.place.rng
        rng.script, rng.arity = script, []
        match stimulus:
            case ("receive", sender, number):
                effects = machine.receive(self.messages[number], sender, 0)
            case ("timeout", timer):
                del timers[timer]
                effects = machine.timeout(timer, 0)
            case (operation,):
                effects = getattr(machine, operation)(0)
        return self.drain(machine, timers, effects), rng.arity

    def drain(
        self, machine: Any, timers: dict[Hashable, int], effects: Iterator[Any]
    ) -> TicketOutcome:
        """Perform the effects of a process, and return the outcome."""
        sends: list[tuple[int, int]] = []
        grants: list[tuple[int, int]] = []
        for effect in effects:
            match effect:
                case Send(peers, message):
                    sends += [(peer, self.message(message)) for peer in peers]
                case SetTimer(timer, delay):
                    timers[timer] = delay // TICK
                case CancelTimer(timer):
                    timers.pop(timer, None)
                case Granted(ticket, epoch, _):
                    grants.append((ticket, epoch))
        self.normalise(machine)
        local = Local(machine, tuple(sorted(timers.items())))
        return TicketOutcome(self.number(local), tuple(sends), tuple(grants))


class LeaseSteps(Steps):
    """The steps of processes on leases, for which time passes."""

    def __init__(self, kind: type[Leases], parts: int) -> None:
        rules = LeaseSettings(
            k=1, round_ns=parts * TICK, delay_ns=TICK // 2, parts=parts, patience=SILENCE + 1
        )
        super().__init__(lambda place: kind(place, TICKETS, FOUNDERS, rules))
        self.kind = kind
        self.fresh: dict[Voter, dict[str, Any]] = {}  # what never changes in a process
        self.shared: dict[Hashable, Hashable] = {}  # values that many processes have
        self.machine = lru_cache(THAWED)(self._machine)
        self.tick = cache(self._tick)
        self.slowed = cache(self._slowed)
        self.polls = cache(self._polls)
        self.polls_in = cache(self._polls_in)
        self.readdressed = cache(self._readdressed)

    @override
    def number(self, local: Local) -> int:
        """The number of a state, of which nothing is kept but what makes a difference."""
        if local.machine.voter not in self.fresh:
            self.fresh[local.machine.voter] = vars(local.machine).copy()
        key = Local(self.hashable(local.machine), local.timers)
        return self.locals.number(key, key)

    def _machine(self, state: int) -> Any:
        """A process in a state, to be looked at only."""
        return self.clone(self.locals[state].machine)

    @override
    def clone(self, machine: Any) -> Any:
        """A process, from what makes a difference in it."""
        values, registers, ended, forgotten, fences, waiting, offer, exclusion = machine
        other = object.__new__(self.kind)
        vars(other).update(self.fresh[values[0]])
        vars(other).update(zip(FIELDS, values, strict=True))
        other.registers, other.ended = map(remembered, (registers, ended), forgotten)
        other.fences, other.waiting = dict(fences), dict(waiting)
        other.offer = offer and Accept(
            offer[1], 0, **dict(zip(Accept.types, offer[2:], strict=True))
        )
        other.exclusion = None
        if exclusion is not None:
            known = dict(zip(EXCLUSION_FIELDS, exclusion[0], strict=True))
            other.exclusion = Exclusion(**known, reports=dict(exclusion[1]))
        return other

    @override
    def normalise(self, machine: Any) -> None:
        for name in ENDS:
            setattr(machine, name, max(getattr(machine, name), 0))
        machine.unheard = min(machine.unheard, SILENCE + 1)
        machine.silence = min(machine.silence, SILENCE)
        machine.ignored = min(machine.ignored, machine.settings.patience)
        machine.view, machine.contact = (
            [None] * TICKETS,
            None,
        )  # so a process that joins may ask anybody
        if machine.member is None:
            vars(machine).update(IDLE)
        if (q := machine.question) is not None:
            if q.settled:  # then only those of spare voters make a difference
                votes, refusals = (
                    frozenset(v for v in some if v.process in q.spares)
                    for some in (q.votes, q.refusals)
                )
                rest = (*q.register.voters, *q.register.proposed)
                votes |= {v for v in rest if v.process not in q.spares}
                q = q._replace(votes=votes, refusals=refusals)
            machine.question = q._replace(asked_at=max(q.asked_at, -machine.settings.lease_ns))
        if (x := machine.exclusion) is not None:
            x.rounds = min(x.rounds, machine.settings.patience)
            x.fenced_at = (
                0 if x.candidate is None else max(x.fenced_at, -machine.settings.quarantine_ns)
            )

    @override
    def hashable(self, machine: Any) -> Hashable:
        x = machine.exclusion
        memories = machine.registers, machine.ended
        return (
            tuple(map(self.share, field_values(machine))),
            *(self.share(frozenset(known.items())) for known in memories),
            self.share(tuple(frozenset(known.forgotten.items()) for known in memories)),
            self.share(frozenset(machine.fences.items())),
            tuple(machine.waiting.items()),
            None if machine.offer is None else hashable_message(machine.offer),
            None if x is None else (exclusion_values(x), frozenset(x.reports.items())),
        )

    def share(self, value: Any) -> Any:
        """The first value that is equal to this one, and of its type."""
        if not isinstance(value, tuple | frozenset):
            return value
        return self.shared.setdefault((type(value), value), value)

    def shifted(self, state: int, ticks: int) -> Local:
        """The state when the clock has gone on by a tick, or back; what has expired stays expired."""
        before = self.locals[state]
        machine, by = self.clone(before.machine), ticks * TICK
        for name in ENDS:
            if getattr(machine, name):
                setattr(machine, name, getattr(machine, name) - by)
        if (q := machine.question) is not None:
            machine.question = q._replace(asked_at=q.asked_at - by)
        if machine.exclusion is not None:
            machine.exclusion.fenced_at -= by
        self.normalise(machine)
        return Local(machine, tuple((t, max(left - ticks, 0)) for t, left in before.timers))

    def _tick(self, state: int, numbers: Numbers) -> int:
        """The state a tick later, with polls renumbered; a timer that is due stays due."""
        later = self.shifted(state, 1)
        new = {(p, before): after for p, before, after in numbers}
        if new:
            renumber(later.machine, lambda p, n: new.get((p, n), n))
        return self.number(later)

    def _slowed(self, state: int) -> int:
        """The state when the clock loses a tick."""
        return self.number(self.shifted(state, -1))

    def _polls(self, state: int) -> frozenset[tuple[int, int]]:
        """All polls that a process knows."""
        return collect(partial(renumber, self.clone(self.locals[state].machine)))

    def _polls_in(self, message: int, to: int) -> frozenset[tuple[int, int]]:
        return collect(partial(readdress, self.messages[message], to))

    def _readdressed(self, message: int, to: int, numbers: Numbers) -> int:
        new = {(p, before): after for p, before, after in numbers}
        return self.message(readdress(self.messages[message], to, lambda p, n: new.get((p, n), n)))
