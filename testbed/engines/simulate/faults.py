"""Faults in the simulator: links change their condition, processes die, start again and stand still.

A fault strikes between two events, never within one: a process that has begun to handle a message
finishes before it dies. Its packets that are under way stay so. One that is started again while a
pause of its predecessor still lasts does not stand still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from testbed.faults import DELIVERY, Actuator, Arrivals, Condition
from testbed.node import Node
from testbed.node.log import Log
from testbed.protocols import Message

if TYPE_CHECKING:
    from testbed.engines.simulate.engine import Simulation


class SimulatedFaults(Actuator):
    """Does to a simulation what the fault schedule of its scenario says."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.network = simulation.network
        self.scheduler = simulation.network.scheduler
        self.schedule = simulation.scenario.fault_schedule()
        self.latest = 0  # when something was last done
        self.next = self.scheduler.call_at(0, self._strike)
        for node in range(len(simulation.nodes)):
            self._connect(node)

    @override
    def set_link(self, a: int, b: int, condition: Condition) -> None:
        self.network.set_link(a, b, condition)

    @override
    def kill(self, node: int) -> None:
        """Nothing is left of the process."""
        self.network.kill(node)
        self.network.receivers[node] = _to_nobody
        self.simulation.dead.add(node)
        self.simulation.meter.counted["crashes"] += 1
        self.simulation.log.note(self.scheduler.now, node, "crash", {})

    @override
    def start(self, node: int) -> None:
        """A new process, which tells its peers first."""
        simulation, now = self.simulation, self.scheduler.now
        incarnation = simulation.nodes[node].protocol.place.incarnation + 1
        fresh = simulation.nodes[node] = simulation.node(node, incarnation)
        simulation.dead.discard(node)
        simulation.meter.counted["restarts"] += 1
        simulation.log.note(now, node, "restart", {"incarnation": incarnation})
        self._connect(node)
        fresh.start(now)

    @override
    def pause(self, node: int) -> None:
        """One that is dead cannot stand still."""
        if node not in self.simulation.dead:
            self.network.pause(node)

    @override
    def resume(self, node: int) -> None:
        self.network.resume(node)

    @override
    def leave(self, node: int) -> None:
        self._ask(node, Node.leave)

    @override
    def join(self, node: int) -> None:
        self._ask(node, Node.join)

    def _ask(self, node: int, request: Callable[[Node, int], None]) -> None:
        if node not in self.simulation.dead:
            process = self.simulation.nodes[node]
            self.network.when_awake(node, lambda: request(process, self.scheduler.now))

    def _connect(self, node: int) -> None:
        """Let a process receive, and its events be counted if a fault waits for them."""
        process = self.simulation.nodes[node]
        faults = self.simulation.scenario.experiment.faults
        arrivals = Arrivals(faults, node, process.protocol.place.incarnation)
        if any(watch.node in (None, node) for watch in self.schedule.awaited()):
            process.log = _Watched(process.log, partial(self._happened, node))

        def hand_over(message: Message, sender: int) -> None:
            if process is not self.simulation.nodes[node] or node in self.simulation.dead:
                return  # it crashed while the message was delayed
            self.network.when_awake(
                node, lambda: process.receive(message, sender, self.scheduler.now)
            )

        def receive(message: Message, sender: int, now: int) -> None:
            fate = arrivals.next(sender)
            if fate.kind:
                process.log.note(now, node, fate.kind, fate.facts)
            for late in fate.delays:
                if late:
                    self.scheduler.call_at(now + late, partial(hand_over, message, sender))
                else:
                    hand_over(message, sender)

        self.network.receivers[node] = receive

    def _happened(self, node: int, event: str) -> None:
        before = self.schedule.next()
        self.schedule.happened(node, event, self.scheduler.now)
        if self.schedule.next() != before:
            self._arm()

    def _strike(self) -> None:
        self.latest = self.scheduler.now
        self.schedule.advance(self.scheduler.now, self)
        self._arm()

    def _arm(self) -> None:
        self.next.cancel()
        due = self.schedule.next()
        if due is not None:
            self.next = self.scheduler.call_at(max(due, self.scheduler.now), self._strike)


class _Watched:
    """A node's log that tells of the deliveries and the protocol's events written to it."""

    def __init__(self, log: Log, tell: Callable[[str], None]) -> None:
        self.send, self.hold = log.send, log.hold
        self._log, self._tell = log, tell

    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        """Write it, and tell."""
        self._log.deliver(t, node, source, seq)
        self._tell(DELIVERY)

    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        """Write it, and tell."""
        self._log.note(t, node, event, facts)
        self._tell(event)


def _to_nobody(message: Message, sender: int, now: int) -> None:
    """What arrives at a dead process."""
