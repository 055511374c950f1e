"""Causal multicast protocols as state machines without IO, one a module, and their registry."""

from protocols.base import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Effect,
    Effects,
    Hold,
    Multicast,
    Place,
    Protocol,
    Send,
    SetTimer,
)
from protocols.overlay import Overlay
from protocols.timestamp import Timestamp
from protocols.wire import Codec, Message, MessageId, WireError

PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol for protocol in (Overlay, Timestamp)
}

__all__ = [
    "PROTOCOLS",
    "CancelTimer",
    "Codec",
    "Count",
    "Deliver",
    "Discard",
    "Effect",
    "Effects",
    "Hold",
    "Message",
    "MessageId",
    "Multicast",
    "Overlay",
    "Place",
    "Protocol",
    "Send",
    "SetTimer",
    "Timestamp",
    "WireError",
]
