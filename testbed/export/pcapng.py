"""The captures of an emulated run as one pcapng file that names every direction of every link.

libpcap writes pcap, which has one kind of interface and no comments. Here each packet arrives at an
interface ``s3->s7`` (from switch to switch) or ``h3->s3`` (from a host), and has a comment: the message
in it and what it carries besides, the hop, how long it waited for the link and behind how many packets.
Wireshark filters by both: ``frame.interface_name == "s3->s7"``, ``frame.comment contains "m(3,7)"``.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import networkx as nx

from testbed.errors import UserError
from testbed.packets.contents import Contents, Datagram, Fragment, Names
from testbed.packets.framing import ETHERNET_BYTES
from testbed.packets.headers import LINK_TYPES, LINKTYPE_LINUX_SLL2
from testbed.packets.pcap import PcapFile, open_captures
from testbed.protocols import MessageId
from testbed.runs.directory import RunDirectory

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6  # types of blocks
BYTE_ORDER = 0x1A2B3C4D
COMMENT, NAME, DESCRIPTION, SPEED, RESOLUTION, APPLICATION = 1, 2, 3, 8, 9, 4  # types of options
NANOSECONDS = b"\x09"
SLL2_BYTES = LINK_TYPES[LINKTYPE_LINUX_SLL2].header.itemsize
MORE_FRAGMENTS = 0x20  # in a byte of the IP header
COLUMNS = (
    *("time", "interface", "length", "ip_length", "source_ip", "destination_ip"),
    *("identification", "fragment_offset", "source", "seq"),
)

Ends = tuple[int | None, int]  # where packets come from (None: the host) and to which switch


class Captured(NamedTuple):
    """A packet as it arrived at a switch; what its headers do not say is None."""

    data: bytes
    time: int
    interface: int | None
    length: int
    ip_length: int | None
    source_ip: int | None
    destination_ip: int | None
    identification: int | None
    fragment: int | None
    source: int | None
    seq: int | None


@dataclass
class Link:
    """One direction of a link, and when the packets that joined its queue leave it."""

    delay_ns: int
    bandwidth_bps: int
    free_at: int = 0
    starts: deque[int] = field(default_factory=deque)

    def wait(self, queued: int, size: int) -> tuple[int, int]:
        """How long a packet waits that joins the queue now, and behind how many packets."""
        while self.starts and self.starts[0] <= queued:
            self.starts.popleft()
        behind, start = len(self.starts), max(queued, self.free_at)
        self.starts.append(start)
        self.free_at = start + size * 8_000_000_000 // self.bandwidth_bps
        return start - queued, behind + (start > queued)


class Journeys:
    """Follows packets from switch to switch."""

    def __init__(self, links: Mapping[Ends, Link], contents: Contents) -> None:
        self.links = links
        self.contents = contents
        self.message: dict[tuple[int | None, ...], MessageId] = {}  # of each datagram
        self.carried: dict[tuple[int | None, ...], Names] = {}  # in it besides
        self.last: dict[tuple[int | None, ...], tuple[int, int]] = {}  # time and hops at a switch

    def comment(self, packet: Captured, ends: Ends) -> str:
        """What is known of a packet that has just arrived."""
        tail, head = ends
        datagram = packet.source_ip, packet.destination_ip, packet.identification
        if packet.source is not None and packet.seq is not None and packet.fragment == 0:
            self.message[datagram] = MessageId(packet.source, packet.seq)
        if tail is None and packet.ip_length is not None:
            self.carried[datagram] = self._carried(packet, packet.ip_length)
        words = [str(self.message[datagram])] if datagram in self.message else []
        if inside := self.carried.get(datagram):
            words.append(f"carrying {' '.join(map(str, inside))}")
        if packet.fragment:
            words.append(f"fragment at byte {packet.fragment}")
        name = *datagram, packet.fragment
        if tail is None:
            self.last[*name, head] = packet.time, 0
            words.append("sent by its host")
        elif (before := self.last.get((*name, tail))) is not None and packet.ip_length is not None:
            queued, hops = before
            self.last[*name, head] = packet.time, hops + 1
            waited, behind = self.links[ends].wait(queued, packet.ip_length + ETHERNET_BYTES)
            words.append(f"hop {hops + 1}")
            packets = "packet" if behind == 1 else "packets"
            words.append(
                f"queued {waited / 1e6:.6f} ms behind {behind} {packets}"
                if waited
                else "not queued"
            )
        return ", ".join(words)

    def _carried(self, packet: Captured, ip_length: int) -> Names:
        """What a datagram carries whose last packet has just left its host."""
        ip = packet.data[SLL2_BYTES:]
        name = packet.source_ip or 0, packet.destination_ip or 0, packet.identification or 0
        data, more = ip[4 * (ip[0] & 15) : ip_length], bool(ip[6] & MORE_FRAGMENTS)
        fragment = Fragment(packet.time, Datagram(*name), packet.fragment or 0, more, data)
        return self.contents.carried(fragment)[1]


def write_pcapng(run: RunDirectory) -> Iterator[bytes]:
    """The blocks of the file; a run without captures is refused before the first."""
    if not run.captures:
        raise UserError(
            f"{run.path}: no captures, which only emulated runs have; run the experiment with "
            "--engine virtual"
        )
    captures = open_captures([run.packets])
    if any(capture.link != LINKTYPE_LINUX_SLL2 for capture in captures):
        raise UserError(f"{run.packets}: not captures of cooked packets (SLL2)")
    interfaces = run.interfaces
    links = _links(run.network.graph)
    yield _block(SECTION, struct.pack("<IHHq", BYTE_ORDER, 1, 0, -1), {APPLICATION: b"testbed"})
    for ends in interfaces.values():
        yield _interface(ends, links)
    number = {index: i for i, index in enumerate(interfaces)}
    experiment = run.experiment
    contents = Contents(
        experiment.protocol, run.network.processes, channel=experiment.channel is not None
    )
    journeys = Journeys(links, contents)
    for packet in _packets(captures):
        if packet.interface is None or packet.interface not in interfaces:
            continue
        comment = journeys.comment(packet, interfaces[packet.interface])
        yield _packet(packet, number[packet.interface], comment)


def _links(graph: nx.Graph[int]) -> dict[Ends, Link]:
    return {
        ends: Link(link["delay_ns"], link["bandwidth_bps"])
        for a, b, link in graph.edges(data=True)
        for ends in ((a, b), (b, a))
    }


def _packets(captures: Iterable[PcapFile]) -> Iterator[Captured]:
    for capture in captures:
        for part in capture.parts(capture.size):
            for headers in capture.headers(part):
                columns = [headers.column(name).tolist() for name in COLUMNS]
                begins = (headers.at + headers.record.itemsize).tolist()
                sizes = headers.record["captured"].tolist()
                for at, size, *values in zip(begins, sizes, *columns, strict=True):
                    yield Captured(bytes(headers.data[at : at + size]), *values)


def _interface(ends: Ends, links: Mapping[Ends, Link]) -> bytes:
    tail, head = ends
    options = {NAME: f"h{head}->s{head}".encode(), RESOLUTION: NANOSECONDS}
    if tail is not None:
        link = links[ends]
        speed = link.bandwidth_bps
        options[NAME] = f"s{tail}->s{head}".encode()
        options[DESCRIPTION] = f"{link.delay_ns / 1e6:g} ms, {speed / 1e6:g} Mbit/s".encode()
        options[SPEED] = struct.pack("<Q", speed)
    return _block(INTERFACE, struct.pack("<HHI", LINKTYPE_LINUX_SLL2, 0, 0), options)


def _packet(packet: Captured, interface: int, comment: str) -> bytes:
    high, low = packet.time >> 32, packet.time & 0xFFFFFFFF
    fixed = struct.pack("<IIIII", interface, high, low, len(packet.data), packet.length)
    return _block(PACKET, fixed + _padded(packet.data), {COMMENT: comment.encode()})


def _block(kind: int, body: bytes, options: dict[int, bytes]) -> bytes:
    listed = b"".join(
        struct.pack("<HH", option, len(value)) + _padded(value) for option, value in options.items()
    )
    length = struct.pack("<I", 12 + len(body) + len(listed) + 4)
    return struct.pack("<I", kind) + length + body + listed + bytes(4) + length


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)
