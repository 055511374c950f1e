"""A run's figures from its digest, by the same names as the engine's own, and where the two differ."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testbed.digest.arrays import Integers, grouped, integers
from testbed.digest.steps import Tables

Figures = dict[str, Any]
TOLERANCE = 1e-9


def from_logs(totals: Tables, processes: int) -> Figures:
    """The figures that follow from the event logs."""
    delays, counts = _distribution(totals, "delays")
    share = total(totals, "nodes", "queue_mean") / processes
    return {
        "nodes": processes,
        **{name: total(totals, "nodes", name) for name in ("multicasts", "deliveries", "held")},
        "delivery_queue_mean": share,
        "delivery_queue_max": _most(totals, "nodes", "queue_max"),
        "delay_ms_mean": float(delays @ counts) / max(1, counts.sum()) / 1e6,
        **{f"delay_ms_p{q}": _quantile(delays, counts, q / 100) / 1e6 for q in (50, 90, 99)},
        "delay_ms_max": int(delays.max(initial=0)) / 1e6,
    }


def from_packets(totals: Tables, links: pa.Table) -> Figures:
    """The figures that follow from the packets, if any were sent."""
    if "sent" not in totals:
        return {}
    sums = {
        "copies": "copies",
        "messages": "fragments",
        "bytes": "bytes",
        "control_bytes": "control",
    }
    errors, counts = _distribution(totals, "errors")
    return {
        **{figure: total(totals, "sent", column) for figure, column in sums.items()},
        "network_load_mean": pc.sum(links["load"]).as_py(),
        "network_load_bytes_mean": pc.sum(links["load_bytes"]).as_py(),
        "link_queue_max": pc.max(links["queue_max"]).as_py(),
        "link_queue_bytes_max": pc.max(links["queue_bytes_max"]).as_py(),
        "hops": pc.sum(links["packets"]).as_py(),
        "wire_bytes": pc.sum(links["bytes"]).as_py(),
        "hop_error_us_p999": _quantile(errors, counts, 0.999) / 1000,
    }


def total(totals: Tables, role: str, column: str) -> Any:
    """The sum of a column; 0 if there is nothing to add up."""
    return pc.sum(totals[role][column]).as_py() or 0 if role in totals else 0


def _most(totals: Tables, role: str, column: str) -> Any:
    return pc.max(totals[role][column]).as_py() or 0 if role in totals else 0


def _distribution(totals: Tables, role: str) -> tuple[Integers, Integers]:
    """Distinct values in ascending order, and how often each occurs."""
    if role not in totals:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sums = grouped(totals[role], ["value"], count=("count", "sum")).sort_by("value")
    return integers(sums, "value"), integers(sums, "count")


def _quantile(values: Integers, counts: Integers, share: float) -> float:
    """The value below which this share of all lies, between two neighbours in proportion."""
    if not len(values):
        return 0.0
    last = np.cumsum(counts) - 1  # the rank of the last of each
    rank = share * float(last[-1])
    below, above = values[np.searchsorted(last, [np.floor(rank), np.ceil(rank)])].tolist()
    return float(below + (above - below) * (rank % 1))


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
