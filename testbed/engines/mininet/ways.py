"""Who sends to whom in a run: only for that do switches need rules, and only there are flows warmed up.

For a network of n hosts there are n² pairs, and as many rules for unicasts and for multicasts each. A
protocol on an overlay uses some n·log n of the pairs, and only the senders' trees carry multicasts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the controller computes with ways, and needs no experiment for that
    from testbed.experiment import Scenario


@dataclass(frozen=True)
class Ways:
    """The pairs between which packets travel, and the sources of multicasts."""

    peers: tuple[tuple[int, ...], ...]  # the processes that each one may send to
    multicasters: frozenset[int]  # to all of the audiences that they belong to
    audiences: frozenset[frozenset[int]]  # all processes, or the groups that there are

    @classmethod
    def all(cls, nodes: int) -> Ways:
        """From everybody to everybody."""
        everybody = tuple(range(nodes))
        return cls((everybody,) * nodes, frozenset(everybody), frozenset([frozenset(everybody)]))

    @classmethod
    def of(cls, scenario: Scenario) -> Ways:
        """What the processes of a scenario say of themselves."""
        nodes = range(scenario.network.processes)
        processes = [scenario.process(node) for node in nodes]
        experiment = scenario.experiment
        all_send = experiment.protocol.needs_everybody
        all_send |= experiment.workload.answers_per_message() > 0
        senders = nodes if all_send else {send.node for send in scenario.sends}
        return cls(
            tuple(process.peers() for process in processes),
            frozenset(node for node in senders if processes[node].multicasts()),
            frozenset(scenario.network.groups.values()) or frozenset([frozenset(nodes)]),
        )

    @cached_property
    def senders(self) -> list[list[int]]:
        """The processes that may send to each one, by unicast."""
        found: list[list[int]] = [[] for _ in self.peers]
        for sender, peers in enumerate(self.peers):
            for peer in peers:
                found[peer].append(sender)
        return found

    @cached_property
    def arriving(self) -> Counter[int]:
        """How many datagrams each process gets if everybody sends one along each of its ways."""
        found = Counter({node: len(senders) for node, senders in enumerate(self.senders)})
        for members in self.audiences:
            sources = self.multicasters & members
            for node in members:
                found[node] += len(sources) - (node in sources)
        return found
