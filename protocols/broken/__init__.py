"""Protocols with one realistic mistake each: exercises in finding it, and a test of whatever checks.

They are not among ``PROTOCOLS``, so that nobody runs one by accident. Each says in its docstring
which rule it breaks; ``testbed explore --protocol broken-…`` draws what comes of it, or, if it is of a
protocol that may lose messages, ``testbed fuzz`` finds it.
"""

from ..base import Protocol
from .cluster import TooLate, Unsorted
from .groups import ArrivalOrder, OwnGroups, Unstamped
from .overlay import Echo, Forgetful, Higher, Lazy, Newest, Printed, Stingy
from .timestamp import (
    FifoOnly,
    Impatient,
    LastCause,
    LateUpdate,
    Merge,
    NoFifo,
    NoRescan,
    OffByOne,
    SinglePass,
    Uncounted,
)

BROKEN: dict[str, type[Protocol]] = {
    protocol.name: protocol
    for protocol in (
        Impatient,
        FifoOnly,
        NoFifo,
        OffByOne,
        NoRescan,
        SinglePass,
        Merge,
        LastCause,
        Uncounted,
        LateUpdate,
        Printed,
        Higher,
        Stingy,
        Echo,
        Newest,
        Forgetful,
        Lazy,
        Unstamped,
        ArrivalOrder,
        OwnGroups,
        TooLate,
        Unsorted,
    )
}

__all__ = ["BROKEN"]
