"""Protocols with one realistic mistake each: exercises in finding it, and a test of every checker.

Each class says in its docstring which rule it breaks. There are four kinds:

    BROKEN           protocols that an experiment, ``testbed explore`` and ``testbed fuzz`` take by name
                     (``broken-…``); they are not among ``PROTOCOLS``, so that none is run by accident
    BROKEN_CLUSTERS  the cluster with tickets as the paper prints them; experiments take them by name,
                     and only ``testbed check`` sees what is wrong
    BROKEN_RINGS     variants of a part of the cluster, the ring of tickets (``tickets``) and the
    BROKEN_LEASES    leases (``leases``), with no name of their own: the searches of
                     ``testbed.explore.tickets`` and the tests run them in place of the part
    cluster.Reset    breaks a promise about tickets that only ``testbed check`` sees, and only in a
                     cluster whose tickets change hands; such a run is set up by the tests
"""

from ..base import Protocol
from .answering import Confusing, Impetuous
from .cluster import TooLate, Unsorted
from .daisy import (
    Absentminded,
    Careless,
    Copied,
    Halting,
    Ignoring,
    Lingering,
    Misguiding,
    Overtaking,
    Prompt,
    Reentrant,
    Releasing,
    ServersVector,
    Undecided,
)
from .epochs import Ageless, Dismissive, Homebound, Hospitable, Mute, Timeless
from .group_layer import (
    Awaiting,
    Deaf,
    Discarding,
    Idle,
    Reassured,
    Trusting,
)
from .groups import ArrivalOrder, OwnGroups, StampsInTurn, Unanswered, Unstamped
from .overlay import Echo, Forgetful, Higher, Lazy, Newest, Printed, Stingy
from .printed import PrintedRingTickets, PrintedTickets
from .returning import (
    Abandoning,
    Claiming,
    Departing,
    Homing,
    Nostalgic,
    ShortSighted,
    Wavering,
)
from .rst import PrintedRST
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
from .view_change import (
    Amnesiac,
    Bequeathing,
    Eager,
    Heedless,
    Mistaking,
    Overlooking,
    Recanting,
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
        PrintedRST,
        Unstamped,
        StampsInTurn,
        ArrivalOrder,
        OwnGroups,
        Unanswered,
        TooLate,
        Unsorted,
        Reentrant,
        Hospitable,
        Homebound,
        Dismissive,
        Mute,
        Timeless,
        Ageless,
        Undecided,
        Idle,
        Releasing,
        Trusting,
        Reassured,
        Absentminded,
        Misguiding,
        Copied,
        ServersVector,
        Overtaking,
        Halting,
        Deaf,
        Discarding,
        Eager,
        Awaiting,
        Ignoring,
        Lingering,
        Prompt,
        ShortSighted,
        Homing,
        Nostalgic,
        Confusing,
        Impetuous,
        Mistaking,
        Amnesiac,
        Recanting,
        Departing,
        Abandoning,
        Wavering,
        Claiming,
        Careless,
        Bequeathing,
        Heedless,
        Overlooking,
    )
}

BROKEN_CLUSTERS: dict[str, type[Protocol]] = {
    protocol.name: protocol for protocol in (PrintedRingTickets, PrintedTickets)
}

__all__ = ["BROKEN", "BROKEN_CLUSTERS"]
