"""Simulates a scenario as the simulator does, and has a trace written of all that happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from typing import Any, cast

from typing_extensions import override

from testbed.engines.simulate.engine import Simulation
from testbed.engines.simulate.faults import SimulatedFaults
from testbed.engines.simulate.links import Hop, Packet
from testbed.experiment import Scenario
from testbed.faults import Condition
from testbed.live.state import text
from testbed.live.trace import Trace, TraceFullError
from testbed.node import Node
from testbed.node.encoding import EncodingCheck
from testbed.protocols import Effects, Message, Protocol


def traced(scenario: Scenario, trace: Trace) -> bool:
    """Run a scenario to its end; whether the trace holds all of it."""
    simulation = WatchedSimulation(scenario, trace)
    with suppress(TraceFullError):
        simulation.run(lambda stage, done, of: None)
        return True
    return False


class WatchedSimulation(Simulation):
    """A simulation whose processes, packets and faults are watched."""

    def __init__(self, scenario: Scenario, trace: Trace) -> None:
        self.trace = trace
        super().__init__(scenario, trace)
        self.network.scheduler.record = self._record
        self.network.inspect = EncodingCheck(scenario.process(0)).sample  # of what is watched

    @override
    def node(self, me: int, incarnation: int = 0) -> Node:
        node = super().node(me, incarnation)
        node.protocol = cast(Protocol, Watched(node.protocol, self))
        return node

    @override
    def fault_injection(self) -> SimulatedFaults:
        return WatchedFaults(self)

    @property
    def now(self) -> int:
        """The run's clock."""
        return self.network.scheduler.now

    def _record(self, hop: Hop, packet: Packet, queued: int, start: int, end: int) -> None:
        self.trace.hop(packet.message, hop.link.tail, hop.link.head, queued, start, end)


class Watched:
    """A protocol whose every step is written down."""

    def __init__(self, inner: Protocol, simulation: WatchedSimulation) -> None:
        self.inner, self._simulation = inner, simulation
        self._me = inner.place.me

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def multicast(self, payload: bytes, to: frozenset[int] | None, now: int) -> Effects:
        """Also called within a step, for an answer."""
        whom = "everybody" if to is None else "{" + ", ".join(map(str, sorted(to))) + "}"
        what = f"the application of process {self._me} multicasts to {whom}"
        return self._step("send", what, self.inner.multicast(payload, to, now))

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        """The trace knows which copy it is."""
        trace = self._simulation.trace
        trace.begin_receipt(self._simulation.now, self._me, sender, message)
        return self._to_its_end(self.inner.receive(message, sender, now))

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """A timer has run out."""
        what = f"timer {text(timer)} of process {self._me} runs out"
        return self._step("timeout", what, self.inner.timeout(timer, now))

    def start(self, now: int) -> Effects:
        """The process begins."""
        return self._step("start", f"process {self._me} starts", self.inner.start(now))

    def join(self, now: int) -> Effects:
        """The application wants to be a member."""
        return self._step("join", f"process {self._me} wants to join", self.inner.join(now))

    def leave(self, now: int) -> Effects:
        """The application wants to be a member no longer."""
        return self._step("leave", f"process {self._me} wants to leave", self.inner.leave(now))

    def _step(self, kind: str, what: str, effects: Effects) -> Effects:
        trace = self._simulation.trace
        if trace.is_open:  # an answer, which is part of the delivery's step
            trace.answer()
            for effect in effects:
                trace.effect(effect)
                yield effect
            return
        trace.begin(self._simulation.now, self._me, kind, what)
        yield from self._to_its_end(effects)

    def _to_its_end(self, effects: Effects) -> Effects:
        trace = self._simulation.trace
        for effect in effects:
            trace.effect(effect)
            yield effect
        trace.end(self.inner)


class WatchedFaults(SimulatedFaults):
    """The faults of a simulation; sees also what arrives at each process."""

    simulation: WatchedSimulation

    @override
    def set_link(self, a: int, b: int, condition: Condition) -> None:
        super().set_link(a, b, condition)
        self._tell(-1, "link", f"the link between {a} and {b} {_described(condition)}")

    @override
    def pause(self, node: int) -> None:
        super().pause(node)
        self._tell(node, "pause", f"process {node} stands still")

    @override
    def resume(self, node: int) -> None:
        self._tell(node, "resume", f"process {node} goes on")
        super().resume(node)

    @override
    def _connect(self, node: int) -> None:
        super()._connect(node)
        receive, counts = self.network.receivers[node], Counter[int]()
        incarnation = self.simulation.nodes[node].protocol.place.incarnation
        trace = self.simulation.trace

        def arrive(message: Message, sender: int, now: int) -> None:
            counts[sender] += 1
            trace.arrive(now, node, sender, message, incarnation, counts[sender])
            receive(message, sender, now)

        self.network.receivers[node] = arrive

    def _tell(self, node: int, kind: str, words: str) -> None:
        self.simulation.trace.fault(self.scheduler.now, node, kind, words)


def _described(condition: Condition) -> str:
    if condition == Condition():
        return "is as it should be again"
    if not condition.up:
        return "is down"
    usual = Condition()._asdict()
    odd = {key: value for key, value in condition._asdict().items() if value != usual[key]}
    return "has " + ", ".join(f"{key} {value:g}" for key, value in odd.items())
