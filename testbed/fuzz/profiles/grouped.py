"""Protocols for groups: as the plain ones, on groups of any size that may overlap in any way.

With ``entries = "own"`` a message tells of its sender's groups only, which is correct only if the graph
of groups has no cycle.
"""

import random

from typing_extensions import override

from testbed.experiment import Scenario
from testbed.fuzz.elements import Document, Members
from testbed.fuzz.profiles.plain import Profile, resolved
from testbed.topologies import has_cycle

MOST_GROUPS = 5


class GroupedProfile(Profile):
    """Draws groups."""

    @override
    def groups(self, nodes: int, rng: random.Random) -> Members:
        drawn = {
            frozenset(rng.sample(range(nodes), rng.randint(2, nodes)))
            for _ in range(rng.randint(1, MOST_GROUPS))
        }
        return {f"g{number}": group for number, group in enumerate(sorted(map(sorted, drawn)), 1)}

    @override
    def finish(self, document: Document, rng: random.Random) -> None:
        if not self.promised(resolved(document)):
            document["protocol"]["entries"] = "auto"
        super().finish(document, rng)

    @override
    def promised(self, scenario: Scenario) -> bool:
        own = getattr(scenario.experiment.settings, "entries", None) == "own"
        return not (own and has_cycle(scenario.network.groups)) and super().promised(scenario)
