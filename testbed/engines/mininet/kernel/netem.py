"""Delay, bandwidth, queue and loss of a link's direction, by netem on the interface where it begins.

netem with both ``rate`` and ``delay`` *is* a store-and-forward link: it lets a packet go at
max(now + delay, the one before) + bytes·8/rate (sch_netem.c), which is to wait for those before, to
take one's time, and to propagate, to the nanosecond and from the moment of arrival, so that a late
timer does not push back those behind. But its limit counts the packets that propagate too. Where a
queue is limited there are two netems: the outer one delays, the inner one has the rate and counts. A
constant delay may come before the queue as well as after it: the same packets are dropped, the others
arrive at the same time.

Faults of a link are netem's too: it loses and duplicates, and a lower rate makes it slow. A netem can
let a share of the packets pass at once and delay the rest; one of these after all others makes the
rest late. A condition that has passed leaves it there, without effect: to remove it would lose what it
holds.

Measured against the model, in virtual time, at 10 Mbit/s and 1 Gbit/s, with packets of 74 to 1514
bytes alone and back to back, this is right to some nanoseconds. Mininet's htb above netem is early by
up to 2.5 ms, tbf by 1.3 ms: they let a burst pass at once, and single packets take no time at all.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from testbed.engines.mininet.kernel import netlink
from testbed.engines.mininet.kernel.netlink import Netlink, Request, attribute, attributes
from testbed.engines.mininet.plan import PlannedLink
from testbed.errors import UserError
from testbed.faults import Condition

_OUTER, _INNER, _LAST = 0x1_0000, 0x2_0000, 0x3_0000  # handles, as 1:, 2: and 3:
_ANY = 0x7FFF_FFFF
_OPTIONS = struct.Struct("=6I")  # latency (in ticks), limit, loss, gap, duplicate, jitter
_RATE = struct.Struct("=IiIi")  # rate, packet overhead, cell size, cell overhead
_TICK_NS = 64
_CHANCE = struct.Struct("=II")  # probability, correlation
_MOST = 0xFFFF_FFFF
PLAIN = Condition()


@dataclass(frozen=True)
class Netem:
    """The settings of one netem; a rate of 0 stands for none."""

    limit: int = _ANY
    delay_ns: int = 0
    loss: int = 0  # of 2³² - 1 packets
    rate: int = 0
    in_bits: bool = False  # the rate is of bits, not bytes, per second; see ``encode``
    duplication: int = 0
    at_once: int | None = None  # of 2³² - 1 packets, those that pass without the delay


Queues = dict[int, Netem]  # what an interface has: netems by their handles


def queues(link: PlannedLink, condition: Condition = PLAIN, reorders: bool = False) -> Queues:
    """What makes an interface behave like a link; ``reorders`` if it ever did, or is to."""
    bps = max(1, round(link.bandwidth_bps / condition.slowness))
    in_bits = bps % 8 != 0
    rate = bps if in_bits else bps // 8
    loss = round((1 - (1 - link.loss) * (1 - condition.loss)) * _MOST)
    duplication = round(condition.duplication * _MOST)
    if not link.queue_packets:
        found = {_OUTER: Netem(_ANY, link.delay_ns, loss, rate, in_bits, duplication)}
    else:
        # One more than may wait: the one that is being sent.
        found = {
            _OUTER: Netem(delay_ns=link.delay_ns, loss=loss, duplication=duplication),
            _INNER: Netem(limit=link.queue_packets + 1, rate=rate, in_bits=in_bits),
        }
    if condition.reordering:
        at_once = round((1 - condition.reordering) * _MOST)
        found[_LAST] = Netem(delay_ns=condition.late_ns, at_once=at_once)
    elif reorders:
        found[_LAST] = Netem()
    return found


def requests(index: int, wanted: Queues, name: str, change: bool = False) -> Iterator[Request]:
    """What to ask of the kernel to set them up on an interface, or to change those there are."""
    parent = netlink.TC_ROOT
    for handle, netem in wanted.items():
        body = struct.pack("=BxxxiIII", 0, index, handle, parent, 0)
        body += attribute(1, "netem") + attribute(2, encode(netem))  # TCA_KIND, TCA_OPTIONS
        yield Request(netlink.NEWQDISC, body, f"set the queue of {name}", change)
        parent = handle + 1  # the only class of a netem


def read_back(
    kernel: Netlink, wanted: Mapping[str, tuple[int, Queues]], said: str, advice: str = ""
) -> None:
    """See that interfaces have what they were ``said`` to have, by name and number."""
    found: defaultdict[int, Queues] = defaultdict(dict)
    for index, handle, options in _netems(kernel):
        found[index][handle] = decode(options[2])
    for name, (index, queues) in wanted.items():
        if found[index] != queues:
            difference = f"wanted {queues}, found {found[index]}"
            raise UserError(f"the queue of {name} is not what {said}: {difference}{advice}")


def losses(kernel: Netlink) -> dict[str, int]:
    """Packets that netem has lost so far: by chance, as it was told, and for want of room."""
    drops = dict.fromkeys((_OUTER, _INNER, _LAST), 0)
    for _, handle, options in _netems(kernel):
        queue = attributes(options[7])[3]  # TCA_STATS2, TCA_STATS_QUEUE
        _, _, dropped = struct.unpack_from("=III", queue)
        drops[handle] += dropped
    # what finds no room in the inner one is counted by the outer one as well
    return {"lost": drops[_OUTER] - drops[_INNER], "dropped": drops[_INNER]}


def _netems(kernel: Netlink) -> Iterator[tuple[int, int, dict[int, bytes]]]:
    """Interface, handle and attributes of every netem."""
    for answer in kernel.dump(netlink.GETQDISC, struct.pack("=BxxxiIII", 0, 0, 0, 0, 0)):
        _, index, handle, _, _ = struct.unpack_from("=BxxxiIII", answer)
        options = attributes(answer[20:])
        if options[1] == b"netem\0":
            yield index, handle, options


def encode(netem: Netem) -> bytes:
    """As the kernel is told."""
    ticks = min(netem.delay_ns // _TICK_NS, _MOST)
    gap = int(netem.at_once is not None)
    options = _OPTIONS.pack(ticks, netem.limit, netem.loss, gap, netem.duplication, 0)
    options += attribute(10, struct.pack("=q", netem.delay_ns))  # TCA_NETEM_LATENCY64
    if netem.at_once is not None:
        options += attribute(3, _CHANCE.pack(netem.at_once, 0))  # TCA_NETEM_REORDER
    if netem.rate:
        # A rate is of bytes per second, and bits may not divide by 8. But netem knows cells (of
        # ATM): if each byte is a cell with an overhead of 7, then it counts bits.
        cell = (1, 7) if netem.in_bits else (0, 0)
        options += attribute(6, _RATE.pack(min(netem.rate, _MOST), 0, *cell))  # TCA_NETEM_RATE
        if netem.rate > _MOST:
            options += attribute(8, struct.pack("=Q", netem.rate))  # TCA_NETEM_RATE64
    return options


def decode(options: bytes) -> Netem:
    """As the kernel tells."""
    _, limit, loss, gap, duplication, _ = _OPTIONS.unpack_from(options)
    more = attributes(options[_OPTIONS.size :])
    (delay_ns,) = struct.unpack("=q", more[10])
    rate, _, cell, _ = _RATE.unpack(more[6]) if 6 in more else (0, 0, 0, 0)
    if 8 in more:
        (rate,) = struct.unpack("=Q", more[8])
    at_once = _CHANCE.unpack(more[3])[0] if gap else None
    return Netem(limit, delay_ns, loss, rate, cell == 1, duplication, at_once)
