"""The wire format: what is accounted is what is sent, and strange bytes are only ever refused."""

import struct
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any, get_args, get_origin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.protocols import PROTOCOLS, Codec, Message, Protocol, WireError, resynching
from testbed.protocols.bss import Vectors
from testbed.protocols.cluster.events import Event, EventId, Recover
from testbed.protocols.cluster.gossip import Ball, Gossip
from testbed.protocols.cluster.lpbcast import News
from testbed.protocols.cluster.tickets.encoding import ProcessId, ProcessOrNone, WordMessage
from testbed.protocols.groups import passed
from testbed.protocols.ks import KSMessage, to_dests
from testbed.protocols.ks_log import KSLog
from testbed.protocols.rst import MatrixMessage
from testbed.protocols.timestamp import VectorMessage
from testbed.protocols.wire import HEADER, decode_header
from tests.protocols.executions import known, logs

U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
RUN = 0xC0FFEE
PROTOCOLS_HERE = {  # those on the group layer are in groups/test_messages.py
    n: p for n, p in PROTOCOLS.items() if not set(passed.KINDS) <= set(p.messages)
}
KINDS: dict[str, tuple[Callable[[int, int], Codec], type[Message]]] = {
    **{
        f"{name}-{kind.__name__}": (protocol.codec, kind)
        for name, protocol in PROTOCOLS_HERE.items()
        for kind in protocol.messages
    },
    "gossip of plain messages": (partial(Codec, 10, (Gossip,)), Gossip),
}
EVERY_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS_HERE.values(), ids=PROTOCOLS_HERE)
EVERY_KIND = pytest.mark.parametrize(("codec_of", "kind"), KINDS.values(), ids=KINDS)
PROCESSES = st.integers(1, 12)


@st.composite
def messages(draw: st.DrawFn, kind: type[Message], n: int) -> Message:
    """A message of that kind, among n processes."""
    process = st.integers(0, n - 1)
    common: dict[str, Any] = {
        "source": draw(process),
        "seq": draw(U32),
        "payload": draw(st.binary(max_size=60)),
        "sent_at": draw(U64),
        "group": draw(U16),
    }
    if kind is VectorMessage:
        return VectorMessage(**common, vector=draw(vectors(n, n)))
    some = st.sets(process)
    if kind is MatrixMessage:
        matrix = draw(vectors(n**2, n**2)).reshape(n, n)
        return MatrixMessage(**common, SENT=matrix, dests=tuple(sorted(draw(some))))
    if issubclass(kind, KSMessage):
        return kind(**common, dests=to_dests(draw(some)), olog=draw(logs(n)))
    if issubclass(kind, resynching.PhaseMessage):
        return kind(**common, stamp=tuple(draw(st.lists(U32, max_size=9))))
    if kind is Vectors:
        return Vectors(**common, VT=draw(vectors(0, 9)))
    if kind is Event:
        t = draw(vectors(1, 6))
        ticket = draw(st.integers(0, len(t) - 1))
        t[ticket] |= 1  # it has sent something
        return Event(**common, ticket=ticket, t=t)
    if issubclass(kind, Gossip):
        subs = draw(st.lists(process, max_size=5))
        unsubs = draw(st.lists(st.tuples(process, U16), max_size=5))
        events = draw(st.lists(messages(kind.carries, n), max_size=3))
        balls = [Ball(event.id, replace(event, group=0), draw(U16)) for event in events]
        return kind(**common, balls=tuple(balls), news=News(tuple(subs), tuple(unsubs)))
    if kind is Recover:
        tickets, clocks = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
        eids = draw(st.lists(st.builds(EventId, tickets, clocks), max_size=6))
        return Recover(**common, eids=tuple(eids))
    if issubclass(kind, WordMessage):
        common |= {name: draw(values(its, process)) for name, its in kind.types.items()}
        return kind(**common)
    assert kind is Message
    return Message(**common)


def vectors(least: int, most: int) -> st.SearchStrategy[Any]:
    return st.lists(U32, min_size=least, max_size=most).map(partial(np.array, dtype=np.int64))


