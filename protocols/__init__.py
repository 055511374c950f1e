"""Causal multicast protocols as state machines without IO, and their registry.

base, wire      what a protocol is; the format of its messages
holdback        the hold-back queue; ``grouped``: what protocols for overlapping groups share
overlay … bss   one protocol a module
channel         a reliable FIFO channel beneath any protocol
daisy, cluster  two protocols that take a package each; ``groups``: the group layer of the daisy
flat            the alternatives to the daisy: one group of all
broken          protocols with one mistake each
"""

from .base import (
    NS_PER_MS,
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Effect,
    Effects,
    Figure,
    Hold,
    Instant,
    Multicast,
    Note,
    Place,
    Protocol,
    Ratio,
    Sample,
    Send,
    SetTimer,
    Transition,
)
from .bss import BSS
from .cluster import Cluster, Clusters
from .daisy import Daisy
from .flat import BroadcastAll, Piggyback, WaitStable
from .ks import KS
from .ks_prime import KSPrime
from .mostefaoui_raynal import MostefaouiRaynal
from .one_integer import OneInteger
from .overlay import Overlay
from .phases import Phases
from .rst import RST
from .timestamp import Timestamp
from .wire import Codec, Message, MessageId, WireError

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
        OneInteger,
        BSS,
        Daisy,
        WaitStable,
        BroadcastAll,
        Piggyback,
        Cluster,
        Clusters,
    )
}

__all__ = [
    "BSS",
    "KS",
    "NS_PER_MS",
    "PROTOCOLS",
    "RST",
    "BroadcastAll",
    "CancelTimer",
    "Cluster",
    "Clusters",
    "Codec",
    "Count",
    "Daisy",
    "Deliver",
    "Discard",
    "Effect",
    "Effects",
    "Figure",
    "Hold",
    "Instant",
    "KSPrime",
    "Message",
    "MessageId",
    "MostefaouiRaynal",
    "Multicast",
    "Note",
    "OneInteger",
    "Overlay",
    "Phases",
    "Piggyback",
    "Place",
    "Protocol",
    "Ratio",
    "Sample",
    "Send",
    "SetTimer",
    "Timestamp",
    "Transition",
    "WaitStable",
    "WireError",
]
