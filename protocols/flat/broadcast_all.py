"""Broadcast every message to all processes: alternative b of section 2.3.

"... so there is always a way to retrieve m1. This solution is currently supported by Horus, but it may
create too many messages in the network, and is therefore not feasible for large groups." (Its FILTER
layer turns a multicast into a broadcast, and drops it where it is not for the local process.)
Delivery: within the view by one vector of n entries (``groups.casting``).
Invariant: whoever has delivered a message has its causal past, and so has everybody in the next view.
Cost: n - 1 copies of 32 + 16 + 4n + 4|Dests| + d bytes. It is a daisy with ``levels = 1``.
"""

from typing import ClassVar

from ..groups.casting import Casting, Way
from .flat import Flat


class BroadcastAll(Flat):
    """Every message goes to all processes, and those that it is not for drop it."""

    name: ClassVar[str] = "broadcast-all"
    wire_id: ClassVar[int] = 11
    way: ClassVar[Way] = Casting
