"""Segments on the wire: one encoding each, and strange bytes are only ever refused."""

from binascii import crc_hqx

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Message, Overlay, Place, Protocol, Timestamp, WireError
from testbed.protocols.channel import Reliable
from testbed.protocols.channel.segments import ACK_KIND, ChannelHeader, Segment, SegmentCodec
from testbed.protocols.wire import CHECK, CHECK_AT, HEADER, MAGIC, VERSION, decode_header
from tests.protocols.test_wire import messages

RUN, PROCESSES = 0xC0FFEE, 5
U12, U32 = st.integers(0, 4095), st.integers(0, 2**32 - 1)
PROTOCOLS = pytest.mark.parametrize("protocol", [Overlay, Timestamp])


def codec_of(protocol: type[Protocol]) -> SegmentCodec:
    codec = Reliable(protocol(Place(0, PROCESSES))).codec(RUN, PROCESSES)
    assert isinstance(codec, SegmentCodec)
    return codec


beyonds = st.integers(0, 2**200)
streams = st.integers(1, 127)
numbered = st.one_of(  # a copy for many, a message in the stream for one, a copy again for one
    st.tuples(U12, st.just(0), streams, st.just(False), U32, st.none(), st.just(0)),
    st.tuples(U12, U12, st.just(0), st.just(False), U32, U32, beyonds),
    st.tuples(U12, U12, streams, st.booleans(), U32, U32, beyonds),
).map(ChannelHeader._make)
acks = st.tuples(U12, U12, st.integers(0, 127), st.just(False), st.none(), U32, beyonds).map(
    ChannelHeader._make
)


@st.composite
def segments(draw: st.DrawFn, protocol: type[Protocol]) -> Segment:
    if draw(st.booleans()):
        return Segment(draw(st.integers(0, PROCESSES - 1)), 0, channel=draw(acks))
    return Segment.of(draw(messages(protocol.messages[0], PROCESSES)), draw(numbered))


@PROTOCOLS
@given(data=st.data())
def test_what_is_accounted_is_what_is_sent_and_comes_back(
    protocol: type[Protocol], data: st.DataObject
) -> None:
    codec = codec_of(protocol)
    segment = data.draw(segments(protocol))
    encoded = codec.encode(segment)
    assert len(encoded) == segment.size
    decoded = codec.decode(encoded)
    assert decoded.channel == segment.channel
    assert codec.encode(decoded) == encoded
    if segment.message is None:
        assert decoded.message is None
        assert segment.channel_size == segment.size
    else:
        assert decoded.message is not None
        raw = protocol.codec(RUN, PROCESSES)
        assert raw.encode(decoded.message) == raw.encode(segment.message)
        assert segment.size == segment.message.size + segment.channel_size
        assert segment.control_size == segment.message.control_size + segment.channel_size


@PROTOCOLS
@given(data=st.data())
def test_a_packet_is_attributed_by_the_common_header(
    protocol: type[Protocol], data: st.DataObject
) -> None:
    segment = data.draw(segments(protocol))
    header = decode_header(codec_of(protocol).encode(segment))
    assert (header.source, header.seq, header.sent_at) == (
        segment.source,
        segment.seq,
        segment.sent_at,
    )
    assert (header.group, header.kind) == (segment.group, segment.kind)
    assert header.control_size == segment.control_size
    assert header.channel_words == segment.channel.words
    assert (header.kind == ACK_KIND) == (segment.message is None)


def test_the_bytes_of_a_segment_are_those_of_the_document() -> None:
    channel = ChannelHeader(3, 2, stream=1, start=True, number=9, ack=7, beyond=0b101)
    encoded = codec_of(Overlay).encode(Segment.of(Message(2, 5, b"data"), channel))
    assert encoded[5] == 4
    assert encoded[32:48].hex(" ", 4) == "81003002 00000009 00000007 00000005"
    assert encoded[48:] == b"data"


@PROTOCOLS
@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_the_wire_error(protocol: type[Protocol], data: bytes) -> None:
    with pytest.raises(WireError):
        codec_of(protocol).decode(data)


@PROTOCOLS
@given(data=st.data())
def test_damaged_and_truncated_segments_are_refused(
    protocol: type[Protocol], data: st.DataObject
) -> None:
    codec = codec_of(protocol)
    encoded = bytearray(codec.encode(data.draw(segments(protocol))))
    bit = data.draw(st.integers(0, 8 * len(encoded) - 1))
    with pytest.raises(WireError):
        codec.decode(bytes(encoded[: bit // 8]))
    encoded[bit // 8] ^= 1 << bit % 8
    with pytest.raises(WireError):
        codec.decode(bytes(encoded))


@PROTOCOLS
@given(
    words=st.integers(0, 8),
    kind=st.sampled_from([0, 1, ACK_KIND]),
    control=st.binary(max_size=48),
    names=st.sampled_from([(0, 0), (3, 9)]),
    payload=st.binary(max_size=4),
)
def test_bytes_with_the_right_check_are_a_segment_in_its_one_encoding_or_refused(
    protocol: type[Protocol],
    words: int,
    kind: int,
    control: bytes,
    names: tuple[int, int],
    payload: bytes,
) -> None:
    seq, sent_at = names
    header = (protocol.wire_id, kind, words, 0, RUN, 1, 0, seq, sent_at, len(control))
    data = bytearray(HEADER.pack(MAGIC, VERSION, *header) + control + payload)
    CHECK.pack_into(data, CHECK_AT, crc_hqx(data, 0))
    codec = codec_of(protocol)
    try:
        segment = codec.decode(bytes(data))
    except WireError:
        return
    assert codec.encode(segment) == data


def test_segments_and_messages_are_not_taken_for_each_other() -> None:
    message = Message(2, 1, b"x")
    raw, reliable = Overlay.codec(RUN, PROCESSES), codec_of(Overlay)
    channel = ChannelHeader(0, number=1, ack=0)
    with pytest.raises(WireError, match="this run has none"):
        raw.decode(reliable.encode(Segment.of(message, channel)))
    with pytest.raises(WireError, match="too few"):
        reliable.decode(raw.encode(message))
    assert (message.channel_size, message.channel_words) == (0, 0)
