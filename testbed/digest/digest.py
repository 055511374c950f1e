"""From run directories to their tables and figures, any number of runs in one pass over the data.

A digest uses what is there: of a run that did not end well it says what is missing. A run's tables
appear when all of them are written, and replace those of an earlier digest.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from testbed.digest import logs, packets, summary, tables
from testbed.errors import UserError
from testbed.packets.pcap import open_captures
from testbed.progress import Progress
from testbed.runs.directory import RunDirectory
from testbed.runs.results import COLUMNS
from testbed.spark.local_table import local_table

SMALL_BYTES = 64 << 20
_HARMED = ("packets_lost", "packets_dropped", "packets_duplicated")
LARGE = ("events", "deliveries", "sent", "hops")


@dataclass
class Digest:
    """A digested run: its figures, and sentences on what is doubtful or missing."""

    path: Path
    summary: dict[str, Any]
    problems: list[str] = field(default_factory=list)


def is_small(runs: Iterable[RunDirectory]) -> bool:
    """Whether there is so little to read that Spark need not prepare for much."""
    files = (file for run in runs for file in (*run.event_logs, *run.packets.glob("*")))
    return sum(file.stat().st_size for file in files) < SMALL_BYTES


def open_runs(paths: Sequence[Path]) -> "tuple[list[Source], list[str]]":
    """The runs that can be digested, and a sentence for each that cannot."""
    sources: list[Source] = []
    refused = []
    for path in paths:
        try:
            sources.append(Source(len(sources), path))
        except UserError as error:
            refused.append(str(error))
    return sources, refused


def digest_runs(
    spark: SparkSession, sources: "Sequence[Source]", progress: Progress
) -> list[Digest]:
    """Write the ``tables`` and ``summary.json`` of each run."""
    with TemporaryDirectory(prefix=".digest-", dir=sources[0].path) as scratch:
        writer = _Writer(spark, Path(scratch), progress)
        figures = _digest(spark, sources, writer)
        for source in sources:
            writer.install(source)
    return [source.conclude(figures[source.run]) for source in sources]


class Source(RunDirectory):
    """One run as Spark is to read it, and what is wrong with it."""

    def __init__(self, run: int, path: Path) -> None:
        super().__init__(path)
        self.run = run
        self.problems: list[str] = []
        self.problems += self.changes
        if (status := self.status) != "complete":
            reason = f": {self.manifest['error']}" if "error" in self.manifest else ""
            self.problems.append(f"the run is not finished, its status is {status}{reason}")
        self.framing = self.experiment.transport.framing
        self.processes = self.network.processes
        self.logs = [str(file) for file in self.event_logs]
        if not self.logs:
            raise UserError(f"{path}: no event logs, so there is nothing to digest")
        self.bad_lines = Observation()
        self.lost = Observation()
        self.capture = self._capture()

    @property
    def engine(self) -> dict[str, Any]:
        """The figures that the engine counted itself."""
        figures: dict[str, Any] = self.manifest.get("figures", {})
        return figures

    def lines(self, spark: SparkSession) -> DataFrame:
        """Its event logs."""
        return logs.read_lines(spark, self.logs, self.processes, self.bad_lines)

    def seen(self, spark: SparkSession) -> DataFrame:
        """Its captures."""
        assert self.capture is not None
        interfaces, start = self.capture["interfaces"], self.capture["start_unix_ns"]
        return packets.read_captures(
            spark, self.packets, interfaces, start, self.processes, self.lost
        )

    def conclude(self, figures: dict[str, Any]) -> Digest:
        """Write the summary."""
        if bad := self.bad_lines.get["lines"]:
            self.problems.append(f"{bad:,} lines of the event logs cannot be used and are left out")
        if self.capture is not None and (lost := self.lost.get["bytes"]):
            self.problems.append(f"{lost:,} bytes of the captures cannot be read")
        figures = {key: value for key, value in figures.items() if key not in self._untold()}
        different = summary.disagreements(self.engine, figures)
        self.problems += [
            f"{key}: the digest counted {ours:,}, the engine {theirs:,}"
            for key, (theirs, ours) in different.items()
        ]
        result = {
            **{key: self.manifest.get(key) for key in ("experiment", "protocol", "seed", "engine")},
            **self.engine,
            **figures,
            "verdict": self.verdict,
            "disagreements": len(different),
        }
        self.write_summary(result)
        return Digest(self.path, result, self.problems)

    def _untold(self) -> set[str]:
        """Figures that do not follow from the packets under faults; the engine's stand.

        A queue's length follows from when packets arrived only if they leave in that order. And the
        simulator's table lacks a packet that was lost at once, and has a duplicated one twice.
        """
        untold = {"link_queue_max"} if self.experiment.faults else set()
        if self.capture is None and any(self.engine.get(key) for key in _HARMED):
            untold |= {"copies", "messages", "bytes", "control_bytes"}
        return untold

    def _capture(self) -> dict[str, Any] | None:
        """What is needed to understand its captures, if it has any."""
        if not self.captures:
            if self.manifest.get("engine") != "simulate":
                self.problems.append("the captures are missing")
            return None
        try:
            found = self.emulation
            captured, _, _ = (found[key] for key in ("captured", "interfaces", "start_unix_ns"))
            files = open_captures([self.packets])
        except (UserError, KeyError, TypeError) as error:
            self.problems.append(f"the captures are left out: {error}")
            return None
        if not captured or not any(file.parts(file.size) for file in files):
            self.problems.append("the captures hold no packet")
            return None
        return found


class _Writer:
    """Writes the tables of all runs to a scratch directory, then gives each run its own."""

    def __init__(self, spark: SparkSession, scratch: Path, progress: Progress) -> None:
        self._spark = spark
        self._scratch = scratch
        self._progress = progress
        self._schemas: dict[str, Any] = {}

    def __call__(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table; the table as it was written."""
        self._progress("digest", len(self._schemas), len(COLUMNS))
        file = str(self._scratch / name)
        (table if name in LARGE else table.coalesce(1)).write.partitionBy("run").parquet(file)
        self._schemas[name] = table.drop("run").schema
        return self._spark.read.schema(table.schema).parquet(file)

    def install(self, source: Source) -> None:
        """Replace the tables of a run by its new ones, all at once."""
        with source.new_tables() as tables:
            for name, schema in self._schemas.items():
                written, file = self._scratch / name / f"run={source.run}", f"{name}.parquet"
                if written.exists():
                    shutil.move(written, tables / file)
                else:
                    local_table(self._spark, [], schema).write.parquet(str(tables / file))


