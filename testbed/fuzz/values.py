"""Values that are drawn for all kinds of experiments."""

from __future__ import annotations

import random
from typing import Any

from testbed.experiment.network import Network

Document = dict[str, Any]
Table = dict[str, Any]


def ms(value: float) -> float:
    """As many digits as a person cares to read."""
    return round(value, 3)


def some_link(network: Network, rng: random.Random) -> list[int]:
    """Any link."""
    return list(rng.choice(sorted((min(edge), max(edge)) for edge in network.graph.edges)))
