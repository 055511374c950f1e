"""Cluster management: which process owns which of n tickets (Gidenstam et al. 2011, section 4)."""

from protocols.tickets.common import Granted, Revoked, TicketEffect, TicketEffects, Tickets
from protocols.tickets.lease_messages import LEASE_MESSAGES
from protocols.tickets.leases import Leases
from protocols.tickets.messages import TICKET_MESSAGES
from protocols.tickets.ring import Ring
from protocols.tickets.voting import LeaseSettings

__all__ = [
    "LEASE_MESSAGES",
    "TICKET_MESSAGES",
    "Granted",
    "LeaseSettings",
    "Leases",
    "Revoked",
    "Ring",
    "TicketEffect",
    "TicketEffects",
    "Tickets",
]
