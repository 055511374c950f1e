"""Packets per second: the digest, and its Spark source, against tshark and scapy, in one run.

First the whole digest of an emulated run with a million packets, all tables, on two cores, without
the start of Java but with that of Spark's Python processes, and of the same run several times as long;
tshark only reads its captures. Then the command from its start to its end. ``--run`` names a run that
there is already. On a machine that others use too, the seconds of processor tell more than those of the
clock.

Then reading alone. The capture is like those of the testbed: cooked packets (SLL2) with times in
nanoseconds, UDP with the header of the wire format, payloads of mixed sizes. Spark counts packets and
bytes by source and kind on two cores, without the start of its session; the best of several rounds
counts, since Java gets faster as it goes. tshark and scapy decode the same fields of the first packets
of the same file. All three must agree on these. Memory is the sum of the peak resident sizes of all
processes: Python, Java and the Python processes that Java starts.
"""

import os
import subprocess
import sys
import tempfile
import time
from argparse import BooleanOptionalAction, Namespace
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from scapy.layers.inet import UDP
from scapy.utils import PcapReader

from scripts import parser
from scripts.benchmarks import timed
from scripts.benchmarks._emulated import emulate, repeated
from testbed.digest import WORKERS, session
from testbed.digest.digest import digest_runs, open_runs
from testbed.digest.source import packets
from testbed.packets import headers
from testbed.packets.pcap import FILE_HEADER, RECORD
from testbed.progress import silent
from testbed.protocols.wire import MAGIC, VERSION, WireError, decode_header
from testbed.runs import results
from testbed.runs.directory import RunDirectory
from testbed.spark.session import context

CHUNK = 10_000
LAYERS = {
    "record": RECORD.newbyteorder("<"),
    "link": headers.LINK_TYPES[headers.LINKTYPE_LINUX_SLL2].header,
    "ip": headers.IP_HEADER,
    "udp": headers.UDP_HEADER,
    "wire": headers.WIRE_HEADER,
}
FRAME = np.dtype([*LAYERS.items()])
Counts = dict[tuple[int, int], tuple[int, int]]  # packets and bytes by source and kind


def main() -> None:
    """Measure the whole digest, then reading alone."""
    command = parser("bench digest", __doc__)
    command.add_argument("--packets", type=int, default=5_000_000)
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--run", type=Path, help="a run of engine virtual without fragments")
    command.add_argument("--times", type=int, default=4, help="as long, for the second digest")
    command.add_argument("--reading", action=BooleanOptionalAction, default=True)
    options = command.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-digest-") as name:
        whole(options.run or emulate(Path(name)), Path(name) / "longer", options.times)
    if options.reading:
        reading(options)


def whole(run: Path, longer: Path, times: int) -> None:
    """Measure the whole digest of a run and of a longer one, and how fast tshark reads."""
    print(f"the whole digest; load {os.getloadavg()[0]:.1f}", flush=True)
    capture = max(RunDirectory(run).captures, key=lambda file: file.stat().st_size)
    words = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-e", "frame.time_epoch"]
    before = processor_s()
    seconds, told = timed(partial(subprocess.check_output, words, text=True))
    count = told.count("\n")
    show("tshark reads", count / seconds, count / (processor_s() - before))
    for path in (run, repeated(run, times, longer)):
        with context("local[2]", imports=WORKERS) as spark:
            sources, refused = open_runs([path])
            assert not refused
            before = processor_s()
            seconds, (digest,) = timed(partial(digest_runs, spark, sources, silent))
            spent, memory = processor_s() - before, resident()
        assert digest.problems == [], digest.problems
        count = digest.summary["hops"] + len(results.load_run(path).sent)
        show(f"{count:,} packets", count / seconds, count / spent, describe(memory))
    words = [sys.executable, "-m", "testbed", "digest", str(run), "--master", "local[2]"]
    seconds, _ = timed(partial(subprocess.check_output, words))
    print(f"  testbed digest, from its start to its end: {seconds:.1f} s", flush=True)


