"""Delays explained, run by run, from the tables that the digest has just written.

A task takes the messages of one bucket: it reads all parts of the tables and keeps what is about them.
Nothing is moved between processes, and a bucket is large, so that few tasks read much.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext

from testbed.digest.arrays import integers
from testbed.digest.delays import COLUMNS, explain
from testbed.digest.schemas import SCHEMAS
from testbed.digest.steps import MESSAGE, Facts, with_message

ROWS = 1_000_000  # of both tables, at most in a bucket
WORTHWHILE = 200_000  # for a core
READ = {"deliveries": ("node", *MESSAGE, "at", "delay", "held_at"), "hops": COLUMNS}


@dataclass(frozen=True)
class Bucket:
    """Some messages of a run."""

    facts: Facts
    number: int
    of: int

    def explain(self) -> None:
        """Write their part of the table."""
        hops, deliveries = self._rows("hops"), self._rows("deliveries")
        self.facts.write("delays", self.number, explain(hops, deliveries, self.facts.links))

    def _rows(self, table: str) -> pa.Table:
        columns = list(READ[table])
        schema = SCHEMAS[table]
        found = [pa.schema([schema.field(name) for name in columns]).empty_table()]
        for part in sorted((self.facts.tables / f"{table}.parquet").glob("*.parquet")):
            with pq.ParquetFile(part) as file:  # ``read_table`` imports much
                rows = with_message(file.read(columns))
            if self.of > 1:
                name = np.abs(integers(rows, "source") * 31 + integers(rows, "seq"))
                rows = rows.filter(pa.array(name % self.of == self.number))
            found.append(rows)
        return pa.concat_tables(found)


def explain_runs(spark: SparkContext, facts: Sequence[Facts]) -> None:
    """Write the table ``delays`` of each run whose other tables are written."""
    buckets = [bucket for each in facts for bucket in _buckets(each, spark.defaultParallelism)]
    spark.parallelize(buckets, len(buckets)).foreach(Bucket.explain)


def _buckets(facts: Facts, cores: int) -> Iterable[Bucket]:
    parts = [part for table in READ for part in (facts.tables / f"{table}.parquet").glob("*")]
    rows = sum(pq.read_metadata(part).num_rows for part in parts)
    count = max(rows // ROWS + 1, min(rows // WORTHWHILE + 1, cores))
    return [Bucket(facts, number, count) for number in range(count)]
