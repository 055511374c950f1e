"""Captures: records found in parts of any size, headers decoded in bulk, damage survived."""

import struct
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from testbed.errors import UserError
from testbed.packets import pcap
from testbed.packets.headers import LINKTYPE_ETHERNET
from testbed.packets.pcap import PcapFile, open_capture, open_captures, read_packets
from tests.packets.captures import (
    Record,
    file_header,
    ipv4,
    records_bytes,
    sll2,
    table,
    udp,
    write_capture,
)

IPV4, IPV6 = 0x0800, 0x86DD
# Small enough for several windows and blocks in a capture of some kilobytes.
SMALL: Any = {"CAPTURED_MOST": 400, "REACH_LEAST": 900, "REACH_MOST": 3600, "BLOCK_BYTES": 1300}
SMALL |= {"ALIKE": 2, "STRETCH": 3}


def by_scapy(path: Path) -> list[tuple[int, int, int]]:
    with RawPcapReader(str(path)) as reader:
        unit = 1 if reader.nano else 1000
        return [
            (int(meta.sec) * 10**9 + int(meta.usec) * unit, meta.caplen, meta.wirelen)
            for _, meta in reader
        ]


def plain(fractions: int) -> st.SearchStrategy[Record]:
    payloads = st.one_of(
        st.binary(min_size=1, max_size=300),
        st.integers(1, 300).map(bytes),
        st.builds(
            lambda word, n: struct.pack("<I", word) * n, st.integers(1, 70), st.integers(1, 60)
        ),
    )
    small = st.sampled_from([0, 1, 16, 100])
    return st.builds(
        Record,
        payloads,
        seconds=st.one_of(small, st.integers(1_600_000_000, 1_700_000_000)),
        fraction=st.one_of(small, st.integers(0, fractions - 1)),
        missing=st.one_of(st.just(0), st.integers(0, 2000)),
    )


@st.composite
def captures(draw: st.DrawFn) -> tuple[str, str, list[Record]]:
    """Byte order, unit and records, some with captures or pieces of captures in their payload."""
    order, unit = draw(st.sampled_from("<>")), draw(st.sampled_from(["us", "ns"]))
    simple = plain(10**9 if unit == "ns" else 10**6)

    def nested(inner: list[Record], begin: int, end: int, whole: bool) -> Record:
        data = (file_header(order, unit) if whole else b"") + records_bytes(inner, order)
        return Record(data[begin : len(data) - end][:400] or b"x")

    wrapped = st.builds(
        nested,
        st.lists(simple, min_size=1, max_size=6),
        st.sampled_from([0, 0, 4, 11]),
        st.sampled_from([0, 0, 1, 20]),
        st.booleans(),
    )
    several = st.tuples(st.one_of(simple, wrapped), st.sampled_from([1, 1, 1, 9]))
    drawn = draw(st.lists(several, min_size=1, max_size=40))
    return order, unit, [record for record, times in drawn for _ in range(times)]


@given(captures(), st.integers(1, 5000))
@example(("<", "us", [Record(bytes(288)), *[Record(bytes(399))] * 8]), 5000)  # to a block's end
def test_parts_of_any_size_are_together_what_scapy_reads(
    drawn: tuple[str, str, list[Record]], part_bytes: int
) -> None:
    order, unit, records = drawn
    with tempfile.TemporaryDirectory() as directory, patch.multiple(pcap, **SMALL):
        path = write_capture(Path(directory) / "x.pcap", records, order, unit)
        found = table(open_capture(path), part_bytes, "time", "captured", "length", "lost_bytes")
        assert [row[:3] for row in found] == by_scapy(path)
        assert not any(row[3] for row in found)


def shadow(count: int, size: int) -> list[Record]:
    """Payloads with a chain of their own: each false record ends in the next payload's."""
    false = struct.pack("<IIII", 1_700_000_000, 0, size, size)  # from payload to payload
    return [Record(b"\xff" * 8 + false + b"\xff" * (size - 24)) for _ in range(count)]


