"""Rings of tickets on a network that delays, loses, cuts and reorders, and what must never happen.

The oracle looks at all processes after every step: no ticket is owned twice (I1), nor assignable
twice or while another owns it (I2), and no (ticket, epoch, number) is used for two events (I3).
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Hashable
from itertools import count
from typing import Any

from testbed.explore.tickets.system import ViolationError
from testbed.protocols.base import CancelTimer, Count, Place, Send, SetTimer
from testbed.protocols.cluster.tickets import Granted, LeaseSettings, Revoked, Ring, TicketEffects

MS = 1_000_000
Make = Callable[[Place], Any]


def check(machines: dict[int, Any], clocks: Callable[[int], int]) -> None:
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


class World:
    """Processes on a network in virtual time; everything random comes from one seed."""

    def __init__(
        self,
        make: Make,
        processes: int,
        seed: int = 0,
        delay: Callable[[random.Random], int | None] = lambda rng: rng.randrange(1, 10) * MS,
        fifo: bool = True,
        announce: float = 1.0,
        drift: float = 0.0,
        twice: float = 0.0,
    ) -> None:
        self.make, self.processes, self.delay, self.fifo = make, processes, delay, fifo
        self.announce = announce  # chance that a process hears of a new owner
        self.twice = twice  # chance that a message arrives a second time
        self.rng = random.Random(seed)
        self.now = 0
        self.rates = [1 + self.rng.uniform(-drift, drift) for _ in range(processes)]
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.order = count()
        self.machines: dict[int, Any] = {}
        self.incarnations = [0] * processes
        self.paused: dict[int, int] = {}
        self.timers: dict[tuple[int, Hashable], int] = {}
        self.arrivals: dict[tuple[int, int], int] = {}
        self.cut: Callable[[int, int], bool] = lambda a, b: False
        self.lag: Callable[[int, int], int] = lambda a, b: 0  # added to a message's delay
        self.used: set[tuple[int, int, int]] = set()
        self.grants: dict[int, Granted] = {}
        self.granted: list[tuple[int, int, Granted]] = []
        self.revoked: list[tuple[int, int, int]] = []
        self.sent: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.on_send: Callable[[int, Any], None] = lambda sender, message: None
        for p in range(processes):
            self.begin(p)

    def clock(self, p: int) -> int:
        """What the clock of a process shows."""
        return int(self.now * self.rates[p])

    def begin(self, p: int) -> None:
        """Start a process."""
        rng = random.Random(self.rng.random())
        place = Place(p, self.processes, rng=rng, incarnation=self.incarnations[p])
        self.machines[p] = self.make(place)
        self.drain(p, self.machines[p].start(self.clock(p)))

    def crash(self, p: int) -> None:
        """Stop a process for good, or until it is restarted without its memory."""
        self.machines.pop(p, None)
        self.grants.pop(p, None)
        self.incarnations[p] += 1
        for key in [key for key in self.timers if key[0] == p]:
            del self.timers[key]

    def at(self, delay: int, action: Callable[[], None]) -> None:
        """Do something after so many nanoseconds."""
        heapq.heappush(self.heap, (self.now + delay, next(self.order), action))

    def act(self, p: int, what: Callable[[Any, int], TicketEffects]) -> None:
        """Let something happen to a process, when it is not paused; not if it has crashed."""
        if self.paused.get(p, 0) > self.now:
            self.at(self.paused[p] - self.now, lambda: self.act(p, what))
        elif p in self.machines:
            self.drain(p, what(self.machines[p], self.clock(p)))

    def drain(self, p: int, effects: TicketEffects) -> None:
        """Give each effect its meaning."""
        for effect in effects:
            match effect:
                case Send(peers, message):
                    for peer in peers:
                        self.send(p, peer, message)
                case SetTimer(timer, delay):
                    self.set_timer(p, timer, delay)
                case CancelTimer(timer):
                    self.timers.pop((p, timer), None)
                case Granted():
                    self.grants[p] = effect
                    self.granted.append((self.now, p, effect))
                    self.tell(p, effect)
                    check(self.machines, self.clock)
                case Revoked(ticket):
                    self.revoked.append((self.now, p, ticket))
                    self.grants.pop(p, None)
                case Count(name, amount):
                    self.counted[name] += amount

    def send(self, p: int, peer: int, message: Any) -> None:
        """A message takes its time, or is lost."""
        assert p != peer, f"{p} sends {message} to itself"
        self.sent[type(message).__name__] += 1
        self.on_send(p, message)
        delay = self.delay(self.rng)
        if delay is None or self.cut(p, peer):
            return
        arrival = self.now + delay + self.lag(p, peer)
        if self.fifo:
            arrival = self.arrivals[p, peer] = max(arrival, self.arrivals.get((p, peer), 0) + 1)
        self.at(arrival - self.now, lambda: self.arrive(p, peer, message))
        if self.rng.random() < self.twice:
            self.send(p, peer, message)

    def arrive(self, p: int, peer: int, message: Any) -> None:
        self.act(peer, lambda machine, now: machine.receive(message, p, now))

    def set_timer(self, p: int, timer: Hashable, delay: int) -> None:
        generation = self.timers[p, timer] = next(self.order)

        def fire() -> None:
            if self.timers.get((p, timer)) != generation:
                return
            if self.paused.get(p, 0) > self.now:
                self.at(self.paused[p] - self.now, fire)
                return
            del self.timers[p, timer]
            self.act(p, lambda machine, now: machine.timeout(timer, now))

        self.at(int(delay / self.rates[p]) + 1, fire)

    def tell(self, owner: int, grant: Granted) -> None:
        """What PrCast does: some hear of the new owner, some late."""
        for p in range(self.processes):
            if p != owner and self.rng.random() < self.announce:
                self.at(
                    self.rng.randrange(1, 100) * MS,
                    lambda p=p: (
                        self.machines[p].heard(grant.ticket, owner)  # type: ignore[misc]
                        if p in self.machines
                        else None
                    ),
                )

    def use(self, p: int) -> None:
        """Make an event with the ticket, if the process may: I3."""
        if self.paused.get(p, 0) > self.now or p not in self.machines:
            return
        machine = self.machines[p]
        if machine.owns(self.clock(p)) is None:
            return
        grant = self.grants[p]
        machine.last += 1
        event = (grant.ticket, grant.epoch, machine.last)
        if event in self.used:
            raise ViolationError(f"event {event} is made twice, now by {p}")
        self.used.add(event)

    def run(self, duration: int) -> None:
        """Let so many nanoseconds pass, looking at all processes after every step."""
        end = self.now + duration
        while self.heap and self.heap[0][0] <= end:
            self.now, _, action = heapq.heappop(self.heap)
            action()
            check(self.machines, self.clock)
        self.now = end

    def members(self) -> list[int]:
        """Who owns a ticket now."""
        return [p for p, m in self.machines.items() if m.owns(self.clock(p)) is not None]

    def complete(self) -> bool:
        """I4: every ticket is owned by one process or assignable by one."""
        now = self.clock
        tickets = [t for p, m in self.machines.items() for t in m.assignable(now(p))]
        tickets += [t for p, m in self.machines.items() if (t := m.owns(now(p))) is not None]
        some = next(iter(self.machines.values()))
        return sorted(tickets) == list(range(some.n))


ROUND = 100 * MS


def storm(seed: int, make: type[Any], steps: int = 60) -> World:
    """Leases in bad weather: crashes, pauses, slow and lost messages, cuts; then it clears up."""
    rng = random.Random(seed)
    k, n = rng.choice((1, 1, 2)), rng.randrange(4, 11)
    tickets, founding = rng.choice((n, n + 3, 2 * n)), rng.choice((1, min(n, 2 * k + 2), n))
    founders = {tickets - 1 - i * (tickets // founding): i for i in range(founding)}
    rules = LeaseSettings(k=k, round_ns=ROUND, delay_ns=ROUND // 10)
    loss, slow, faults = (
        rng.choice((0, 0.02, 0.2)),
        rng.choice((0, 0.02, 0.2)),
        rng.choice((2, 5, 10)),
    )
    clear, calm = False, 0

    def delay(dice: random.Random) -> int | None:
        if not clear and dice.random() < loss:
            return None
        return (
            dice.randrange(10, 1000) * MS
            if not clear and dice.random() < slow
            else MS * dice.randrange(1, 10)
        )

    world = World(
        lambda place: make(place, tickets, founders, rules),
        n,
        seed,
        delay,
        fifo=False,
        announce=0.9,
        drift=0.01,
        twice=0.02,
    )
    out: set[int] = set()
    for _ in range(steps):
        if world.now >= calm:
            world.cut = lambda a, b: False
        p = rng.randrange(n)
        if rng.randrange(100) < faults:
            calm = world.now + rng.choice((60, 600, 1500)) * rng.randrange(1, 1000) * MS // 1000
            trouble(world, rng, p, calm)
        elif p not in world.machines:
            world.begin(p)
        elif rng.random() < 0.05:
            out ^= {p}
            world.act(p, lambda machine, now: machine.leave(now))
        live(world, rng, out)
        world.run(rng.choice((1, 5, 30, 100, 300)) * MS)
    clear, world.cut = True, lambda a, b: False
    for _ in range(60):
        live(world, rng, out)
        world.run(ROUND)
    return world


def trouble(world: World, rng: random.Random, p: int, until: int) -> None:
    """Something happens to a process, or between processes."""
    n = world.processes
    kind = rng.choice(("crash", "pause", "pause", "cut", "isolate"))
    if kind == "crash":
        world.crash(p)
    elif kind == "pause":
        world.paused[p] = until
    else:
        side = {p} if kind == "isolate" else {q for q in range(n) if rng.random() < 0.3}
        one_way = rng.random() < 0.3
        world.cut = lambda a, b: (a in side) != (b in side) and (not one_way or a in side)


def live(world: World, rng: random.Random, out: set[int]) -> None:
    """Users come back, if they want to, and use their tickets."""
    for p in list(world.machines):
        if world.machines[p].state == "out" and p not in out and rng.random() < 0.3:
            world.act(p, lambda machine, now: machine.join(now))
        if rng.random() < 0.5:
            world.use(p)
