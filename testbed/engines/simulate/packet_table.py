"""Every packet on every link as a row of ``packets/links.parquet``, for ``packets = "full"``."""

from array import array
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from testbed.engines.simulate.links import Hop, Packet

ROWS_PER_GROUP = 500_000

SCHEMA = pa.schema(
    [
        ("queued", pa.int64()),  # nanoseconds: joins the link's queue
        ("started", pa.int64()),  # leaves the queue
        ("arrived", pa.int64()),  # is whole at the other end
        ("tail", pa.int32()),  # node that the link leads from
        ("head", pa.int32()),  # node that it leads to
        ("bytes", pa.int32()),  # on the link, all headers included
        ("source", pa.int32()),
        ("seq", pa.int64()),
        ("kind", pa.int16()),
        ("sender", pa.int32()),  # process that handed this copy to the network
        ("fragment", pa.int16()),
        ("fragments", pa.int16()),
        ("control", pa.int32()),  # bytes of control information in the message
        ("receivers", pa.int32()),  # processes that the packet reaches over this link
        ("receiver", pa.int32()),  # process that it is for, -1 if for several
        ("copy", pa.int64()),  # with sender and receiver: which copy it is part of
    ]
)
# Source and number, by turns, of the messages inside, besides its own: told as the sender hands it over
CARRIED = pa.field("carried", pa.list_(pa.int64()))


class PacketTable(AbstractContextManager["PacketTable"]):
    """Gathers rows in columns and writes them a group at a time."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, SCHEMA.append(CARRIED))
        self._begin()

    def _begin(self) -> None:
        self._columns = [array("q") for _ in SCHEMA]
        self._carried, self._ends = array("q"), array("i", [0])

    def __exit__(self, *_: object) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()

    def record(self, hop: Hop, packet: Packet, queued: int, started: int, arrived: int) -> None:
        """A packet has been queued on a link."""
        link, message = hop.link, packet.message
        times, ends = (queued, started, arrived), (link.tail, link.head)
        name = (message.source, message.seq, message.kind)
        part = (packet.sender, packet.fragment, packet.fragments)
        whom = (hop.receivers, hop.to, packet.copy)
        row = (*times, *ends, packet.size, *name, *part, message.control_size, *whom)
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        if link.tail == packet.sender and not packet.fragment:
            for carried in message.carried:
                self._carried.extend(carried)
        self._ends.append(len(self._carried))
        if len(self._columns[0]) >= ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        columns = [
            pa.array(column, pa.int64()).cast(field.type)
            for column, field in zip(self._columns, SCHEMA, strict=True)
        ]
        names = pa.ListArray.from_arrays(pa.array(self._ends, pa.int32()), pa.array(self._carried))
        self._writer.write_table(pa.table([*columns, names], SCHEMA.append(CARRIED)))
        self._begin()
