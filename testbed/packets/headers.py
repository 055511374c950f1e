"""The columns of captured packets, decoded in bulk from the packets' headers.

The headers of all packets of a block are copied into one array, a layer at a time and only when a
column needs it; a column is then a strided view of that array. A packet without such a header, or of
which too little was captured, has a null in the column.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from socket import IPPROTO_UDP
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from testbed.protocols.wire import HEADER, MAGIC, VERSION, Header

Columns = dict[str, "np.ma.MaskedArray[Any, Any]"]
Rows = NDArray[np.void]
Flags = NDArray[np.bool_]

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


def rows(data: bytearray, at: NDArray[np.int64], layout: np.dtype[Any]) -> Rows:
    """The headers at these offsets, as one array."""
    everywhere = np.ndarray(len(data) - layout.itemsize + 1, f"V{layout.itemsize}", data, 0, (1,))
    return everywhere[at].view(layout)


class Headers:
    """The headers of a block of packets, layer by layer."""

    def __init__(
        self,
        data: bytearray,
        at: NDArray[np.int64],
        record: np.dtype[Any],
        nanoseconds: int,
        link_type: LinkType,
        lost: NDArray[np.int64],
    ) -> None:
        self.data = data
        self.nanoseconds = nanoseconds
        self.lost = lost
        self.layout = link_type.header
        self.record = rows(data, at, record)
        self._frame_at = at + record.itemsize
        self._captured = self._frame_at + self.record["captured"]

    def _there(self, at: NDArray[np.int64], layout: np.dtype[Any]) -> Flags:
        there: Flags = at + layout.itemsize <= self._captured
        return there

    @cached_property
    def link(self) -> Rows:
        """The link-layer header."""
        return rows(self.data, self._frame_at, self.layout)

    @cached_property
    def has_link(self) -> Flags:
        """Whether the link-layer header was captured as a whole."""
        return self._there(self._frame_at, self.layout)

    @cached_property
    def _ip(self) -> tuple[Rows, NDArray[np.int64], Flags]:
        protocol = self.link["protocol"]
        at = self._frame_at + self.layout.itemsize
        tagged = np.flatnonzero(protocol == ETHERTYPE_VLAN)
        if len(tagged):
            protocol = protocol.copy()
            protocol[tagged] = rows(self.data, at[tagged] + 2, np.dtype(">u2"))
            at[tagged] += 4
        header = rows(self.data, at, IP_HEADER)
        is_ip = (protocol == ETHERTYPE_IPV4) & (header["version"] - np.uint8(0x45) <= 0x0A)
        return header, at, is_ip & self._there(at, IP_HEADER)

    @property
    def ip(self) -> Rows:
        """The IPv4 header."""
        return self._ip[0]

    @property
    def has_ip(self) -> Flags:
        """Whether the packet is IPv4 and its header was captured as a whole."""
        return self._ip[2]

    @cached_property
    def _udp(self) -> tuple[Rows, NDArray[np.int64], Flags]:
        header, at, is_ip = self._ip
        ip_bytes = (header["version"] & np.uint8(15)).astype(np.int64) * 4
        at = at + ip_bytes
        is_udp = is_ip & (header["protocol"] == IPPROTO_UDP) & (header["fragment"] & 0x1FFF == 0)
        is_udp &= header["length"] >= ip_bytes + UDP_HEADER.itemsize
        return rows(self.data, at, UDP_HEADER), at, is_udp & self._there(at, UDP_HEADER)

    @property
    def udp(self) -> Rows:
        """The UDP header."""
        return self._udp[0]

    @property
    def has_udp(self) -> Flags:
        """Whether this is UDP, the first or only fragment, and its header was captured as a whole."""
        return self._udp[2]

    @cached_property
    def _wire(self) -> tuple[Rows, Flags]:
        udp, at, is_udp = self._udp
        at = at + UDP_HEADER.itemsize
        header = rows(self.data, at, WIRE_HEADER)
        ours = is_udp & (header["magic"] == MAGIC) & (header["version"] == VERSION)
        ours &= udp["length"] >= UDP_HEADER.itemsize + WIRE_HEADER.itemsize
        ours &= header["control_size"] <= CONTROL_MOST
        return header, ours & self._there(at, WIRE_HEADER)

    @property
    def wire(self) -> Rows:
        """The header of the testbed's wire format."""
        return self._wire[0]

    @property
    def has_wire(self) -> Flags:
        """Whether the datagram is a message of the testbed, its header captured as a whole."""
        return self._wire[1]

    def column(self, name: str) -> np.ma.MaskedArray[Any, Any]:
        """The values of one of ``COLUMNS``; nulls are masked."""
        column = COLUMNS[name]
        if column.layer == "link" and name not in (self.layout.names or ()):
            return np.ma.MaskedArray(np.zeros(len(self.lost), column.type), True)
        values = column.get(self).astype(column.type, copy=False)
        if column.layer is None:
            return np.ma.MaskedArray(values)
        return np.ma.MaskedArray(values, ~getattr(self, f"has_{column.layer}"))


@dataclass(frozen=True)
class Column:
    """A column's type, the header without which it is null, and how to compute its values."""

    type: DTypeLike
    layer: str | None
    get: Callable[[Headers], NDArray[Any]]


def _time(headers: Headers) -> NDArray[np.int64]:
    seconds, fraction = (headers.record[name].astype(np.int64) for name in ("seconds", "fraction"))
    time: NDArray[np.int64] = seconds * 1_000_000_000 + fraction * headers.nanoseconds
    return time


COLUMNS = {
    "time": Column(np.int64, None, _time),
    "interface": Column(np.int32, "link", lambda h: h.link["interface"]),
    "direction": Column(np.int16, "link", lambda h: h.link["direction"]),
    "length": Column(np.int32, None, lambda h: h.record["length"]),
    "captured": Column(np.int32, None, lambda h: h.record["captured"]),
    "ip_length": Column(np.int32, "ip", lambda h: h.ip["length"]),
    "source_ip": Column(np.int64, "ip", lambda h: h.ip["source"]),
    "destination_ip": Column(np.int64, "ip", lambda h: h.ip["destination"]),
    "ip_protocol": Column(np.int16, "ip", lambda h: h.ip["protocol"]),
    "identification": Column(np.int32, "ip", lambda h: h.ip["identification"]),
    "fragment_offset": Column(
        np.int32, "ip", lambda h: (h.ip["fragment"] & 0x1FFF).astype(np.int32) * 8
    ),
    "more_fragments": Column(np.bool_, "ip", lambda h: h.ip["fragment"] & 0x2000 != 0),
    "source_port": Column(np.int32, "udp", lambda h: h.udp["source"]),
    "destination_port": Column(np.int32, "udp", lambda h: h.udp["destination"]),
    "wire_protocol": Column(np.int16, "wire", lambda h: h.wire["protocol"]),
    "kind": Column(np.int16, "wire", lambda h: h.wire["kind"]),
    "channel_words": Column(np.int16, "wire", lambda h: h.wire["channel_words"]),
    "group": Column(np.int32, "wire", lambda h: h.wire["group"]),
    "run": Column(np.int64, "wire", lambda h: h.wire["run"]),
    "source": Column(np.int32, "wire", lambda h: h.wire["source"]),
    "seq": Column(np.int64, "wire", lambda h: h.wire["seq"]),
    "sent_at": Column(np.int64, "wire", lambda h: h.wire["sent_at"]),
    "control": Column(np.int32, "wire", lambda h: h.wire["control_size"]),
    "lost_bytes": Column(np.int64, None, lambda h: h.lost),
}
