"""Speaks rtnetlink (RFC 3549): many requests in one message, and one answer.

In a user-mode kernel a system call costs more than what it does. So a network is not set up by a
command or a call for each step: hundreds of requests travel together, and those that need an
interface's number know it, because it was asked for when the interface was made. The numbers here are
those of linux/rtnetlink.h, if_link.h and pkt_sched.h, which never change.
"""

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

NEWLINK, SETLINK, NEWADDR, NEWROUTE, NEWNEIGH, NEWQDISC, GETQDISC = 16, 19, 20, 24, 28, 36, 38
_ERROR, _DONE = 2, 3
_REQUEST, _ACK, _DUMP, _EXCL, _CREATE = 0x1, 0x4, 0x300, 0x200, 0x400
_HEADER = struct.Struct("=IHHII")
_AT_ONCE = 200  # requests in one message: what is sent must fit a socket's buffer
_ANSWER = 1 << 16

IFF_UP, IFF_NOARP = 0x1, 0x80
TC_ROOT = 0xFFFF_FFFF


class NetlinkError(OSError):
    """The kernel refused a request."""


@dataclass(frozen=True)
class Request:
    """A request, and in words what it does, for the error message.

    What it makes must not be there yet, unless it may ``change`` it.
    """

    kind: int
    body: bytes
    what: str
    change: bool = False


@dataclass(frozen=True)
class End:
    """One end of a veth pair as it shall be; ``namespace`` is the descriptor of where."""

    name: str
    index: int
    mac: str
    namespace: int
    flags: int = 0


class Netlink(AbstractContextManager["Netlink"]):
    """A socket to the kernel in the namespace in which it was made."""

    def __init__(self, family: int = socket.NETLINK_ROUTE) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, requests: Sequence[Request]) -> None:
        """Make requests, in this order; raise NetlinkError at the first that is refused."""
        for first in range(0, len(requests), _AT_ONCE):
            last = min(first + _AT_ONCE, len(requests)) - 1
            message = b""
            for number in range(first, last + 1):
                # Refusals come unasked; so it is enough to be told that the last one is done.
                request = requests[number]
                flags = _REQUEST | _CREATE | (0 if request.change else _EXCL)
                flags |= _ACK if number == last else 0
                message += _message(request.kind, flags, number, request.body)
            self.socket.send(message)
            done = False
            while not done:
                for kind, number, body in self._receive():
                    if kind == _ERROR:
                        _raise(body, requests[number].what)
                        done = done or number == last

    def dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """Everything of a kind."""
        self.socket.send(_message(kind, _REQUEST | _DUMP, 0, body))
        while True:
            for answer, _, content in self._receive():
                if answer == _DONE:
                    return
                if answer == _ERROR:
                    _raise(content, "list what is there")
                yield content

    def _receive(self) -> Iterator[tuple[int, int, bytes]]:
        data = self.socket.recv(_ANSWER)
        while data:
            length, kind, _, sequence, _ = _HEADER.unpack_from(data)
            yield kind, sequence, data[_HEADER.size : length]
            data = data[(length + 3) & ~3 :]


def attribute(kind: int, value: bytes | str | int) -> bytes:
    """An attribute; numbers are of 32 bits, texts end with a zero."""
    if isinstance(value, str):
        value = value.encode() + b"\0"
    elif isinstance(value, int):
        value = struct.pack("=I", value)
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes in an answer."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[max(4, (length + 3) & ~3) :]
    return found


def veth(one: End, two: End, mtu: int) -> Request:
    """Make a pair of interfaces, each where it belongs, with its number.

    The first may be made up at once, the second not, for then the first is not there yet.
    """
    peer = attribute(1, _end(two, mtu))  # VETH_INFO_PEER
    info = attribute(1, "veth") + attribute(2, peer)  # IFLA_INFO_KIND, IFLA_INFO_DATA
    body = _end(one, mtu) + attribute(18, info)  # IFLA_LINKINFO
    return Request(NEWLINK, body, f"make the link {one.name} – {two.name}")


def link_up(index: int) -> Request:
    """Bring an interface up that is there already."""
    return Request(SETLINK, _interface(index, IFF_UP), f"bring up interface {index}")


def link_down(index: int) -> Request:
    """Take an interface down; what waits in its queue is gone."""
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, 0, IFF_UP)
    return Request(SETLINK, body, f"take down interface {index}")


def address(index: int, ip: str) -> Request:
    """Give an interface an address of its own, with no neighbours (/32)."""
    ip_bytes = socket.inet_aton(ip)
    body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, index)
    body += attribute(1, ip_bytes) + attribute(2, ip_bytes)  # IFA_ADDRESS, IFA_LOCAL
    return Request(NEWADDR, body, f"give the address {ip}")


def default_route(index: int, gateway: str) -> Request:
    """Send everything to a gateway that is on this link although no address says so (onlink)."""
    unicast, main, static, universe, onlink = 1, 254, 4, 0, 4
    body = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, 0, 0, 0, main, static, universe, unicast, onlink
    )
    body += attribute(5, socket.inet_aton(gateway)) + attribute(4, index)  # RTA_GATEWAY, RTA_OIF
    return Request(NEWROUTE, body, f"set the route through {gateway}")


def neighbour(index: int, ip: str, mac: str) -> Request:
    """Say once and for all which MAC address an address has."""
    permanent = 0x80
    body = struct.pack("=BxxxiHBB", socket.AF_INET, index, permanent, 0, 0)
    body += attribute(1, socket.inet_aton(ip)) + attribute(2, _mac(mac))  # NDA_DST, NDA_LLADDR
    return Request(NEWNEIGH, body, f"set the MAC address of {ip}")


def generic_family(name: str) -> Request:
    """See that the kernel knows a family of generic netlink, and load its module if need be."""
    body = struct.pack("=BBH", 3, 1, 0) + attribute(2, name)  # CTRL_CMD_GETFAMILY, its name
    return Request(0x10, body, f"find {name}")  # GENL_ID_CTRL


def _message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    message = _HEADER.pack(_HEADER.size + len(body), kind, flags, sequence, 0) + body
    return message + bytes(-len(message) % 4)


def _raise(body: bytes, what: str) -> None:
    code = -struct.unpack_from("=i", body)[0]
    if code:
        raise NetlinkError(code, f"cannot {what}: {os.strerror(code)}")


def _interface(index: int, flags: int) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)


def _end(end: End, mtu: int) -> bytes:
    return b"".join(
        (
            _interface(end.index, end.flags),
            attribute(3, end.name),  # IFLA_IFNAME
            attribute(1, _mac(end.mac)),  # IFLA_ADDRESS
            attribute(4, mtu),  # IFLA_MTU
            attribute(28, end.namespace),  # IFLA_NET_NS_FD
            attribute(31, 1),  # IFLA_NUM_TX_QUEUES: one, lest packets overtake each other
            attribute(32, 1),  # IFLA_NUM_RX_QUEUES
        )
    )


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
