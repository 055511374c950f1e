"""Rings of tickets on a network that delays, loses, cuts and reorders, and what must never happen.

The oracle looks at all processes after every step: no ticket is owned twice (I1), nor assignable
twice or while another owns it (I2), and no (ticket, epoch, number) is used for two events (I3).
"""

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, ClassVar

from typing_extensions import override

from testbed.explore.tickets.system import ViolationError
from testbed.protocols import Effects, Message, Place, Protocol
from testbed.protocols.cluster.tickets import (
    Granted,
    Revoked,
    Ring,
    TicketEffects,
    TicketManager,
)
from tests.world import MS, World

Make = Callable[[Place], TicketManager]


def check(machines: Mapping[int, TicketManager], clocks: Callable[[int], int]) -> None:
    """I1 and I2 over all processes that are not crashed."""
    owners: dict[int, int] = {}
    coordinators: dict[int, int] = {}
    for p, machine in machines.items():
        ticket = machine.owns(clocks(p))
        if ticket is None and machine.state == "linking" and isinstance(machine, Ring):
            ticket = machine.ticket
        if ticket is not None and owners.setdefault(ticket, p) != p:
            raise ViolationError(f"{owners[ticket]} and {p} both own ticket {ticket}")
        for free in machine.assignable(clocks(p)):
            if coordinators.setdefault(free, p) != p:
                raise ViolationError(f"{coordinators[free]} and {p} both may assign ticket {free}")
    for ticket, p in owners.items():
        if coordinators.get(ticket, p) != p:
            raise ViolationError(f"{coordinators[ticket]} may assign {ticket}, which {p} owns")


class Holder(Protocol):
    """A process that does nothing with its ticket; who made it is told what becomes of that."""

    name: ClassVar[str] = "holder"
    paper: ClassVar[str] = "none"
    wire_id: ClassVar[int] = 248

    def __init__(
        self, machine: TicketManager, told: Callable[[int, Granted | Revoked], None]
    ) -> None:
        super().__init__(machine.place)
        self.machine, self.told = machine, told

    @override
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        raise NotImplementedError

    @override
    def start(self, now: int) -> Effects:
        return self._tell(self.machine.start(now))

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        return self._tell(self.machine.receive(message, sender, now))

    @override
    def timeout(self, timer: Hashable, now: int) -> Effects:
        return self._tell(self.machine.timeout(timer, now))

    @override
    def join(self, now: int) -> Effects:
        return self._tell(self.machine.join(now))

    @override
    def leave(self, now: int) -> Effects:
        return self._tell(self.machine.leave(now))

    def _tell(self, effects: TicketEffects) -> Effects:
        for effect in effects:
            if isinstance(effect, Granted | Revoked):
                self.told(self.me, effect)
            else:
                yield effect


class Holders(World[Holder]):
    """Processes on a network; ``announce`` is the chance that a process hears of a new owner."""

    def __init__(
        self, make: Make, processes: int, seed: int = 0, announce: float = 1, **more: Any
    ) -> None:
        self.announce = announce
        self.used: set[tuple[int, int, int]] = set()
        self.grants: dict[int, Granted] = {}
        self.granted: list[Granted] = []
        holder = lambda place: Holder(make(place), self.told)  # noqa: E731
        super().__init__(holder, processes, seed, **{"delays_ms": (1, 9), "fifo": True, **more})

    @property
    def machines(self) -> dict[int, Any]:
        """The state machines of the processes that live."""
        return {p: self.protocols[p].machine for p in self.live()}

    def told(self, p: int, effect: Granted | Revoked) -> None:
        """A process is granted a ticket, or it is revoked."""
        if isinstance(effect, Revoked):
            self.grants.pop(p, None)
            return
        self.grants[p] = effect
        self.granted.append(effect)
        check(self.machines, self.clock)
        for other in range(len(self.nodes)):  # what PrCast does: some hear of it, some late
            if other != p and self.rng.random() < self.announce:
                at = self.now / MS + self.rng.randrange(1, 100)
                self.at(at, partial(self.hear, other, effect.ticket, p))

    def hear(self, p: int, ticket: int, owner: int) -> None:
        if p not in self.dead:
            self.protocols[p].machine.heard(ticket, owner)

    @override
    def crash(self, node: int) -> None:
        super().crash(node)
        self.grants.pop(node, None)

    @override
    def step(self) -> None:
        super().step()
        check(self.machines, self.clock)

    def use(self, p: int) -> None:
        """Make an event with the ticket, if the process may: I3."""
        if p in self.dead or p in self.paused:
            return
        machine = self.protocols[p].machine
        if machine.owns(self.clock(p)) is None:
            return
        grant = self.grants[p]
        machine.last += 1
        event = (grant.ticket, grant.epoch, machine.last)
        if event in self.used:
            raise ViolationError(f"event {event} is made twice, now by {p}")
        self.used.add(event)

    def members(self) -> list[int]:
        """Who owns a ticket now."""
        return [p for p, m in self.machines.items() if m.owns(self.clock(p)) is not None]

    def complete(self) -> bool:
        """I4: every ticket is owned by one process or assignable by one."""
        return not self.missing()

    def missing(self) -> set[int]:
        """The tickets that nobody owns or may assign."""
        now = self.clock
        tickets = {t for p, m in self.machines.items() for t in m.assignable(now(p))}
        tickets |= {t for p, m in self.machines.items() if (t := m.owns(now(p))) is not None}
        some = next(iter(self.machines.values()))
        return set(range(some.n)) - tickets
