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
from protocols.ks import KS
from protocols.ks_prime import KSPrime
from protocols.overlay import Overlay
from protocols.rst import RST
from protocols.timestamp import Timestamp
from protocols.wire import Codec, Message, MessageId, WireError

PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol for protocol in (Overlay, Timestamp, RST, KS, KSPrime)
}

__all__ = [
    "KS",
    "PROTOCOLS",
    "RST",
    "CancelTimer",
    "Codec",
    "Count",
    "Deliver",
    "Discard",
    "Effect",
    "Effects",
    "Hold",
    "KSPrime",
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
