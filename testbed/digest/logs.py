"""The event logs as a table, and what follows from them alone: deliveries and delivery queues."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as f

LINE = """
    t bigint, node int, event string, source int, seq bigint, to array<int>, payload int, control int,
    `for` array<bigint>
"""
NAME = ["run", "source", "seq"]
SO_FAR = (Window.unboundedPreceding, 0)


def read_lines(
    spark: SparkSession, files: Sequence[str], processes: int, bad: Observation
) -> DataFrame:
    """The lines of one run's logs; those that cannot be used are counted as ``bad`` and left out."""
    lines = spark.read.text(list(files)).select(
        f.col("_metadata.file_path").alias("file"),
        f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("row"),
        f.from_json("value", LINE).alias("line"),
        (f.trim("value") == "").alias("blank"),
    )
    line = f.col("line")
    whole = line["t"].isNotNull() & line["event"].isNotNull()
    usable = f.coalesce(whole & line["node"].between(0, processes - 1), f.lit(False))
    everybody = f.coalesce(f.size("to"), f.lit(processes))
    return (
        lines.filter("not blank")
        .withColumn("usable", usable)
        .observe(bad, f.count_if(~f.col("usable")).alias("lines"))
        .filter("usable")
        .select("file", "block", "row", "line.*")
        .withColumn("destinations", f.when(f.col("event") == "send", everybody))
    )


def events(lines: DataFrame) -> DataFrame:
    """The table of events: each node's in the order of its file.

    Spark reads a file in blocks, and the rows of a block are in order.
    """
    in_order = Window.partitionBy("run", "node").orderBy("file", "block", "row")
    return lines.select(
        "run",
        "node",
        (f.row_number().over(in_order) - 1).alias("number"),
        f.col("t").alias("at"),
        "event",
        "source",
        "seq",
        "payload",
        "control",
        "destinations",
        f.col("for")[0].cast("int").alias("for_source"),
        f.col("for")[1].alias("for_seq"),
    )


def sends(events: DataFrame) -> DataFrame:
    """Each message once, from the log of its own source."""
    told = {"at": "sent_at", "payload": "payload", "control": "control"}
    told["destinations"] = "destinations"
    return (
        events.filter("event = 'send' and node = source")
        .groupBy(NAME)
        .agg(*(f.min_by(column, "number").alias(name) for column, name in told.items()))
    )


def holds(events: DataFrame) -> DataFrame:
    """Each message that a node held back, once for that node."""
    return (
        events.filter("event = 'hold'")
        .groupBy("node", *NAME)
        .agg(f.min("at").alias("held_at"), f.min("number").alias("held_number"))
    )


def deliveries(events: DataFrame) -> DataFrame:
    """One row for each delivery: where, when, how late, and how long it was held back."""
    return (
        events.filter("event = 'deliver'")
        .select("node", *NAME, "at", "number")
        .join(sends(events).select(*NAME, "sent_at"), NAME, "left")
        .join(holds(events), ["node", *NAME], "left")
        .select(
            "node",
            *NAME,
            "number",
            "at",
            (f.col("at") - f.col("sent_at")).alias("delay"),
            "held_number",
            "held_at",
            (f.col("at") - f.col("held_at")).alias("held"),
        )
    )


def queues(events: DataFrame, delivered: DataFrame, ends: DataFrame) -> DataFrame:
    """Each message's time in a hold-back queue; one that is never delivered stays to the end."""
    leaves = delivered.groupBy("node", *NAME).agg(
        f.min("at").alias("until"), f.min("number").alias("until_number")
    )
    return (
        holds(events)
        .join(leaves, ["node", *NAME], "left")
        .join(f.broadcast(ends), "run")
        .withColumn("until", f.coalesce("until", "end"))
        .withColumnsRenamed({"held_at": "since", "held_number": "since_number"})
    )


def nodes(events: DataFrame, delivered: DataFrame, queued: DataFrame) -> DataFrame:
    """One row for each process that did anything."""
    node = ["run", "node"]
    did = events.groupBy(node).agg(
        f.count_if(f.col("event") == "send").alias("multicasts"),
        f.count_if(f.col("event") == "deliver").alias("deliveries"),
    )
    of_others = delivered.filter("node != source").groupBy(node)
    delays = of_others.agg(f.mean("delay").alias("delay_mean"), f.max("delay").alias("delay_max"))
    waits = queued.groupBy(node).agg(
        f.count("*").alias("held"),
        f.sum((f.col("until") - f.col("since")) / f.col("end")).alias("queue_mean"),
    )
    parts = did.join(delays, node, "left").join(waits, node, "left")
    return parts.join(_longest(queued), node, "left").fillna(0, ["held", "queue_mean", "queue_max"])


def _longest(queued: DataFrame) -> DataFrame:
    """The longest that each node's hold-back queue was, in the order of the node's events."""
    node = ["run", "node"]
    comes = queued.select(*node, f.col("since_number").alias("number"), f.lit(1).alias("step"))
    goes = queued.filter("until_number is not null").select(*node, "until_number", f.lit(-1))
    so_far = Window.partitionBy(node).orderBy("number").rowsBetween(*SO_FAR)
    lengths = comes.union(goes).withColumn("length", f.sum("step").over(so_far))
    return lengths.groupBy(node).agg(f.max("length").alias("queue_max"))
