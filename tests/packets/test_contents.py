"""What datagrams carry besides the message that their header names, read from captures."""

from pathlib import Path

from testbed.packets.contents import Contents, carriers, fragments
from testbed.packets.pcap import open_capture
from testbed.protocols import PROTOCOLS, Message, MessageId
from testbed.protocols.channel.segments import ChannelHeader, Segment, SegmentCodec
from testbed.protocols.daisy import Daisy
from testbed.protocols.groups.laden_cast import LadenCast
from testbed.protocols.groups.messages import Cast, Silence
from testbed.protocols.groups.packing import Pack
from testbed.protocols.groups.passed import Passed
from tests.packets.captures import Record, ipv4, sll2, udp, write_capture

HOST, LINK = 7, 8  # interfaces
START = 1_700_000_000 * 10**9
LADEN = LadenCast(1, 4, attached=(Cast(0, 1, b"first"), Cast(2, 9, bytes(900))))
PACK = Pack.of(3, [Cast(0, 2, b"x"), LADEN, Cast(2, 5, bytes(700))])
INSIDE = tuple(MessageId(*name) for name in ((0, 2), (1, 4), (0, 1), (2, 9), (2, 5)))


def capture(tmp_path: Path, *datagrams: bytes, size: int = 4000) -> Path:
    """Datagrams with one identification, cut into fragments, which leave a host and cross a link."""
    records: list[Record] = []
    for data in datagrams:
        whole = udp(data)
        for at in range(0, len(whole), size):
            part, more = whole[at : at + size], at + size < len(whole)
            packet = ipv4(part, identification=5, fragment_offset=at, more_fragments=more)
            for interface in (HOST, LINK):
                records.append(Record(sll2(0x0800, packet, interface), fraction=len(records)))
    return write_capture(tmp_path / "some.pcap", records)


def found(path: Path, channel: bool = False) -> list[tuple[int, tuple[MessageId, ...]]]:
    contents = Contents(Daisy, 5, channel)
    told = map(contents.carried, fragments(open_capture(path), [HOST]))
    return [(at - START, names) for at, names in told if names]


def encoded(message: Message) -> bytes:
    return Daisy.codec(7, 5).encode(message)


def test_whatever_is_inside_is_named_however_deep(tmp_path: Path) -> None:
    assert PACK.carried == INSIDE
    assert found(capture(tmp_path, encoded(PACK))) == [(0, INSIDE)]
    passed = Passed(4, 0, sender=1, to=2, inner=LADEN)
    assert found(capture(tmp_path, encoded(passed))) == [(0, INSIDE[1:4])]
    assert found(capture(tmp_path, encoded(LADEN))) == [
        (0, INSIDE[2:4])
    ]  # its header says the rest


def test_fragments_are_put_together_when_the_last_is_there(tmp_path: Path) -> None:
    other = encoded(Passed(4, 0, sender=1, to=2, inner=Cast(0, 3, bytes(900))))
    path = capture(tmp_path, encoded(PACK), other, size=800)
    assert found(path) == [(0, INSIDE), (6, (MessageId(0, 3),))]


def test_what_lacks_a_fragment_is_not_mixed_with_the_next_of_its_identification(
    tmp_path: Path,
) -> None:
    data = encoded(PACK)
    path = capture(tmp_path, data, data, size=800)
    first, *others = fragments(open_capture(path), [HOST])
    contents = Contents(Daisy, 5, channel=False)
    told = [contents.carried(fragment)[1] for fragment in (first, *others[1:])]
    assert told == [(), (), (), (), INSIDE]
    assert not contents.partial


def test_a_channel_s_header_and_strange_bytes_are_no_obstacle(tmp_path: Path) -> None:
    codec = SegmentCodec(Daisy.wire_id, Daisy.messages, 7, 5)
    header = ChannelHeader(incarnation=0, number=1, ack=0)
    segment = codec.encode(Segment.of(PACK, header))
    assert found(capture(tmp_path, segment), channel=True) == [(0, INSIDE)]
    damaged = bytes([*segment[:-1], segment[-1] ^ 1])
    strange = (
        damaged,
        b"co",
        b"",
        encoded(Silence(1, 0)),
        codec.encode(Segment(1, 0, channel=header)),
    )
    for data in strange:
        assert found(capture(tmp_path, data), channel=True) == []
    assert found(capture(tmp_path, encoded(PACK)), channel=True) == []  # which has no such header


def test_only_protocols_whose_messages_carry_others_are_looked_into() -> None:
    those = {name for name, protocol in PROTOCOLS.items() if carriers(protocol)}
    layered = {"daisy", "wait-stable", "broadcast-all", "piggyback"}
    assert those == {*layered, "cluster", "clusters"}
