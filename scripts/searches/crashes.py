"""A run of the daisy in which processes crash at chosen moments, even within a broadcast.

Others see of a crash only which datagrams the process has sent, and that no more come. So a process
that crashes after its k-th datagram, for every k, is all that can become of one crash in this run, at
any event and in the middle of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

from typing_extensions import override

from testbed.check import check_events
from testbed.check.memory import MemoryLog
from testbed.engines.simulate.engine import RunEnded, Simulation
from testbed.engines.simulate.faults import SimulatedFaults
from testbed.engines.simulate.links import Call
from testbed.experiment import Scenario
from testbed.fuzz.profiles.plain import resolved
from testbed.node import Node
from testbed.progress import silent
from testbed.protocols import NS_PER_MS, Effects, Message
from testbed.protocols.daisy import Daisy
from testbed.protocols.groups.passed import Passed

PROCESSES = 12
GROUPS = {"group_size": 3, "levels": 3}  # four local groups, two groups of servers, one above
TIMES = {"heartbeat_ms": 20.0, "patience_ms": 70.0, "grace_ms": 200.0, "ack_ms": 1.0}
WAYS: dict[str, dict[str, Any]] = {
    "all": {"inside": "all"},
    "recipients": {"inside": "recipients", "resilience": 2},
    "server": {"inside": "server"},
}
MESSAGES: tuple[tuple[int, float, list[int] | None], ...] = (
    (1, 30.0, [2, 4, 10]),
    (5, 30.0, None),
    (9, 31.0, [0, 3, 8]),
    (0, 33.0, [1, 7]),
    (11, 36.0, None),
    (6, 60.0, [1, 8, 9]),
)
ANSWERS: tuple[tuple[int, int, list[int] | None], ...] = (  # the message that is answered
    (4, 0, [2, 7, 11]),
    (10, 0, None),
    (0, 1, [5, 8]),
    (8, 1, [1, 6]),
    (3, 2, [9, 7]),
    (7, 3, [0, 10]),
    (2, 6, None),
    (7, 7, [1, 4, 10]),
    (6, 4, [11, 3]),
    (1, 9, [3, 5, 6]),
)
BUSY_MS = 140  # until all is delivered and stable, if nobody crashes
REPAIR_MS = 600  # after the last crash everybody sends once more
SETTLE_MS = 100  # and all is delivered so long after that
PROBE = b"\xff\xff\xff\xff"  # no message of the script, so that nobody answers it


class Crash(NamedTuple):
    """A process crashes when it has sent this number of datagrams."""

    node: int
    sent: int


class Moment(NamedTuple):
    """A datagram, after which its sender may crash; those that look alike share a ``situation``."""

    crash: Crash
    at: int
    situation: Hashable


class Outcome(NamedTuple):
    """What is wrong after some crashes, if anything is; and the moments after the last of them."""

    wrong: str | None
    moments: tuple[Moment, ...]


def scenario(way: str, seed: int) -> Scenario:
    """The run: on a full mesh, with answers inside deliveries."""
    send: list[dict[str, Any]] = [
        *({"node": node, "at_ms": at} | ({"to": to} if to else {}) for node, at, to in MESSAGES),
        *({"node": node, "answers": of} | ({"to": to} if to else {}) for node, of, to in ANSWERS),
    ]
    return resolved(
        {
            "name": "fail-over",
            "seed": seed,
            "protocol": {"name": Daisy.name, **GROUPS, **TIMES, **WAYS[way]},
            "topology": {"model": "pure-random", "nodes": PROCESSES, "edge_probability": 1.0},
            "links": {"delay_ms": [0.5, 2.0], "bandwidth_mbit": 100.0},
            "workload": {"model": "script", "send": send, "settle_ms": 60_000.0},
        }
    )


class Mortal(Daisy):
    """A process that may crash while it handles an event: nothing of the rest is done."""

    run: CrashRun

    @property
    def _dead(self) -> bool:
        return self.me in self.run.dead

    @override
    def busy(self) -> bool:
        return self._dead or super().busy()

    @override
    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        return self._until_dead(super().multicast(payload, destinations, now))

    @override
    def receive(self, message: Message, sender: int, now: int) -> Effects:
        return self._until_dead(super().receive(message, sender, now))

    @override
    def timeout(self, timer: Hashable, now: int) -> Effects:
        return self._until_dead(super().timeout(timer, now))

    def _until_dead(self, effects: Effects) -> Effects:
        for effect in effects:
            if self._dead:
                return
            yield effect


class CrashRun(Simulation):
    """A simulation, and the runtime of its nodes, in which some processes crash."""

    def __init__(self, scenario: Scenario, crashes: Iterable[Crash]) -> None:
        self.memory = MemoryLog()
        self.left = dict(crashes)
        self.count: Counter[int] = Counter()
        self.moments: list[Moment] = []
        super().__init__(scenario, self.memory)
        self.deeds = SimulatedFaults(self)
        self.plans: list[Call] = []  # for the time when all is repaired
        self.last_crash = 0
        for node in [node for node, sent in self.left.items() if not sent]:
            self._crash(node)
        self._conclude()

    @override
    def node(self, me: int, incarnation: int = 0) -> Node:
        process = cast(Mortal, self.scenario.process(me, incarnation))
        process.__class__, process.run = Mortal, self
        return Node(process, self.scenario.experiment.workload, self, self.memory, self.meter)

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """A copy to each, of which any may be the sender's last."""
        for peer in peers:
            if sender in self.dead:
                return
            self.network.unicast(sender, (peer,), message)
            self.count[sender] += 1
            crash = Crash(sender, self.count[sender])
            now = self.network.scheduler.now
            self.moments.append(Moment(crash, now, self._situation(sender, peer, message)))
            if self.left.get(sender) == crash.sent:
                self._crash(sender)

    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """A daisy does not."""
        raise NotImplementedError

    def set_timer(self, node: Node, timer: Hashable, delay: int) -> None:
        """Of a process that lives."""
        self.network.set_timer(node, timer, delay)

    def cancel_timer(self, node: Node, timer: Hashable) -> None:
        """Of a process that lives."""
        self.network.cancel_timer(node, timer)

    def _situation(self, sender: int, peer: int, message: Message) -> Hashable:
        daisy = cast(Daisy, self.nodes[sender].protocol)
        states = tuple((group.number, group.state) for group in daisy.groups)
        inner = message.inner if isinstance(message, Passed) else message
        return sender, states, type(inner).__name__, message.group, peer

    def _crash(self, node: int) -> None:
        self.deeds.kill(node)
        del self.left[node]
        self._conclude()

    def _conclude(self) -> None:
        """When there was time to repair all, the living send once more, and the run ends."""
        scheduler = self.network.scheduler
        for call in self.plans:
            call.cancel()
        self.last_crash = scheduler.now
        probing = max(self.last_crash, BUSY_MS * NS_PER_MS) + REPAIR_MS * NS_PER_MS
        sends = [partial(self._send, node, PROBE, None) for node in range(len(self.nodes))]
        self.plans = [scheduler.call_at(probing, send) for send in sends]
        self.plans.append(scheduler.call_at(probing + SETTLE_MS * NS_PER_MS, self._end))

    def _end(self) -> None:
        raise RunEnded

    def wrong(self) -> Iterator[str]:
        """What is wrong, in sentences."""
        verdict = check_events(
            range(PROCESSES), {n: self.memory.events[n] for n in range(PROCESSES)}
        )
        if not verdict.ok:
            yield verdict.explain(1)[1]
        yield from (f"process {node} does not get to its crash" for node in self.left)
        for node in self.nodes:
            if node.id not in self.dead and node.backlog:
                yield f"node {node.id} waits to send"


def tried(way: str, seed: int, crashes: Iterable[Crash]) -> Outcome:
    """Run it with these crashes."""
    run = CrashRun(scenario(way, seed), crashes)
    try:
        run.run(silent)
        wrong = next(run.wrong(), None)
    except Exception as error:  # whatever the protocol raises is a finding
        wrong = f"{type(error).__name__}: {error}"
    moments = (m for m in run.moments if m.crash.node not in run.dead)
    return Outcome(wrong, tuple(m for m in moments if run.last_crash <= m.at))
