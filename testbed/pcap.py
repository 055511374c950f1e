"""Reads the captures of a run into arrays, one element a packet, in the order of capture."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testbed.errors import UserError

FILE_HEADER = struct.Struct("<IHHiIII")
RECORD_HEADER = struct.Struct("<IIII")
NANOSECOND_MAGIC = 0xA1B23C4D
LINUX_SLL2 = 276
COOKED = 20  # bytes of the cooked header before the IP header

Column = NDArray[np.int64]


@dataclass(frozen=True)
class Packets:
    """Columns: when and where a packet came in, and what its IP header says."""

    time: Column  # nanoseconds since 1970
    interface: Column  # the kernel's number of the interface
    length: Column  # of the IP packet
    source: Column  # IP addresses, as numbers
    destination: Column
    identification: Column
    fragment: Column  # offset in bytes of an IP fragment

    def __len__(self) -> int:
        return len(self.time)


def read_packets(directory: Path) -> Packets:
    """All captures of a run's ``packets`` directory."""
    parts = [_read_file(file) for file in sorted(directory.glob("*.pcap"))]
    if not parts:
        raise UserError(f"{directory}: no captures; was the run emulated to its end?")
    columns = zip(*parts, strict=True)
    return Packets(*(np.concatenate(column) for column in columns))


def _read_file(file: Path) -> tuple[Column, ...]:
    data = file.read_bytes()
    if len(data) < FILE_HEADER.size:
        raise UserError(f"{file}: too short for a capture")
    magic, *_, link_type = FILE_HEADER.unpack_from(data)
    if (magic, link_type) != (NANOSECOND_MAGIC, LINUX_SLL2):
        raise UserError(f"{file}: not a nanosecond capture of cooked packets (SLL2)")
    records = np.array(list(_records(data)), np.int64).reshape(-1, 2)
    time, offset = records[:, 0], records[:, 1]
    octets = np.frombuffer(data, np.uint8)

    def field(at: int, size: int) -> Column:
        value = np.zeros(len(offset), np.int64)
        for k in range(size):
            value = value << 8 | octets[offset + at + k]
        return value

    return (
        time,
        field(4, 4),
        field(COOKED + 2, 2),
        field(COOKED + 12, 4),
        field(COOKED + 16, 4),
        field(COOKED + 4, 2),
        (field(COOKED + 6, 2) & 0x1FFF) * 8,
    )


def _records(data: bytes) -> Iterator[tuple[int, int]]:
    """Time and place of each record that is whole."""
    at = FILE_HEADER.size
    while at + RECORD_HEADER.size <= len(data):
        seconds, nanoseconds, captured, _ = RECORD_HEADER.unpack_from(data, at)
        at += RECORD_HEADER.size
        if at + captured > len(data):
            return
        if captured >= COOKED + 20:
            yield seconds * 1_000_000_000 + nanoseconds, at
        at += captured
