"""The digest of emulated runs against tshark, against the simulator, and on a Spark cluster."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark
import pytest

from testbed.runs import results
from testbed.runs.parts import COLUMNS
from tests.emulation.conftest import SAME
from tests.emulation.explained import assert_explained
from tests.experiments import parsed, run

pytestmark = pytest.mark.emulation
PROCESSES = 8
DOCUMENT: dict[str, Any] = {
    "name": "digested",
    "topology": {"model": "pure-random", "nodes": PROCESSES, "edge_probability": 0.4},
    "links": {"delay_ms": [0.0, 5.0], "bandwidth_mbit": 10},
    "workload": {
        "model": "poisson",
        "senders": 4,
        "rate_per_s": 200,
        "duration_ms": 50,
        "payload_bytes": 2000,
    },
}
PROTOCOLS = ({"name": "overlay"}, {"name": "timestamp"})
SPARK = Path(pyspark.__file__).parent
START_S = 60.0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Both protocols on both engines; the emulated ones digested."""
    directory = tmp_path_factory.mktemp("runs")
    found = {}
    for engine in ("virtual", "simulate"):
        experiments = (parsed(DOCUMENT, engine=engine, protocol=each) for each in PROTOCOLS)
        found[engine] = [run(each, directory).path for each in experiments]
    done = run_testbed("digest", *found["virtual"])
    assert (done.returncode, done.stderr) == (0, "")
    return found


def run_testbed(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "testbed", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def seen_by_tshark(run: Path) -> pd.DataFrame:
    fields = ["sll.ifindex", "ip.len", "ip.frag_offset", "ip.dst"]
    (capture,) = (run / "packets").glob("*.pcap")
    options = [option for field in fields for option in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", capture, "-o", "ip.defragment:false", "-T", "fields", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    table = pd.DataFrame(rows, columns=["interface", "length", "offset", "destination"])
    return table.astype({"interface": int, "length": int, "offset": int})


def test_messages_bytes_and_hops_are_what_tshark_counts(runs: dict[str, list[Path]]) -> None:
    for path in runs["virtual"]:
        packets = seen_by_tshark(path)
        interfaces = json.loads((path / "emulation.json").read_text())["interfaces"]
        from_hosts = {int(i) for i, (tail, _) in interfaces.items() if tail is None}
        sent = packets[packets.interface.isin(from_hosts)]
        carried = packets[~packets.interface.isin(from_hosts)]
        receivers = 1 + (PROCESSES - 2) * (sent.destination == "239.0.0.1")
        payload = sent.length - 20 - 8 * (sent.offset == 0)
        summary = results.load(path).summary
        assert summary["hops"] == len(carried) > 100
        assert summary["wire_bytes"] == (carried.length + 14).sum()
        assert summary["messages"] == receivers.sum() > summary["copies"]
        assert summary["bytes"] == (payload * receivers).sum()


def test_the_comments_of_a_pcapng_agree_with_the_hops_table(
    runs: dict[str, list[Path]], tmp_path: Path
) -> None:
    for path in runs["virtual"]:
        file = tmp_path / f"{path.name}.pcapng"
        assert run_testbed("export", path, "--pcapng", "-o", file).returncode == 0
        start = json.loads((path / "emulation.json").read_text())["start_unix_ns"]
        found = [_commented(line, start) for line in read_by_tshark(file)]
        hops = results.load(path).hops
        expected = (
            (
                f"s{hop['tail']}->s{hop['head']}",
                hop["arrived"],
                hop["started"] - hop["queued"],
                f"m({hop['source']},{hop['seq']})",
            )
            for hop in hops.to_dict("records")
        )
        assert sorted(filter(None, found)) == sorted(expected)
        assert len(found) == len(hops) + found.count(None)


def test_delays_of_fragmented_messages_add_up_to_what_tshark_shows(
    runs: dict[str, list[Path]],
) -> None:
    for path in runs["virtual"]:
        assert_explained(path, results.load(path).summary["deliveries"])


def read_by_tshark(file: Path) -> list[list[str]]:
    fields = ["frame.interface_name", "frame.time_epoch", "frame.comment"]
    options = [option for field in fields for option in ("-e", field)]
    command = ["tshark", "-r", str(file), "-T", "fields", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def _commented(line: list[str], start: int) -> tuple[str, int, int, str] | None:
    """The link, arrival, waiting time and message of a hop; None for a packet sent by its host."""
    interface, epoch, comment = line
    if "sent by its host" in comment:
        return None
    found = re.fullmatch(
        r"(m\(\d+,\d+\)).*, hop \d+, (?:queued (\S+) ms behind \d+ \w+|not queued)", comment
    )
    assert found, comment
    return (
        interface,
        int(epoch.replace(".", "")) - start,
        round(float(found[2] or 0) * 1e6),
        found[1],
    )


def test_every_packet_belongs_to_a_message(runs: dict[str, list[Path]]) -> None:
    for path in runs["virtual"]:
        run = results.load(path)
        assert run.sent.source.notna().all()
        assert run.hops.source.notna().all()
        assert run.messages.hops.sum() == run.summary["hops"]
        assert run.messages.fragments.sum() == run.summary["messages"]
        assert (run.hops.error.abs() <= 5_000).mean() > 0.999


def test_the_simulator_counts_the_same(runs: dict[str, list[Path]]) -> None:
    for emulated, simulated in zip(runs["virtual"], runs["simulate"], strict=True):
        digest = results.load(emulated).summary
        engine = json.loads((simulated / "summary.json").read_text())
        assert digest["disagreements"] == 0
        for key in (*SAME, "messages"):
            assert digest[key] == engine[key], key
        assert digest["delay_ms_mean"] == pytest.approx(engine["delay_ms_mean"], rel=0.02)


@contextmanager
def started(role: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A part of a Spark cluster on loopback."""
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", *arguments]
    process = subprocess.Popen(
        command,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    end = time.monotonic() + START_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end, "Spark's master does not start"
        time.sleep(0.2)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and two workers with a core each."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as parts:
        parts.enter_context(started("master.Master", *here, "--port", str(port)))
        wait_for(port)
        for number in range(2):
            work = ["--work-dir", str(tmp_path / f"worker{number}"), "--cores", "1"]
            memory = ["--memory", "1g"]
            parts.enter_context(started("worker.Worker", *here, *work, *memory, master))
        yield master


def test_the_same_digest_on_a_cluster(runs: dict[str, list[Path]], cluster: str) -> None:
    before = [results.load(path) for path in runs["virtual"]]
    rows = [{name: len(getattr(run, name)) for name in COLUMNS} for run in before]
    summaries = [run.summary for run in before]
    done = run_testbed("digest", *runs["virtual"], "--master", cluster)
    assert (done.returncode, done.stderr) == (0, "")
    for path, summary, counts in zip(runs["virtual"], summaries, rows, strict=True):
        run = results.load(path)
        assert {name: len(getattr(run, name)) for name in COLUMNS} == counts
        assert run.summary.keys() == summary.keys()
        for key, value in summary.items():
            same = pytest.approx(value) if isinstance(value, float) else value
            assert run.summary[key] == same, key
