"""The pcap source of Spark, and the session that it comes with."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from testbed.digest.source import TYPES, packets
from testbed.errors import UserError
from testbed.packets.headers import COLUMNS, LINKTYPE_ETHERNET
from testbed.protocols.wire import Codec, Message
from testbed.spark.session import session, user_errors
from tests.packets.captures import Record, ethernet, file_header, ipv4, sll2, udp, write_capture

SOURCES, MESSAGES = 3, 700
TESTBED = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files: messages of three sources, and something else."""
    directory = tmp_path_factory.mktemp("captures")
    codec = Codec(2, (Message,), run=7, processes=SOURCES)
    frames = [
        sll2(0x0800, ipv4(udp(codec.encode(Message(k % SOURCES, k, bytes(2 * k))))))
        for k in range(MESSAGES)
    ]
    records = [Record(frame, fraction=k) for k, frame in enumerate(frames)]
    write_capture(directory / "a.pcap", records)
    write_capture(
        directory / "b.pcap", [Record(ethernet(0x86DD, bytes(60)))], link=LINKTYPE_ETHERNET
    )
    return directory


def test_every_packet_is_read_once_whatever_the_parts(spark: SparkSession, captures: Path) -> None:
    table = packets(spark, [captures / "a.pcap"], ["time", "seq", "length"], partBytes=50_000)
    assert table.rdd.getNumPartitions() > 1
    rows = sorted((row.seq, row.time % 10**9, row.length) for row in table.collect())
    assert rows == [(k, k, 80 + 2 * k) for k in range(MESSAGES)]


def test_spark_adds_up_what_the_packets_say(spark: SparkSession, captures: Path) -> None:
    table = packets(spark, [captures], ["source", "length"])
    sums = {row.source: row["sum(length)"] for row in table.groupBy("source").sum().collect()}
    each: dict[int | None, int] = {
        n: sum(80 + 2 * k for k in range(n, MESSAGES, SOURCES)) for n in range(SOURCES)
    }
    assert sums == {**each, None: 74}


def test_the_source_gives_all_columns_unless_asked_for_some(
    spark: SparkSession, captures: Path
) -> None:
    everything = spark.read.format("pcap").load(str(captures / "b.pcap"))
    assert dict(everything.dtypes) == TYPES
    (row,) = everything.collect()
    present = {name for name, value in row.asDict().items() if value is not None}
    assert present == {"file", "time", "length", "captured", "lost_bytes"}
    assert row.file == str(captures / "b.pcap")
    some = spark.read.format("pcap").schema("length bigint, file string").load(str(captures))
    assert [name for name, _ in some.dtypes] == ["length", "file"]
    assert [found.file for found in some.filter("length = 74").collect()] == [row.file]


def test_only_the_columns_that_are_asked_for_are_decoded(
    captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.types import StructType

    from testbed.digest.source import PcapReader

    for name in set(COLUMNS) - {"length", "lost_bytes"}:
        monkeypatch.delitem(COLUMNS, name)
    reader = PcapReader(StructType().add("length", "integer"), [str(captures)], 1 << 20)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert sum(batch.num_rows for batch in batches) == MESSAGES + 1
    assert {tuple(batch.schema.names) for batch in batches} == {("length",)}


def test_several_paths_and_globs_are_read(spark: SparkSession, captures: Path) -> None:
    reader = spark.read.format("pcap").schema("time bigint")
    assert reader.load([str(captures / "a.pcap"), str(captures / "b.pcap")]).count() == 701
    assert reader.load(str(captures / "[ab].pcap")).count() == 701


def test_lost_bytes_reach_spark(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes((captures / "a.pcap").read_bytes()[:-10])
    table = packets(spark, [tmp_path], ["lost_bytes"])
    (total,) = table.groupBy().sum().collect()
    assert total[0] == 16 + 80 + 2 * (MESSAGES - 1) - 10
    assert table.count() == MESSAGES - 1


@pytest.mark.parametrize(
    ("name", "schema", "sentence"),
    [
        ("x", "time bigint", r"x: a pcapng capture; convert it"),
        ("y", "time bigint", r"y: packets of link type 105; known are Ethernet \(1\)"),
        ("z", "time bigint", r"z: no captures"),
        ("y", "size int", r"a capture has no column 'size'; it has file, time, .*lost_bytes$"),
    ],
)
def test_what_is_wrong_comes_out_of_spark_as_one_sentence(
    spark: SparkSession, tmp_path: Path, name: str, schema: str, sentence: str
) -> None:
    (tmp_path / "x").write_bytes(b"\n\r\r\n" + bytes(30))
    (tmp_path / "y").write_bytes(file_header(link=105))
    with pytest.raises(UserError, match=sentence) as told, user_errors():
        spark.read.format("pcap").schema(schema).load(str(tmp_path / name)).count()
    assert "\n" not in str(told.value)


def test_a_session_in_a_session_is_the_same(spark: SparkSession) -> None:
    with session("local[1]") as inner:
        assert inner is spark
    assert spark.range(3).count() == 3


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a Python of its own, started from elsewhere."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(TESTBED), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_session_says_nothing_and_leaves_no_process(captures: Path) -> None:
    done = run(f"""
import os
from testbed.digest import session
for _ in range(2):
    with session("local[1]") as spark:
        java = spark.sparkContext._gateway.proc.pid
        print(spark.read.format("pcap").load({str(captures)!r}).count())
    print(os.path.exists(f"/proc/{{java}}"))
""")
    assert (done.stdout, done.stderr) == ("701\nFalse\n" * 2, "")


@pytest.mark.parametrize("master", ["lokal", "local[x]", "spark://host", "http://host:1"])
def test_a_master_that_spark_does_not_know_is_told(master: str) -> None:
    with pytest.raises(UserError, match="is no Spark master; local"), session(master):
        pytest.fail("it started")


def test_a_master_that_does_not_answer_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(UserError, match=f"{master}: no answer"), session(master):
            pytest.fail("it started")


def test_a_listener_that_is_no_master_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        master = f"spark://127.0.0.1:{mute.getsockname()[1]}"
        done = run(f"""
from testbed.digest import session as _
import sys
from testbed.errors import UserError
module = sys.modules["testbed.spark.session"]
module.ANSWER_S = 1
try:
    with module.session({master!r}):
        print("started")
except UserError as error:
    print(error)
""")
    assert (done.stdout, done.stderr) == (
        f"{master}: takes connections, but does not answer as a Spark master\n",
        "",
    )


def test_java_that_is_missing_or_old_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UserError, match="Spark needs Java 17 or later, here: not installed"):
        session("local[1]").__enter__()
    (tmp_path / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (tmp_path / "java").chmod(0o755)
    with pytest.raises(UserError, match="Spark needs Java 17 or later, here: version 11"):
        session("local[1]").__enter__()


def test_spark_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UserError, match=r"this needs pyspark: run scripts/setup"):
        session("local[1]").__enter__()
