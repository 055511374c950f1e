"""The one error of this package, and the range checks that raise it.

Every message is one sentence that names the field, the value and what would be right, because a
student reads it under a TOML file and not under a traceback. The checks are written so that a
NaN fails them too. A field whose type is annotated with a check is checked when a model is made.
"""

import math
from functools import partial
from typing import Annotated, ClassVar, get_type_hints


class TopologyError(ValueError):
    """What was asked for cannot be built: a parameter, a file or a graph is not as it must be."""


def require(condition: bool, message: str) -> None:
    """Raise a TopologyError with this message unless the condition holds."""
    if not condition:
        raise TopologyError(message)


def at_least(field: str, value: float, low: float) -> None:
    """Demand value >= low."""
    require(value >= low, f"{field} = {value} is out of range: it must be at least {low}")


def at_most(field: str, value: float, high: float) -> None:
    """Demand value <= high."""
    require(value <= high, f"{field} = {value} is out of range: it must be at most {high}")


def above(field: str, value: float, low: float) -> None:
    """Demand value > low."""
    require(value > low, f"{field} = {value} is out of range: it must be above {low}")


def probability(field: str, value: float) -> None:
    """Demand 0 < value <= 1."""
    require(0 < value <= 1, f"{field} = {value} is out of range: it must be above 0 and at most 1")


def fraction(field: str, value: float) -> None:
    """Demand 0 <= value <= 1."""
    require(0 <= value <= 1, f"{field} = {value} is out of range: it must be from 0 to 1")


def fits(nodes: int, scale: int) -> None:
    """Demand that the nodes find distinct points on a grid of scale × scale."""
    at_least("scale", scale, 1)
    at_most("scale", scale, 1_000_000)
    require(
        nodes <= scale * scale,
        f"nodes = {nodes} is out of range: scale = {scale} offers {scale * scale} grid points, "
        f"so nodes must be at most {scale * scale} (or scale at least {math.isqrt(nodes - 1) + 1})",
    )


ZeroOrMore = Annotated[int, partial(at_least, low=0)]
OneOrMore = Annotated[int, partial(at_least, low=1)]
TwoOrMore = Annotated[int, partial(at_least, low=2)]
ThreeOrMore = Annotated[int, partial(at_least, low=3)]
AboveZero = Annotated[float, partial(above, low=0)]


class Checked:
    """A dataclass that checks its fields by the checks that their types are annotated with.

    ``class Ring(Model, model="ring")`` is known as "ring" to an experiment file.
    """

    model: ClassVar[str]

    def __init_subclass__(cls, model: str | None = None) -> None:
        if model is not None:
            cls.model = model

    def __post_init__(self) -> None:
        for field, kind in get_type_hints(type(self), include_extras=True).items():
            for check in getattr(kind, "__metadata__", ()):
                check(field, getattr(self, field))
