"""The columns of captured packets, decoded in bulk from the packets' headers.

The headers of all packets of a block are copied into one array, a layer at a time and only when a
column needs it; a column is then a strided view of that array. A packet without such a header, or of
which too little was captured, has a null in the column.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from socket import IPPROTO_UDP
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from testbed.protocols.wire import HEADER, MAGIC, VERSION, Header

Columns = dict[str, "np.ma.MaskedArray[Any, Any]"]
Rows = NDArray[np.void]
Flags = NDArray[np.bool_]
Offsets = NDArray[np.int64]

LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2 = 1, 113, 276
PAD = 256  # bytes: more than all headers of a packet together, the wire format's included
ETHERTYPE_IPV4, ETHERTYPE_VLAN = 0x0800, 0x8100
CONTROL_MOST = 65_507  # bytes of a UDP datagram


class LinkType(NamedTuple):
    """A link type of libpcap, and the layout of its header."""

    name: str
    header: np.dtype[Any]


def _layout(size: int, **fields: tuple[str, int]) -> np.dtype[Any]:
    formats, offsets = zip(*fields.values(), strict=True)
    return np.dtype({"names": [*fields], "formats": formats, "offsets": offsets, "itemsize": size})


LINK_TYPES = {
    LINKTYPE_ETHERNET: LinkType("Ethernet", _layout(14, protocol=(">u2", 12))),
    LINKTYPE_LINUX_SLL: LinkType(
        "Linux SLL", _layout(16, protocol=(">u2", 14), direction=(">u2", 0))
    ),
    LINKTYPE_LINUX_SLL2: LinkType(
        "Linux SLL2",
        _layout(20, protocol=(">u2", 0), interface=(">u4", 4), direction=("u1", 10)),
    ),
}
IP_HEADER = _layout(
    20,
    version=("u1", 0),
    length=(">u2", 2),
    identification=(">u2", 4),
    fragment=(">u2", 6),
    protocol=("u1", 9),
    source=(">u4", 12),
    destination=(">u4", 16),
)
UDP_HEADER = _layout(8, source=(">u2", 0), destination=(">u2", 2), length=(">u2", 4))


def _wire_layout() -> np.dtype[Any]:
    """The header of the wire format as a NumPy type."""
    kinds = {"s": "S", "x": "V", "B": "u1", "H": ">u2", "I": ">u4", "Q": ">u8"}
    names = iter(("magic", "version", *Header._fields))
    fields = re.findall(r"(\d*)([a-zA-Z])", HEADER.format)
    layout = np.dtype(
        [("" if kind == "x" else next(names), kinds[kind] + count) for count, kind in fields]
    )
    assert layout.itemsize == HEADER.size
    return layout


WIRE_HEADER = _wire_layout()


def rows(data: bytearray, at: Offsets, layout: np.dtype[Any]) -> Rows:
    """The headers at these offsets, as one array."""
    everywhere = np.ndarray(len(data) - layout.itemsize + 1, f"V{layout.itemsize}", data, 0, (1,))
    return everywhere[at].view(layout)


class Layer(NamedTuple):
    """The headers of one layer, where they begin, and which were captured as a whole."""

    header: Rows
    at: Offsets
    there: Flags


@dataclass
class Headers:
    """The headers of a block of packets, layer by layer."""

    data: bytearray
    at: Offsets  # of the packets' records
    record_layout: np.dtype[Any]
    nanoseconds: int
    link_type: LinkType
    lost: Offsets

    @cached_property
    def record(self) -> Rows:
        """The headers that the capture gives its packets."""
        return rows(self.data, self.at, self.record_layout)

    @cached_property
    def _captured(self) -> Offsets:
        """Where what was captured of each packet ends."""
        captured: Offsets = self.at + self.record_layout.itemsize + self.record["captured"]
        return captured

    def _layer(self, header: Rows, at: Offsets, is_such: Flags | bool = True) -> Layer:
        return Layer(header, at, is_such & (at + header.itemsize <= self._captured))

    @cached_property
    def link(self) -> Layer:
        """The link-layer header."""
        at = self.at + self.record_layout.itemsize
        return self._layer(rows(self.data, at, self.link_type.header), at)

    @cached_property
    def ip(self) -> Layer:
        """The IPv4 header."""
        link, at, _ = self.link
        protocol, at = link["protocol"], at + link.itemsize
        tagged = np.flatnonzero(protocol == ETHERTYPE_VLAN)
        if len(tagged):
            protocol = protocol.copy()
            protocol[tagged] = rows(self.data, at[tagged] + 2, np.dtype(">u2"))
            at[tagged] += 4
        header = rows(self.data, at, IP_HEADER)
        is_ip = (protocol == ETHERTYPE_IPV4) & (header["version"] - np.uint8(0x45) <= 0x0A)
        return self._layer(header, at, is_ip)

    @cached_property
    def udp(self) -> Layer:
        """The UDP header, of the first or only fragment."""
        header, at, is_ip = self.ip
        ip_bytes = (header["version"] & np.uint8(15)).astype(np.int64) * 4
        at = at + ip_bytes
        is_udp = is_ip & (header["protocol"] == IPPROTO_UDP) & (header["fragment"] & 0x1FFF == 0)
        is_udp &= header["length"] >= ip_bytes + UDP_HEADER.itemsize
        return self._layer(rows(self.data, at, UDP_HEADER), at, is_udp)

    @cached_property
    def wire(self) -> Layer:
        """The header of the testbed's wire format."""
        udp, at, is_udp = self.udp
        at = at + UDP_HEADER.itemsize
        header = rows(self.data, at, WIRE_HEADER)
        ours = is_udp & (header["magic"] == MAGIC) & (header["version"] == VERSION)
        ours &= udp["length"] >= UDP_HEADER.itemsize + WIRE_HEADER.itemsize
        ours &= header["control_size"] <= CONTROL_MOST
        return self._layer(header, at, ours)

    def column(self, name: str) -> np.ma.MaskedArray[Any, Any]:
        """The values of one of ``COLUMNS``; nulls are masked."""
        column = COLUMNS[name]
        if column.layer is None:
            return np.ma.MaskedArray(column.get(self).astype(column.type, copy=False))
        header, _, there = getattr(self, column.layer)
        if column.layer == "link" and name not in header.dtype.names:
            return np.ma.MaskedArray(np.zeros(len(self.lost), column.type), True)
        return np.ma.MaskedArray(column.get(header).astype(column.type, copy=False), ~there)


