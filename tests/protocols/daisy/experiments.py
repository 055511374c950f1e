"""Experiments with daisies on the simulator, in memory, and what happened in them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, cast

from typing_extensions import override

from testbed.check import Event, Verdict, check_events
from testbed.check.memory import MemoryLog
from testbed.engines.simulate.engine import Simulation
from testbed.engines.simulate.network import SimulatedNetwork
from testbed.experiment import Scenario
from testbed.fuzz.profiles.plain import resolved
from testbed.node import Node
from testbed.node.environment import Runtime
from testbed.protocols import Message
from testbed.protocols.groups.messages import NO_VIEW, Cast
from testbed.protocols.groups.passed import Passed

MS = 1_000_000
MEGABYTE = 1_000_000
ONLY_IN_VIEW_CHANGES = ("Flush", "Part", "Missing", "Fetch", "fetched")


def experiment(
    nodes: int,
    settings: Mapping[str, Any],
    workload: Mapping[str, Any],
    faults: Iterable[Mapping[str, Any]],
    delay_ms: Any = (0.5, 2.0),
    bandwidth_mbit: float = 100.0,
    seed: int = 5,
) -> "Run":
    """Run a daisy on a full mesh."""
    delay = list(delay_ms) if isinstance(delay_ms, tuple) else delay_ms
    return Run(
        {
            "name": "defect",
            "seed": seed,
            "protocol": {"name": "daisy", **settings},
            "topology": {"model": "pure-random", "nodes": nodes, "edge_probability": 1.0},
            "links": {"delay_ms": delay, "bandwidth_mbit": bandwidth_mbit},
            "workload": dict(workload),
            "fault": list(faults),
        }
    )


def poisson(rate: float, duration_ms: float, settle_ms: float, **more: Any) -> dict[str, Any]:
    """All processes send to all, each at this rate a second."""
    times = {"duration_ms": duration_ms, "settle_ms": settle_ms}
    return {"model": "poisson", "senders": 0, "rate_per_s": rate, **times, **more}


def crash(node: int, at_ms: float) -> dict[str, Any]:
    """A process crashes."""
    return {"kind": "crash", "node": node, "at_ms": at_ms}


class Counted(Simulation):
    """A simulation that counts the bytes that are sent, by kind of message."""

    def __init__(self, scenario: Scenario, log: MemoryLog) -> None:
        self.bytes: Counter[str] = Counter()
        super().__init__(scenario, log)

    @override
    def node(self, me: int, incarnation: int = 0) -> Node:
        node = super().node(me, incarnation)
        node.runtime = cast(Runtime, Counting(self.network, self.bytes))
        return node


class Counting:
    """The network as a node sees it, with a counter."""

    def __init__(self, network: SimulatedNetwork, counted: Counter[str]) -> None:
        self._network, self._counted = network, counted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        inner = message.inner if isinstance(message, Passed) else message
        fetched = isinstance(inner, Cast) and inner.view == NO_VIEW
        kind = "fetched" if fetched else type(inner).__name__
        self._counted[kind] += len(peers) * message.size
        self._network.unicast(sender, peers, message)


class Run:
    """A run of an experiment, from its beginning to its end."""

    def __init__(self, document: dict[str, Any]) -> None:
        log = MemoryLog()
        self.simulation = Counted(resolved(document), log)
        self.bytes = self.simulation.bytes
        self.simulation.run(lambda stage, done, of: None)
        processes = range(len(self.simulation.nodes))
        self.events: dict[int, list[Event]] = {p: log.events[p] for p in processes}
        self.live = [p for p in processes if p not in self.simulation.dead]

    def protocol(self, node: int) -> Any:
        """The daisy of a process, as it is at the end."""
        return self.simulation.nodes[node].protocol

    def check(self) -> Verdict:
        """What the oracle of causal order says."""
        return check_events(self.events.keys(), self.events)

    def is_sound(self) -> None:
        """Fail, in words, unless it is valid, and all is delivered that live processes sent."""
        verdict = self.check()
        assert verdict.ok, "\n".join(verdict.explain(3))
        here = [p for p in self.live if not any(e.event == "leave" for e in self.events[p])]
        got = {p: {(e.source, e.seq) for e in self.events[p] if e.event == "deliver"} for p in here}
        for p in self.live:
            assert not self.simulation.nodes[p].backlog, f"node {p} waits to send"
        for e in self.sends():
            for p in here if e.source in here else ():
                due = e.to is None or p in e.to
                assert not due or (e.source, e.seq) in got[p], f"{p} lacks m{e.source, e.seq}"

    def sends(self) -> list[Event]:
        """All that was sent, in the order of time."""
        return sorted((e for es in self.events.values() for e in es if e.event == "send"), key=when)

    def deliveries(self) -> list[tuple[int, Event]]:
        """All that was delivered by others than its sender, in the order of time; and by whom."""
        all_ = (
            (p, e)
            for p, events in self.events.items()
            for e in events
            if e.event == "deliver" and e.source != p
        )
        return sorted(all_, key=lambda pair: when(pair[1]))

    def worst_delay_ms(self) -> float:
        """The longest time from sending to a delivery at a process that is alive at the end."""
        sent = {(e.source, e.seq): when(e) for e in self.sends()}
        late = (when(e) - sent[e.source, e.seq] for p, e in self.deliveries() if p in self.live)
        return max(late) / MS

    def longest_gap_ms(self, group_size: int = 0) -> float:
        """The longest time in which a live process delivers nothing while messages are sent.

        With a group size, in which nobody delivers anything from another group.
        """
        if not group_size:
            return max(
                self._gap([t for t, at, _ in self._delivered() if at == p]) for p in self.live
            )
        across = (
            t for t, at, source in self._delivered() if at // group_size != source // group_size
        )
        return self._gap(list(across))

    def _delivered(self) -> list[tuple[int, int, int]]:
        return [(when(e), p, e.source) for p, e in self.deliveries() if p in self.live]

    def _gap(self, times: list[int]) -> float:
        end = when(self.sends()[-1])
        inside = [*(t for t in times if t < end), end]
        return max(b - a for a, b in pairwise(inside)) / MS

    def view_change_bytes(self) -> int:
        """The bytes of all messages that only view changes need."""
        return sum(self.bytes[kind] for kind in ONLY_IN_VIEW_CHANGES)


def when(event: Event) -> int:
    """The time of an event."""
    assert event.t is not None
    return event.t
