"""Protocols that may lose messages, such as the cluster.

They meet over raw channels, too, all that others meet over the reliable one, and there packets are lost
for good. Processes crash and may restart, and leave and join if the protocol keeps members. Where a
setting makes the protocol rely on FIFO channels, as ``management = "ring"`` does with the cluster, it
promises something only over reliable channels, and if nobody crashes.
"""

import random
from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from testbed.experiment import Scenario
from testbed.faults import Crash
from testbed.fuzz import elements
from testbed.fuzz.elements import SPAN_MS, Document, Members, Table, rounded
from testbed.fuzz.messages import MOST_MESSAGES
from testbed.fuzz.profiles.plain import Profile, resolved
from testbed.protocols import Protocol
from testbed.workloads.script import ScriptedMessage


class OptimisticProfile(Profile):
    """Draws any faults, and in some trials many messages."""

    numbers: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "round_ms": (5.0, 20.0),
        "fanout": (1, 2, 4),
        "hops": (1, 3, 5),
        "events_per_message": (1, 3, 20),
        "history": (2, 40),
        "time_to_terminate": (0.0, 1.0, 5.0),
        "time_to_recover": (0.0, 1.0, 5.0),
        "recovery_buffer": (0, 2),
        "lease_round_ms": (50.0, 400.0),
        "clusters": (1, 2),
        "near": (0.0, 0.3, 1.0),
        "speed": (0.0, 1.0, 10.0),
    }

    @override
    def settings(self, rng: random.Random) -> Table:
        """Who moves gets and gives tickets."""
        drawn = super().settings(rng)
        return {**drawn, "management": "leases"} if drawn.get("speed") else drawn

    @override
    def messages(self, nodes: int, groups: Members, rng: random.Random) -> list[ScriptedMessage]:
        """In some trials many more, so that a process lacks several when it gives one up."""
        drawn = super().messages(nodes, groups, rng)
        many = rng.choice([0, MOST_MESSAGES])
        times = (rounded(rng.uniform(0, 2 * SPAN_MS)) for _ in range(many))
        return drawn + [{"node": rng.randrange(nodes), "at_ms": at} for at in times]

    @override
    def finish(self, document: Document, rng: random.Random) -> None:
        super().finish(document, rng)
        if "management" in document["protocol"] and not self.promised(resolved(document)):
            document["protocol"]["management"] = "leases"

    @override
    def faults(self, scenario: Scenario, rng: random.Random) -> list[Table]:
        kinds = ["duplication", "slow", "pause", "reordering", "link-down", "partition"]
        if self.protocol.join is not Protocol.join:
            kinds.append("leave")
        drawn = elements.some_faults(kinds, scenario.network, rng)
        drawn += elements.aimed_pauses(scenario.network, self.aims, rng)
        if rng.random() < 0.7:
            drawn.append(elements.loss(scenario.network, rng))
        if rng.random() < 0.3:
            crashes = elements.crashes(scenario.network, self.aims, rng)
            if rng.random() < 0.5:
                crashes = [{**c, "for_ms": rounded(rng.uniform(1, SPAN_MS))} for c in crashes]
            drawn += crashes
        return drawn

    @override
    def promised(self, scenario: Scenario) -> bool:
        experiment = scenario.experiment
        crashes = any(isinstance(fault, Crash) for fault in experiment.faults)
        steady = experiment.channel is not None and not crashes
        return steady or not self.protocol.needs_fifo(experiment.settings)
