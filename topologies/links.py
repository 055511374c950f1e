"""What links do to packets: delay, bandwidth, queue and loss.

A graph model says which nodes are joined; ``Links`` then gives every edge, in sorted order so that one
seed means one network,

    delay_ns         propagation delay: fixed, uniform between two bounds, or from the edge's length
    bandwidth_bps    bits per second: fixed or uniform between two bounds
    queue_packets    packets that may wait at each end of the link; 0 stands for any number
    loss             probability that a packet is lost on the link

The defaults are those of Friedman & Manor (2004): delays uniform between 0 and 1 ms, 10 Mbit/s,
neither overflow nor loss. Both directions of a link are alike.
"""

import random
from dataclasses import dataclass

from . import errors
from .graph import Graph

Range = (
    float | tuple[float, float]
)  # the same for all links, or the bounds of a uniform distribution


@dataclass(frozen=True)
class Links:
    """Delay, bandwidth, queue and loss of the links of a network."""

    delay_ms: float | tuple[float, float] | None = None
    delay_ms_per_unit: float | None = None
    bandwidth_mbit: float | tuple[float, float] = 10.0
    queue_packets: int = 0
    loss: float = 0.0

    def __post_init__(self) -> None:
        errors.require(
            self.delay_ms is None or self.delay_ms_per_unit is None,
            f"delay_ms = {self.delay_ms} and delay_ms_per_unit = {self.delay_ms_per_unit} exclude "
            "each other: give the one or the other",
        )
        if (per_unit := self.delay_ms_per_unit) is not None:
            errors.at_least("delay_ms_per_unit", _bounds("delay_ms_per_unit", per_unit)[0], 0)
        elif self.delay_ms is None:
            object.__setattr__(self, "delay_ms", (0.0, 1.0))
        if self.delay_ms is not None:
            errors.at_least("delay_ms", _bounds("delay_ms", self.delay_ms)[0], 0)
        slowest = _bounds("bandwidth_mbit", self.bandwidth_mbit)[0]
        errors.at_least("bandwidth_mbit", slowest, 1e-6)
        errors.at_least("queue_packets", self.queue_packets, 0)
        errors.require(
            0 <= self.loss < 1,
            f"loss = {self.loss} is out of range: it must be at least 0 and below 1",
        )

    def apply(self, graph: Graph, rng: random.Random) -> None:
        """Set the attributes of every edge."""
        for i, j in sorted((min(edge), max(edge)) for edge in graph.edges):
            link = graph.edges[i, j]
            link["delay_ns"] = round(self._delay_ms(link["length"], rng) * 1e6)
            link["bandwidth_bps"] = round(_draw(self.bandwidth_mbit, rng) * 1e6)
            link["queue_packets"] = self.queue_packets
            link["loss"] = float(self.loss)

    def _delay_ms(self, length: float, rng: random.Random) -> float:
        if self.delay_ms_per_unit is not None:
            return length * self.delay_ms_per_unit
        assert self.delay_ms is not None, "set by __post_init__"
        return _draw(self.delay_ms, rng)


def _bounds(field: str, value: Range) -> tuple[float, float]:
    low, high = value if isinstance(value, tuple) else (value, value)
    errors.require(
        low <= high < float("inf"),
        f"{field} = {value if low == high else [low, high]} is out of range: it must be a number, "
        "or a pair [low, high] with low <= high",
    )
    return low, high


def _draw(value: Range, rng: random.Random) -> float:
    return rng.uniform(*value) if isinstance(value, tuple) else value
