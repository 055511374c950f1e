"""What is measured, the same on every engine: at the nodes, on the way into the network, on links."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Self

import numpy as np

from testbed.protocols import Message, Protocol, Ratio


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
        self.sampled: dict[str, dict[int, list[float]]] = {}  # by name and process: sum and number
        self.load: Counter[int] = Counter()  # copies that each node handed to the network

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

    def sample(self, node: int, values: Mapping[str, float]) -> None:
        """Add what a protocol has measured once more at a node."""
        for name, value in values.items():
            of = self.sampled.setdefault(name, {}).setdefault(node, [0, 0])
            of[0] += value
            of[1] += 1

    def forget(self) -> None:
        """The warm-up is over: what protocols count and measure of their own begins here."""
        self.counted.clear()
        self.sampled.clear()

    def means(self) -> dict[str, float]:
        """The means of what protocols have measured: over all, and over the means of processes."""
        found = {}
        for name, processes in sorted(self.sampled.items()):
            sums, numbers = zip(*processes.values(), strict=True)
            found[f"{name}_mean"] = sum(sums) / sum(numbers)
            found[f"{name}_mean_of_processes"] = fmean(s / n for s, n in processes.values())
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain data, for another process."""
        return {
            "multicasts": self.multicasts,
            "deliveries": self.deliveries,
            "delays": self.delays.tolist(),
            "queue_longest": self.queue_longest,
            "queued": self.queued,
            "queue_time": self.queue_time,
            "discarded": self.discarded,
            "counted": self.counted,
            "sampled": self.sampled,
            "load": self.load,
        }

    @classmethod
    def merged(cls, parts: Iterable[dict[str, Any]]) -> Self:
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
            for name, processes in part["sampled"].items():
                of = meter.sampled.setdefault(name, {})
                for process, more in processes.items():
                    before = of.get(int(process), [0, 0])
                    of[int(process)] = [a + b for a, b in zip(before, more, strict=True)]
            meter.load.update(part["load"])
        return meter


@dataclass
class Sent:
    """What nodes handed to the network, counted once for each receiver (each logical arc)."""

    copies: int = 0
    messages: int = 0  # in the paper's sense: IP fragments
    bytes: int = 0
    control_bytes: int = 0
    channel_bytes: int = 0  # of the control information, the reliable channel's

    def add(self, receivers: int, fragments: int, size: int, message: Message) -> None:
        """Count a message of this size that was sent to this number of receivers."""
        self.copies += receivers
        self.messages += fragments * receivers
        self.bytes += size * receivers
        self.control_bytes += message.control_size * receivers
        self.channel_bytes += message.channel_size * receivers


@dataclass(frozen=True)
class Carried:
    """What the links carried, each packet counted once for each link."""

    hops: int
    wire_bytes: int
    time: int  # packets × nanoseconds that they waited and travelled
    byte_time: int
    longest_queue: int
    longest_queue_bytes: int
    lost: int = 0
    dropped: int = 0
    duplicated: int = 0


def summarise(
    protocol: type[Protocol],
    processes: int,
    duration: int,
    meter: Meter,
    sent: Sent,
    carried: Carried,
) -> dict[str, Any]:
    """A run's figures, one flat object; ``duration`` in nanoseconds."""
    duration = max(1, duration)
    delays = np.asarray(meter.delays) / 1e6 if meter.delays else np.zeros(1)
    summary = {
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
        "network_load_bytes_mean": carried.byte_time / duration,
        "link_queue_max": carried.longest_queue,
        "link_queue_bytes_max": carried.longest_queue_bytes,
        **asdict(sent),
        "busiest_load": max(meter.load.values(), default=0)
        * processes
        / max(1, meter.load.total()),
        "hops": carried.hops,
        "wire_bytes": carried.wire_bytes,
        "packets_lost": carried.lost,
        "packets_dropped": carried.dropped,
        "packets_duplicated": carried.duplicated,
        **{f"discarded_{reason}": count for reason, count in sorted(meter.discarded.items())},
        **dict(sorted(meter.counted.items())),
        **meter.means(),
    }
    ratios = (figure for figure in protocol.figures if isinstance(figure, Ratio))
    values = {ratio.key: ratio.value(summary) for ratio in ratios}
    return summary | {key: value for key, value in values.items() if value is not None}
