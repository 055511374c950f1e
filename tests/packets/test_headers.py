"""The columns of a packet: link, IP, UDP and our own header, and what is not there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.packets.headers import (
    COLUMNS,
    LINKTYPE_ETHERNET,
    LINKTYPE_LINUX_SLL,
    LINKTYPE_LINUX_SLL2,
    PAD,
    WIRE_HEADER,
    rows,
)
from testbed.packets.pcap import open_capture
from testbed.protocols.wire import HEADER, Codec, Message
from tests.packets.captures import Record, ethernet, ipv4, sll, sll2, table, udp, write_capture

IPV4, IPV6 = 0x0800, 0x86DD


def message(**fields: Any) -> bytes:
    settings: Any = {"source": 3, "seq": 70_000, "sent_at": 1 << 40, "group": 9, "payload": b"p"}
    return Codec(2, (Message,), run=0xFEDCBA98, processes=5).encode(Message(**settings | fields))


def decoded(
    tmp_path: Path, frame: bytes, link: int = LINKTYPE_LINUX_SLL2, **record: int
) -> dict[str, Any]:
    path = write_capture(tmp_path / "x.pcap", [Record(frame, **record)], link=link)
    (row,) = table(open_capture(path), 1 << 20, *COLUMNS)
    return dict(zip(COLUMNS, row, strict=True))


LINK_COLUMNS = {"interface": None, "direction": None}
IP_COLUMNS = {
    "ip_length": 61,
    "source_ip": 0x0A000001,
    "destination_ip": 0x0A000002,
    "ip_protocol": 17,
    "identification": 77,
    "fragment_offset": 0,
    "more_fragments": False,
}
UDP_COLUMNS = {"source_port": 5000, "destination_port": 5001}
WIRE_COLUMNS = {
    "wire_protocol": 2,
    "kind": 0,
    "channel_words": 0,
    "group": 9,
    "run": 0xFEDCBA98,
    "source": 3,
    "seq": 70_000,
    "sent_at": 1 << 40,
    "control": 0,
}


def test_all_columns_of_a_message_are_decoded(tmp_path: Path) -> None:
    frame = sll2(IPV4, ipv4(udp(message()), identification=77), direction=4)
    assert decoded(tmp_path, frame, fraction=5, missing=3) == {
        "time": 1_700_000_000_000_000_005,
        "interface": 7,
        "direction": 4,
        "length": len(frame) + 3,
        "captured": len(frame),
        **IP_COLUMNS,
        **UDP_COLUMNS,
        **WIRE_COLUMNS,
        "lost_bytes": 0,
    }


@pytest.mark.parametrize(
    ("link", "frame", "expected"),
    [
        (LINKTYPE_ETHERNET, ethernet(IPV4, ipv4(udp(message()), identification=77)), LINK_COLUMNS),
        (
            LINKTYPE_ETHERNET,
            ethernet(IPV4, ipv4(udp(message()), identification=77), vlan=5),
            LINK_COLUMNS,
        ),
        (
            LINKTYPE_LINUX_SLL,
            sll(IPV4, ipv4(udp(message()), identification=77), direction=4),
            {"interface": None, "direction": 4},
        ),
        (
            LINKTYPE_LINUX_SLL2,
            sll2(IPV4, ipv4(udp(message()), options=bytes(40), identification=77)),
            {"interface": 7, "direction": 0, "ip_length": 101},
        ),
    ],
    ids=["Ethernet", "VLAN", "SLL", "SLL2 with IP options"],
)
def test_headers_are_found_behind_every_link_type(
    tmp_path: Path, link: int, frame: bytes, expected: dict[str, Any]
) -> None:
    wanted = IP_COLUMNS | UDP_COLUMNS | WIRE_COLUMNS | expected
    assert wanted.items() <= decoded(tmp_path, frame, link).items()


def nulls(row: dict[str, Any]) -> set[str]:
    return {name for name, value in row.items() if value is None}


def test_fragments_have_ports_and_our_header_only_in_the_first(tmp_path: Path) -> None:
    datagram = udp(message(payload=bytes(2000)))
    first = decoded(tmp_path, sll2(IPV4, ipv4(datagram[:1480], more_fragments=True)))
    assert first["more_fragments"]
    assert first["seq"] == 70_000
    rest = decoded(tmp_path, sll2(IPV4, ipv4(datagram[1480:], fragment_offset=1480)))
    assert (rest["fragment_offset"], rest["more_fragments"]) == (1480, False)
    assert nulls(rest) == {*UDP_COLUMNS, *WIRE_COLUMNS}


@pytest.mark.parametrize(
    ("frame", "absent"),
    [
        (sll2(IPV6, bytes(100)), {*IP_COLUMNS, *UDP_COLUMNS, *WIRE_COLUMNS}),
        (sll2(IPV4, b"\x60" + bytes(99)), {*IP_COLUMNS, *UDP_COLUMNS, *WIRE_COLUMNS}),
        (sll2(IPV4, ipv4(udp(message()), protocol=6)), {*UDP_COLUMNS, *WIRE_COLUMNS}),
        (sll2(IPV4, ipv4(udp(b"no" + message()[2:]))), {*WIRE_COLUMNS}),
        (sll2(IPV4, ipv4(udp(b"co\x02" + message()[3:]))), {*WIRE_COLUMNS}),
        (sll2(IPV4, ipv4(udp(b"")) + message()), {*WIRE_COLUMNS}),
        (sll2(IPV4, ipv4(udp(message())))[:79], {*WIRE_COLUMNS}),
        (sll2(IPV4, ipv4(udp(message())))[:47], {*UDP_COLUMNS, *WIRE_COLUMNS}),
        (sll2(IPV4, b"")[:19], {*LINK_COLUMNS, *IP_COLUMNS, *UDP_COLUMNS, *WIRE_COLUMNS}),
    ],
    ids=[
        "IPv6",
        "not IPv4",
        "TCP",
        "magic",
        "version",
        "padding",
        "cut in ours",
        "cut in UDP",
        "cut in link",
    ],
)
def test_what_is_not_there_is_null(tmp_path: Path, frame: bytes, absent: set[str]) -> None:
    assert nulls(decoded(tmp_path, frame)) == absent


@given(st.binary(min_size=29, max_size=29))
def test_our_header_is_laid_out_as_the_wire_format_has_it(random: bytes) -> None:
    data = b"co\x01" + random
    (row,) = rows(bytearray(data + bytes(PAD)), np.zeros(1, np.int64), WIRE_HEADER)
    assert row.tolist() == HEADER.unpack(data)
