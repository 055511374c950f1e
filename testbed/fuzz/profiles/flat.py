"""The alternatives to the daisy: on the same group layer, they survive what one group of it does."""

import random
from dataclasses import fields, replace
from typing import Any, ClassVar

from typing_extensions import override

from testbed.experiment import Scenario
from testbed.experiment.network import Network
from testbed.fuzz.elements import Table
from testbed.fuzz.profiles.members import MembersProfile
from testbed.protocols.daisy import Daisy
from testbed.protocols.flat import Flat

TIMING = [field.name for field in fields(Flat.Settings)]


class FlatProfile(MembersProfile):
    """Draws as for the daisy, without what only groups of servers have; and nothing but that."""

    mutants: ClassVar[int] = 0
    storms: ClassVar[int] = 0
    scenes: ClassVar[int] = 0

    @override
    def fitting(self, network: Network, variant: Table, rng: random.Random) -> Table:
        drawn = super().fitting(network, variant, rng)
        return {key: value for key, value in drawn.items() if key in TIMING}

    @override
    def actors(self, processes: int, settings: Any, rng: random.Random) -> list[int]:
        return super().actors(processes, Daisy.Settings(levels=1), rng)

    @override
    def promised(self, scenario: Scenario) -> bool:
        experiment = scenario.experiment
        one_group = replace(experiment, settings=_as_daisy(experiment.settings))
        return super().promised(replace(scenario, experiment=one_group))

    @override
    def repair_ms(self, settings: Any) -> float:
        return super().repair_ms(_as_daisy(settings))


def _as_daisy(settings: Any) -> Daisy.Settings:
    return Daisy.Settings(levels=1, **{key: getattr(settings, key) for key in TIMING})
