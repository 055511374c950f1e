"""What datagrams carry besides the message that their header names, as a table.

The simulator's table says what is in a datagram. Captured ones are read once more and decoded, if the
protocol has messages that carry others.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from testbed.digest.arrays import with_columns
from testbed.digest.carried import COPY, MESSAGE, SEVERAL
from testbed.digest.packets import FIRST_HOST_IP, MULTICAST_NET
from testbed.digest.schemas import SCHEMAS
from testbed.digest.steps import Facts
from testbed.packets.contents import Contents, fragments
from testbed.packets.pcap import open_captures
from testbed.runs.directory import RunDirectory


@dataclass(frozen=True)
class Carrying:
    """A run whose datagrams may carry several messages."""

    path: Path
    facts: Facts

    def write(self) -> None:
        """Write its table ``carried``."""
        if self.facts.places:
            self.facts.write("carried", 0, self._captured())
        elif self.facts.packet_table.exists():
            self.facts.write("carried", 0, simulated(self.facts.packet_table))

    def _captured(self) -> pa.Table:
        """Of every datagram as it left its host."""
        run, facts = RunDirectory(self.path), self.facts
        experiment = run.experiment
        contents = Contents(experiment.protocol, facts.processes, experiment.channel is not None)
        hosts = [interface for interface, (tail, _) in facts.places.items() if tail is None]
        rows = []
        for capture in open_captures([run.packets]):
            for fragment in fragments(capture, hosts):
                at, names = contents.carried(fragment)
                sender, to, copy = fragment.datagram
                receiver = None if to >= MULTICAST_NET else to - FIRST_HOST_IP
                whole = at - facts.start, sender - FIRST_HOST_IP, receiver, copy
                rows += [(*whole, *name) for name in names]
        schema = SCHEMAS["carried"]
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def simulated(packet_table: Path) -> pa.Table:
    """Of every packet that says so; a copy for several may leave its sender over several links."""
    with pq.ParquetFile(packet_table) as file:
        if "carried" not in file.schema_arrow.names:  # of an older version
            return SCHEMAS["carried"].empty_table()
        rows = file.read(["queued", *COPY, "carried"])
    rows = rows.filter(pc.greater(pc.list_value_length(rows["carried"]), 0)).combine_chunks()
    names = pc.list_flatten(rows["carried"]).to_numpy().reshape(-1, 2)
    whose = pc.list_parent_indices(rows["carried"]).to_numpy()[::2]
    several = pc.equal(rows["receiver"], SEVERAL)
    found = with_columns(rows, receiver=pc.if_else(several, None, rows["receiver"]))
    found = found.drop_columns("carried").rename_columns({"queued": "at"}).take(whose)
    found = with_columns(found, **dict(zip(MESSAGE, names.T, strict=True)))
    return found.group_by(found.column_names, use_threads=False).aggregate([])
