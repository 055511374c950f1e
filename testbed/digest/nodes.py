"""What follows from the event logs of nodes: their deliveries and delivery queues, and messages."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testbed.digest.arrays import (
    counted,
    filled,
    grouped,
    integers,
    joined,
    order_of,
    runs_of,
    with_columns,
)
from testbed.digest.causes import with_causes
from testbed.digest.delays import DELIVERIES
from testbed.digest.steps import MESSAGE, Facts, Piece, Tables
from testbed.digest.timeline import bin_counts, intervals

HELD = ["node", *MESSAGE]


def node_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """The events, deliveries and queues of some nodes, and what they say of messages."""
    events = numbered(tables["events"])
    sends = sends_of(tables.get("sends", events.slice(0, 0)))
    holds = grouped(
        _only(events, "hold"), HELD, held_at=("at", "min"), held_number=("number", "min")
    )
    delivered = with_causes(deliveries(events, sends, holds))
    queued = queues(holds, delivered, facts.end)
    facts.write("events", bucket, events)
    facts.write("deliveries", bucket, delivered)
    yield facts.total("nodes", nodes(events, delivered, queued, facts.end))
    yield facts.total("delays", counted(_delays(delivered).drop_null()))
    for event, role in (("send", "multicasts"), ("deliver", "deliveries")):
        yield facts.total(role, bin_counts(integers(_only(events, event), "at"), facts.end))
    yield from intervals(facts, "held", integers(queued, "since"), integers(queued, "until"))
    own = integers(sends, "source") % facts.buckets["node"] == bucket
    yield from facts.by_message("message", "sends", sends.filter(pa.array(own)))
    yield from facts.by_message("message", "received", received(delivered))
    yield from facts.by_message("delay", "deliveries", delivered.select(DELIVERIES))


def numbered(events: pa.Table) -> pa.Table:
    """Each node's events together, numbered in the order of its log."""
    events = events.take(pa.array(np.argsort(integers(events, "node"), kind="stable")))
    starts = runs_of(integers(events, "node"))
    number = np.arange(len(events)) - np.repeat(starts[:-1], np.diff(starts))
    return with_columns(events, number=pa.array(number, pa.int32()))


def sends_of(events: pa.Table) -> pa.Table:
    """Each message once, from the log of its own source."""
    told = {"sent_at": "at", "payload": "payload", "control": "control"}
    told["destinations"] = "destinations"
    return grouped(events, MESSAGE, **{name: (its, "first") for name, its in told.items()})


def deliveries(events: pa.Table, sends: pa.Table, holds: pa.Table) -> pa.Table:
    """One row for each delivery: where, when, how late, and how long it was held back."""
    found = _only(events, "deliver").select([*HELD, "at", "number"])
    found = joined(found, sends.select([*MESSAGE, "sent_at"]), MESSAGE)
    found = joined(found, holds, HELD).sort_by([("node", "ascending"), ("number", "ascending")])
    return with_columns(
        found,
        delay=pc.subtract(found["at"], found["sent_at"]),
        held=pc.subtract(found["at"], found["held_at"]),
    )


def queues(holds: pa.Table, delivered: pa.Table, end: int) -> pa.Table:
    """Each message's time in a hold-back queue; one that is never delivered stays to the end."""
    leaves = grouped(delivered, HELD, until=("at", "min"), until_number=("number", "min"))
    queued = filled(joined(holds, leaves, HELD), end, "until")
    return queued.rename_columns({"held_at": "since", "held_number": "since_number"})


def nodes(events: pa.Table, delivered: pa.Table, queued: pa.Table, end: int) -> pa.Table:
    """One row for each process that did anything."""
    did = with_columns(
        events.select(["node"]),
        multicasts=pc.equal(events["event"], "send"),
        deliveries=pc.equal(events["event"], "deliver"),
    )
    table = grouped(
        did, ["node"], multicasts=("multicasts", "sum"), deliveries=("deliveries", "sum")
    )
    others = with_columns(delivered.select(["node"]), delay=_delays(delivered))
    delays = grouped(others, ["node"], delay_mean=("delay", "mean"), delay_max=("delay", "max"))
    waits = pc.divide(pc.subtract(queued["until"], queued["since"]).cast(pa.float64()), float(end))
    waits = grouped(
        with_columns(queued.select(["node"]), wait=waits),
        ["node"],
        held=("wait", "count"),
        queue_mean=("wait", "sum"),
    )
    for part in (delays, waits, _longest(queued)):
        table = joined(table, part, ["node"])
    return filled(table, 0, "held", "queue_mean", "queue_max")


def received(delivered: pa.Table) -> pa.Table:
    """What these nodes' deliveries add to messages."""
    return grouped(
        with_columns(delivered, delay=_delays(delivered)),
        MESSAGE,
        delivered=("node", "count_distinct"),
        delay_sum=("delay", "sum"),
        delay_count=("delay", "count"),
        delay_max=("delay", "max"),
        holders=("held", "count"),
        held_max=("held", "max"),
    )


def _only(events: pa.Table, event: str) -> pa.Table:
    return events.filter(pc.equal(events["event"], event))


def _delays(delivered: pa.Table) -> pa.ChunkedArray:
    """The delays of deliveries, null where the sender delivered to itself."""
    own = pc.equal(delivered["node"], delivered["source"])
    return pc.if_else(own, pa.scalar(None, pa.int64()), delivered["delay"])


def _longest(queued: pa.Table) -> pa.Table:
    """The longest that each node's hold-back queue was, in the order of the node's events."""
    left = queued.filter(pc.is_valid(queued["until_number"]))
    node = np.concatenate([integers(queued, "node"), integers(left, "node")])
    number = np.concatenate([integers(queued, "since_number"), integers(left, "until_number")])
    step = np.repeat([1, -1], [len(queued), len(left)])
    order = order_of(node, number)
    node, length = node[order], np.cumsum(step[order])
    starts = runs_of(node)[:-1]
    before = (length - step[order])[starts]
    longest = np.maximum.reduceat(length, starts) - before if len(starts) else starts
    return pa.table({"node": pa.array(node[starts], pa.int32()), "queue_max": longest})
