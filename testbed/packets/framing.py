"""How a message becomes packets: UDP in IPv4 fragments on Ethernet, or bare as in the papers.

The papers' 32-byte header stands for everything that a transport adds, so in their accounting a
message is cut into packets of its own bytes and nothing else. On a real link each fragment also
carries an Ethernet and an IP header, and the first one UDP's.
"""

from functools import cache
from typing import Literal

Framing = Literal["udp", "bare"]

ETHERNET_BYTES, IP_BYTES, UDP_BYTES = 14, 20, 8
LONGEST_DATAGRAM = 65_535 - IP_BYTES - UDP_BYTES


@cache
def frames(message_bytes: int, mtu: int, framing: Framing) -> tuple[int, ...]:
    """The bytes on the link of each packet of a message."""
    if framing == "bare":
        room, left, header = mtu, message_bytes, 0
    elif message_bytes > LONGEST_DATAGRAM:
        raise ValueError(f"a message of {message_bytes:,} bytes does not fit into a datagram")
    else:  # fragments are cut at multiples of eight bytes
        room, left, header = mtu - IP_BYTES, message_bytes + UDP_BYTES, ETHERNET_BYTES + IP_BYTES
        if left > room:
            room -= room % 8
    sizes = []
    while left > room:
        sizes.append(room + header)
        left -= room
    return (*sizes, left + header)


def flows_of(largest: int, mtu: int) -> tuple[int, ...]:
    """The sizes of datagrams that make all flows of messages up to this size: fragments are their own.

    What no datagram carries is refused when it is sent, so it makes none.
    """
    largest = min(largest, LONGEST_DATAGRAM)
    return (1,) if len(frames(largest, mtu, "udp")) == 1 else (1, largest)
