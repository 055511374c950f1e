"""The ordering oracle over many runs at once, a run a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from testbed.check import Finding, check_run, finding


def check_runs(
    spark: SparkSession, paths: Sequence[Path], limit: int, progress: Callable[[int, int], None]
) -> Iterator[tuple[Path, Finding]]:
    """Every run and what was found, with at most so many sentences for each."""
    tasks = spark.sparkContext.parallelize([str(path.resolve()) for path in paths], len(paths))
    findings = tasks.map(lambda path: finding(check_run(Path(path)), limit)).toLocalIterator(True)
    for done, (path, found) in enumerate(zip(paths, findings, strict=True), 1):
        progress(done, len(paths))
        yield path, found
