"""Cluster management: which process owns which of n tickets (Gidenstam et al. 2011, section 4).

``manager`` is the common part; ``ring`` is Algorithm 1, without failures; ``voting``, ``exclusion`` and
``leases`` are Algorithms 2 to 4, each derived from the one before.
"""

from .lease_messages import LEASE_MESSAGES
from .leases import Leases
from .manager import Granted, Revoked, TicketEffects, TicketManager
from .messages import TICKET_MESSAGES
from .ring import Ring
from .voting import LeaseSettings

__all__ = [
    "LEASE_MESSAGES",
    "TICKET_MESSAGES",
    "Granted",
    "LeaseSettings",
    "Leases",
    "Revoked",
    "Ring",
    "TicketEffects",
    "TicketManager",
]
