"""One group of all processes: the three alternatives to the daisy that its paper names.

Baldoni, Friedman & van Renesse 1996, section 2.3: "the only known solutions" to a crash together with
an omission, which leaves the answer to a lost message undeliverable for ever (Figure 2), are

    a. to wait until all earlier messages are stable when the recipients change    ``wait_stable``
    b. to broadcast every message to all processes                                 ``broadcast_all``
    c. to piggyback on every message all unstable ones                             ``piggyback``

``flat`` is what they share, on the group layer in ``groups``; ``point_to_point`` is how a and c send.
"""

from .broadcast_all import BroadcastAll
from .flat import Flat
from .piggyback import Piggyback
from .wait_stable import WaitStable

__all__ = ["BroadcastAll", "Flat", "Piggyback", "WaitStable"]
