"""The digest: what captures and event logs of runs amount to, computed by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testbed.spark import session as spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = ("testbed.digest.workers",)  # what Spark's Python processes import for a digest


@contextmanager
def session(
    master: str = "local[*]", memory: str = "1g", small: bool = False
) -> Iterator[SparkSession]:
    """A Spark session that reads captures: ``spark.read.format("pcap").load(path)``."""
    with spark_session.session(master, memory, small) as spark:
        from testbed.digest.source import PcapDataSource

        spark.dataSource.register(PcapDataSource)
        yield spark
