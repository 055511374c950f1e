"""From run directories to their tables and figures, any number of runs in one pass over the data.

A digest uses what is there: of a run that did not end well it says what is missing. A run's tables
appear when all of them are written, and replace those of an earlier digest.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark import SparkContext

from testbed.digest import summary
from testbed.digest.carriers import Carrying
from testbed.digest.links import links
from testbed.digest.logs import WEIGHT, LogPart, log_parts
from testbed.digest.packets import CapturePart, TablePart
from testbed.digest.pipeline import last_moments, run_steps
from testbed.digest.schemas import SCHEMAS
from testbed.digest.steps import Facts, Tables
from testbed.digest.timeline import timeline
from testbed.errors import UserError
from testbed.faults import Drift
from testbed.packets.contents import carriers
from testbed.packets.pcap import open_captures
from testbed.progress import Progress
from testbed.runs.directory import VERSIONS, RunDirectory

BUCKET_BYTES = 16 << 20  # some hundred thousand packets or events
LOG_BYTES = BUCKET_BYTES // WEIGHT
ROW_BYTES = 100  # of the simulator's table, in memory
_HARMED = ("packets_lost", "packets_dropped", "packets_duplicated")


@dataclass
class Digest:
    """A digested run: its figures, and sentences on what is doubtful or missing."""

    path: Path
    summary: dict[str, Any]
    problems: list[str] = field(default_factory=list)


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
    spark: SparkContext, sources: "Sequence[Source]", progress: Progress
) -> list[Digest]:
    """Write the ``tables`` and ``summary.json`` of each run."""
    if not sources:
        return []
    parts = [part for source in sources for part in source.parts]
    with ExitStack() as being_written:
        facts = [
            source.facts(being_written.enter_context(source.new_tables())) for source in sources
        ]
        if not all(each.end for each in facts):
            last = last_moments(spark, parts, facts)
            facts = [replace(each, end=each.end or max(1, last[each.run])) for each in facts]
        _write_carried(spark, sources, facts)
        totals = run_steps(spark, parts, facts, progress)
        figures = [_finish(each, totals[each.run]) for each in facts]
        for each in facts:
            (each.tables / VERSIONS).write_text(json.dumps(_versions(spark)))
    return [
        source.conclude(totals[source.run], its)
        for source, its in zip(sources, figures, strict=True)
    ]


def _write_carried(
    spark: SparkContext, sources: "Sequence[Source]", facts: Sequence[Facts]
) -> None:
    """Of runs whose datagrams carry several messages, say which."""
    runs = [
        Carrying(source.path.absolute(), its)
        for source, its in zip(sources, facts, strict=True)
        if carriers(source.experiment.protocol)
    ]
    if runs:
        spark.parallelize(runs, len(runs)).foreach(Carrying.write)


def _versions(spark: SparkContext) -> dict[str, str]:
    """Of what makes the tables."""
    java = spark._jvm.System.getProperty("java.version") if spark._jvm is not None else "unknown"
    return {"spark": spark.version, "java": str(java)}


def _finish(facts: Facts, totals: Tables) -> dict[str, Any]:
    """Write the small tables, and those that nothing is in; the figures of the run."""
    small = {
        "links": links(facts.links, facts.end, totals.get("links")),
        "timeline": timeline(facts.end, totals),
    }
    if "nodes" in totals:
        small["nodes"] = totals["nodes"].sort_by("node")
    for name, rows in small.items():
        facts.write(name, 0, rows)
    for name, schema in SCHEMAS.items():
        if not (facts.tables / f"{name}.parquet").exists():
            facts.write(name, 0, schema.empty_table())
    return {
        "duration_ms": facts.end / 1e6,
        **summary.from_logs(totals, facts.processes),
        **summary.from_packets(totals, small["links"]),
    }


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
        if not self.event_logs:
            raise UserError(f"{path}: no event logs, so there is nothing to digest")
        self.links = self._links()
        self.capture = self._capture()

    @property
    def engine(self) -> dict[str, Any]:
        """The figures that the engine counted itself."""
        figures: dict[str, Any] = self.manifest.get("figures", {})
        return figures

    @cached_property
    def parts(self) -> list[LogPart | CapturePart | TablePart]:
        """All that there is to read."""
        return [*log_parts(self.run, self.event_logs, LOG_BYTES), *self._packet_parts()]

    def _packet_parts(self) -> Iterator[CapturePart | TablePart]:
        if self.capture is not None:
            for capture in open_captures([self.packets.absolute()]):
                for part in capture.parts(BUCKET_BYTES):
                    yield CapturePart(self.run, capture, part)
        elif self.packet_table.exists():
            with pq.ParquetFile(self.packet_table) as table:
                for number in range(table.num_row_groups):
                    rows = table.metadata.row_group(number).num_rows
                    yield TablePart(self.run, number, rows * ROW_BYTES)

    def facts(self, tables: Path) -> Facts:
        """What the steps must know."""
        capture = self.capture or {"interfaces": {}, "start_unix_ns": 0}
        return Facts(
            run=self.run,
            tables=tables.absolute(),
            processes=self.network.processes,
            end=round(self.engine.get("duration_ms", 0) * 1e6),
            links=self.links,
            buckets=self._buckets(),
            places=capture["interfaces"],
            start=capture["start_unix_ns"],
            packet_table=self.packet_table.absolute(),
            framing=self.experiment.transport.framing,
            prompt=self.experiment.channel is None and self.manifest.get("engine") != "mininet",
        )

    def _buckets(self) -> dict[str, int]:
        """How many buckets each step needs, by what there is to read."""
        sizes: Counter[type] = Counter()
        groups = 0
        for part in self.parts:
            sizes[type(part)] += part.size
            groups += isinstance(part, TablePart)
        logs, captures, table = (
            -(-sizes[kind] // BUCKET_BYTES) for kind in (LogPart, CapturePart, TablePart)
        )
        packets = max(1, captures, table)
        return {
            **{"node": logs, "datagram": captures, "simulated": groups},
            **{"message": max(1, logs), "link": packets, "time": packets // 4 + 1},
            "delay": packets // 2 + 1,
        }

    def conclude(self, totals: Tables, figures: dict[str, Any]) -> Digest:
        """Write the summary."""
        if bad := summary.total(totals, "bad_lines", "lines"):
            self.problems.append(f"{bad:,} lines of the event logs cannot be used and are left out")
        if lost := summary.total(totals, "lost_bytes", "bytes"):
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
        simulator's table lacks a packet that was lost at once, and has a duplicated one twice. Where
        clocks drift, a message says when it was sent by one that may be coarser than a nanosecond.
        """
        untold = {"link_queue_max", "link_queue_bytes_max"} if self.experiment.faults else set()
        if self.capture is None and any(self.engine.get(key) for key in _HARMED):
            untold |= {"copies", "messages", "bytes", "control_bytes"}
        if any(isinstance(fault, Drift) for fault in self.experiment.faults):
            untold |= {f"delay_ms_{which}" for which in ("mean", "p50", "p99", "max")}
        return untold

    def _links(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Delay and bandwidth of each direction of each link."""
        try:
            return {
                ends: (link["delay_ns"], link["bandwidth_bps"])
                for a, b, link in self.network.graph.edges(data=True)
                for ends in ((a, b), (b, a))
            }
        except KeyError as error:
            raise UserError(f"{self.network_file}: a link without {error}") from None

    def _capture(self) -> dict[str, Any] | None:
        """What is needed to understand its captures, if it has any."""
        if not self.captures:
            if self.manifest.get("engine") != "simulate":
                self.problems.append("the captures are missing")
            return None
        try:
            found = self.emulation
            captured, _ = (found[key] for key in ("captured", "start_unix_ns"))
            found = {**found, "interfaces": self.interfaces}
            files = open_captures([self.packets])
        except (UserError, KeyError, TypeError) as error:
            self.problems.append(f"the captures are left out: {error}")
            return None
        if not captured or not any(file.parts(file.size) for file in files):
            self.problems.append("the captures hold no packet")
            return None
        return found
