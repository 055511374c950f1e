"""Faults by name, and the schedule by which an engine begins and ends each."""

from testbed.faults.kinds import (
    FAULTS,
    Condition,
    Crash,
    Duplication,
    Fault,
    Join,
    Leave,
    LinkDown,
    Loss,
    Pause,
    RatedFault,
    Reordering,
    Slow,
    Trigger,
)
from testbed.faults.schedule import Actuator, FaultSchedule

__all__ = [
    "FAULTS",
    "Actuator",
    "Condition",
    "Crash",
    "Duplication",
    "Fault",
    "FaultSchedule",
    "Join",
    "Leave",
    "LinkDown",
    "Loss",
    "Pause",
    "RatedFault",
    "Reordering",
    "Slow",
    "Trigger",
]
