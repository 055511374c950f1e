"""Reads captures in bulk: finds the records of a pcap file, splits it, decodes packets into columns.

A pcap file has no separators between its records: each header only says how long its record is. To
begin in the middle, every offset of a window as long as the longest record is tried, and those are
kept from which a chain of well-formed headers leads to the end of the data. The true chain is always
among them, so an offset that all chains have in common begins a record. Where there is none, because a
payload looks like a capture, the records are walked from the last known offset. After a damaged record
the same search finds the next one.

A header is well-formed if its fraction of a second is less than a second, and if it captured no more
than the packet's length, which is at least a byte and at most ``LONGEST``.
"""

import glob
import logging
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from testbed.errors import UserError
from testbed.packets.headers import LINK_TYPES, LINKTYPE_LINUX_SLL2, PAD, Columns, Headers, rows

FILE_HEADER = struct.Struct("IHHiIII")
RECORD = np.dtype([("seconds", "u4"), ("fraction", "u4"), ("captured", "u4"), ("length", "u4")])
# magic in the file's byte order: fractions in a second
MAGICS = {0xA1B2C3D4: 1_000_000, 0xA1B23C4D: 1_000_000_000}
PCAPNG = b"\x0a\x0d\x0d\x0a"
CAPTURED_MOST = 262_144  # libpcap reads no longer records
LONGEST = 1 << 20  # bytes of a packet; Linux hands over at most half of that in one piece
BLOCK_BYTES = 4 << 20
ALIKE = 64  # records of the same size, after which others are looked for
STRETCH = 4096  # in so many at a time
REACH_LEAST = 2 * CAPTURED_MOST + (64 << 10)  # how far chains are followed
REACH_MOST = 16 << 20

Offsets = NDArray[np.int64]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PcapPart:
    """A byte range of a file, from the beginning of a record to that of another, or the end."""

    start: int
    end: int
    lost: int = 0  # unreadable bytes before the start


