"""The one table of figures: what a run's summary holds, and how it is called and written.

Whatever prints, averages, draws or documents a figure looks here. What a protocol makes of its own
counters it declares itself, in ``Protocol.figures``; the table takes that from all protocols, so that a
summary alone is enough to show a run. Counters that nobody declared are in summaries too, by the names
that protocols give them, and so are messages that were discarded, as ``discarded_`` and the reason.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from testbed.plugins import loaded
from testbed.protocols import PROTOCOLS, Figure

# What was put in and not measured: it has no mean over runs.
GIVEN = (
    Figure("experiment", "experiment", form="", shown=False),
    Figure("protocol", "protocol", form="", shown=False),
    Figure("seed", "seed", shown=False),
    Figure("engine", "engine", form="", shown=False),
    Figure("nodes", "processes", shown=False),
)
MEASURED = (
    Figure("verdict", "causal order", form=""),
    Figure("fidelity", "network", form="", shown=False),
    Figure("duration_ms", "length of the run", "ms", ",.3f", shown=False),
    Figure("multicasts", "messages multicast"),
    Figure("deliveries", "deliveries"),
    Figure("delay_ms_mean", "delay, mean", "ms", ",.3f", short="delay (ms)"),
    Figure("added_delay_ms_mean", "of this not required by causal order", "ms", ",.3f"),
    Figure(
        "added_delay_ms_max", "delay not required by causal order, max", "ms", ",.3f", shown=False
    ),
    Figure(
        "delayed_percent", "deliveries later than causal order requires", "%", ",.2f", shown=False
    ),
    Figure("delay_ms_p50", "delay, median", "ms", ",.3f", shown=False),
    Figure("delay_ms_p90", "delay, 90th percentile", "ms", ",.3f", shown=False),
    Figure("delay_ms_p99", "delay, 99th percentile", "ms", ",.3f", shown=False),
    Figure("delay_ms_max", "delay, max", "ms", ",.3f"),
    Figure("held", "messages held back", shown=False),
    Figure("delivery_queue_mean", "delivery queue, mean", "messages", ",.3f", "delivery queue"),
    Figure("delivery_queue_max", "delivery queue, max", "messages"),
    Figure("network_load_mean", "network load, mean", "packets", ",.1f", "network load"),
    Figure("network_load_bytes_mean", "network load, mean", "bytes", ",.0f", shown=False),
    Figure("link_queue_max", "link queue, max", "packets"),
    Figure("link_queue_bytes_max", "link queue, max", "bytes", shown=False),
    Figure("copies", "copies sent", shown=False),
    Figure("messages", "packets sent"),
    Figure("bytes", "bytes sent", short="bytes"),
    Figure("control_bytes", "of these control information"),
    Figure("channel_bytes", "bytes of the reliable channel", shown=False),
    Figure("hops", "hops", short="hops"),
    Figure("wire_bytes", "bytes on all links", shown=False),
    Figure("hop_error_us_p999", "error of a hop, 99.9th percentile", "µs", ",.3f", shown=False),
    Figure("packets_lost", "packets lost", shown=False),
    Figure("packets_dropped", "packets dropped", shown=False),
    Figure("packets_duplicated", "packets duplicated", shown=False),
    Figure("malformed", "malformed messages", shown=False),
    Figure("crashes", "crashes", shown=False),
    Figure("restarts", "restarts", shown=False),
    Figure("disagreements", "figures on which digest and engine differ", shown=False),
    Figure("lost_deliveries", "deliveries lost"),
)
# What is found only in runs of protocols with local groups, several clusters or managed tickets.
CHECKED = (
    Figure("delay_within_groups_ms_mean", "delay within groups, mean", "ms", ",.3f"),
    Figure("delay_across_groups_ms_mean", "delay across groups, mean", "ms", ",.3f"),
    Figure("recovery_ms_max", "longest time cut off by a crash", "ms", ",.3f"),
    Figure("crashes_without_recovery", "crashes without recovery", shown=False),
    Figure("clusters", "clusters", form=",.0f", shown=False),
    Figure("entering_ms_mean", "from interest to the first event, mean", "ms", ",.0f"),
    Figure("ticket_conflicts", "ticket conflicts"),
    Figure("ticket_wait_ms_max", "longest wait for a ticket", "ms", ",.0f"),
    Figure("no_owner_ms_max", "longest time in which nobody could send", "ms", ",.0f"),
)


def table() -> dict[str, Figure]:
    """All figures by key, in the order in which they are shown."""
    protocols = (*PROTOCOLS.values(), *loaded())
    own = (figure for protocol in protocols for figure in protocol.figures)
    return {figure.key: figure for figure in (*GIVEN, *MEASURED, *own, *CHECKED)}


def shown(summaries: Iterable[Mapping[str, Any]]) -> list[Figure]:
    """The figures that tables show of these runs; some belong to one protocol only."""
    known = set().union(*summaries)
    return [figure for figure in table().values() if figure.shown and figure.key in known]


def swept_figures(keys: Iterable[str]) -> list[Figure]:
    """Those of these figures that the tables of a sweep have columns for."""
    known = set(keys)
    return [figure for figure in table().values() if figure.short and figure.key in known]