@pytest.mark.parametrize("part_bytes", [100, 1000, 7777])
def test_a_false_chain_that_never_ends_is_told_from_the_true_one(
    tmp_path: Path, part_bytes: int
) -> None:
    path = write_capture(tmp_path / "x.pcap", shadow(200, 100))
    with patch.multiple(pcap, **SMALL):
        capture = open_capture(path)
        assert capture.boundary(5000, capture.size) is not None  # a guess
        with patch.object(PcapFile, "_walk_to", side_effect=capture._walk_to) as walked:
            assert table(capture, part_bytes, "captured", "lost_bytes") == [(100, 0)] * 200
        assert walked.called


def test_ordinary_captures_are_split_without_a_walk(tmp_path: Path) -> None:
    frames = [sll2(IPV4, ipv4(udp(bytes(size)))) for size in range(500)]
    records = [Record(frame, fraction=k * 1_000_003) for k, frame in enumerate(frames)]
    capture = open_capture(write_capture(tmp_path / "x.pcap", records))
    with (
        patch.multiple(pcap, **SMALL | {"CAPTURED_MOST": 600}),
        patch.object(PcapFile, "_walk_to", side_effect=AssertionError),
    ):
        assert len(capture.parts(20_000)) == 8
        assert table(capture, 20_000, "captured") == [(len(frame),) for frame in frames]


@given(
    captures(),
    st.integers(100, 5000),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=40)), max_size=3),
    st.integers(0, 200),
)
def test_no_byte_of_a_damaged_capture_goes_unaccounted(
    drawn: tuple[str, str, list[Record]],
    part_bytes: int,
    damage: list[tuple[float, bytes]],
    missing: int,
) -> None:
    order, unit, records = drawn
    with tempfile.TemporaryDirectory() as directory, patch.multiple(pcap, **SMALL):
        path = write_capture(Path(directory) / "x.pcap", records, order, unit)
        data = bytearray(path.read_bytes())
        for where, what in damage:
            at = 24 + int(where * (len(data) - 24))
            data[at : at + len(what)] = what
        data = data[: max(24, len(data) - missing)]
        path.write_bytes(data)
        found = table(open_capture(path), part_bytes, "captured", "lost_bytes")
        if found:
            assert sum(16 + captured + lost for captured, lost in found) == len(data) - 24


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    """Records of 116 bytes, told apart by their times."""
    records = [Record(b"\xee" * 100, fraction=k) for k in range(100)]
    return write_capture(tmp_path / "x.pcap", records)


def times(path: Path, part_bytes: int = 1 << 20) -> tuple[list[int], dict[int, int]]:
    """Fractions of the packets' times, and where bytes were lost."""
    with patch.multiple(pcap, **SMALL) if part_bytes < 10_000 else nullcontext():
        found = table(open_capture(path), part_bytes, "time", "lost_bytes")
    return [t % 10**9 for t, _ in found], {t % 10**9: lost for t, lost in found if lost}


@pytest.mark.parametrize("part_bytes", [2000, 1 << 20])
@pytest.mark.parametrize("missing", [1, 99, 100, 110, 115])
def test_half_a_record_at_the_end_is_charged_to_the_one_before(
    hundred: Path, missing: int, part_bytes: int
) -> None:
    hundred.write_bytes(hundred.read_bytes()[:-missing])
    assert times(hundred, part_bytes) == (list(range(99)), {98: 116 - missing})


@pytest.mark.parametrize("part_bytes", [2000, 1 << 20])
@pytest.mark.parametrize("length", [0, 20, 116, 250, 5000, 10**6])
def test_a_record_with_a_wrong_length_is_lost_alone(
    hundred: Path, length: int, part_bytes: int
) -> None:
    data = bytearray(hundred.read_bytes())
    struct.pack_into("<II", data, 24 + 50 * 116 + 8, length, max(1, length))
    hundred.write_bytes(data)
    fractions, lost = times(hundred, part_bytes)
    assert [k for k in range(100) if k != 50] == [k for k in fractions if k != 50]
    assert lost == ({50: 100 - length} if length < 100 else {49: 116})