@dataclass(frozen=True)
class PcapFile:
    """A pcap file whose header has been read."""

    path: str
    size: int
    order: Literal["<", ">"]  # byte order
    fractions: int  # in a second: microseconds or nanoseconds
    link: int

    def read(self, at: int, size: int) -> bytearray:
        """The bytes at an offset, followed by ``PAD`` zeros; bytes beyond the end are zero too."""
        data = bytearray(size + PAD)
        with open(self.path, "rb") as file:
            file.seek(at)
            file.readinto(memoryview(data)[:size])
        return data

    def well_formed(self, data: bytearray, at: Offsets) -> NDArray[np.bool_]:
        """Which of these offsets in the data look like a record's header."""
        header = rows(data, at, RECORD.newbyteorder(self.order))
        return self._plausible(header["fraction"], header["captured"], header["length"])

    def _plausible(
        self, fraction: NDArray[np.uint32], captured: NDArray[np.uint32], length: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:
        return (
            (captured <= CAPTURED_MOST)
            & (length - np.uint32(1) < LONGEST)  # zero wraps around
            & (captured <= length)
            & (fraction < self.fractions)
        )

    def walk(self, data: bytearray) -> tuple[Offsets, int]:
        """Offsets of the headers in data that begins with a record, and where the last record ends."""
        captured = struct.Struct(self.order + "I").unpack_from
        last = len(data) - PAD - RECORD.itemsize
        found: list[Offsets] = []
        some: list[int] = []
        at = size = alike = 0
        while at <= last:
            some.append(at)
            before, size = size, RECORD.itemsize + captured(data, at + 8)[0]
            at += size
            alike = alike + 1 if size == before else 0
            if alike == ALIKE:  # there may be many more
                more = self._alike(data, at, min(last, at + (STRETCH - 1) * size), size)
                found += [np.array(some), at + size * np.arange(more)]
                at += size * more
                some, alike = [], ALIKE - 1 if more == STRETCH else 0
        return np.concatenate([*found, np.array(some, np.int64)]), at

    def _alike(self, data: bytearray, at: int, last: int, size: int) -> int:
        """How many records have this size, one after the other, up to an offset."""
        if at > last:
            return 0
        count = (last - at) // size + 1
        captured = np.ndarray(count, self.order + "u4", data, at + 8, (size,))
        others = np.flatnonzero(captured != size - RECORD.itemsize)
        return int(others[0]) if len(others) else count

    def chains(self, start: int, size: int) -> dict[int, int]:
        """Offsets of well-formed headers in a range, each with the next one; only unbroken chains."""
        size = min(size, self.size - start)
        data = self.read(start, size)
        count = max(0, size - RECORD.itemsize + 1)
        fraction, captured, length = (
            np.ndarray(count, self.order + "u4", data, offset, (1,)) for offset in (4, 8, 12)
        )
        at = np.flatnonzero(self._plausible(fraction, captured, length))
        leads = at + RECORD.itemsize + captured[at]
        lasting: dict[int, int] = {}
        for here, there in zip(at[::-1].tolist(), leads[::-1].tolist(), strict=True):
            if there >= count or start + there in lasting:
                lasting[start + here] = start + there
        return lasting

    def boundary(self, start: int, stop: int, known: int | None = None) -> int | None:
        """The offset of a record at or after ``start`` that ends by ``stop``, if there is one.

        With the ``known`` offset of an earlier record the answer is certain unless the file is
        damaged: where the chains are ambiguous, the records are walked from there. Without it, the
        answer is the first likely one.
        """
        while start < stop:
            window = start + RECORD.itemsize + CAPTURED_MOST
            chains, first, common = self._search(start, window)
            likely = min((at for at in first if chains[at] <= stop), default=None)
            if first and known is None:
                return likely
            if common is not None:
                return common if chains[common] <= stop else None
            if first and known is not None:
                walked = self._walk_to(known, start)
                return likely if walked is None else walked if self._end(walked) else None
            start = window
        return None

    def _search(self, start: int, window: int) -> tuple[dict[int, int], list[int], int | None]:
        """The chains from an offset on, where those in the window begin, and where they all meet."""
        reach = REACH_LEAST
        while True:
            chains = self.chains(start, reach)
            first = [at for at in chains if at < window]
            common = _meeting(chains, first)
            if common is not None or not first or reach >= min(REACH_MOST, self.size - start):
                return chains, first, common
            reach *= 4

    def _walk_to(self, at: int, goal: int) -> int | None:
        """The first record at or after the goal, walking from a known one; None if one is damaged."""
        while at < goal:
            data = self.read(at, min(BLOCK_BYTES, self.size - at))
            found, leads = self.walk(data)
            if not len(found) or not self.well_formed(data, found).all():
                return None
            at += int(next(iter(found[found >= goal - at]), leads))
        return at if at < self.size else None

    def parts(self, part_bytes: int) -> list[PcapPart]:
        """The file in parts of about ``part_bytes``, each with at least one packet."""
        header = FILE_HEADER.size
        first = header if self._end(header) else self.boundary(header + 1, self.size)
        if first is None:
            return []
        starts = [first]
        # A part that began later might contain the end of a record only.
        last = self.size - RECORD.itemsize - CAPTURED_MOST
        for nominal in range(first + part_bytes, last + 1, part_bytes):
            if nominal >= self._end(starts[-1]):
                found = self.boundary(nominal, self.size, starts[-1])
                if found is None:
                    break
                starts.append(found)
        ends = [*starts[1:], self.size]
        lost = [first - header] + [0] * len(ends)
        return [PcapPart(*part) for part in zip(starts, ends, lost, strict=False)]

    def _end(self, at: int) -> int:
        """Where the record at an offset ends; 0 if there is none, or if it is cut short."""
        data = self.read(at, RECORD.itemsize)
        _, leads = self.walk(data)
        whole = self.well_formed(data, np.zeros(1, np.int64))[0] and at + leads <= self.size
        return at + leads if whole else 0

    def records(self, part: PcapPart) -> Iterator[tuple[bytearray, Offsets, Offsets]]:
        """The part in blocks: bytes, the offsets of records in them, and bytes lost next to each.

        The last two records of a block are repeated in the next: a record counts only once its
        successor is known to be well-formed, so there always is one to which a loss can be charged.
        """
        at, lost = part.start, part.lost
        while at < part.end:
            size = min(BLOCK_BYTES, part.end - at)
            data = self.read(at, size)
            found, leads = self.walk(data)
            good = self.well_formed(data, found)
            if good.all() and at + size < part.end:
                keep, gap, onward = len(found) - 2, 0, at + int(found[-2])
            elif good.all() and leads == size:
                keep, gap, onward = len(found), 0, part.end
            else:
                sound = int(np.argmin(good)) if not good.all() else len(found) - (leads > size)
                bad = int(found[sound]) if sound < len(found) else leads
                keep, gap, onward = self._beyond(part, at, found[:sound].tolist(), bad)
            beside = np.zeros(keep, np.int64)
            if keep:
                beside[0], lost = lost, 0
                beside[-1] += gap
            else:
                lost += gap
            yield data, found[:keep], beside
            at = onward

    def _beyond(self, part: PcapPart, at: int, sound: list[int], bad: int) -> tuple[int, int, int]:
        """After damage: the number of sound records, the bytes lost, and the offset to resume at.

        The last record before the damage may itself be the one whose length is wrong.
        """
        found = self.boundary(at + sound[-1] + 1, part.end)
        if found is not None and found < at + bad:
            return len(sound) - 1, found - at - sound[-1], found
        onward = part.end if found is None else found
        return len(sound), onward - at - bad, onward

    def columns(self, part: PcapPart, names: Sequence[str]) -> Iterator[Columns]:
        """The part's packets as columns, block by block; nulls are masked."""
        for headers in self.headers(part):
            yield {name: headers.column(name) for name in names}

    def headers(self, part: PcapPart) -> Iterator[Headers]:
        """The headers of the part's packets, block by block."""
        record = RECORD.newbyteorder(self.order)
        nanoseconds = 1_000_000_000 // self.fractions
        for data, places, lost in self.records(part):
            yield Headers(data, places, record, nanoseconds, LINK_TYPES[self.link], lost)


def _meeting(chains: dict[int, int], first: list[int]) -> int | None:
    """The first offset common to all chains that begin at these offsets."""
    through = dict.fromkeys(first, 1)
    for at in sorted(chains):
        if through.get(at) == len(first):
            return at
        if at in through:
            through[chains[at]] = through.get(chains[at], 0) + through[at]
    return None


def open_capture(path: Path | str) -> PcapFile:
    """Open a pcap file by reading its header; a ``UserError`` says what is wrong with it."""
    try:
        with open(path, "rb") as file:
            header = file.read(FILE_HEADER.size)
            size = file.seek(0, 2)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if header[:4] == PCAPNG:
        raise UserError(
            f"{path}: a pcapng capture; convert it to pcap with: editcap -F nsecpcap {path} NEW"
        )
    if len(header) < FILE_HEADER.size:
        what = f"only {len(header)} bytes" if header else "empty"
        raise UserError(f"{path}: {what}; a pcap capture begins with {FILE_HEADER.size} bytes")
    order: Literal["<", ">"] = "<" if header[0] in (0xD4, 0x4D) else ">"
    magic, *_, link = struct.unpack(order + FILE_HEADER.format, header)
    if magic not in MAGICS:
        raise UserError(f"{path}: not a nanosecond capture nor one in microseconds (pcap)")
    link &= 0xFFFF  # the upper bits are flags
    if link not in LINK_TYPES:
        known = ", ".join(f"{name} ({number})" for number, (name, *_) in LINK_TYPES.items())
        raise UserError(f"{path}: packets of link type {link}; known are {known}")
    return PcapFile(str(path), size, order, MAGICS[magic], link)


def open_captures(paths: Iterable[Path | str]) -> list[PcapFile]:
    """The captures that files, directories and globs name; in a directory those named ``*.pcap``.

    Each must be a capture. Only a file in a directory or a glob that is too short for a header, left
    by a capture that was stopped before it wrote anything, is skipped with a warning.
    """
    captures = []
    for path in paths:
        if Path(path).is_file():
            captures.append(open_capture(path))
            continue
        pattern = f"{glob.escape(str(path))}/*.pcap" if Path(path).is_dir() else str(path)
        files = [file for file in sorted(glob.glob(pattern)) if Path(file).is_file()]
        if not files:
            raise UserError(f"{path}: no captures; was the run emulated to its end?")
        for file in files:
            if Path(file).stat().st_size < FILE_HEADER.size:
                log.warning("%s: left out: it is too short for a capture", file)
            else:
                captures.append(open_capture(file))
    return captures


@dataclass(frozen=True)
class Packets:
    """Columns: when and at which interface a packet arrived, and what its IP header says."""

    time: Offsets  # nanoseconds since 1970
    interface: Offsets  # the kernel's interface index
    length: Offsets  # of the IP packet, in bytes
    source: Offsets  # IP addresses, as integers
    destination: Offsets
    identification: Offsets
    fragment: Offsets  # of an IP fragment, in bytes

    def __len__(self) -> int:
        return len(self.time)


def read_packets(directory: Path) -> Packets:
    """The IP packets of all captures of a run's ``packets`` directory, in the order of capture."""
    names = ["time", "interface", "ip_length", "source_ip", "destination_ip"]
    names += ["identification", "fragment_offset"]
    blocks = [[np.empty(0, np.int64)] * len(names)]
    for capture in open_captures([directory]):
        if capture.link != LINKTYPE_LINUX_SLL2:
            raise UserError(f"{capture.path}: not a capture of cooked packets (SLL2)")
        for part in capture.parts(capture.size):
            for block in capture.columns(part, names):
                is_ip = ~np.ma.getmaskarray(block["ip_length"])
                blocks.append([block[name].data[is_ip].astype(np.int64) for name in names])
    return Packets(*(np.concatenate(column) for column in zip(*blocks, strict=True)))
