"""What datagrams carry besides the message that their header names: packed, passed on or gossiped.

To know it, datagrams are decoded, whole: IP fragments are put together as they left their host.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from testbed.packets.framing import UDP_BYTES
from testbed.packets.pcap import PcapFile
from testbed.protocols import Message, MessageId, Protocol
from testbed.protocols.channel.segments import SegmentCodec
from testbed.protocols.wire import Codec, WireError, decode_header

Names = tuple[MessageId, ...]


def carriers(protocol: type[Protocol]) -> frozenset[int]:
    """The kinds of a protocol's messages that may carry others."""
    return frozenset(m.kind for m in protocol.messages if m.carried is not Message.carried)


class Datagram(NamedTuple):
    """What the fragments of a datagram have in common."""

    source_ip: int
    destination_ip: int
    identification: int


class Fragment(NamedTuple):
    """An IP packet as it left its host."""

    time: int
    datagram: Datagram
    offset: int
    more: bool
    data: bytes  # after its IP header


def fragments(capture: PcapFile, hosts: Collection[int]) -> Iterator[Fragment]:
    """The packets that arrived at these interfaces."""
    for part in capture.parts(capture.size):
        for headers in capture.headers(part):
            ip, at, there = headers.ip
            chosen = there & np.isin(headers.column("interface").filled(-1), [*hosts])
            begin = at + (ip["version"] & np.uint8(15)).astype(np.int64) * 4
            end = at + ip["length"]
            names = ("time", *Datagram._fields, "fragment_offset", "more_fragments")
            columns = (headers.column(name)[chosen].tolist() for name in names)
            for first, last, time, source, destination, name, offset, more in zip(
                begin[chosen], end[chosen], *columns, strict=True
            ):
                datagram = Datagram(source, destination, name)
                yield Fragment(time, datagram, offset, more, bytes(headers.data[first:last]))


@dataclass
class Contents:
    """Opens the datagrams of a run."""

    protocol: type[Protocol]
    processes: int
    channel: bool
    partial: dict[Datagram, list[Fragment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.carriers = carriers(self.protocol)

    def carried(self, fragment: Fragment) -> tuple[int, Names]:
        """When a datagram began, and what it carries, once all of it is there."""
        if not (fragment.offset or fragment.more):
            return fragment.time, self.inside(fragment.data[UDP_BYTES:])
        parts = self.partial.setdefault(fragment.datagram, [])
        if not fragment.offset:
            parts.clear()  # the identification is used again
        parts.append(fragment)
        data = b"".join(part.data for part in parts)  # hosts send them in order
        if parts[0].offset or len(data) != int.from_bytes(data[4:6], "big"):
            return fragment.time, ()
        return self.partial.pop(fragment.datagram)[0].time, self.inside(data[UDP_BYTES:])

    def inside(self, data: bytes) -> Names:
        """What a message carries; nothing, if these bytes are none of the protocol."""
        try:
            header = decode_header(data)
            if header.kind not in self.carriers:
                return ()
            kind = SegmentCodec if self.channel else Codec
            codec = kind(self.protocol.wire_id, self.protocol.messages, header.run, self.processes)
            return codec.decode(data).carried
        except WireError:
            return ()