@pytest.mark.parametrize("part_bytes", [2000, 1 << 20])
def test_damage_at_the_beginning_is_charged_to_the_first_packet(
    hundred: Path, part_bytes: int
) -> None:
    data = bytearray(hundred.read_bytes())
    data[24 : 24 + 116 * 30] = b"\xff" * (116 * 30)
    hundred.write_bytes(data)
    assert times(hundred, part_bytes) == (list(range(30, 100)), {30: 116 * 30})


def test_zeros_are_no_packets(hundred: Path) -> None:
    hundred.write_bytes(hundred.read_bytes() + bytes(10_000))
    assert times(hundred) == (list(range(100)), {99: 10_000})


def test_a_capture_without_a_whole_packet_has_no_rows(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "x.pcap", [])
    assert times(path) == ([], {})
    path.write_bytes(path.read_bytes() + records_bytes([Record(b"hello")])[:-1])
    assert times(path) == ([], {})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", r"x: empty; a pcap capture begins with 24 bytes"),
        (file_header()[:10], r"x: only 10 bytes; a pcap capture begins with 24 bytes"),
        (b"\n\r\r\n" + bytes(40), r"x: a pcapng capture; .* editcap -F nsecpcap .*x NEW"),
        (b"GET / HTTP/1.1\r\nHost: nowhere\r\n", r"x: not a nanosecond capture"),
        (file_header(link=105), r"x: packets of link type 105; known are Ethernet \(1\)"),
    ],
)
def test_what_is_no_capture_is_told(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        open_captures([tmp_path / "x"])


def test_captures_come_from_files_directories_and_globs(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap", "c.cap"):
        write_capture(tmp_path / name, [])

    def names(*paths: Path) -> list[str]:
        return [Path(capture.path).name for capture in open_captures(paths)]

    assert names(tmp_path) == ["a.pcap", "b.pcap"]
    assert names(tmp_path / "*") == ["a.pcap", "b.pcap", "c.cap"]
    assert names(tmp_path / "c.cap", tmp_path / "[a]*") == ["c.cap", "a.pcap"]
    with pytest.raises(UserError, match=r"d\*: no captures"):
        names(tmp_path / "d*")


def test_in_a_directory_a_file_of_nothing_is_left_out_and_a_strange_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_capture(tmp_path / "a.pcap", [])
    (tmp_path / "b.pcap").touch()
    assert len(open_captures([tmp_path])) == 1
    assert "b.pcap: left out" in caplog.text
    (tmp_path / "c.pcap").write_bytes(bytes(100))
    with pytest.raises(UserError, match=r"c\.pcap: not a nanosecond capture"):
        open_captures([tmp_path])


def test_the_packets_of_a_run_are_its_ip_packets(tmp_path: Path) -> None:
    frames = [sll2(IPV4, ipv4(udp(bytes(k)), identification=k)) for k in range(3)]
    write_capture(tmp_path / "0.pcap", [Record(frames[0]), Record(sll2(IPV6, bytes(60)))])
    write_capture(tmp_path / "1.pcap", [Record(frame) for frame in frames[1:]])
    packets = read_packets(tmp_path)
    assert packets.identification.tolist() == [0, 1, 2]
    assert packets.length.tolist() == [28, 29, 30]
    assert packets.interface.tolist() == [7, 7, 7]
    write_capture(tmp_path / "2.pcap", [], link=LINKTYPE_ETHERNET)
    with pytest.raises(UserError, match=r"2\.pcap: not a capture of cooked packets"):
        read_packets(tmp_path)
