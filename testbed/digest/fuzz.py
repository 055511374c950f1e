"""Seeds to try as Spark tasks, a batch of them each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.digest.session import session
from testbed.fuzz import Batch, Tally, try_batch

BATCHES_PER_CORE = 4  # between two looks at what came of it


def try_batches(batches: Sequence[Batch], master: str) -> Iterator[Tally]:
    """Try all of them on all the cores that Spark has; what came of each."""
    with session(master, small=True) as spark:
        context = spark.sparkContext
        many = BATCHES_PER_CORE * context.defaultParallelism
        for start in range(0, len(batches), many):
            some = batches[start : start + many]
            yield from context.parallelize(some, len(some)).map(try_batch).collect()
