"""The types of the columns of the digest's tables, and how a part of a table is written."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from testbed.runs.parts import COLUMNS, whole

_INT32 = """
    node number source payload control destinations for_source delivered holders copies fragments hops
    held_number sender receiver receivers fragment tail head cause_source relays via
"""
_FLOAT64 = "delay_mean load load_bytes queue_mean held_mean packets_mean"
_TYPES = {
    **dict.fromkeys(_INT32.split(), pa.int32()),
    **dict.fromkeys(_FLOAT64.split(), pa.float64()),
    "kind": pa.int16(),
    "event": pa.string(),
}
SCHEMAS = {
    name: pa.schema([(column, _TYPES.get(column, pa.int64())) for column in columns.split()])
    for name, columns in COLUMNS.items()
}


def write_part(tables: Path, name: str, number: int, rows: pa.Table) -> None:
    """Write a part of a table; whoever writes it again writes the same."""
    schema = SCHEMAS[name]
    wide = [field.name for field in schema if field.type == pa.int64()]  # times, mostly
    directory = tables / f"{name}.parquet"
    directory.mkdir(exist_ok=True)
    with whole(directory / f"part-{number:05}.parquet") as part:
        pq.write_table(
            rows.select(schema.names).cast(schema),
            part,
            use_dictionary=[name for name in schema.names if name not in wide],
            column_encoding=dict.fromkeys(wide, "DELTA_BINARY_PACKED"),
        )
