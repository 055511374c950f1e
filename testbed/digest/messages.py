"""What logs and packets say of each message multicast."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from testbed.digest.arrays import filled, grouped, joined, with_columns
from testbed.digest.steps import MESSAGE, Facts, Piece, Tables

# What nodes, hosts and links say of a message is added up, but the maxima.
SAID = {
    "received": "delivered delay_sum delay_count delay_max holders held_max",
    "handed_over": "copies fragments bytes",
    "carried": "hops wire_bytes",
}


def message_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """Write one row for each of some messages; what nobody multicast is no message."""
    if "sends" not in tables:
        return
    table = tables["sends"]
    for role, names in SAID.items():
        columns = {n: (n, "max" if n.endswith("_max") else "sum") for n in names.split()}
        if role in tables:
            table = joined(table, grouped(tables[role], MESSAGE, **columns), MESSAGE)
        else:
            table = with_columns(table, **{n: pa.nulls(len(table), pa.int64()) for n in columns})
    count = pc.if_else(pc.greater(table["delay_count"], 0), table["delay_count"], None)
    mean = pc.divide(table["delay_sum"].cast(pa.float64()), count.cast(pa.float64()))
    table = filled(with_columns(table, delay_mean=mean), 0, "delivered", "holders")
    facts.write("messages", bucket, table.sort_by([("source", "ascending"), ("seq", "ascending")]))
    yield from ()
