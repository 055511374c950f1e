"""What is measured, the same on every engine: at the nodes, on the way into the network, on links."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.protocols import Message

# (label, key of the summary, format)
FIGURES: tuple[tuple[str, str, str], ...] = (
    ("causal order", "verdict", "{}"),
    ("messages multicast", "multicasts", "{:,}"),
    ("deliveries", "deliveries", "{:,}"),
    ("delay, mean (ms)", "delay_ms_mean", "{:,.3f}"),
    ("of this not for causal order (ms)", "added_delay_ms_mean", "{:,.3f}"),
    ("delay, max (ms)", "delay_ms_max", "{:,.3f}"),
    ("delivery queue, mean", "delivery_queue_mean", "{:,.3f}"),
    ("delivery queue, max", "delivery_queue_max", "{:,}"),
    ("network load, mean (packets)", "network_load_mean", "{:,.1f}"),
    ("link queue, max (packets)", "link_queue_max", "{:,}"),
    ("messages sent (fragments)", "messages", "{:,}"),
    ("bytes sent", "bytes", "{:,}"),
    ("of these control information", "control_bytes", "{:,}"),
    ("hops", "hops", "{:,}"),
    ("integers of control information a copy", "control_integers_per_message", "{:,.1f}"),
    ("stamp, bytes a copy", "stamp_bytes_per_copy", "{:,.1f}"),
    ("broadcasts a message", "broadcasts_per_message", "{:,.2f}"),
    ("control information of a broadcast, bytes", "broadcast_control_bytes_per_copy", "{:,.1f}"),
    ("copies of a broadcast", "copies_per_broadcast", "{:,.2f}"),
    ("messages buffered at a process, mean", "buffered_messages_mean", "{:,.2f}"),
    ("delay within groups, mean (ms)", "delay_within_groups_ms_mean", "{:,.3f}"),
    ("delay across groups, mean (ms)", "delay_across_groups_ms_mean", "{:,.3f}"),
    ("until a crash was over, max (ms)", "recovery_ms_max", "{:,.3f}"),
    ("resynchs (copies)", "resynch_copies", "{:,}"),
    ("bytes of resynchs", "resynch_bytes", "{:,}"),
    ("deliveries lost", "lost_deliveries", "{:,}"),
    ("bytes of a gossip message", "gossip_message_bytes", "{:,.0f}"),
    ("lost events asked for", "recovery_attempts", "{:,}"),
    ("of these recovered in time", "recovered", "{:,}"),
    ("tickets granted", "tickets_granted", "{:,}"),
    ("ticket conflicts", "ticket_conflicts", "{:,}"),
)


def figures_of(
    summaries: Iterable[Mapping[str, Any]],
) -> list[tuple[str, str, str]]:
    """The figures that these runs have; some belong to one protocol only."""
    known = set().union(*summaries)
    return [figure for figure in FIGURES if figure[1] in known]


class Meter:
    """What is measured at the nodes: delays, delivery queues, the protocol's own counters."""

    def __init__(self) -> None:
        self.multicasts = 0
        self.deliveries = 0
        self.delays = array("q")  # nanoseconds from multicast to delivery, at the others
        self.queue_longest = 0
        self.queued = 0  # messages in delivery queues
        self.queue_time = 0  # when messages left delivery queues, less when they came, summed up
        self.discarded: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()

    def comes(self, now: int, length: int) -> None:
        """A message has joined a delivery queue, which is now so long."""
        self.queued += 1
        self.queue_time -= now
        self.queue_longest = max(self.queue_longest, length)

    def leaves(self, now: int) -> None:
        """A message has left a delivery queue."""
        self.queued -= 1
        self.queue_time += now

    def waited(self, end: int) -> int:
        """Messages × nanoseconds in delivery queues; what is still there waits to the end."""
        return self.queue_time + self.queued * end

    def to_json(self) -> dict[str, Any]:
        """Plain data, for another process."""
        return {**vars(self), "delays": self.delays.tolist()}

    @classmethod
    def merged(cls, parts: Iterable[dict[str, Any]]) -> Meter:
        """One meter for what many measured."""
        meter = cls()
        for part in parts:
            meter.multicasts += part["multicasts"]
            meter.deliveries += part["deliveries"]
            meter.delays.extend(part["delays"])
            meter.queue_longest = max(meter.queue_longest, part["queue_longest"])
            meter.queued += part["queued"]
            meter.queue_time += part["queue_time"]
            meter.discarded.update(part["discarded"])
            meter.counted.update(part["counted"])
        return meter


