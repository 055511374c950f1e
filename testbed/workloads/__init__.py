"""What the applications send: workloads by name, drawn from the seed or written down in a script."""

from testbed.workloads.base import LONGEST_PAYLOAD, NO_GROUPS, Sending, Workload, own_groups
from testbed.workloads.drawn import Bursts, Poisson, RandomDestinations, Reply, Rounds, Steady
from testbed.workloads.script import Script

WORKLOADS: dict[str, type[Workload]] = {
    workload.model: workload
    for workload in (Bursts, Steady, Poisson, Rounds, Reply, RandomDestinations, Script)
}

__all__ = [
    "LONGEST_PAYLOAD",
    "NO_GROUPS",
    "WORKLOADS",
    "Bursts",
    "Poisson",
    "RandomDestinations",
    "Reply",
    "Rounds",
    "Script",
    "Sending",
    "Steady",
    "Workload",
    "own_groups",
]
