"""Small tables that the driver makes: Spark gets them with the plan, and no task is needed for them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def local_table(
    spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str | StructType
) -> DataFrame:
    """These rows, with a schema as SQL has it."""
    kind = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(kind, StructType)
    arrow = to_arrow_schema(kind, timezone="UTC")
    columns = zip(*rows, strict=True) if rows else ((),) * len(arrow)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    table: DataFrame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow), kind)
    return table