def _digest(
    spark: SparkSession, sources: Sequence[Source], write: _Writer
) -> dict[int, dict[str, Any]]:
    """Write all tables; the figures of each run that follow from them."""
    configured = _links(spark, sources)
    events = write("events", logs.events(_union((s, s.lines(spark)) for s in sources)))
    seen = _seen(spark, sources)
    sent = write("sent", _sent(spark, sources, seen))
    hops = write("hops", packets.with_errors(_hops(spark, sources, seen, configured), configured))
    ends = _ends(spark, sources, events, hops)
    delivered = write("deliveries", logs.deliveries(events))
    queued = logs.queues(events, delivered, ends).persist()
    with ThreadPoolExecutor() as at_once:  # none needs another
        writing = {
            name: at_once.submit(write, name, table)
            for name, table in {
                "nodes": logs.nodes(events, delivered, queued),
                "links": tables.links(configured, hops, ends),
                "messages": tables.messages(events, delivered, sent, hops),
                "timeline": tables.timeline(spark, events, queued, hops, ends),
            }.items()
        }
        written = {name: task.result() for name, task in writing.items()}
    queued.unpersist()
    if seen is not None:
        seen.unpersist()
    of_logs = summary.from_logs(delivered, written["nodes"], {s.run: s.processes for s in sources})
    of_packets = summary.from_packets(sent, hops, written["links"])
    return {
        run: {"duration_ms": end / 1e6, **of_logs[run], **of_packets.get(run, {})}
        for run, end in ends.collect()
    }


def _seen(spark: SparkSession, sources: Sequence[Source]) -> DataFrame | None:
    """The packets of all captures, persisted because they are used more than once."""
    captured = [source for source in sources if source.capture is not None]
    if not captured:
        return None
    seen = packets.attributed(_union((s, s.seen(spark)) for s in captured)).persist()
    seen.count()
    return seen


def _sent(spark: SparkSession, sources: Sequence[Source], seen: DataFrame | None) -> DataFrame:
    parts = [
        packets.simulated_sent(rows, source.framing) for source, rows in _simulated(spark, sources)
    ]
    if seen is not None:
        parts.append(packets.captured_sent(seen))
    return _all(spark, parts, packets.SENT)


def _hops(
    spark: SparkSession, sources: Sequence[Source], seen: DataFrame | None, links: DataFrame
) -> DataFrame:
    parts = [rows for _, rows in _simulated(spark, sources)]
    if seen is not None:
        parts.append(packets.captured_hops(seen, links))
    return _all(spark, parts, packets.HOPS)


def _simulated(
    spark: SparkSession, sources: Sequence[Source]
) -> Iterator[tuple[Source, DataFrame]]:
    """The tables of packets that the simulator wrote."""
    for source in sources:
        if (file := source.packet_table).exists():
            yield source, spark.read.parquet(str(file)).withColumn("run", f.lit(source.run))


def _all(spark: SparkSession, parts: Sequence[DataFrame], schema: str) -> DataFrame:
    none = local_table(spark, [], schema)
    return reduce(DataFrame.union, (part.select(none.columns) for part in parts), none)


def _union(parts: Iterable[tuple[Source, DataFrame]]) -> DataFrame:
    """Rows of many runs in one table that says whose they are."""
    tables = (table.withColumn("run", f.lit(source.run)) for source, table in parts)
    return reduce(DataFrame.unionByName, tables)


def _links(spark: SparkSession, sources: Sequence[Source]) -> DataFrame:
    """Both directions of every link."""
    rows = [
        (source.run, *ends, link.get("delay_ns"), link.get("bandwidth_bps"))
        for source in sources
        for a, b, link in source.network.graph.edges(data=True)
        for ends in ((a, b), (b, a))
    ]
    schema = "run int, tail int, head int, delay_ns bigint, bandwidth_bps bigint"
    return local_table(spark, rows, schema)


def _ends(
    spark: SparkSession, sources: Sequence[Source], events: DataFrame, hops: DataFrame
) -> DataFrame:
    """When each run ended, by its own clock: as the engine says, or else its last event or packet."""
    ends = {
        source.run: round(source.engine["duration_ms"] * 1e6)
        for source in sources
        if "duration_ms" in source.engine
    }
    if len(ends) < len(sources):
        times = events.select("run", "at").union(hops.select("run", "arrived"))
        seems = times.groupBy("run").agg(f.max("at").alias("end")).collect()
        ends = {source.run: 0 for source in sources} | dict(map(tuple, seems)) | ends
    rows = [(run, max(1, end)) for run, end in ends.items()]
    return local_table(spark, rows, "run int, end bigint")
