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
    Note,
    Place,
    Protocol,
    Send,
    SetTimer,
)
from protocols.bss import BSS
from protocols.cluster import Cluster
from protocols.daisy import Daisy
from protocols.ks import KS
from protocols.ks_prime import KSPrime
from protocols.mostefaoui_raynal import MostefaouiRaynal
from protocols.overlay import Overlay
from protocols.phases import Phases
from protocols.rst import RST
from protocols.timestamp import Timestamp
from protocols.wire import Codec, Message, MessageId, WireError

PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol
    for protocol in (
        Overlay,
        Timestamp,
        RST,
        KS,
        KSPrime,
        Phases,
        MostefaouiRaynal,
        BSS,
        Daisy,
        Cluster,
    )
}

__all__ = [
    "BSS",
    "KS",
    "PROTOCOLS",
    "RST",
    "CancelTimer",
    "Cluster",
    "Codec",
    "Count",
    "Daisy",
    "Deliver",
    "Discard",
    "Effect",
    "Effects",
    "Hold",
    "KSPrime",
    "Message",
    "MessageId",
    "MostefaouiRaynal",
    "Multicast",
    "Note",
    "Overlay",
    "Phases",
    "Place",
    "Protocol",
    "Send",
    "SetTimer",
    "Timestamp",
    "WireError",
]
