"""Captures made by hand, for tests."""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from testbed.packets.headers import LINKTYPE_LINUX_SLL2
from testbed.packets.pcap import PcapFile

MAGICS = {"us": 0xA1B2C3D4, "ns": 0xA1B23C4D}


class Record(NamedTuple):
    """A captured packet."""

    payload: bytes
    seconds: int = 1_700_000_000
    fraction: int = 0
    missing: int = 0  # bytes that the packet had and that were not captured


def file_header(order: str = "<", unit: str = "ns", link: int = LINKTYPE_LINUX_SLL2) -> bytes:
    return struct.pack(order + "IHHiIII", MAGICS[unit], 2, 4, 0, 0, 262_144, link)


def records_bytes(records: Iterable[Record], order: str = "<") -> bytes:
    return b"".join(
        struct.pack(
            order + "IIII", r.seconds, r.fraction, len(r.payload), len(r.payload) + r.missing
        )
        + r.payload
        for r in records
    )


def write_capture(
    path: Path,
    records: Iterable[Record],
    order: str = "<",
    unit: str = "ns",
    link: int = LINKTYPE_LINUX_SLL2,
) -> Path:
    path.write_bytes(file_header(order, unit, link) + records_bytes(records, order))
    return path


def sll2(protocol: int, payload: bytes, interface: int = 7, direction: int = 0) -> bytes:
    return struct.pack(">HHIHBB8s", protocol, 0, interface, 1, direction, 6, b"") + payload


def sll(protocol: int, payload: bytes, direction: int = 0) -> bytes:
    return struct.pack(">HHH8sH", direction, 1, 6, b"", protocol) + payload


def ethernet(protocol: int, payload: bytes, vlan: int | None = None) -> bytes:
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    return b"\x02" * 12 + tag + struct.pack(">H", protocol) + payload


def ipv4(
    payload: bytes,
    protocol: int = 17,
    options: bytes = b"",
    identification: int = 0,
    fragment_offset: int = 0,
    more_fragments: bool = False,
) -> bytes:
    header = struct.pack(
        ">BBHHHBBHII",
        0x45 + len(options) // 4,
        0,
        20 + len(options) + len(payload),
        identification,
        more_fragments << 13 | fragment_offset // 8,
        64,
        protocol,
        0,
        0x0A000001,
        0x0A000002,
    )
    return header + options + payload


def udp(payload: bytes, source: int = 5000, destination: int = 5001, length: int = 0) -> bytes:
    return struct.pack(">HHHH", source, destination, length or 8 + len(payload), 0) + payload


def table(capture: PcapFile, part_bytes: int, *names: str) -> list[tuple[Any, ...]]:
    """These columns of all packets, read in parts of about this size."""
    found: list[tuple[Any, ...]] = []
    parts = capture.parts(part_bytes)
    assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
    for part in parts:
        before = len(found)
        for block in capture.columns(part, names):
            found += zip(*(block[name].tolist() for name in names), strict=True)
        assert len(found) > before
    return found
