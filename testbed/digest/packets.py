"""What crossed the links, packet by packet, from captures or from the simulator's own table.

Two tables: ``sent``, what processes handed to the network, and ``hops``, each packet on each link.
A capture sees a packet as it arrives at a switch: from a host (it was sent) or over a link (a hop has
ended; it began when the same packet arrived at the switch before). Only the first fragment of a
message has the message's header; the others have the same addresses and identification.

So all that is captured of a datagram is brought together and sorted. Then what belongs to a packet is
the nearest row before it: of its datagram, the first fragment as the host sent it; of itself, its last
arrival at the switch that it comes from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from testbed.digest.arrays import (
    Integers,
    grouped,
    integers,
    latest,
    numbered,
    order_of,
    runs_of,
    with_columns,
)
from testbed.digest.steps import MESSAGE, Facts, Piece, Tables
from testbed.digest.timeline import intervals
from testbed.engines.mininet.plan import host_ip
from testbed.packets.framing import ETHERNET_BYTES, IP_BYTES, UDP_BYTES
from testbed.packets.headers import COLUMNS, Columns
from testbed.packets.pcap import PcapFile, PcapPart

HEADER = ["source", "seq", "kind", "control"]
NO_HEADERS = pa.table(
    {name: pa.nulls(0, pa.from_numpy_dtype(COLUMNS[name].type)) for name in HEADER}
)
PACKET = ("at", "tail", "head", "fragment", "bytes")
CAPTURED = [
    *("time", "interface", "ip_length", "source_ip", "destination_ip", "identification"),
    *("fragment_offset", *HEADER, "lost_bytes"),
]
FIRST_HOST_IP = int(IPv4Address(host_ip(0)))
MULTICAST_NET = 0xE0000000
Places = NDArray[np.int32]
HOST, NOWHERE = -1, -2  # what a packet comes from if it is no switch


class Captured(NamedTuple):
    """Packets sorted by datagram and time, column by column."""

    at: Integers
    tail: Places
    head: Places
    pair: Integers  # of sender and destination
    identification: Integers
    fragment: Integers
    bytes: Integers
    datagram: Integers  # its number
    header: Integers  # the number of its datagram's, or -1


@dataclass(frozen=True)
class CapturePart:
    """A part of a capture."""

    run: int
    file: PcapFile
    part: PcapPart

    @property
    def size(self) -> int:
        """In bytes."""
        return self.part.end - self.part.start

    weight = size

    def pieces(self, facts: Facts) -> Iterator[Piece]:
        """The packets of the run by their datagrams, and the headers that first fragments have."""
        tails, _ = _places(facts)
        blocks, lost = [], 0
        for block in self.file.columns(self.part, CAPTURED):
            lost += int(block["lost_bytes"].sum())
            blocks.append(_packets(block, facts.start, tails))
        yield facts.total("lost_bytes", pa.table({"bytes": [lost]}))
        if blocks:
            packets, headers = (
                pa.concat_tables(each).combine_chunks() for each in zip(*blocks, strict=True)
            )
            name = np.abs(integers(packets, "pair") * 31 + integers(packets, "identification"))
            first = np.asarray(packets["first"])
            yield from facts.spread("datagram", "packets", packets, name)
            yield from facts.spread("datagram", "headers", headers, name[first])


@dataclass(frozen=True)
class TablePart:
    """A row group of the simulator's table of packets."""

    run: int
    number: int  # of the row group
    size: int

    @property
    def weight(self) -> int:
        """By its size."""
        return self.size

    def pieces(self, facts: Facts) -> Iterator[Piece]:
        """The rows, as they are."""
        with pq.ParquetFile(facts.packet_table) as file:
            columns = [name for name in file.schema_arrow.names if name != "carried"]
            rows = file.read_row_group(self.number, columns)
        yield from facts.spread("simulated", "packets", rows, np.full(len(rows), self.number))


def _places(facts: Facts) -> tuple[Places, Places]:
    """Tail and head of each interface, by its number; what is no link of the network is nowhere."""
    tails, heads = np.full((2, max(facts.places, default=0) + 2), NOWHERE, np.int32)
    for interface, (tail, head) in facts.places.items():
        if tail is None or (tail, head) in facts.links:
            tails[interface], heads[interface] = HOST if tail is None else tail, head
    return tails, heads


def _packets(block: Columns, start: int, tails: Places) -> tuple[pa.Table, pa.Table]:
    """The packets of a block that arrived at a switch of the run, and the headers of messages.

    Those that count: of first fragments as a host sent them, in the same order.
    """
    interface = np.minimum(block["interface"].filled(len(tails) - 1), len(tails) - 1)
    chosen = np.flatnonzero((tails[interface] != NOWHERE) & ~block["ip_length"].mask)
    rows = {name: column.data[chosen] for name, column in block.items()}
    first = (tails[interface[chosen]] == HOST) & (rows["fragment_offset"] == 0)
    packets = {
        "at": rows["time"] - start,
        "interface": interface[chosen].astype(np.int32),
        "pair": rows["source_ip"] - FIRST_HOST_IP << 32 | rows["destination_ip"],
        "identification": rows["identification"].astype(np.uint16),
        "fragment": rows["fragment_offset"].astype(np.uint16),
        "bytes": rows["ip_length"] + ETHERNET_BYTES,
        "first": first,
    }
    theirs = {name: block[name][chosen[first]] for name in HEADER}
    headers = {name: pa.array(column.data, mask=column.mask) for name, column in theirs.items()}
    return pa.table(packets), pa.table(headers)


