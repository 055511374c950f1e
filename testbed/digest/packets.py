"""What crossed the links, packet by packet, from captures or from the simulator's own table.

Two tables: ``sent``, what processes handed to the network, and ``hops``, each packet on each link.
A capture sees a packet as it arrives at a switch: from a host (it was sent) or over a link (a hop has
ended; it began when the same packet arrived at the switch before). Only the first fragment of a
message has the message's header; the others have the same addresses and identification.

A capture does not show when a packet left a link's queue. But links are FIFO, so it follows from the
arrivals: packet i starts at max(arrival of i, start of i-1 + its transmission), which over all packets
is a running sum and a running maximum.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as f

from testbed.digest.logs import SO_FAR
from testbed.digest.source import packets
from testbed.engines.mininet.plan import host_ip
from testbed.packets.framing import ETHERNET_BYTES, IP_BYTES, UDP_BYTES
from testbed.spark.local_table import local_table

CAPTURED = [
    *("time", "interface", "ip_length", "source_ip", "destination_ip", "identification"),
    *("fragment_offset", "kind", "source", "seq", "control", "lost_bytes"),
]
DATAGRAM = ["run", "source_ip", "destination_ip", "identification"]
FIRST_HOST_IP = int(IPv4Address(host_ip(0)))
MULTICAST_NET = 0xE0000000
TRANSMISSION = "bytes * 8000000000 div bandwidth_bps"
SENT = """
    run int, at bigint, sender int, receivers int, source int, seq bigint, kind smallint, fragment int,
    bytes int, control int
"""
HOPS = """
    run int, tail int, head int, queued bigint, started bigint, arrived bigint, bytes int, sender int,
    source int, seq bigint, kind smallint, fragment int
"""


def read_captures(
    spark: SparkSession,
    directory: Path,
    interfaces: Mapping[str, tuple[int | None, int]],
    start: int,
    processes: int,
    lost: Observation,
) -> DataFrame:
    """Every packet of a run that arrived at a switch: when, where, and where from."""
    ends = [(int(index), tail, head) for index, (tail, head) in interfaces.items()]
    places = f.broadcast(local_table(spark, ends, "interface int, tail int, head int"))
    everybody = f.when(f.col("destination_ip") >= MULTICAST_NET, processes - 1).otherwise(1)
    return (
        packets(spark, [directory], CAPTURED)
        .observe(lost, f.sum("lost_bytes").alias("bytes"))
        .join(places, "interface")
        .withColumn("at", f.col("time") - start)
        .withColumn("bytes", f.col("ip_length") + ETHERNET_BYTES)
        .withColumn("sender", (f.col("source_ip") - FIRST_HOST_IP).cast("int"))
        .withColumn("receivers", everybody)
        .withColumnRenamed("fragment_offset", "fragment")
        .drop("time", "interface", "ip_length", "lost_bytes")
    )


def attributed(seen: DataFrame) -> DataFrame:
    """Each packet with the message of its datagram's latest first fragment from a host."""
    header = ["source", "seq", "kind", "control"]
    first = f.col("tail").isNull() & (f.col("fragment") == 0)
    until_now = Window.partitionBy(DATAGRAM).orderBy("at")
    whose = f.last(f.when(first, f.struct(*header)), ignorenulls=True).over(until_now)
    return seen.withColumn("header", whose).drop(*header).select("*", "header.*").drop("header")


def captured_sent(seen: DataFrame) -> DataFrame:
    """What hosts handed to their switches."""
    return (
        seen.filter("tail is null")
        .withColumn("bytes", f.col("bytes") - ETHERNET_BYTES - IP_BYTES - _first(UDP_BYTES))
        .withColumn("control", _first(f.col("control")))
    )


def captured_hops(seen: DataFrame, links: DataFrame) -> DataFrame:
    """Each packet on each link, from its last arrival at the switch before."""
    packet = [*DATAGRAM, "fragment"]
    before = seen.select(*packet, f.col("head").alias("tail"), f.col("at").alias("queued"))
    hops = (
        seen.join(before, [*packet, "tail"])
        .filter("queued <= at")
        .groupBy(seen.columns)
        .agg(f.max("queued").alias("queued"))
        .withColumnRenamed("at", "arrived")
    )
    in_order = Window.partitionBy("run", "tail", "head").orderBy("queued", "arrived")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    return (
        hops.join(f.broadcast(links), ["run", "tail", "head"])
        .withColumn("work", f.coalesce(f.sum(f.expr(TRANSMISSION)).over(earlier), f.lit(0)))
        .withColumn("idle", f.max(f.expr("queued - work")).over(in_order.rowsBetween(*SO_FAR)))
        .withColumn("started", f.expr("work + idle"))
    )


def simulated_sent(table: DataFrame, framing: str) -> DataFrame:
    """What processes handed to the network: the packets on the links that leave their own node."""
    headers = 0 if framing == "bare" else ETHERNET_BYTES + IP_BYTES + _first(UDP_BYTES)
    return (
        table.filter("tail = sender")
        .withColumnRenamed("queued", "at")
        .withColumn("bytes", f.col("bytes") - headers)
        .withColumn("control", _first(f.col("control")))
    )


def with_errors(hops: DataFrame, links: DataFrame) -> DataFrame:
    """Hops with their errors: the difference to the time that the configured link takes."""
    error = f.expr(f"arrived - started - ({TRANSMISSION}) - delay_ns")
    columns = ["run", "tail", "head", "queued", "started", "arrived", "error", "bytes"]
    return (
        hops.join(f.broadcast(links), ["run", "tail", "head"])
        .withColumn("error", error)
        .select(*columns, "sender", "source", "seq", "kind", "fragment")
    )


def _first(value: Column | int) -> Column:
    """A value that only a message's first packet has."""
    return f.when(f.col("fragment") == 0, value).otherwise(0)
