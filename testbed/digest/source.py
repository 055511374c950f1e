"""Captures as a Spark data source: ``spark.read.format("pcap").load(path)``.

The path is a file, a directory or a glob, or a list of these; all of Spark's machines must see the
files there. Each row is a packet; ``testbed.packets.headers`` has the columns, and ``file`` is the
capture's path. Only the columns of the schema are decoded and moved, so give one:
``spark.read.format("pcap").schema("time bigint, length int").load(path)``, or use ``packets``.
A task reads about ``partBytes`` (an option) of a large file or of several small ones.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from testbed.errors import UserError
from testbed.packets.headers import COLUMNS
from testbed.packets.pcap import PcapFile, PcapPart, open_captures

TASKS_LEAST = 8  # unless they would be smaller than
PART_LEAST = 8 << 20
PART_MOST = 128 << 20
SPARK_TYPES = {"int64": "bigint", "int32": "int", "int16": "smallint", "bool": "boolean"}
TYPES = {"file": "string"} | {
    name: SPARK_TYPES[np.dtype(column.type).name] for name, column in COLUMNS.items()
}


def packets(
    spark: SparkSession, paths: Iterable[Path | str], columns: Iterable[str], **options: int
) -> DataFrame:
    """The packets of captures, with only these columns; what is wrong is a ``UserError``."""
    found = [capture.path for capture in open_captures(paths)]
    reader = spark.read.format("pcap").options(**options).schema(schema_of(columns))
    return reader.option("paths", json.dumps(found)).load()


def schema_of(columns: Iterable[str]) -> str:
    """The schema of these columns as SQL has it."""
    return ", ".join(f"`{name}` {TYPES[name]}" for name in columns)


class PcapDataSource(DataSource):
    """Names the format and its columns."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` takes."""
        return "pcap"

    def schema(self) -> str:
        """All columns."""
        return schema_of(TYPES)

    def reader(self, schema: StructType) -> "PcapReader":
        """A reader of these columns, if there are such columns."""
        unknown = [name for name in schema.fieldNames() if name not in TYPES]
        if unknown:
            raise UserError(f"a capture has no column {unknown[0]!r}; it has {', '.join(TYPES)}")
        paths = json.loads(self.options.get("paths", "[]"))
        if "path" in self.options:
            paths.append(self.options["path"])
        part_bytes = self.options.get("partBytes", "0")
        if not part_bytes.isdecimal():
            raise UserError(f"partBytes is {part_bytes!r}; a number of bytes would be right")
        return PcapReader(schema, paths, int(part_bytes) or None)


@dataclass
class Task(InputPartition):
    """What one task reads."""

    pieces: list[tuple[PcapFile, PcapPart]]


@dataclass
class PcapReader(DataSourceReader):
    """Splits captures into tasks, and reads them."""

    wanted: StructType
    paths: list[str]
    part_bytes: int | None

    def partitions(self) -> list[Task]:
        """All parts of all captures; starting a task takes time, so small parts share one."""
        captures = [
            replace(capture, path=str(Path(capture.path).absolute()))
            for capture in open_captures(self.paths)
        ]
        total = sum(capture.size for capture in captures)
        part_bytes = self.part_bytes or min(max(total // TASKS_LEAST, PART_LEAST), PART_MOST)
        tasks: list[Task] = []
        room = 0
        for capture in captures:
            for part in capture.parts(part_bytes):
                room -= part.end - part.start
                if room < 0:
                    tasks.append(Task([]))
                    room = part_bytes - (part.end - part.start)
                tasks[-1].pieces.append((capture, part))
        return tasks or [Task([])]  # without any, Spark calls ``read`` all the same

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's packets."""
        assert isinstance(partition, Task)
        schema = to_arrow_schema(self.wanted, timezone="UTC")
        names = [name for name in schema.names if name in COLUMNS]
        for capture, part in partition.pieces:
            file = pa.scalar(capture.path)
            for columns in capture.columns(part, [*names, "lost_bytes"]):
                count = len(columns["lost_bytes"])
                arrays = [
                    (pa.repeat(file, count) if name == "file" else pa.array(columns[name])).cast(
                        type_
                    )
                    for name, type_ in zip(schema.names, schema.types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