@dataclass
class Sent:
    """What nodes handed to the network, counted once for each receiver (each logical arc)."""

    copies: int = 0
    messages: int = 0  # in the paper's sense: IP fragments
    bytes: int = 0
    control_bytes: int = 0
    channel_bytes: int = 0  # of the control information, the reliable channel's

    def add(self, receivers: int, fragments: int, message: Message) -> None:
        """A message has been sent to so many receivers."""
        self.copies += receivers
        self.messages += fragments * receivers
        self.bytes += message.size * receivers
        self.control_bytes += message.control_size * receivers
        self.channel_bytes += message.channel_size * receivers


@dataclass(frozen=True)
class Carried:
    """What the links carried, each packet counted once for each link."""

    hops: int
    wire_bytes: int
    time: int  # packets × nanoseconds that they waited and travelled
    longest_queue: int
    lost: int = 0
    dropped: int = 0
    duplicated: int = 0


def summarise(
    processes: int, duration: int, meter: Meter, sent: Sent, carried: Carried
) -> dict[str, Any]:
    """A run's figures, one flat object; ``duration`` in nanoseconds."""
    duration = max(1, duration)
    delays = np.asarray(meter.delays) / 1e6 if meter.delays else np.zeros(1)
    return {
        "nodes": processes,
        "multicasts": meter.multicasts,
        "deliveries": meter.deliveries,
        "duration_ms": duration / 1e6,
        "delay_ms_mean": float(delays.mean()),
        "delay_ms_p50": float(np.percentile(delays, 50)),
        "delay_ms_p99": float(np.percentile(delays, 99)),
        "delay_ms_max": float(delays.max()),
        "delivery_queue_mean": meter.waited(duration) / duration / processes,
        "delivery_queue_max": meter.queue_longest,
        "network_load_mean": carried.time / duration,
        "link_queue_max": carried.longest_queue,
        "copies": sent.copies,
        "messages": sent.messages,
        "bytes": sent.bytes,
        "control_bytes": sent.control_bytes,
        "channel_bytes": sent.channel_bytes,
        "hops": carried.hops,
        "wire_bytes": carried.wire_bytes,
        "packets_lost": carried.lost,
        "packets_dropped": carried.dropped,
        "packets_duplicated": carried.duplicated,
        **{f"discarded_{reason}": count for reason, count in sorted(meter.discarded.items())},
        **dict(sorted(meter.counted.items())),
        **_overhead(meter, processes),
    }


def _overhead(meter: Meter, processes: int) -> dict[str, float]:
    """Means of what some protocols count; integers also as per cent of n²."""
    figures, counted = {}, meter.counted
    if copies := counted["control_copies"]:
        figures["control_integers_per_message"] = counted["control_integers"] / copies
        figures["control_percent_of_n2"] = 100 * counted["control_integers"] / copies / processes**2
    if copies := counted["stamped_copies"]:
        figures["stamp_bytes_per_copy"] = counted["stamp_bytes"] / copies
    if copies := counted["broadcast_copies"]:
        per_copy = counted["broadcast_control_bytes"] / copies
        figures["broadcast_control_bytes_per_copy"] = per_copy
        figures["broadcasts_per_message"] = counted["broadcasts"] / max(1, meter.multicasts)
        figures["copies_per_broadcast"] = copies / counted["broadcasts"]
    if samples := counted["buffer_samples"]:
        figures["buffered_messages_mean"] = counted["buffered_messages"] / samples
    if messages := counted["gossip_messages"]:
        figures["gossip_message_bytes"] = counted["gossip_bytes"] / messages
    if events := counted["log_events"]:
        figures["log_integers_mean"] = counted["log_integers"] / events
        figures["log_percent_of_n2"] = 100 * counted["log_integers"] / events / processes**2
    return figures