def values(kind: Any, process: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Whatever is of that type."""
    if get_origin(kind) is tuple:
        return st.lists(values(get_args(kind)[0], process), max_size=4).map(tuple)
    if hasattr(kind, "_fields"):
        parts = (values(part, process) for part in kind.__annotations__.values())
        return st.tuples(*parts).map(lambda fields: kind(*fields))
    if kind == ProcessOrNone:
        return process | st.none()
    return process if kind == ProcessId else U32


def told(value: object) -> object:
    """What a message, or a part of it, says, as a value that can be compared."""
    if isinstance(value, Message):
        return type(value), {f.name: told(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, KSLog):
        return known(value)
    if isinstance(value, tuple):
        return tuple(map(told, value))
    return value.tolist() if isinstance(value, np.ndarray) else value


@EVERY_KIND
@given(n=PROCESSES, data=st.data())
def test_what_is_accounted_is_what_is_sent_and_what_is_read(
    codec_of: Callable[[int, int], Codec], kind: type[Message], n: int, data: st.DataObject
) -> None:
    message, codec = data.draw(messages(kind, n)), codec_of(RUN, n)
    encoded = codec.encode(message)
    assert len(encoded) == message.size
    assert len(encoded) == 32 + message.control_size + len(message.payload)
    assert told(codec.decode(encoded)) == told(message)
    assert codec.decode(encoded).carried == message.carried
    assert codec.encode(codec.decode(encoded)) == encoded


@settings(max_examples=60)
@pytest.mark.parametrize("kind", {kind: None for _, kind in KINDS.values()})
@given(n=PROCESSES, data=st.data())
def test_control_information_that_encode_would_not_write_is_refused(
    kind: type[Message], n: int, data: st.DataObject
) -> None:
    whole = data.draw(messages(kind, n)).encode_control()
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 3)) if whole else 0):
        place = 4 * data.draw(st.integers(0, (len(whole) - 1) // 4))
        value = data.draw(st.integers(0, 7) | U32)
        changed[place : place + 4] = struct.pack("!I", value)
    changed += data.draw(st.binary(max_size=5))
    cut = data.draw(st.integers(0, len(whole)))
    strange = data.draw(st.binary(max_size=120))
    for damaged in (whole[:cut], whole + b"\0", bytes(changed[:cut]), bytes(changed), strange):
        try:
            decoded = kind.decode_control(damaged, n)
        except WireError:
            continue
        again = kind(0, 1, **decoded)
        assert again.encode_control() == damaged
        assert again.control_size == len(damaged)


def test_a_name_of_an_event_is_refused_in_more_bytes_than_it_takes() -> None:
    large = Recover(0, 0, eids=(EventId(1, 5 << 32),)).encode_control()
    with pytest.raises(WireError, match="more bytes"):
        Recover.decode_control(large[:4] + struct.pack("!Q", 5), 4)


@EVERY_PROTOCOL
@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_the_wire_error(protocol: type[Protocol], data: bytes) -> None:
    with pytest.raises(WireError):
        protocol.codec(RUN, 7).decode(data)


@EVERY_PROTOCOL
@given(data=st.data())
def test_damaged_messages_are_refused(protocol: type[Protocol], data: st.DataObject) -> None:
    codec = protocol.codec(RUN, 7)
    kind = data.draw(st.sampled_from(protocol.messages))
    encoded = bytearray(codec.encode(data.draw(messages(kind, 7))))
    bit = data.draw(st.integers(0, 8 * len(encoded) - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    with pytest.raises(WireError):
        codec.decode(bytes(encoded))
    with pytest.raises(WireError):
        codec.decode(bytes(encoded[: data.draw(st.integers(0, len(encoded) - 1))]))


def test_header_is_32_bytes_and_readable_without_the_protocol() -> None:
    codec = PROTOCOLS["timestamp"].codec(RUN, 3)
    encoded = codec.encode(VectorMessage(2, 9, b"abc", 77, 5, vector=np.array([1, 2, 9])))
    header = decode_header(encoded)
    assert HEADER.size == 32
    assert (header.run, header.source, header.seq, header.sent_at) == (RUN, 2, 9, 77)
    assert (header.group, header.control_size, header.kind) == (5, 12, VectorMessage.kind)
    assert encoded[32:44] == bytes([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9])


def test_messages_of_other_runs_and_protocols_are_refused() -> None:
    encoded = PROTOCOLS["overlay"].codec(RUN, 3).encode(Message(2, 1))
    for codec in (
        PROTOCOLS["overlay"].codec(RUN + 1, 3),
        PROTOCOLS["timestamp"].codec(RUN, 3),
        PROTOCOLS["overlay"].codec(RUN, 2),
    ):
        with pytest.raises(WireError):
            codec.decode(encoded)


def test_every_protocol_has_a_name_and_a_wire_id_of_its_own() -> None:
    assert len({protocol.wire_id for protocol in PROTOCOLS.values()}) == len(PROTOCOLS)
    assert all(protocol.name == name for name, protocol in PROTOCOLS.items())
