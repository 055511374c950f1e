"""Tables that join what the logs and the packets say: messages, links, and the run over time."""

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from testbed.digest.logs import NAME, SO_FAR, sends
from testbed.digest.packets import TRANSMISSION

STEPS = 500


def messages(
    events: DataFrame, delivered: DataFrame, sent: DataFrame, hops: DataFrame
) -> DataFrame:
    """One row for each message multicast."""
    delay = f.when(f.col("node") != f.col("source"), f.col("delay"))
    received = delivered.groupBy(NAME).agg(
        f.countDistinct("node").cast("int").alias("delivered"),
        f.mean(delay).alias("delay_mean"),
        f.max(delay).alias("delay_max"),
        f.count("held").cast("int").alias("holders"),
        f.max("held").alias("held_max"),
    )
    first = f.when(f.col("fragment") == 0, f.col("receivers")).otherwise(0)
    handed_over = sent.groupBy(NAME).agg(
        f.sum(first).cast("int").alias("copies"),
        f.sum("receivers").cast("int").alias("fragments"),
        f.sum(f.col("bytes") * f.col("receivers")).alias("bytes"),
    )
    carried = hops.groupBy(NAME).agg(
        f.count("*").cast("int").alias("hops"), f.sum("bytes").alias("wire_bytes")
    )
    table = sends(events).join(received, NAME, "left").fillna(0, ["delivered", "holders"])
    return table.join(handed_over, NAME, "left").join(carried, NAME, "left")


def links(configured: DataFrame, hops: DataFrame, ends: DataFrame) -> DataFrame:
    """One row for each direction of each link."""
    link = ["run", "tail", "head"]
    carried = (
        hops.join(f.broadcast(configured), link)
        .join(f.broadcast(ends), "run")
        .groupBy(link)
        .agg(
            f.count("*").alias("packets"),
            f.sum("bytes").alias("bytes"),
            f.sum(f.expr(TRANSMISSION)).alias("busy"),
            f.sum(f.col("started") - f.col("queued")).alias("waited"),
            (f.sum(f.col("arrived") - f.col("queued")) / f.max("end")).alias("load"),
        )
    )
    so_far = Window.partitionBy(link).orderBy("at", "step").rowsBetween(*SO_FAR)
    lengths = _steps(hops.filter("started > queued"), "queued", "started", *link)
    longest = (
        lengths.withColumn("length", f.sum("step").over(so_far))
        .groupBy(link)
        .agg(f.max("length").alias("queue_max"))
    )
    figures = ["packets", "bytes", "busy", "waited", "load", "queue_max"]
    return configured.join(carried, link, "left").join(longest, link, "left").fillna(0, figures)


def timeline(
    spark: SparkSession, events: DataFrame, queued: DataFrame, hops: DataFrame, ends: DataFrame
) -> DataFrame:
    """The run cut into equal steps: what waited, what travelled, what was sent and delivered."""
    widths = ends.select("run", f.expr(f"end div {STEPS} + 1").alias("width"))
    bins = widths.crossJoin(spark.range(STEPS).select(f.col("id").alias("bin")))
    bins = bins.withColumn("at", f.col("bin") * f.col("width"))
    levels = [
        _steps(queued, "since", "until", "run").withColumn("what", f.lit("held")),
        _steps(hops, "queued", "arrived", "run").withColumn("what", f.lit("packets")),
    ]
    figures = _levels(bins, levels[0].union(levels[1]), widths)
    did = (
        events.join(f.broadcast(widths), "run")
        .groupBy("run", _bin().alias("bin"))
        .agg(
            f.count_if(f.col("event") == "send").alias("multicasts"),
            f.count_if(f.col("event") == "deliver").alias("deliveries"),
        )
    )
    key = ["run", "bin"]
    return bins.join(figures, key).join(did, key, "left").fillna(0).orderBy(key).drop("bin")


def _levels(bins: DataFrame, steps: DataFrame, widths: DataFrame) -> DataFrame:
    """Mean and maximum in each bin of what goes up and down by steps."""
    cell = ["run", "what", "bin"]
    within = Window.partitionBy(cell).orderBy("at", "step").rowsBetween(*SO_FAR)
    in_bins = (
        steps.join(f.broadcast(widths), "run")
        .withColumn("bin", _bin())
        .withColumn("height", f.sum("step").over(within))
        .groupBy(cell)
        .agg(
            f.sum("step").alias("change"),
            f.sum(f.expr("step * ((bin + 1) * width - at) / width")).alias("mean"),
            f.max("height").alias("top"),
        )
    )
    earlier = Window.partitionBy("run", "what").orderBy("bin")
    before = f.sum("change").over(earlier.rowsBetween(Window.unboundedPreceding, -1))
    what = f.explode(f.array(f.lit("held"), f.lit("packets"))).alias("what")
    levels = (
        bins.select("run", "bin", what)
        .join(in_bins, cell, "left")
        .fillna(0)
        .withColumn("before", f.coalesce(before, f.lit(0)))
        .withColumn("mean", f.col("before") + f.col("mean"))
        .withColumn("max", f.col("before") + f.greatest("top", f.lit(0)))
    )
    figures = [
        function(f.when(f.col("what") == name, f.col(figure))).alias(f"{name}_{figure}")
        for name in ("held", "packets")
        for figure, function in (("mean", f.max), ("max", f.max))
    ]
    return levels.groupBy("run", "bin").agg(*figures)


def _steps(intervals: DataFrame, since: str, until: str, *keys: str) -> DataFrame:
    """+1 where an interval begins and -1 where it ends; at one moment the ends come first."""
    up = intervals.select(*keys, f.col(since).alias("at"), f.lit(1).alias("step"))
    return up.union(intervals.select(*keys, until, f.lit(-1)))


def _bin() -> Column:
    return f.expr(f"least(greatest(at, 0) div width, {STEPS - 1})")