def show(what: str, rate: float, of_processor: float, more: str = "") -> None:
    """Print packets per second by the clock, and by what all processes used of the processors."""
    rates = f"{rate:>12,.0f} packets/s{of_processor:>12,.0f} per second of processor"
    print(f"  {what:<22}{rates}  {more}".rstrip(), flush=True)


def reading(options: Namespace) -> None:
    """Measure all three tools on one capture, and compare their counts."""
    with tempfile.TemporaryDirectory(prefix="bench-digest-") as name:
        sizes = {
            "scapy": min(30_000, options.packets),
            "tshark": min(200_000, options.packets),
            "fifth": options.packets // 5,
            "all": options.packets,
        }
        files = {key: Path(name) / f"{key}.pcap" for key in sizes}
        write(files, sizes)
        gb = files["all"].stat().st_size / 1e9
        print(
            f"{options.packets:,} packets, {gb:.2f} GB; load {os.getloadavg()[0]:.1f}", flush=True
        )
        ours, expected = with_spark(files, sizes, options.rounds)
        rates = {"this source, local[2]": ours}
        for tool, count in (("tshark", by_tshark), ("scapy", by_scapy)):
            seconds, found = timed(partial(count, files[tool]))
            rates[tool] = sizes[tool] / seconds
            assert found == expected[tool], f"{tool} finds other counts"
        for title, rate in rates.items():
            print(f"  {title:<24}{rate:>14,.0f} packets/s{ours / rate:>10.1f} ×")


def with_spark(
    files: dict[str, Path], sizes: dict[str, int], rounds: int
) -> tuple[float, dict[str, Counts]]:
    """Print times and memory; packets per second, and the counts that the other tools must find."""
    begun = time.perf_counter()
    with session("local[2]") as spark:
        print(f"  Spark's start {time.perf_counter() - begun:.1f} s", flush=True)
        for key in ("fifth", "all"):
            taken = [timed(partial(by_spark, spark, files[key]))[0] for _ in range(rounds)]
            print(
                f"  {sizes[key]:,} packets in {', '.join(f'{seconds:.2f}' for seconds in taken)} s, "
                f"memory {describe(resident())}",
                flush=True,
            )
        counts = {tool: by_spark(spark, files[tool]) for tool in ("scapy", "tshark")}
    return sizes["all"] / min(taken), counts


def by_spark(spark: SparkSession, file: Path) -> Counts:
    """Packets and bytes of the testbed's messages by source and kind."""
    table = packets(spark, [file], ["source", "kind", "length"])
    sums = table.groupBy("source", "kind").agg(f.count("*"), f.sum("length"))
    return {(source, kind): (count, total) for source, kind, count, total in sums.collect()}


def by_tshark(file: Path) -> Counts:
    """The same by tshark, which does not know the wire format and prints payloads."""
    fields = ("frame.time_epoch", "frame.len", "sll.ifindex", "ip.src", "udp.srcport")
    command = ["tshark", "-n", "-r", str(file), "-T", "fields"]
    for field in (*fields, "udp.payload"):
        command += ["-e", field]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    columns = (line.split("\t") for line in lines)
    return tally((int(c[1]), bytes.fromhex(c[-1][:64])) for c in columns)


def by_scapy(file: Path) -> Counts:
    """The same by scapy."""
    with PcapReader(str(file)) as reader:
        return tally((packet.wirelen or 0, bytes(packet[UDP].payload)) for packet in reader)


def tally(messages: Iterable[tuple[int, bytes]]) -> Counts:
    """Packets and bytes by source and kind, from lengths and payloads."""
    count: Counter[tuple[int, int]] = Counter()
    total: Counter[tuple[int, int]] = Counter()
    for length, payload in messages:
        try:
            header = decode_header(payload)
        except WireError:
            continue
        count[header.source, header.kind] += 1
        total[header.source, header.kind] += length
    return {key: (count[key], total[key]) for key in count}