def datagram_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """What was sent in some datagrams, and their hops."""
    packets = attributed(tables["packets"], *_places(facts))
    headers = tables.get("headers", NO_HEADERS)
    handed_over = np.flatnonzero(packets.tail == HOST)
    sent = _rows(packets, handed_over, headers)
    receivers = pc.if_else(pc.is_null(sent["receiver"]), facts.processes - 1, 1)
    framing = ETHERNET_BYTES + IP_BYTES + UDP_BYTES * (packets.fragment[handed_over] == 0)
    carried, queued = hops_of(packets)
    hops = _rows(packets, carried, headers).rename_columns({"at": "arrived"})
    return _told(
        facts,
        bucket,
        with_columns(sent, receivers=receivers),
        framing,
        with_columns(hops, queued=queued),
    )


def _rows(packets: Captured, chosen: Integers, headers: pa.Table) -> pa.Table:
    """Some packets with the messages that they carry; what is for several has no receiver."""
    pair, header = packets.pair[chosen], packets.header[chosen]
    to = pair & 0xFFFFFFFF
    return with_columns(
        headers.take(pa.array(header, mask=header < 0)),
        **{name: getattr(packets, name)[chosen] for name in PACKET},
        sender=pa.array(pair >> 32, pa.int32()),
        receiver=pa.array(to - FIRST_HOST_IP, pa.int32(), mask=to >= MULTICAST_NET),
        copy=packets.identification[chosen],
    )


def simulated_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """What the simulator's table says; what was sent is on the links that leave the sender's node."""
    hops = tables["packets"]
    several = pc.equal(hops["receiver"], -1)
    hops = with_columns(hops, receiver=pc.if_else(several, None, hops["receiver"]))
    sent = hops.filter(pc.equal(hops["tail"], hops["sender"])).rename_columns({"queued": "at"})
    headers = ETHERNET_BYTES + IP_BYTES + UDP_BYTES * (integers(sent, "fragment") == 0)
    return _told(facts, bucket, sent, headers * (facts.framing != "bare"), hops)


def attributed(packets: pa.Table, tails: Places, heads: Places) -> Captured:
    """Each packet with the message of its datagram's latest first fragment from a host."""
    columns = {name: packets[name].to_numpy() for name in packets.column_names}
    first, pair = columns.pop("first"), columns["pair"]
    moment = columns["at"] << 1 | ~first
    order = order_of(pair >> 32, pair & 0xFFFFFFFF, columns["identification"], moment)
    columns = {name: column[order] for name, column in columns.items()}
    interface = columns.pop("interface")
    datagram = numbered(columns["pair"], columns["identification"])
    place = latest(first[order], runs_of(datagram))
    header = np.cumsum(first) - 1
    return Captured(
        **columns,
        tail=tails[interface],
        head=heads[interface],
        datagram=datagram,
        header=np.where(place >= 0, header[order[place]], -1),
    )


def hops_of(packets: Captured) -> tuple[Integers, Integers]:
    """The packets that came over a link, and when each had last arrived at the switch before."""
    carried = np.flatnonzero(packets.tail != HOST)
    count = len(packets.at)
    both = np.concatenate([np.arange(count), carried])  # as they arrive, and as they must have left
    leaving = np.arange(len(both)) >= count
    switch = np.concatenate([packets.head, packets.tail[carried]])
    datagram, fragment = packets.datagram[both], packets.fragment[both]
    moment = numbered(packets.datagram, packets.at)[both] << 1 | leaving
    order = order_of(datagram, fragment, switch, moment)
    starts = runs_of(datagram[order], fragment[order], switch[order])
    before = latest(~leaving[order], starts)
    found = np.flatnonzero(leaving[order] & (before >= 0))
    return both[order[found]], packets.at[both[order[before[found]]]]


def _told(
    facts: Facts, bucket: int, sent: pa.Table, headers: Integers, hops: pa.Table
) -> Iterator[Piece]:
    """Write what was sent, pass on the hops, and what both say of messages and of time."""
    first = pc.equal(sent["fragment"], 0)
    bytes_ = pc.subtract(sent["bytes"], pa.array(headers))
    sent = with_columns(sent, bytes=bytes_, control=pc.if_else(first, sent["control"], 0))
    facts.write("sent", bucket, sent)
    copies = with_columns(
        sent.select(MESSAGE),
        copies=pc.if_else(first, sent["receivers"], 0),
        fragments=sent["receivers"],
        bytes=pc.multiply(bytes_, sent["receivers"]),
        control=pc.multiply(sent["control"], sent["receivers"]),
    )
    columns = ("copies", "fragments", "bytes", "control")
    sums = grouped(copies, MESSAGE, **{name: (name, "sum") for name in columns})
    yield facts.total("sent", sums.select(columns))
    yield from facts.by_message("message", "handed_over", sums)
    carried = grouped(hops, MESSAGE, hops=("bytes", "count"), wire_bytes=("bytes", "sum"))
    yield from facts.by_message("message", "carried", carried)
    yield from intervals(facts, "packets", integers(hops, "queued"), integers(hops, "arrived"))
    unneeded = {"control", "receivers", "fragments"}
    hops = hops.drop_columns([name for name in hops.column_names if name in unneeded])
    link = integers(hops, "tail") * 31 + integers(hops, "head")
    yield from facts.spread("link", "hops", hops, link)
