"""Storms: tickets on leases in all weathers, from a first seed on, and what has become of each.

A cluster in which nobody owns a ticket at the end is dead: nobody can ever join. One in which some
tickets are nobody's is damaged: the others can be used. Either must be so for a reason, which an oracle
gives that knows nothing of the protocol but its messages.
"""

import argparse
import os
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from typing import Any

from typing_extensions import override

from testbed.explore.tickets.command import LEASE_CLASSES
from testbed.explore.tickets.system import ViolationError
from testbed.protocols import Message
from testbed.protocols.cluster.tickets import Granted, Leases, LeaseSettings, Revoked
from testbed.protocols.cluster.tickets.messages import RingMember
from tests.protocols.cluster.quorums import Quorums
from tests.protocols.cluster.ring import Holders, Make
from tests.world import MS

ROUND_MS = 100


class Stormy(Holders):
    """Some messages take up to a second, as long as ``slow`` says."""

    slow = 0.0

    def __init__(self, make: Make, processes: int, seed: int, **more: Any) -> None:
        self.quorums = Quorums(processes)
        self.owners: dict[tuple[int, int], tuple[int, int]] = {}  # by ticket and epoch
        super().__init__(make, processes, seed, **more)

    @override
    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        self.quorums.sent(sender, message)
        super().unicast(sender, peers, message)

    @override
    def told(self, p: int, effect: Granted | Revoked) -> None:
        super().told(p, effect)
        if isinstance(effect, Granted):
            life = p, self.quorums.lives[p]
            if self.owners.setdefault((effect.ticket, effect.epoch), life) != life:
                raise ViolationError(f"{effect} to {p}, but another has had it")

    @override
    def crash(self, node: int) -> None:
        if node not in self.dead:
            self.quorums.crashed(node)
        super().crash(node)

    @override
    def delay(self, sender: int, peer: int) -> int:
        if self.rng.random() < self.slow:
            return self.rng.randrange(10, 1000) * MS
        return super().delay(sender, peer)


def storm(seed: int, make: type[Leases], steps: int = 60) -> Stormy:
    """Leases with crashes, pauses, slow and lost messages, cuts; then all is well again."""
    rng = random.Random(seed)
    k, n = rng.choice((1, 1, 2)), rng.randrange(4, 11)
    tickets, founding = rng.choice((n, n + 3, 2 * n)), rng.choice((1, min(n, 2 * k + 2), n))
    founders = {tickets - 1 - i * (tickets // founding): i for i in range(founding)}
    rules = LeaseSettings(k=k, round_ns=ROUND_MS * MS, delay_ns=ROUND_MS * MS // 10)
    world = Stormy(
        lambda place: make(place, tickets, founders, rules),
        n,
        seed,
        announce=0.9,
        fifo=False,
        drift=0.01,
        duplication=0.02,
    )
    world.loss, world.slow = rng.choice((0, 0.02, 0.2)), rng.choice((0, 0.02, 0.2))
    faults, calm = rng.choice((2, 5, 10)), 0.0
    out: set[int] = set()
    for _ in range(steps):
        if world.now >= calm * MS:
            world.part()
        p = rng.randrange(n)
        if rng.randrange(100) < faults:
            lasts = rng.choice((60, 600, 1500)) * rng.random()
            calm = world.now / MS + lasts
            trouble(world, rng, p, lasts)
        elif p in world.dead:
            world.restart(p)
        elif rng.random() < 0.05:
            out ^= {p}
            world.leave(p)
        live(world, rng, out)
        world.run(rng.choice((1, 5, 30, 100, 300)))
    world.loss = world.slow = 0
    world.part()
    for _ in range(60):
        live(world, rng, out)
        world.run(ROUND_MS)
    return world


def trouble(world: Holders, rng: random.Random, p: int, ms: float) -> None:
    """Something happens to a process, or between processes, for a while."""
    kind = rng.choice(("crash", "pause", "pause", "cut", "isolate"))
    if kind == "crash":
        world.crash(p)
    elif kind == "pause":
        world.pause(p, ms)
    else:
        everybody = range(len(world.nodes))
        side = {p} if kind == "isolate" else {q for q in everybody if rng.random() < 0.3}
        one_way = rng.random() < 0.3
        world.cut = lambda a, b: (a in side) != (b in side) and (not one_way or a in side)


def live(world: Holders, rng: random.Random, out: set[int]) -> None:
    """Users come back, if they want to, and use their tickets."""
    for p in world.live():
        if world.machines[p].state == "out" and p not in out and rng.random() < 0.3:
            world.join(p)
        if rng.random() < 0.5:
            world.use(p)


def outcome(seed: int, kind: type[Leases]) -> tuple[str, str]:
    """What has become of a cluster, in a word and in a sentence."""
    try:
        world = storm(seed, kind)
    except ViolationError as violation:
        return "unsafe", str(violation)
    for _ in range(40):  # somebody may just be joining
        if world.complete():
            return "complete", ""
        world.run(ROUND_MS)
    if world.members():
        return damage(world)
    if survivors := world.quorums.survivors():
        return "dead without reason", f"enough voters are left of {survivors}"
    everybody = "; all processes are up" if not world.dead else ""
    never = " and none has ever crashed" if not any(world.quorums.lives) else ""
    return "dead", f"{world.quorums}{everybody}{never}"


def damage(world: Stormy) -> tuple[str, str]:
    """Why some tickets are nobody's: whoever should take them over cannot exclude their owner."""
    members = [RingMember(p, *world.grants[p][:2]) for p in world.members()]
    n = next(iter(world.machines.values())).n
    above = {
        min(members, key=lambda member: (member.ticket - ticket) % n) for ticket in world.missing()
    }
    reasons = {member: world.quorums.obstacle(member) for member in sorted(above)}
    told = "; ".join(f"{member.process} waits: {why or '?'}" for member, why in reasons.items())
    return "damaged" if all(reasons.values()) else "damaged without reason", told


def main() -> int:
    """Run some storms, and say how they ended."""
    parser = argparse.ArgumentParser(prog="scripts/explore-tickets storms", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--storms", type=int, default=100, help="how many seeds")
    parser.add_argument(
        "--kind", choices=LEASE_CLASSES, default="Leases", help="the protocol, or a broken one"
    )
    options = parser.parse_args()
    seen: Counter[str] = Counter()
    seeds = range(options.first, options.first + options.storms)
    kind = LEASE_CLASSES[options.kind]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for seed, (end, why) in zip(seeds, pool.map(outcome, seeds, repeat(kind)), strict=True):
            seen[end] += 1
            if why:
                print(f"{seed}: {end}: {why}", flush=True)
    told = ", ".join(f"{n} {end}" for end, n in sorted(seen.items()))
    print(f"{options.storms} storms: {told}")
    wrong = ("unsafe", "dead without reason", "damaged without reason")
    return 1 if any(seen[end] for end in wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
