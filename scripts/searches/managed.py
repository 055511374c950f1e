"""The cluster with its tickets always managed, to be fuzzed.

testbed fuzz --protocol scripts/searches/managed.py:Managed --seeds 2000
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from testbed.protocols import Cluster


class Managed(Cluster):
    """A cluster in which processes join and leave to get and give tickets."""

    name: ClassVar[str] = "managed"

    @dataclass(frozen=True)
    class Settings(Cluster.Settings):
        """As of the cluster, but for one choice."""

        management: Literal["ring", "leases"] = "leases"
