"""The faults of a run in order of time, for any engine."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Protocol as Interface

import networkx as nx

from testbed.faults.kinds import (
    Condition,
    Crash,
    Edge,
    Fault,
    Join,
    Leave,
    LinkFault,
    Pause,
    Target,
    Watch,
)
from testbed.protocols import NS_PER_MS


class Actuator(Interface):
    """What an engine can do to its network and processes."""

    def set_link(self, a: int, b: int, condition: Condition) -> None:
        """Set the condition of a link; ``a`` < ``b``."""

    def kill(self, node: int) -> None:
        """Kill the process; its state is lost."""

    def start(self, node: int) -> None:
        """Restart the process, in its next incarnation."""

    def pause(self, node: int) -> None:
        """Stop the process until it is resumed; what arrives waits."""

    def resume(self, node: int) -> None:
        """Let a paused process go on."""

    def leave(self, node: int) -> None:
        """Have the application ask the protocol to leave its membership."""

    def join(self, node: int) -> None:
        """Have the application ask the protocol to join its membership."""


class FaultSchedule:
    """The faults of one run: those to come, and those in effect."""

    def __init__(
        self, faults: Iterable[Fault], graph: nx.Graph[int], rng: random.Random, duration: int
    ) -> None:
        self._due: list[tuple[int, int, bool, Fault, Target]] = []  # (when, order, begins, …)
        self._entries = 0
        self._triggers: defaultdict[Watch, list[tuple[int, Fault, Target]]] = defaultdict(list)
        self._happened: Counter[Watch] = Counter()
        self._links: defaultdict[Edge, list[LinkFault]] = defaultdict(list)
        self._down: Counter[tuple[str, int]] = Counter()
        self._graph, self._rng = graph, rng
        self.triggered: list[tuple[Fault, int, int]] = []  # where and when
        for fault in faults:
            if fault.when is not None:
                if fault.when.node not in (None, *graph):
                    raise ValueError(f"there is no node {fault.when.node}")
                entry = (fault.when.times, fault, fault.target(graph, rng))
                self._triggers[fault.when.watch].append(entry)
                continue
            for at in fault.begins(duration, rng):
                self._push(at, True, fault, fault.target(graph, rng))

    def next(self) -> int | None:
        """When the next fault begins or ends, as far as is known."""
        return self._due[0][0] if self._due else None

    def awaited(self) -> frozenset[Watch]:
        """The events that may still trigger a fault."""
        return frozenset(self._triggers)

    def advance(self, now: int, actuator: Actuator) -> None:
        """Begin and end the faults that are due."""
        while self._due and self._due[0][0] <= now:
            at, _, begins, fault, target = heappop(self._due)
            self._change(begins, fault, target, actuator)
            if begins and fault.for_ms is not None:
                self._push(at + round(fault.for_ms * NS_PER_MS), False, fault, target)

    def happened(self, node: int, event: str, now: int) -> None:
        """Count an event of a node, and make the faults due that it triggers."""
        for watch in (Watch(node, event), Watch(None, event)):
            if watch not in self._triggers:
                continue
            self._happened[watch] += 1
            waiting = self._triggers[watch]
            for entry in [entry for entry in waiting if entry[0] <= self._happened[watch]]:
                waiting.remove(entry)
                _, fault, target = entry
                self.triggered.append((fault, node, now))
                if (hit := fault.triggered_at(node)) is not fault:
                    target = hit.target(self._graph, self._rng)
                self._push(now, True, hit, target)
            if not waiting:
                del self._triggers[watch]

    def _push(self, at: int, begins: bool, fault: Fault, target: Target) -> None:
        self._entries += 1
        heappush(self._due, (at, self._entries, begins, fault, target))

    def _change(self, begins: bool, fault: Fault, target: Target, actuator: Actuator) -> None:
        if isinstance(fault, LinkFault):
            for link in target.links:
                active = self._links[link]
                active.append(fault) if begins else active.remove(fault)
                actuator.set_link(*link, condition_under(active))
            return
        key = (fault.kind, target.node)
        self._down[key] += 1 if begins else -1
        if self._down[key] == int(
            begins
        ):  # the first of overlapping faults begins, or the last ends
            onset, end = {
                Crash.kind: (actuator.kill, actuator.start),
                Pause.kind: (actuator.pause, actuator.resume),
                Leave.kind: (actuator.leave, actuator.join),
                Join.kind: (actuator.join, actuator.leave),
            }[fault.kind]
            (onset if begins else end)(target.node)


def condition_under(faults: Iterable[LinkFault]) -> Condition:
    """The condition of a link under these faults."""
    condition = Condition()
    for fault in faults:
        condition = fault.worsen(condition)
    return condition
