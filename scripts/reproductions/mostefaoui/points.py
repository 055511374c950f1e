"""What the reproduction of Mostefaoui & Raynal runs and measures."""

from typing import Any, NamedTuple

from typing_extensions import override

from scripts.reproductions.running import EXPERIMENTS, Row
from testbed.experiment import Experiment, parse, read_document

FILE = EXPERIMENTS / "mostefaoui.toml"
TIMER_MS = 10.0
PLAIN, TIMER, ONE, BSS = "M–R", f"M–R, timer {TIMER_MS:g} ms", "one integer", "BSS"
PROTOCOLS: dict[str, dict[str, Any]] = {
    PLAIN: {"name": "mostefaoui-raynal", "entries": "all"},
    TIMER: {"name": "mostefaoui-raynal", "entries": "all", "resynch_after_ms": TIMER_MS},
    ONE: {"name": "one-integer"},
    BSS: {"name": "bss", "entries": "all"},
}
RING = {"model": "ring", "groups": 6, "shared": 2}  # everybody is in one or two groups of six
ONE_GROUP, LOCK_STEP = "one group", "lock-step"
UNICAST, NETWORK = "unicast", "network"
Tables = dict[str, dict[str, Any]]  # what differs from the file


class Panel(NamedTuple):
    """What is varied, the tables for each of its values, and the protocols that are run."""

    title: str
    label: str
    values: dict[str, Tables]
    protocols: tuple[str, ...] = tuple(PROTOCOLS)


TIMERS_MS = (0.0, 2.0, 5.0, 10.0, 20.0, 40.0)
TOGETHER = {"model": "bursts", "burst": 1, "senders": 0, "each_group": True, "duration_ms": 2000.0}
IN_TURN = {"model": "steady", "senders": 0, "each_group": True, "duration_ms": 2000.0}
ONE_BUSY = {"senders": 1, "rate_per_s": 400.0}
LINKS = {"model": "pure-random", "nodes": 24, "edge_probability": 0.15}
PANELS = {
    "groups": Panel(
        "more groups",
        "number of groups",
        {str(k): {"groups": {"groups": k}} for k in (2, 4, 6, 8, 12, 16)},
    ),
    "size": Panel(
        "larger groups",
        "members of a group",
        {str(k): {"groups": {"size": k}} for k in (2, 4, 6, 8, 12)},
    ),
    "overlap": Panel(
        "more overlap (4 groups)",
        "members that are in earlier groups too",
        {str(k): {"groups": {"groups": 4, "overlap": k}} for k in range(6)},
    ),
    "senders": Panel(
        "fewer busy senders, as many messages",
        "senders",
        {
            str(k): {"groups": RING, "workload": {"senders": k, "rate_per_s": 600 / k}}
            for k in (24, 12, 6, 3, 1)
        },
    ),
    "interval": Panel(
        "longer between messages",
        "mean interval of a sender (ms)",
        {f"{ms:g}": {"workload": {"rate_per_s": 1000 / ms}} for ms in (5, 10, 20, 50, 100)},
    ),
    "synchrony": Panel(
        "how synchronous senders are (the first in lock-step too)",
        "senders",
        {
            ONE_GROUP: {
                "groups": {"model": "everybody"},
                "workload": {**TOGETHER, "interval_ms": 200.0},
            },
            LOCK_STEP: {"groups": RING, "workload": {**TOGETHER, "interval_ms": 200.0}},
            "at once": {"groups": RING, "workload": {**TOGETHER, "interval_ms": 20.0}},
            "in turn": {"groups": RING, "workload": {**IN_TURN, "interval_ms": 20.0}},
            "at random": {"groups": RING},
            "one alone": {"groups": RING, "workload": ONE_BUSY},
        },
    ),
    "timer": Panel(
        "a longer timer",
        "timer (ms)",
        {f"{ms:g}": {"protocol": {"resynch_after_ms": ms}} for ms in TIMERS_MS},
        (PLAIN,),
    ),
    "timer-one": Panel(
        "a longer timer, one busy sender",
        "timer (ms)",
        {
            f"{ms:g}": {"protocol": {"resynch_after_ms": ms}, "groups": RING, "workload": ONE_BUSY}
            for ms in TIMERS_MS
        },
        (PLAIN,),
    ),
    "gap": Panel(
        "messages that would overtake on a channel (the last: one busy sender)",
        "come after the one before (ms)",
        {
            "0": {},
            "1": {"topology": {"fifo_gap_ms": 1.0}},
            "0, one": {"groups": RING, "workload": ONE_BUSY},
            "1, one": {
                "topology": {"fifo_gap_ms": 1.0}, "groups": RING, "workload": ONE_BUSY,
            },
        },
        (PLAIN, BSS),
    ),
    "multicast": Panel(
        "links instead of channels, and who copies what goes to a group",
        "copies are made by",
        {
            "sender": {"topology": LINKS, "protocol": {"multicast": UNICAST}},
            "network": {"topology": LINKS, "protocol": {"multicast": NETWORK}},
        },
        (PLAIN, ONE, BSS),
    ),
}  # fmt: skip

Seeds = tuple[float, ...]  # one number for each seed


class Measured(NamedTuple):
    """The figures of one point."""

    stamp: Seeds  # bytes a copy
    control: Seeds  # bytes a copy, resynchs included
    resynchs: Seeds  # copies of them, for each copy of a message
    resynchs_sent: Seeds
    delay: Seeds  # ms
    added: Seeds  # ms
    held: Seeds  # messages in a process's delivery queue, on average
    memory: Seeds  # bytes that a process keeps to stamp and to order messages
    hops: Seeds  # links that packets cross, for each message


class Where(NamedTuple):
    """A place on a panel, and a protocol."""

    panel: str
    value: str
    protocol: str

    @override
    def __str__(self) -> str:
        return f"{self.protocol} ({PANELS[self.panel].label}: {self.value})"


Found = dict[Where, Measured]


def experiment(panel: str, value: str, protocol: str, seed: int, duration_ms: float) -> Experiment:
    """One run of a point."""
    document = read_document(FILE)
    changes = PANELS[panel].values[value]
    document["groups"]["groups"] = 6
    document["protocol"] = {**PROTOCOLS[protocol], **changes.get("protocol", {})}
    document["seed"] = seed
    for table in ("groups", "workload", "topology"):
        changed = changes.get(table, {})
        document[table] = changed if "model" in changed else {**document[table], **changed}
    document["workload"]["duration_ms"] = duration_ms
    return parse(document, FILE)[0]


def measured(rows: list[Row]) -> Measured:
    """The figures of a point's runs."""
    return Measured(*zip(*map(_of_run, rows), strict=True))


def _of_run(row: Row) -> tuple[float, ...]:
    copies = row["stamped_copies"]
    return (
        row["stamp_bytes"] / copies,
        (row["stamp_bytes"] + row.get("resynch_bytes", 0)) / copies,
        row.get("resynch_copies", 0) / copies,
        row.get("resynchs", 0),
        row["delay_ms_mean"],
        row["added_delay_ms_mean"],
        row["delivery_queue_mean"],
        row["memory_per_process"],
        row["hops"] / row["multicasts"],
    )
