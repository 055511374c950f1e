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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from testbed.digest.arrays import Integers, grouped, integers, latest, runs_of, with_columns
from testbed.digest.steps import MESSAGE, Facts, Piece, Tables
from testbed.digest.timeline import intervals
from testbed.engines.mininet.plan import host_ip
from testbed.packets.framing import ETHERNET_BYTES, IP_BYTES, UDP_BYTES
from testbed.packets.headers import Columns
from testbed.packets.pcap import PcapFile, PcapPart

HEADER = ["source", "seq", "kind", "control"]
CAPTURED = [
    *("time", "interface", "ip_length", "source_ip", "destination_ip", "identification"),
    *("fragment_offset", *HEADER, "lost_bytes"),
]
FIRST_HOST_IP = int(IPv4Address(host_ip(0)))
MULTICAST_NET = 0xE0000000
HOST, NOWHERE = -1, -2  # what a packet comes from if it is no switch


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

    def pieces(self, facts: Facts) -> Iterator[Piece]:
        """The packets of the run by their datagrams."""
        tails, heads = _places(facts)
        blocks, lost = [], 0
        for block in self.file.columns(self.part, CAPTURED):
            lost += int(block["lost_bytes"].sum())
            blocks.append(_packets(block, facts.start, tails, heads))
        yield facts.total("lost_bytes", pa.table({"bytes": [lost]}))
        if blocks:
            packets = pa.concat_tables(blocks)
            name = integers(packets, "pair") * 31 + integers(packets, "identification")
            yield from facts.spread("datagram", "packets", packets, np.abs(name))


@dataclass(frozen=True)
class TablePart:
    """A row group of the simulator's table of packets."""

    run: int
    number: int  # of the row group
    size: int

    def pieces(self, facts: Facts) -> Iterator[Piece]:
        """The rows, as they are."""
        with pq.ParquetFile(facts.packet_table) as file:
            rows = file.read_row_group(self.number)
        yield from facts.spread("simulated", "packets", rows, np.full(len(rows), self.number))


def _places(facts: Facts) -> tuple[Integers, Integers]:
    """Tail and head of each interface, by its number; what is no link of the network is nowhere."""
    tails, heads = np.full((2, max(facts.places, default=0) + 2), NOWHERE)
    for interface, (tail, head) in facts.places.items():
        if tail is None or (tail, head) in facts.links:
            tails[interface], heads[interface] = HOST if tail is None else tail, head
    return tails, heads


def _packets(block: Columns, start: int, tails: Integers, heads: Integers) -> pa.Table:
    """The packets of a block that arrived at a switch of the run: when, where, and where from."""
    interface = np.minimum(block["interface"].filled(len(tails) - 1), len(tails) - 1)
    chosen = np.flatnonzero((tails[interface] != NOWHERE) & ~block["ip_length"].mask)
    rows = {name: column[chosen] for name, column in block.items()}
    source = rows["source_ip"].data
    return pa.table(
        {
            "at": rows["time"].data - start,
            "tail": tails[interface[chosen]].astype(np.int32),
            "head": heads[interface[chosen]].astype(np.int32),
            "pair": source - FIRST_HOST_IP << 32 | rows["destination_ip"].data,
            "identification": rows["identification"].data,
            "fragment": rows["fragment_offset"].data,
            "bytes": rows["ip_length"].data + ETHERNET_BYTES,
            **{name: pa.array(rows[name].data, mask=rows[name].mask) for name in HEADER},
        }
    )


def datagram_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """What was sent in some datagrams, and their hops."""
    packets = attributed(tables["packets"])
    pair = integers(packets, "pair")
    many = pair & 0xFFFFFFFF >= MULTICAST_NET
    packets = with_columns(
        packets,
        sender=pa.array(pair >> 32, pa.int32()),
        receiver=pa.array((pair & 0xFFFFFFFF) - FIRST_HOST_IP, pa.int32(), mask=many),
        copy=packets["identification"],
    )
    sent = with_columns(packets, receivers=np.where(many, facts.processes - 1, 1))
    sent = sent.filter(pc.equal(sent["tail"], HOST))
    headers = ETHERNET_BYTES + IP_BYTES + UDP_BYTES * (integers(sent, "fragment") == 0)
    return _told(facts, bucket, sent, headers, hops_of(packets))


def simulated_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """What the simulator's table says; what was sent is on the links that leave the sender's node."""
    hops = tables["packets"]
    several = pc.equal(hops["receiver"], -1)
    hops = with_columns(hops, receiver=pc.if_else(several, None, hops["receiver"]))
    sent = hops.filter(pc.equal(hops["tail"], hops["sender"])).rename_columns({"queued": "at"})
    headers = ETHERNET_BYTES + IP_BYTES + UDP_BYTES * (integers(sent, "fragment") == 0)
    return _told(facts, bucket, sent, headers * (facts.framing != "bare"), hops)


def attributed(packets: pa.Table) -> pa.Table:
    """Each packet with the message of its datagram's latest first fragment from a host."""
    pair, identification = (integers(packets, name) for name in ("pair", "identification"))
    first = (integers(packets, "tail") == HOST) & (integers(packets, "fragment") == 0)
    order = np.lexsort((~first, integers(packets, "at"), identification, pair))
    starts = runs_of(pair[order], identification[order])
    packets = packets.take(pa.array(order))
    whose = latest(first[order], starts)
    header = packets.select(HEADER).take(pa.array(whose, mask=whose < 0))
    return with_columns(packets, **dict(zip(HEADER, header.columns, strict=True)))


def hops_of(packets: pa.Table) -> pa.Table:
    """Each packet on each link, from its last arrival at the switch before."""
    carried = np.flatnonzero(integers(packets, "tail") != HOST)
    count = len(packets)
    both = np.concatenate([np.arange(count), carried])  # as they arrive, and as they must have left
    leaving = np.arange(len(both)) >= count
    switch = np.concatenate([integers(packets, "head"), integers(packets, "tail")[carried]])
    pair, at = integers(packets, "pair")[both], integers(packets, "at")[both]
    name = integers(packets, "identification") << 16 | integers(packets, "fragment")
    name = name[both] << 16 | switch
    order = np.lexsort((leaving, at, name, pair))
    before = latest(~leaving[order], runs_of(pair[order], name[order]))
    found = np.flatnonzero(leaving[order] & (before >= 0))
    hops = packets.take(pa.array(both[order][found])).rename_columns({"at": "arrived"})
    return with_columns(hops, queued=at[order][before[found]])


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
    yield from facts.to_messages("handed_over", sums)
    carried = grouped(hops, MESSAGE, hops=("bytes", "count"), wire_bytes=("bytes", "sum"))
    yield from facts.to_messages("carried", carried)
    yield from intervals(facts, "packets", integers(hops, "queued"), integers(hops, "arrived"))
    unneeded = {"pair", "identification", "control", "receivers", "fragments"}
    hops = hops.drop_columns([name for name in hops.column_names if name in unneeded])
    link = integers(hops, "tail") * 31 + integers(hops, "head")
    yield from facts.spread("link", "hops", hops, link)
