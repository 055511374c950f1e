"""The layout of every message's control information, as data that a dissector can interpret.

The codecs of the protocols encode and decode; here the same formats are described, field by field, for
programs that are not written in Python. Tests hold the two together: read by its layout, whatever a
codec encodes has the values of the message's attributes, and no byte is left over.

A count or a length is a number, the name of a field before it, or ``REST``: as many as there are until
the end. Integers are unsigned and big-endian.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args, get_origin

from testbed.protocols import Message
from testbed.protocols.bss import Vectors
from testbed.protocols.cluster.events import Event, Recover
from testbed.protocols.cluster.gossip import Gossip
from testbed.protocols.cluster.tickets.encoding import WordMessage
from testbed.protocols.daisy.path import Path
from testbed.protocols.groups.flush import Fetch, Flush, Missing, Part
from testbed.protocols.groups.laden_cast import LadenCast
from testbed.protocols.groups.messages import Cast, Expelled, Join, Leave, Report, Silence
from testbed.protocols.groups.packing import Pack
from testbed.protocols.groups.passed import Passed
from testbed.protocols.groups.stamped_cast import StampedCast
from testbed.protocols.ks import KSMessage
from testbed.protocols.ks_prime import KSPrimeMessage
from testbed.protocols.resynching import PhaseMessage
from testbed.protocols.rst import MatrixMessage
from testbed.protocols.timestamp import VectorMessage

REST = "rest"
WIDE = "wide"  # as a width: eight bytes if the field of that name is set, else four
Count = int | str


class Int(NamedTuple):
    """One integer of this many bytes."""

    name: str
    width: Count = 4


class Ints(NamedTuple):
    """Several integers."""

    name: str
    times: Count = REST
    width: Count = 4


class Bits(NamedTuple):
    """One integer of four bytes that is several fields: (name, lowest bit, number of bits)."""

    fields: tuple[tuple[str, int, int], ...]


class Bytes(NamedTuple):
    """Some bytes as they are."""

    name: str
    times: Count = REST


class Repeat(NamedTuple):
    """The same fields again and again; their names begin with this one."""

    name: str
    times: Count
    fields: "Layout"


class When(NamedTuple):
    """Fields that are there only if one before them is not zero, or if there is any rest."""

    name: str
    fields: "Layout"


class Nested(NamedTuple):
    """The control information of another message, whose kind and length are in fields before it."""

    kind: Count
    length: str


class Special(NamedTuple):
    """What no field says: how many processes there are, from the length of it all."""

    name: str


Field = Int | Ints | Bits | Bytes | Repeat | When | Nested | Special
Layout = tuple[Field, ...]

VIEW: Layout = (Int("view"), Int("coordinator"))
NAME: Layout = (Int("source"), Int("seq"))
EPOCHS: Layout = (
    Int("epoch_count"),
    Repeat("epochs", "epoch_count", (Int("process"), Int("epoch"))),
)
CAST: Layout = (
    *VIEW,
    Bits((("members", 2, 30), ("has_epochs", 1, 1), ("to_all", 0, 1))),
    Int("time"),
    Ints("vector", "members"),
    When("has_epochs", EPOCHS),
    Ints("dests"),
)
ATTACHED: Layout = (
    *NAME,
    *(Int("sent_at", 8), Int("control_length"), Int("payload_length")),
    Nested(Cast.kind, "control_length"),
    Bytes("payload", "payload_length"),
)
TICKET = Bits((("wide", 31, 1), ("ticket", 0, 31)))

LAYOUTS: dict[type[Message], Layout] = {
    VectorMessage: (Ints("vector"),),
    MatrixMessage: (Special("matrix"), Ints("sent", "entries"), Ints("dests")),
    KSMessage: (
        *(Int("dests_count"), Int("entries"), Ints("dests", "dests_count")),
        Repeat(
            "log",
            "entries",
            (Int("sender"), Int("clock"), Int("dests_count"), Ints("dests", "dests_count")),
        ),
    ),
    KSPrimeMessage: (Special("bits"), Bytes("bits", "bit_bytes"), Ints("clocks")),
    PhaseMessage: (Ints("stamp"),),
    Vectors: (Ints("vectors"),),
    Cast: CAST,
    StampedCast: (
        Bits((("servers", 16, 16), ("names", 0, 16))),
        When("servers", (Int("above_view"), Int("above_coordinator"), Ints("beyond", "servers"))),
        Repeat("after", "names", NAME),
        *CAST,
    ),
    LadenCast: (Int("attached_count"), Repeat("attached", "attached_count", ATTACHED), *CAST),
    Report: (
        *VIEW,
        Int("promised"),
        Bits(
            (
                *(("members", 3, 29), ("has_epochs", 2, 1)),
                *(("has_everywhere", 1, 1), ("leads", 0, 1)),
            )
        ),
        Int("slots"),
        Ints("delivered", "members"),
        Ints("released", "slots"),
        When("has_everywhere", (Ints("everywhere", "members"),)),
        *(Int("above_count"), Ints("above", "above_count")),
        When("has_epochs", EPOCHS),
        Ints("outside"),
    ),
    Join: (
        *(Int("backing", 8), Int("of"), Int("how"), Int("away_count")),
        *(Ints("away", "away_count"), *EPOCHS, Ints("roster")),
    ),
    Leave: (Int("backing", 8), Int("epoch"), Int("gone"), Ints("roster")),
    Expelled: VIEW,
    Silence: (),
    Flush: (*VIEW, Int("joins")),
    Part: (*VIEW, Int("what"), Int("index"), Int("count"), Bytes("data")),
    Missing: (*VIEW, Int("what"), Ints("parts")),
    Fetch: (Repeat("names", REST, NAME),),
    Path: (
        Int("contact"),
        Repeat("steps", REST, (Int("number"), Int("size"), Ints("roster", "size"))),
    ),
    Passed: (
        *(Int("sender"), Int("to"), Bits((("inner_kind", 0, 31), ("unheard", 31, 1)))),
        *(Int("inner_source"), Int("inner_seq"), Int("inner_sent_at", 8)),
        Int("inner_control_length"),
        Nested("inner_kind", "inner_control_length"),
        Bytes("inner_payload"),
    ),
    Pack: (
        Repeat(
            "parts",
            REST,
            (
                *(Int("kind", 2), Int("group", 2), *NAME, Int("sent_at", 8)),
                *(Int("control_length", 2), Int("payload_length", 2)),
                Nested("kind", "control_length"),
            ),
        ),
    ),
    Gossip: (
        *(Int("subs_count", 2), Int("unsubs_count", 2), Int("balls_count")),
        Ints("subs", "subs_count"),
        Repeat("unsubs", "unsubs_count", (Int("process", 2), Int("age", 2))),
        Repeat(
            "balls",
            "balls_count",
            (
                *(Int("source", 2), Int("age", 2), Int("seq"), Int("sent_at", 8)),
                *(Int("control_length"), Int("payload_length")),
                Nested(Event.kind, "control_length"),
                Bytes("payload", "payload_length"),
            ),
        ),
    ),
    Event: (TICKET, Ints("t", REST, WIDE)),
    Recover: (Repeat("eids", REST, (TICKET, Int("clock", WIDE))),),
}
CHANNEL: Layout = (
    Bits((("start", 31, 1), ("stream", 24, 7), ("incarnation", 12, 12), ("receiver", 0, 12))),
    When("numbered", (Int("number"),)),
    When(REST, (Int("ack"),)),
    Bytes("beyond"),
)
WORDS: Layout = (Ints("words"),)  # of a message of which nothing is known


def layout_of(kind: type[Message]) -> Layout:
    """The layout of a kind of message; of one that is not described, its integers."""
    if issubclass(kind, WordMessage):
        return tuple(field for name, type in kind.types.items() for field in _typed(name, type))
    if kind is Message:
        return ()
    return next((LAYOUTS[base] for base in kind.__mro__ if base in LAYOUTS), WORDS)


def _typed(name: str, kind: Any) -> Layout:
    """A field of the cluster management's messages, which are encoded by their types."""
    if get_origin(kind) is tuple:
        (item, *_) = get_args(kind)
        count = Int(f"{name}_count")
        if hasattr(item, "_fields"):
            return (count, Repeat(name, count.name, _typed("", item)))
        return (count, Ints(name, count.name))
    if hasattr(kind, "_fields"):
        prefix = f"{name}_" if name else ""
        parts: Mapping[str, Any] = kind.__annotations__
        return tuple(f for part, inner in parts.items() for f in _typed(prefix + part, inner))
    return (Int(name),)