def write(files: dict[str, Path], sizes: dict[str, int]) -> None:
    """Captures of these sizes, each the beginning of the longest."""
    random = np.random.default_rng(1)
    noise = random.bytes(CHUNK * 1100)
    open_files = {key: file.open("wb") for key, file in files.items()}
    for file in open_files.values():
        file.write(FILE_HEADER.pack(0xA1B23C4D, 2, 4, 0, 0, 262_144, headers.LINKTYPE_LINUX_SLL2))
    for first in range(0, max(sizes.values()), CHUNK):
        data, starts = chunk(random, first, noise)
        for key, file in open_files.items():
            if sizes[key] > first:
                file.write(data[: starts[min(sizes[key] - first, CHUNK)]])
    for file in open_files.values():
        file.close()


def chunk(random: np.random.Generator, first: int, noise: bytes) -> tuple[memoryview, Any]:
    """The next records as bytes, and where each begins."""
    payload = random.integers(0, 1001, CHUNK)
    starts = np.concatenate([[0], np.cumsum(payload + FRAME.itemsize)])
    frame = np.zeros(CHUNK, FRAME)
    captured = payload + FRAME.itemsize - RECORD.itemsize
    time_ns = (first + np.arange(CHUNK)) * 1_733
    record, link, ip, udp, wire = (frame[layer] for layer in LAYERS)
    record["seconds"] = 1_700_000_000 + time_ns // 10**9
    record["fraction"] = time_ns % 10**9
    record["captured"] = record["length"] = captured
    link["protocol"], link["interface"] = 0x0800, random.integers(1, 400, CHUNK)
    ip["version"], ip["protocol"] = 0x45, 17
    ip["length"] = captured - 20
    ip["identification"] = random.integers(0, 1 << 16, CHUNK)
    ip["source"] = 0x0A000001 + random.integers(0, 50, CHUNK)
    ip["destination"] = 0xEF000001
    udp["source"] = udp["destination"] = 5000
    udp["length"] = captured - 40
    wire["magic"], wire["version"], wire["protocol"], wire["run"] = MAGIC, VERSION, 2, 77
    wire["source"], wire["kind"] = random.integers(0, 50, CHUNK), random.integers(0, 3, CHUNK)
    wire["seq"], wire["sent_at"] = first + np.arange(CHUNK), time_ns
    data = bytearray(noise[: starts[-1]])
    size = FRAME.itemsize
    everywhere = np.ndarray(len(data) - size + 1, f"V{size}", data, 0, (1,))
    everywhere[starts[:-1]] = frame.view(f"V{size}")
    return memoryview(data), starts


def resident() -> dict[str, int]:
    """Peak resident bytes of this process and all its descendants, by program."""
    sums: Counter[str] = Counter()
    for pid, (name, size) in resident_by_process().items():
        sums["driver" if pid == os.getpid() else name] += size
    return dict(sums)


def resident_by_process() -> dict[int, tuple[str, int]]:
    """Program and peak resident bytes of this process and all its descendants."""
    parents, found = {}, {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            lines = (directory / "status").read_text().splitlines()
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if "VmHWM" in fields:
            pid = int(directory.name)
            parents[pid] = int(fields["PPid"])
            found[pid] = (fields["Name"], int(fields["VmHWM"].split()[0]) * 1024)
    return {pid: its for pid, its in found.items() if _descends(pid, parents)}


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid not in (0, os.getpid()):
        pid = parents.get(pid, 0)
    return pid != 0


def processor_s() -> float:
    """Seconds of processor that this process and all its descendants have used."""
    every = resident_by_process()
    ticks = 0
    for pid in every:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # its own, and those of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def describe(memory: dict[str, int]) -> str:
    """Memory in megabytes, in words."""
    each = ", ".join(f"{name} {size / 1e6:,.0f}" for name, size in memory.items())
    return f"{sum(memory.values()) / 1e6:,.0f} MB ({each})"


if __name__ == "__main__":
    main()
