"""Runs' figures from their tables, by the same names as the engines' own, and where the two differ."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

Figures = dict[str, Any]
TOLERANCE = 1e-9


def from_logs(
    delivered: DataFrame, nodes: DataFrame, processes: Mapping[int, int]
) -> dict[int, Figures]:
    """The figures of each run that follow from its event logs; ``processes`` is the number of them."""
    delay = f.when(f.col("node") != f.col("source"), f.col("delay") / 1e6)
    delays = _of_runs(
        delivered,
        delay_ms_mean=f.mean(delay),
        **{f"delay_ms_p{q}": f.percentile(delay, q / 100) for q in (50, 90, 99)},
        delay_ms_max=f.max(delay),
    )
    counts = _of_runs(
        nodes,
        multicasts=f.sum("multicasts"),
        deliveries=f.sum("deliveries"),
        held=f.sum("held"),
        delivery_queue_mean=f.sum("queue_mean"),
        delivery_queue_max=f.max("queue_max"),
    )
    figures = {run: {"nodes": n, **counts[run], **delays[run]} for run, n in processes.items()}
    for run, n in processes.items():
        figures[run]["delivery_queue_mean"] /= n
    return figures


def from_packets(sent: DataFrame, hops: DataFrame, links: DataFrame) -> dict[int, Figures]:
    """The figures that follow from the packets, of each run that has any."""
    receivers = f.col("receivers")
    handed_over = _of_runs(
        sent,
        copies=f.sum(f.when(f.col("fragment") == 0, receivers)),
        messages=f.sum(receivers),
        bytes=f.sum(f.col("bytes") * receivers),
        control_bytes=f.sum(f.col("control") * receivers),
    )
    carried = _of_runs(
        links,
        network_load_mean=f.sum("load"),
        link_queue_max=f.max("queue_max"),
        hops=f.sum("packets"),
        wire_bytes=f.sum("bytes"),
    )
    errors = _of_runs(hops, hop_error_us_p999=f.percentile(f.abs("error"), 0.999) / 1000)
    return {run: {**figures, **carried[run], **errors[run]} for run, figures in handed_over.items()}


def disagreements(
    engine: Mapping[str, Any], digest: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Figures that both have and that are not the same: name, the engine's, the digest's."""
    return {
        key: (engine[key], value)
        for key, value in digest.items()
        if key in engine and not _same(engine[key], value)
    }


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return bool(abs(one - other) <= TOLERANCE * max(abs(one), abs(other)))
    return bool(one == other)


def _of_runs(table: DataFrame, **columns: Column) -> dict[int, Figures]:
    """A row of aggregates for each run; without any rows they are 0."""
    rows = table.groupBy("run").agg(*(column.alias(name) for name, column in columns.items()))
    found = {row["run"]: {name: row[name] or 0 for name in columns} for row in rows.collect()}
    return defaultdict(lambda: dict.fromkeys(columns, 0), found)
