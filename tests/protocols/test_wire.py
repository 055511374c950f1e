"""The wire format: what is accounted is what is sent, and strange bytes are only ever refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import PROTOCOLS, Message, Protocol, WireError, phases
from testbed.protocols.bss import Vectors
from testbed.protocols.cluster.events import Event, EventGossip, EventId, Recover
from testbed.protocols.cluster.gossip import Ball
from testbed.protocols.cluster.lpbcast import News
from testbed.protocols.cluster.tickets.encoding import (
    Form,
    Many,
    Maybe,
    Process,
    Record,
    WordMessage,
)
from testbed.protocols.ks import KSMessage, to_dests
from testbed.protocols.rst import MatrixMessage
from testbed.protocols.timestamp import VectorMessage
from testbed.protocols.wire import HEADER, decode_header
from tests.protocols.executions import logs

U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
RUN, PROCESSES = 0xC0FFEE, 7
PROTOCOLS_HERE = {n: p for n, p in PROTOCOLS.items() if n != "daisy"}  # see test_views.py
PROCESS = st.integers(0, PROCESSES - 1)


@st.composite
def messages(draw: st.DrawFn, protocol: type[Protocol]) -> Message:
    """A message of each kind that the protocol has."""
    kind = draw(st.sampled_from(protocol.messages))
    common: dict[str, Any] = {
        "source": draw(PROCESS),
        "seq": draw(U32),
        "payload": draw(st.binary(max_size=60)),
        "sent_at": draw(U64),
        "group": draw(U16),
    }
    if kind is VectorMessage:
        entries = draw(st.lists(U32, min_size=PROCESSES, max_size=PROCESSES))
        return VectorMessage(**common, vector=np.array(entries, np.int64))
    some = st.sets(PROCESS)
    if kind is MatrixMessage:
        square = st.lists(U32, min_size=PROCESSES**2, max_size=PROCESSES**2)
        matrix = np.array(draw(square), np.int64).reshape(PROCESSES, PROCESSES)
        return MatrixMessage(**common, SENT=matrix, dests=tuple(sorted(draw(some))))
    if issubclass(kind, KSMessage):
        return kind(**common, dests=to_dests(draw(some)), olog=draw(logs(PROCESSES)))
    if issubclass(kind, phases.PhaseMessage):
        return kind(**common, stamp=tuple(draw(st.lists(U32, max_size=5))))
    if kind is Vectors:
        return Vectors(**common, VT=np.array(draw(st.lists(U32, max_size=9)), np.int64))
    if kind is Event:
        return Event(**common, **draw(stamps()))
    if kind is EventGossip:
        news = News(*draw(st.tuples(*(st.lists(of, max_size=3).map(tuple) for of in NEWS))))
        return EventGossip(**common, balls=tuple(draw(st.lists(balls(), max_size=3))), news=news)
    if kind is Recover:
        return Recover(**common, eids=tuple(EventId(*e) for e in draw(st.lists(EIDS, max_size=3))))
    if issubclass(kind, WordMessage):
        common |= {name: draw(values(form)) for name, form in kind.forms.items()}
        return kind(**common)
    assert kind is Message
    return Message(**common)


def values(form: Form) -> st.SearchStrategy[object]:
    """Whatever has that form."""
    if isinstance(form, Many):
        return st.lists(values(form.item), max_size=2).map(tuple)
    if isinstance(form, Record):
        return st.tuples(*map(values, form.forms)).map(lambda fields: form.kind(*fields))
    if isinstance(form, Maybe):
        return PROCESS | st.none()
    return PROCESS if isinstance(form, Process) else U32


NEWS = PROCESS, st.tuples(PROCESS, U16)
EIDS = st.tuples(U32, U32)


@st.composite
def stamps(draw: st.DrawFn) -> dict[str, Any]:
    """A ticket, and a vector in which it has sent something."""
    t = np.array(draw(st.lists(U32, min_size=1, max_size=4)), np.int64)
    ticket = draw(st.integers(0, len(t) - 1))
    t[ticket] |= 1
    return {"ticket": ticket, "t": t}


@st.composite
def balls(draw: st.DrawFn) -> Ball:
    """An event in a gossip message."""
    payload = draw(st.binary(max_size=9))
    event = Event(draw(PROCESS), draw(U32), payload, draw(U64), **draw(stamps()))
    return Ball(event.id, event, draw(U16))


def fields(message: Message) -> dict[str, object]:
    values = {
        name: getattr(message, name) for name in ("source", "seq", "payload", "sent_at", "group")
    }
    return {**values, "kind": message.kind, "control": message.encode_control()}


@pytest.mark.parametrize("protocol", PROTOCOLS_HERE.values(), ids=PROTOCOLS_HERE)
@given(data=st.data())
def test_what_is_accounted_is_what_is_sent(protocol: type[Protocol], data: st.DataObject) -> None:
    message = data.draw(messages(protocol))
    codec = protocol.codec(RUN, PROCESSES)
    encoded = codec.encode(message)
    assert len(encoded) == message.size
    assert len(encoded) == 32 + message.control_size + len(message.payload)
    assert fields(codec.decode(encoded)) == fields(message)
    assert codec.encode(codec.decode(encoded)) == encoded


@pytest.mark.parametrize("protocol", PROTOCOLS_HERE.values(), ids=PROTOCOLS_HERE)
@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_the_wire_error(protocol: type[Protocol], data: bytes) -> None:
    with pytest.raises(WireError):
        protocol.codec(RUN, PROCESSES).decode(data)


@pytest.mark.parametrize("protocol", PROTOCOLS_HERE.values(), ids=PROTOCOLS_HERE)
@given(data=st.data())
def test_damaged_messages_are_refused(protocol: type[Protocol], data: st.DataObject) -> None:
    codec = protocol.codec(RUN, PROCESSES)
    encoded = bytearray(codec.encode(data.draw(messages(protocol))))
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