@dataclass(frozen=True)
class Column:
    """A column's type, the layer without whose header it is null, and how to compute its values.

    They are computed from the headers of that layer, or from all.
    """

    type: DTypeLike
    layer: str | None
    get: Callable[[Any], NDArray[Any]]


def _time(headers: Headers) -> NDArray[np.int64]:
    seconds, fraction = (headers.record[name].astype(np.int64) for name in ("seconds", "fraction"))
    time: NDArray[np.int64] = seconds * 1_000_000_000 + fraction * headers.nanoseconds
    return time


COLUMNS = {
    "time": Column(np.int64, None, _time),
    "interface": Column(np.int32, "link", itemgetter("interface")),
    "direction": Column(np.int16, "link", itemgetter("direction")),
    "length": Column(np.int32, None, lambda h: h.record["length"]),
    "captured": Column(np.int32, None, lambda h: h.record["captured"]),
    "ip_length": Column(np.int32, "ip", itemgetter("length")),
    "source_ip": Column(np.int64, "ip", itemgetter("source")),
    "destination_ip": Column(np.int64, "ip", itemgetter("destination")),
    "ip_protocol": Column(np.int16, "ip", itemgetter("protocol")),
    "identification": Column(np.int32, "ip", itemgetter("identification")),
    "fragment_offset": Column(
        np.int32, "ip", lambda ip: (ip["fragment"] & 0x1FFF).astype(np.int32) * 8
    ),
    "more_fragments": Column(np.bool_, "ip", lambda ip: ip["fragment"] & 0x2000 != 0),
    "source_port": Column(np.int32, "udp", itemgetter("source")),
    "destination_port": Column(np.int32, "udp", itemgetter("destination")),
    "wire_protocol": Column(np.int16, "wire", itemgetter("protocol")),
    "kind": Column(np.int16, "wire", itemgetter("kind")),
    "channel_words": Column(np.int16, "wire", itemgetter("channel_words")),
    "group": Column(np.int32, "wire", itemgetter("group")),
    "run": Column(np.int64, "wire", itemgetter("run")),
    "source": Column(np.int32, "wire", itemgetter("source")),
    "seq": Column(np.int64, "wire", itemgetter("seq")),
    "sent_at": Column(np.int64, "wire", itemgetter("sent_at")),
    "control": Column(np.int32, "wire", itemgetter("control_size")),
    "lost_bytes": Column(np.int64, None, lambda h: h.lost),
}
