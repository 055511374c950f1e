"""Faults by name, and the schedule by which an engine begins and ends each."""

from testbed.faults.kinds import (
    DELIVERY,
    Condition,
    Crash,
    Drift,
    Duplication,
    Fault,
    Join,
    Leave,
    LinkDown,
    Loss,
    NodeFault,
    Partition,
    Pause,
    RatedFault,
    Reordering,
    Slow,
    Trigger,
    Watch,
)
from testbed.faults.messages import Arrivals, Delay, Drop, Duplicate, MessageFault
from testbed.faults.schedule import Actuator, FaultSchedule

FAULTS: dict[str, type[Fault]] = {
    fault.kind: fault
    for fault in (
        *(Loss, Duplication, Reordering, Slow, LinkDown, Partition),
        *(Crash, Pause, Leave, Join, Drift),
        *(Drop, Delay, Duplicate),
    )
}

__all__ = [
    "DELIVERY",
    "FAULTS",
    "Actuator",
    "Arrivals",
    "Condition",
    "Crash",
    "Delay",
    "Drift",
    "Drop",
    "Duplicate",
    "Duplication",
    "Fault",
    "FaultSchedule",
    "Join",
    "Leave",
    "LinkDown",
    "Loss",
    "MessageFault",
    "NodeFault",
    "Partition",
    "Pause",
    "RatedFault",
    "Reordering",
    "Slow",
    "Trigger",
    "Watch",
]
